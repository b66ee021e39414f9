"""Two mounts of one directory that take each other for two hosts: what one holds, the other cannot have."""

import os

import pytest

from locker_client import winners
from mounting import poll, scaled

KINDS = ["posix", "ofd", "flock"]
RECORD = ["posix", "ofd"]
WHOLE = {"posix": (0, 0), "ofd": (0, 0), "flock": ()}


def lock(locker, kind, mode, how="try"):
    return locker.ask(kind, "f", mode, how, *WHOLE[kind])


@pytest.fixture(params=["a-first", "b-first"])
def two(request, pair, folder, lockers):
    """A process on each host with one file open; the first one is on host a or on host b."""
    (pair[0].path / folder).mkdir()
    hosts = pair if request.param == "a-first" else pair[::-1]
    return [lockers().open("f", host.path / folder / "f") for host in hosts]


@pytest.fixture
def four(pair, folder, lockers):
    """Two processes on each host: a, a, b, b."""
    (pair[0].path / folder).mkdir()
    return [lockers().open("f", host.path / folder / "f") for host in (pair[0], pair[0], pair[1], pair[1])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mine,theirs,allowed", [("sh", "sh", True), ("sh", "ex", False), ("ex", "sh", False),
                                                 ("ex", "ex", False)])
def test_a_try_against_the_other_host(two, kind, mine, theirs, allowed):
    here, there = two
    assert lock(here, kind, mine).ok
    assert lock(there, kind, theirs).errno == (None if allowed else "EAGAIN")
    assert lock(here, kind, "un").ok
    assert lock(there, kind, theirs).ok


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mine,theirs", [("ex", "ex"), ("ex", "sh"), ("sh", "ex")])
def test_a_wait_for_the_other_host(two, kind, mine, theirs):
    here, there = two
    assert lock(here, kind, mine).ok
    there.send(kind, "f", theirs, "wait", *WHOLE[kind])
    there.wait_blocked()
    assert lock(here, kind, "un").ok
    assert there.answer().ok
    assert lock(here, kind, "ex").errno == "EAGAIN"


@pytest.mark.parametrize("kind", RECORD)
def test_ranges_that_do_not_meet(two, kind):
    here, there = two
    here.do(kind, "f", "ex", "try", 0, 10)
    there.do(kind, "f", "ex", "try", 10, 10)
    here.do(kind, "f", "ex", "try", 20, 0)
    assert there.ask(kind, "f", "sh", "try", 5, 10).errno == "EAGAIN"
    assert here.ask(kind, "f", "sh", "try", 19, 1).errno == "EAGAIN"
    assert there.ask(kind, "f", "sh", "try", 2**63 - 1, 1).errno == "EAGAIN"


@pytest.mark.parametrize("kind", RECORD)
def test_a_partial_unlock_frees_just_that_part(two, kind):
    here, there = two
    here.do(kind, "f", "ex", "try", 0, 0)
    here.do(kind, "f", "un", "try", 100, 50)
    assert there.ask(kind, "f", "ex", "try", 99, 2).errno == "EAGAIN"
    assert there.ask(kind, "f", "ex", "try", 149, 2).errno == "EAGAIN"
    there.do(kind, "f", "ex", "try", 100, 50)
    assert here.ask(kind, "f", "ex", "try", 120, 1).errno == "EAGAIN"
    assert here.ask(kind, "f", "ex", "try", 0, 100).ok


@pytest.mark.parametrize("kind", RECORD)
def test_a_partial_unlock_wakes_a_waiter(two, kind):
    here, there = two
    here.do(kind, "f", "ex", "try", 0, 100)
    there.send(kind, "f", "ex", "wait", 40, 20)
    there.wait_blocked()
    here.do(kind, "f", "un", "try", 30, 40)
    assert there.answer().ok
    assert here.ask(kind, "f", "sh", "try", 59, 1).errno == "EAGAIN"


@pytest.mark.parametrize("kind", KINDS)
def test_a_downgrade_lets_the_other_host_read(two, kind):
    here, there = two
    assert lock(here, kind, "ex").ok
    assert lock(there, kind, "sh").errno == "EAGAIN"
    assert lock(here, kind, "sh").ok
    assert lock(there, kind, "sh").ok
    assert lock(there, kind, "ex").errno == "EAGAIN"


@pytest.mark.parametrize("kind", RECORD)
def test_an_upgrade_needs_the_other_host_gone(two, kind):
    here, there = two
    assert lock(here, kind, "sh").ok
    assert lock(there, kind, "sh").ok
    assert lock(here, kind, "ex").errno == "EAGAIN"
    here.send(kind, "f", "ex", "wait", 0, 0)
    here.wait_blocked()
    assert lock(there, kind, "un").ok
    assert here.answer().ok
    assert lock(there, kind, "sh").errno == "EAGAIN"


def test_a_refused_upgrade_keeps_the_read_lock(four):
    a, _, b, b2 = four
    a.do("posix", "f", "sh", "try", 0, 0)
    b.do("posix", "f", "sh", "try", 0, 0)
    assert a.ask("posix", "f", "ex", "try", 0, 0).errno == "EAGAIN"
    b.do("posix", "f", "un", "try", 0, 0)
    assert b2.ask("posix", "f", "ex", "try", 0, 0).errno == "EAGAIN"


def test_two_owners_of_one_host_free_their_bytes_one_by_one(four):
    a, a2, b, _ = four
    a.do("posix", "f", "sh", "try", 0, 100)
    a2.do("posix", "f", "sh", "try", 50, 100)
    a.do("posix", "f", "un", "try", 0, 0)
    assert b.ask("posix", "f", "ex", "try", 99, 1).errno == "EAGAIN"
    assert b.ask("posix", "f", "ex", "try", 0, 50).ok
    a2.do("posix", "f", "un", "try", 0, 0)
    assert b.ask("posix", "f", "ex", "try", 0, 0).ok


def test_flock_and_fcntl_do_not_see_each_other_across_hosts(two):
    here, there = two
    assert lock(here, "flock", "ex").ok
    assert lock(there, "posix", "ex").ok
    assert lock(there, "flock", "sh").errno == "EAGAIN"
    assert lock(here, "ofd", "sh").errno == "EAGAIN"


@pytest.mark.limit(240)
@pytest.mark.parametrize("kind", KINDS)
def test_after_an_unlock_returned_a_try_elsewhere_succeeds(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    a, b = (lockers().open("f", host.path / folder / "f") for host in pair)
    for _ in range(scaled(200)):
        for locker in (a, b):
            assert lock(locker, kind, "ex").ok
            assert lock(locker, kind, "un").ok


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_close_returned_a_wait_elsewhere_is_granted(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    a, b = lockers(), lockers()
    for _ in range(scaled(20)):
        for locker, host in ((a, pair[0]), (b, pair[1])):
            locker.open("f", host.path / folder / "f")
            assert lock(locker, kind, "ex", "wait").ok
            locker.do("close", "f")


@pytest.mark.parametrize("kind", KINDS)
def test_a_signal_interrupts_a_wait_for_the_other_host(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    a, b = (lockers().open("f", host.path / folder / "f") for host in pair)
    assert lock(a, kind, "ex").ok
    before = sorted(pair[0].share.claims())
    for end in ("interrupt", "kill"):
        b.send(kind, "f", "ex", "wait", *WHOLE[kind])
        b.wait_blocked()
        poll(lambda: sorted(pair[0].share.claims()) != before, "the waiter's name on the share")
        if end == "interrupt":
            b.interrupt()
            assert b.answer().errno == "EINTR"
        else:
            b.process.kill()
            b.process.wait(60)
        poll(lambda: sorted(pair[0].share.claims()) == before, "the waiter's names to go")
    assert lock(a, kind, "un").ok


@pytest.mark.parametrize("kind", KINDS)
def test_of_simultaneous_tries_just_one_succeeds(pair, folder, kind):
    (pair[0].path / folder).mkdir()
    rounds = scaled(100)
    paths = [host.path / folder / "f" for host in (pair[0], pair[0], pair[1], pair[1])]
    assert winners(kind, rounds, paths) == [1] * rounds


@pytest.mark.parametrize("kind", RECORD)
def test_of_two_readers_that_try_to_upgrade_none_succeeds_and_none_waits(four, kind):
    for reader in four:
        assert lock(reader, kind, "sh").ok
    for _ in range(scaled(20)):
        for reader in four:
            reader.send(kind, "f", "ex", "try", 0, 0)
        assert [reader.answer().errno for reader in four] == ["EAGAIN"] * 4


def test_a_file_that_the_other_host_removed_cannot_be_opened(pair, folder):
    """Also at once, when the kernel here could still know the name: SQLite would play back a journal that is gone."""
    a, b = (host.path / folder for host in pair)
    a.mkdir()
    for i in range(20):
        (a / f"f{i}").write_bytes(b"old")
        assert (b / f"f{i}").stat().st_size == 3
        if i % 2:
            (a / "new").write_bytes(b"newer")
            os.rename(a / "new", a / f"f{i}")
            assert (b / f"f{i}").read_bytes() == b"newer"
        else:
            os.unlink(a / f"f{i}")
            with pytest.raises(FileNotFoundError):
                (b / f"f{i}").open()


def test_names_are_fresh_after_a_lock(pair, folder, lockers):
    """A name that another host made or removed under the lock is, or is not, there for whoever holds the lock next."""
    (pair[0].path / folder).mkdir()
    a, b = (lockers().open("f", host.path / folder / "f") for host in pair)
    there = False
    for _ in range(20):
        for locker, host in ((a, pair[0]), (b, pair[1])):
            name = host.path / folder / "other"
            assert lock(locker, "posix", "ex", "wait").ok
            assert os.path.exists(name) == there
            if there:
                os.unlink(name)
            else:
                name.write_bytes(b"")
            there = not there
            assert lock(locker, "posix", "un").ok


def test_getlk_of_a_lock_on_the_other_host(two):
    here, there = two
    here.do("posix", "f", "ex", "try", 10, 5)
    expected = {"mode": "ex", "start": 10, "length": 5, "pid": 0}
    assert there.do("posix", "f", "sh", "test", 0, 0) == expected
    assert there.do("ofd", "f", "ex", "test", 14, 0) == expected | {"pid": -1}
    assert there.do("posix", "f", "ex", "test", 0, 10) is None
    assert there.do("posix", "f", "ex", "test", 15, 0) is None
    here.do("posix", "f", "sh", "try", 10, 5)
    assert there.do("posix", "f", "sh", "test", 0, 0) is None
    assert there.do("posix", "f", "ex", "test", 0, 0) == expected | {"mode": "sh"}
    here.do("posix", "f", "un", "try", 0, 0)
    assert there.do("posix", "f", "ex", "test", 0, 0) is None


@pytest.mark.parametrize("kind", KINDS)
def test_hard_links_share_their_locks(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    first, second = pair[0].path / folder / "f", pair[1].path / folder / "link"
    first.write_bytes(b"")
    os.link(first, pair[0].path / folder / "link")
    a, b = lockers().open("f", first), lockers().open("f", second)
    assert lock(a, kind, "ex").ok
    assert lock(b, kind, "sh").errno == "EAGAIN"
    assert lock(a, kind, "un").ok
    assert lock(b, kind, "sh").ok


@pytest.mark.parametrize("kind", KINDS)
def test_a_rename_keeps_the_lock(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    a, b = lockers().open("f", pair[0].path / folder / "f"), lockers()
    assert lock(a, kind, "ex").ok
    os.rename(pair[1].path / folder / "f", pair[1].path / folder / "g")
    b.open("f", pair[1].path / folder / "g")
    assert lock(b, kind, "sh").errno == "EAGAIN"
    b.open("f", pair[1].path / folder / "f")  # a new file under the old name has locks of its own
    assert lock(b, kind, "ex").ok


@pytest.mark.parametrize("kind", KINDS)
def test_what_one_wrote_under_the_lock_the_other_sees(pair, folder, lockers, kind):
    (pair[0].path / folder).mkdir()
    a, b = (lockers().open("f", host.path / folder / "f") for host in pair)
    a.do("write", "f", 0, "." * 8192)
    writer, reader = a, b
    for locker in (a, b):
        assert lock(locker, kind, "ex", "wait").ok  # makes the other one see the size before it maps the file
        locker.do("map", "f", 4096)
        assert lock(locker, kind, "un").ok
    for number in range(scaled(20)):
        text = f"{number:06d}"
        assert lock(writer, kind, "ex", "wait").ok
        writer.do("write", "f", 0, text)
        writer.do("write", "f", 8192 + 6 * number, text)
        assert lock(writer, kind, "un").ok
        assert lock(reader, kind, "sh", "wait").ok
        assert reader.do("size", "f") == 8192 + 6 * (number + 1)
        assert reader.do("read", "f", 0, 6) == text
        assert reader.do("mapread", "f", 0, 6) == text
        assert reader.do("read", "f", 8192 + 6 * number, 100) == text
        assert lock(reader, kind, "un").ok
        writer, reader = reader, writer


@pytest.mark.parametrize("kind", KINDS)
def test_three_hosts_take_turns(trio, folder, lockers, kind):
    (trio[0].path / folder).mkdir()
    a, b, c = (lockers().open("f", host.path / folder / "f") for host in trio)
    assert lock(a, kind, "ex").ok
    for waiter in (b, c):
        waiter.send(kind, "f", "ex", "wait", *WHOLE[kind])
        waiter.wait_blocked()
    assert lock(a, kind, "un").ok
    first = poll(lambda: next((w for w in (b, c) if w.answered()), None), "one of two waiters to be granted")
    second = c if first is b else b
    assert first.answer().ok
    second.wait_blocked()
    assert lock(a, kind, "sh").errno == "EAGAIN"
    assert lock(first, kind, "un").ok
    assert second.answer().ok
