"""Daemons and processes that die, hang and come back: who loses which lock, and when.

Lower bounds on time are promises (a lock must not be freed before its holder is fenced); upper bounds only end a
test."""

import os
import time

import pytest

from mounting import TIMES, Times, poll

KINDS = ["posix", "ofd", "flock"]
WHOLE = {"posix": (0, 0), "ofd": (0, 0), "flock": ()}
PATIENCE = 10 * TIMES.break_after


def lock(locker, kind, mode, how="try", name="f"):
    return locker.ask(kind, name, mode, how, *WHOLE[kind], bound=PATIENCE)


def wait_for(locker, kind, mode="ex", name="f"):
    locker.send(kind, name, mode, "wait", *WHOLE[kind])
    locker.wait_blocked()


@pytest.fixture
def hosts(stage):
    """Makes mounts of one share, each a host of its own."""
    share = stage.share()

    def make(count):
        return [stage.mount(share, host_id=f"host-{letter}") for letter in "abc"[:count]]

    return make


def assert_only(share, count):
    """The dead sessions have been swept, and every name of theirs."""
    poll(lambda: len(share.sessions()) == count, "dead sessions to be swept")
    poll(lambda: len(share.names("beats")) == count, "their beats to go")


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_frees_its_locks_at_once(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    here, neighbour, there = (lockers().open("f", host.path / folder / "f") for host in (pair[0], pair[0], pair[1]))
    for other in (neighbour, there):
        holder = lockers().open("f", pair[0].path / folder / "f")
        assert lock(holder, kind, "ex").ok
        assert lock(other, kind, "sh").errno == "EAGAIN"
        wait_for(other, kind)
        holder.kill()
        assert other.answer().ok
        assert lock(other, kind, "un").ok
    assert lock(here, kind, "ex").ok


@pytest.mark.limit(PATIENCE)
def test_a_killed_daemon_frees_its_locks_after_its_lease(hosts, lockers):
    a, b, c = hosts(3)
    share = a.share
    holder, crowd = lockers().open("f", a.path / "f"), []
    for kind in KINDS:
        holder.open(kind, a.path / kind)
        assert lock(holder, kind, "ex", name=kind).ok
        crowd += [(kind, lockers().open("f", host.path / kind)) for host in (b, c)]
    killed = time.monotonic()
    a.kill()
    for kind, waiter in crowd:
        assert lock(waiter, kind, "sh").errno == "EAGAIN"  # dead or not: nobody can know yet
        wait_for(waiter, kind)
    for kind in KINDS:
        waiters = [w for k, w in crowd if k == kind]
        first = poll(lambda: next((w for w in waiters if w.answered()), None), "a waiter to be granted", bound=PATIENCE)
        answer = first.answer()
        assert answer.ok
        assert answer.end >= killed - TIMES.beat + TIMES.fence_after
        second = waiters[1 - waiters.index(first)]
        assert second.calls_waiting() == 1  # two saw the death; one got the lock
        assert lock(first, kind, "un").ok
        assert second.answer().ok
    assert_only(share, 2)
    holder.kill()
    for _, locker in crowd:
        locker.kill()
    b.stop()
    c.stop()
    assert share.leftovers() == []


@pytest.fixture
def asleep(hosts, lockers):
    """Host a held locks and its daemon stands still; host b has taken the lock on `f` meanwhile."""
    a, b = hosts(2)
    for name in ("f", "g", "free"):
        (a.path / name).write_bytes(b"first" + b"." * 20000)
    sleeper = lockers().open("f", a.path / "f").open("g", a.path / "g").open("free", a.path / "free")
    assert lock(sleeper, "posix", "ex").ok
    assert lock(sleeper, "flock", "ex", name="g").ok
    assert sleeper.do("read", "f", 0, 5) == "first"
    stopped = time.monotonic()
    a.stop_running()
    taker = lockers().open("f", b.path / "f").open("g", b.path / "g")
    wait_for(taker, "posix")
    answer = taker.answer(PATIENCE)
    assert answer.ok
    assert answer.end >= stopped - TIMES.beat + TIMES.fence_after
    assert lock(taker, "flock", "ex", name="g").ok
    taker.do("write", "f", 0, "second")
    yield a, b, sleeper, taker
    a.go_on()


@pytest.mark.limit(PATIENCE)
def test_a_daemon_that_wakes_up_after_its_lease(asleep, lockers):
    a, b, sleeper, taker = asleep
    a.go_on()
    for name in ("f", "g"):
        assert sleeper.ask("write", name, 0, "zombie", bound=PATIENCE).errno == "EIO"
        # Also bytes that the kernel has in memory.
        poll(lambda: sleeper.ask("read", name, 0, 5).errno == "EIO", "reads of the old handle to fail")
        assert sleeper.ask("sync", name).errno == "EIO"
    assert lock(sleeper, "posix", "ex").errno == "EIO"
    # The handle without locks, and everything new, works on.
    assert sleeper.do("write", "free", 0, "third") == 5
    assert sleeper.do("read", "free", 0, 5) == "third"
    fresh = lockers().open("f", a.path / "f")
    assert fresh.do("read", "f", 0, 6) == "second"
    # The other holder was never disturbed.
    assert taker.do("read", "f", 0, 6) == "second"
    assert taker.do("write", "f", 0, "fourth") == 6
    poll(lambda: len(a.share.sessions()) == 2, "the woken daemon to open a new session")
    assert lock(fresh, "posix", "sh").errno == "EAGAIN"
    assert lock(taker, "posix", "un").ok
    assert lock(fresh, "posix", "ex").ok
    assert fresh.do("read", "f", 0, 6) == "fourth"
    # And so does the old one's process, once it has opened the file again.
    sleeper.do("close", "g")
    sleeper.open("g", a.path / "g")
    assert lock(taker, "flock", "un", name="g").ok
    assert lock(sleeper, "flock", "ex", name="g").ok
    assert sleeper.do("write", "g", 0, "alive") == 5


@pytest.mark.limit(PATIENCE)
def test_a_woken_daemon_tells_which_locks_it_lost(asleep):
    a, _, sleeper, _ = asleep
    a.go_on()
    assert sleeper.ask("write", "f", 0, "zombie", bound=PATIENCE).errno == "EIO"
    poll(lambda: a.stderr().count("lock lost") >= 2, "the lost locks in the log")
    assert a.stderr().count("lock lost") == 2  # one line a lock
    assert str(sleeper.pid) in a.stderr()


@pytest.mark.limit(PATIENCE)
def test_a_lone_daemon_that_slept_lost_nothing(hosts, lockers):
    """The lease ran out, but nobody was there to break it: I/O waits for the next beat and goes on."""
    (a,) = hosts(1)
    holder, other = lockers().open("f", a.path / "f"), lockers().open("f", a.path / "f")
    assert lock(holder, "posix", "ex").ok
    a.stop_running()
    time.sleep(TIMES.fence_after + 2 * TIMES.beat)
    a.go_on()
    assert holder.ask("write", "f", 0, "still here", bound=PATIENCE).ok
    assert holder.do("read", "f", 0, 10) == "still here"
    assert lock(other, "posix", "sh").errno == "EAGAIN"
    assert lock(holder, "posix", "un").ok
    assert lock(other, "posix", "sh").ok


LONG = Times(5, 300, 400)  # so long that only a proof can free a lock within a test


def test_a_killed_daemon_of_the_same_host_frees_its_locks_soon(stage, lockers):
    share = stage.share()
    a, b = (stage.mount(share, times=LONG) for _ in range(2))
    holder, waiter = lockers().open("f", a.path / "f"), lockers().open("f", b.path / "f")
    assert lock(holder, "posix", "ex").ok
    wait_for(waiter, "posix")
    a.kill()
    assert waiter.answer(100).ok
    assert_only(share, 1)
    waiter.kill()
    b.stop()
    assert share.leftovers() == []


def test_a_daemon_that_starts_again_clears_up_after_itself(stage, lockers):
    share = stage.share()
    a = stage.mount(share, times=LONG)
    holder = lockers().open("f", a.path / "f")
    assert lock(holder, "flock", "ex").ok
    a.kill()
    a.detach()
    b = stage.mount(share, times=LONG)
    locker = lockers().open("f", b.path / "f")
    poll(lambda: lock(locker, "flock", "ex").ok, "the old lock to go")
    assert_only(share, 1)
    locker.kill()
    b.stop()
    assert share.leftovers() == []


@pytest.mark.parametrize("host_ids", [("a", "b"), (None, None)])
def test_a_clean_end_gives_everything_back(stage, lockers, host_ids):
    share = stage.share()
    a, b = (stage.mount(share, host_id=host_id, times=LONG) for host_id in host_ids)
    holder, waiter = lockers().open("f", a.path / "f"), lockers().open("f", b.path / "f")
    for kind in KINDS:
        if kind != "ofd":  # one space with posix
            assert lock(holder, kind, "ex").ok
    wait_for(waiter, "posix")
    a.process.terminate()
    assert a.process.wait(60) == 0
    assert waiter.answer().ok
    assert lock(waiter, "flock", "ex").ok
    assert_only(share, 1)
    waiter.kill()
    b.stop()
    assert share.leftovers() == []
    assert {"format", "README"} <= set(os.listdir(share.control))
