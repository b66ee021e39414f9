"""How locks end, are waited for and are interrupted, on a mount and on a local file alike; then what only a mount
has to show."""

import os
import signal
import subprocess

import pytest

from locker_client import winners
from mounting import poll, scaled

KINDS = ["posix", "ofd", "flock"]
WHOLE = {"posix": (0, 0), "ofd": (0, 0), "flock": ()}


def lock(locker, kind, mode, how="try", name="f"):
    return locker.ask(kind, name, mode, how, *WHOLE[kind])


def take(locker, kind, mode="ex", name="f"):
    assert lock(locker, kind, mode, "try", name).ok


def free(locker, kind, name="f"):
    assert lock(locker, kind, "un", "try", name).ok


def wait_for(locker, kind, mode="ex"):
    locker.send(kind, "f", mode, "wait", *WHOLE[kind])
    locker.wait_blocked()


@pytest.fixture
def two(place, lockers):
    return [lockers().open("f", place / "f") for _ in range(2)]


@pytest.fixture
def three(place, lockers):
    return [lockers().open("f", place / "f") for _ in range(3)]


# ---- flock


@pytest.mark.parametrize("mine,theirs,allowed", [("sh", "sh", True), ("sh", "ex", False), ("ex", "sh", False),
                                                 ("ex", "ex", False)])
def test_flock_modes_against_each_other(two, mine, theirs, allowed):
    a, b = two
    take(a, "flock", mine)
    assert lock(b, "flock", theirs).errno == (None if allowed else "EAGAIN")
    free(a, "flock")
    assert lock(b, "flock", theirs).ok


def test_flock_needs_no_matching_open_mode(place, lockers):
    (place / "f").write_bytes(b"")
    a, b = lockers().open("f", place / "f", "rdonly"), lockers().open("f", place / "f", "wronly")
    take(a, "flock", "ex")
    assert lock(b, "flock", "sh").errno == "EAGAIN"
    free(a, "flock")
    take(b, "flock", "sh")


def test_flock_belongs_to_the_open_file(place, lockers):
    a = lockers().open("f", place / "f").open("g", place / "f")
    take(a, "flock", "ex")
    assert lock(a, "flock", "ex", name="g").errno == "EAGAIN"
    a.do("dup", "f", "d")
    take(a, "flock", "ex", name="d")
    free(a, "flock", name="d")
    take(a, "flock", "ex", name="g")


def test_flock_conversions(two):
    a, b = two
    take(a, "flock", "ex")
    take(a, "flock", "sh")
    take(b, "flock", "sh")
    free(b, "flock")
    take(a, "flock", "ex")
    assert lock(b, "flock", "sh").errno == "EAGAIN"


def test_a_refused_flock_conversion_loses_the_lock(two):
    """As flock(2) says: the old lock is dropped first, so that of two upgrades one succeeds."""
    a, b = two
    take(a, "flock", "sh")
    take(b, "flock", "sh")
    assert lock(a, "flock", "ex").errno == "EAGAIN"
    take(b, "flock", "ex")


def test_a_waiting_flock_conversion(two):
    a, b = two
    take(a, "flock", "sh")
    take(b, "flock", "sh")
    wait_for(a, "flock", "ex")
    free(b, "flock")
    assert a.answer().ok
    assert lock(b, "flock", "sh").errno == "EAGAIN"


def test_unlocking_what_is_not_locked(two):
    for kind in KINDS:
        free(two[0], kind)


# ---- the end of a lock


def test_closing_any_descriptor_drops_posix_locks(place, lockers):
    a, b = lockers().open("f", place / "f").open("g", place / "f"), lockers().open("f", place / "f")
    take(a, "posix")
    a.do("close", "g")
    take(b, "posix")


def test_closing_a_duplicate_drops_posix_locks_only(place, lockers):
    a, b = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    a.do("dup", "f", "d")
    take(a, "ofd")
    take(a, "flock")
    a.do("dup", "f", "e")
    a.do("close", "d")
    assert lock(b, "ofd", "sh").errno == "EAGAIN"
    assert lock(b, "flock", "sh").errno == "EAGAIN"
    free(a, "ofd")
    take(a, "posix")
    a.do("close", "e")
    take(b, "posix")


@pytest.mark.parametrize("kind", ["ofd", "flock"])
def test_the_last_close_drops_the_lock(two, kind):
    a, b = two
    a.do("dup", "f", "d")
    take(a, kind)
    a.do("close", "f")
    assert lock(b, kind, "sh").errno == "EAGAIN"
    a.do("close", "d")
    take(b, kind)


@pytest.mark.parametrize("kind", ["ofd", "flock"])
def test_a_forked_child_keeps_the_lock_alive(two, kind):
    a, b = two
    take(a, kind)
    child = a.do("child", "hold")
    a.do("close", "f")
    assert lock(b, kind, "sh").errno == "EAGAIN"
    a.do("reap", child)
    b.send(kind, "f", "ex", "wait", *WHOLE[kind])
    assert b.answer().ok


def test_a_forked_child_has_no_posix_locks(two):
    a, b = two
    take(a, "posix")
    a.do("child", "close", "f")
    assert lock(b, "posix", "sh").errno == "EAGAIN"  # the child closed its copy, and the lock is still the parent's
    child = a.do("child", "hold")
    a.do("close", "f")
    take(b, "posix")
    a.do("reap", child)


@pytest.mark.parametrize("kind", ["ofd", "flock", "posix"])
def test_another_process_can_lock_after_close(place, lockers, kind):
    a, b = lockers(), lockers().open("f", place / "f")
    for _ in range(scaled(300)):
        a.open("f", place / "f")
        take(a, kind)
        a.do("close", "f")
        take(b, kind)
        free(b, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_descriptor_can_lock_after_close(place, lockers, kind):
    """The next open gets the numbers of the one before; its lock must not suffer from the end of that one."""
    a, b = lockers(), lockers().open("f", place / "f")
    for _ in range(scaled(100)):
        a.open("f", place / "f")
        take(a, kind)
        a.do("close", "f")
        a.open("g", place / "f")
        take(a, kind, name="g")
        assert lock(b, kind, "sh").errno == "EAGAIN"
        a.do("close", "g")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_the_end_of_the_holder_frees_its_lock(two, kind, end):
    a, b = two
    take(a, kind)
    wait_for(b, kind)
    if end == "kill":
        a.kill()
    else:
        a.process.stdin.close()
    assert b.answer().ok


@pytest.mark.parametrize("kind", KINDS)
def test_of_simultaneous_tries_just_one_succeeds(place, kind):
    """And the others are told so while the winner still holds the lock: a try never waits."""
    rounds = scaled(500)
    assert winners(kind, rounds, [place / "f"] * 3) == [1] * rounds


# ---- waiting


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mine,theirs", [("ex", "ex"), ("ex", "sh"), ("sh", "ex")])
def test_a_waiter_is_granted_after_unlock(three, kind, mine, theirs):
    a, b, c = three
    take(a, kind, mine)
    wait_for(b, kind, theirs)
    free(a, kind)
    granted = b.answer()
    assert granted.ok
    assert lock(c, kind, "ex").errno == "EAGAIN"


@pytest.mark.parametrize("kind", KINDS)
def test_all_waiting_readers_are_granted_together(place, lockers, kind):
    writer, *readers = [lockers().open("f", place / "f") for _ in range(5)]
    take(writer, kind)
    for reader in readers:
        wait_for(reader, kind, "sh")
    free(writer, kind)
    assert all(reader.answer().ok for reader in readers)
    assert lock(writer, kind, "ex").errno == "EAGAIN"


@pytest.mark.parametrize("kind", ["posix", "ofd"])
def test_a_waiter_is_granted_when_its_range_is_free(two, kind):
    a, b = two
    a.do(kind, "f", "ex", "try", 0, 100)
    b.send(kind, "f", "ex", "wait", 40, 20)
    b.wait_blocked()
    a.do(kind, "f", "un", "try", 0, 50)
    b.wait_blocked()
    a.do(kind, "f", "un", "try", 50, 10)
    assert b.answer().ok
    assert a.ask(kind, "f", "sh", "try", 59, 1).errno == "EAGAIN"


@pytest.mark.parametrize("kind", ["posix", "ofd"])
def test_a_downgrade_lets_readers_in(two, kind):
    a, b = two
    take(a, kind, "ex")
    wait_for(b, kind, "sh")
    take(a, kind, "sh")
    assert b.answer().ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_interrupts_a_waiter(three, kind):
    a, b, c = three
    take(a, kind)
    wait_for(b, kind)
    b.interrupt()
    assert b.answer().errno == "EINTR"
    free(a, kind)
    take(c, kind)
    assert lock(b, kind, "sh").errno == "EAGAIN"


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_waiter_is_gone(three, kind):
    a, b, c = three
    take(a, kind)
    wait_for(b, kind)
    b.process.kill()
    b.process.wait(60)
    free(a, kind)
    take(c, kind)


def test_an_interrupted_upgrade_keeps_the_read_lock(three):
    a, b, c = three
    take(a, "posix", "sh")
    take(b, "posix", "sh")
    wait_for(a, "posix", "ex")
    a.interrupt()
    assert a.answer().errno == "EINTR"
    free(b, "posix")
    assert c.do("posix", "f", "ex", "test", 0, 0)["mode"] == "sh"


# ---- only on a mount


def test_a_waiting_flock_dies_of_sigint_and_leaves_no_name(mount, folder, lockers):
    (mount.path / folder).mkdir()
    path = mount.path / folder / "f"
    holder = lockers().open("f", path)
    take(holder, "flock")
    before = sorted(mount.share.claims())
    default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    waiter = subprocess.Popen(["flock", str(path), "true"], preexec_fn=default)
    poll(lambda: open(f"/proc/{waiter.pid}/syscall").read().split()[0] in ("73", "32"), "flock(1) to wait")
    waiter.send_signal(signal.SIGINT)
    assert waiter.wait(2) == -signal.SIGINT
    poll(lambda: sorted(mount.share.claims()) == before, "the waiter's names to go")
    free(holder, "flock")


def test_after_the_locks_no_claim_is_left(mount, folder, lockers):
    (mount.path / folder).mkdir()
    a = lockers().open("f", mount.path / folder / "f")
    for kind in KINDS:
        take(a, kind)
        assert mount.share.claims()
        free(a, kind)
    a.kill()
    poll(lambda: not mount.share.claims(), "all claims to be withdrawn")


def test_a_thousand_waiters_stop_nobody_else(mount, folder, lockers):
    root = mount.path / folder
    root.mkdir()
    (root / "other").write_bytes(b"data")
    holder, crowd = lockers().open("f", root / "f"), lockers()
    take(holder, "flock")
    count = scaled(1000)
    crowd.do("crowd", root / "f", count)
    poll(lambda: crowd.calls_waiting() == count, f"{count} waiters", pause=0.2)
    for i in range(50):
        assert os.stat(root / "other").st_size == 4
        assert (root / "other").read_bytes() == b"data"
        (root / f"new{i}").write_bytes(b"")
    assert len(os.listdir(root)) == 52
    assert crowd.calls_waiting() == count
    free(holder, "flock")
    assert crowd.do("crowd-result", bound=100) == {"counted": count, "errors": []}
