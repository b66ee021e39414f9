"""fcntl ranges, POSIX and OFD: what is held after a row of calls, on a mount and on a local file alike."""

import pytest

LAST = 2**63 - 1
RECORD = ["posix", "ofd"]


def held(observer, kind, name="f"):
    """The locks of one other owner as F_GETLK shows them: (mode, start, length), length 0 for "to the end"."""
    found, start = [], 0
    while True:
        lock = observer.do(kind, name, "ex", "test", start, 0)
        if lock is None:
            return found
        found.append((lock["mode"], lock["start"], lock["length"]))
        if lock["length"] == 0:
            return found
        start = lock["start"] + lock["length"]


# name: (calls as mode, start, length), what is held then
STEPS = {
    "one-range": ([("ex", 0, 10)], [("ex", 0, 10)]),
    "read-range": ([("sh", 3, 4)], [("sh", 3, 4)]),
    "two-apart": ([("ex", 0, 10), ("ex", 20, 10)], [("ex", 0, 10), ("ex", 20, 10)]),
    "merge-touching": ([("ex", 0, 10), ("ex", 10, 10)], [("ex", 0, 20)]),
    "merge-touching-below": ([("ex", 10, 10), ("ex", 0, 10)], [("ex", 0, 20)]),
    "merge-overlapping": ([("sh", 0, 10), ("sh", 5, 10)], [("sh", 0, 15)]),
    "merge-by-the-middle": ([("ex", 0, 10), ("ex", 20, 10), ("ex", 10, 10)], [("ex", 0, 30)]),
    "no-merge-of-modes": ([("ex", 0, 10), ("sh", 10, 10)], [("ex", 0, 10), ("sh", 10, 10)]),
    "swallow": ([("ex", 5, 5), ("ex", 20, 5), ("ex", 0, 100)], [("ex", 0, 100)]),
    "same-again": ([("ex", 0, 10), ("ex", 0, 10)], [("ex", 0, 10)]),
    "inside-own": ([("ex", 0, 10), ("ex", 3, 2)], [("ex", 0, 10)]),
    "upgrade": ([("sh", 0, 10), ("ex", 0, 10)], [("ex", 0, 10)]),
    "downgrade": ([("ex", 0, 10), ("sh", 0, 10)], [("sh", 0, 10)]),
    "upgrade-middle": ([("sh", 0, 30), ("ex", 10, 10)], [("sh", 0, 10), ("ex", 10, 10), ("sh", 20, 10)]),
    "downgrade-end": ([("ex", 0, 30), ("sh", 20, 10)], [("ex", 0, 20), ("sh", 20, 10)]),
    "replace-across": ([("sh", 0, 10), ("sh", 20, 10), ("ex", 5, 20)],
                       [("sh", 0, 5), ("ex", 5, 20), ("sh", 25, 5)]),
    "mend": ([("sh", 0, 30), ("ex", 10, 10), ("sh", 10, 10)], [("sh", 0, 30)]),
    "unlock-all": ([("ex", 0, 10), ("un", 0, 0)], []),
    "unlock-middle": ([("ex", 0, 30), ("un", 10, 10)], [("ex", 0, 10), ("ex", 20, 10)]),
    "unlock-head": ([("ex", 0, 30), ("un", 0, 10)], [("ex", 10, 20)]),
    "unlock-tail": ([("ex", 0, 30), ("un", 20, 0)], [("ex", 0, 20)]),
    "unlock-across": ([("ex", 0, 10), ("sh", 20, 10), ("un", 5, 20)], [("ex", 0, 5), ("sh", 25, 5)]),
    "unlock-nothing": ([("un", 0, 0)], []),
    "unlock-beside": ([("ex", 0, 10), ("un", 10, 10)], [("ex", 0, 10)]),
    "to-the-end": ([("ex", 100, 0)], [("ex", 100, 0)]),
    "hole-in-to-the-end": ([("ex", 0, 0), ("un", 1000, 24)], [("ex", 0, 1000), ("ex", 1024, 0)]),
    "backwards": ([("ex", 100, -10)], [("ex", 90, 10)]),
    "backwards-to-zero": ([("ex", 10, -10)], [("ex", 0, 10)]),
    "last-byte": ([("ex", LAST, 1)], [("ex", LAST, 0)]),
    "last-byte-open": ([("ex", LAST, 0)], [("ex", LAST, 0)]),
    "to-the-last-but-one": ([("ex", 1, LAST - 1)], [("ex", 1, LAST - 1)]),
    "to-the-last": ([("ex", 1, LAST)], [("ex", 1, 0)]),
    "unlock-last-byte": ([("ex", 0, 0), ("un", LAST, 1)], [("ex", 0, LAST)]),
    "many": ([("ex", 10 * i, 5) for i in range(40)], [("ex", 10 * i, 5) for i in range(40)]),
}


@pytest.mark.parametrize("kind", RECORD)
@pytest.mark.parametrize("steps,expected", STEPS.values(), ids=STEPS.keys())
def test_what_is_held_after(place, lockers, kind, steps, expected):
    holder, observer = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    for mode, start, length in steps:
        holder.do(kind, "f", mode, "try", start, length)
    assert held(observer, kind) == expected
    holder.do(kind, "f", "un", "try", 0, 0)
    assert held(observer, kind) == []


# name: (open flags, call), errno
ERRORS = {
    "negative-start": (("rdwr", "ex", "try", -1, 10), "EINVAL"),
    "below-zero": (("rdwr", "ex", "try", 5, -10), "EINVAL"),
    "below-zero-from-current": (("rdwr", "ex", "try", -1, 10, "cur"), "EINVAL"),
    "below-zero-from-end": (("rdwr", "ex", "try", -101, 1, "end"), "EINVAL"),
    "beyond-the-last-byte": (("rdwr", "ex", "try", LAST, 2), "EOVERFLOW"),
    "beyond-from-end": (("rdwr", "ex", "try", LAST, 1, "end"), "EOVERFLOW"),
    "write-lock-on-read-only": (("rdonly", "ex", "try", 0, 1), "EBADF"),
    "read-lock-on-write-only": (("wronly", "sh", "try", 0, 1), "EBADF"),
    "wait-on-read-only": (("rdonly", "ex", "wait", 0, 1), "EBADF"),
    "unlock-on-read-only": (("rdonly", "un", "try", 0, 1), None),
    "test-on-read-only": (("rdonly", "ex", "test", 0, 1), None),
    "test-negative": (("rdwr", "ex", "test", -1, 1), "EINVAL"),
}


@pytest.mark.parametrize("kind", RECORD)
@pytest.mark.parametrize("call,error", ERRORS.values(), ids=ERRORS.keys())
def test_errno_of(place, lockers, kind, call, error):
    (place / "f").write_bytes(b"x" * 100)
    locker = lockers().open("f", place / "f", call[0])
    assert locker.ask(kind, "f", *call[1:]).errno == error


def test_getlk_for_an_unlock_is_an_error(place, lockers):
    """For POSIX only: newer kernels take it as a question about one's own OFD locks."""
    assert lockers().open("f", place / "f").ask("posix", "f", "un", "test", 0, 1).errno == "EINVAL"


@pytest.mark.parametrize("kind", RECORD)
def test_whence(place, lockers, kind):
    (place / "f").write_bytes(b"x" * 100)
    holder, observer = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    holder.do("seek", "f", 50)
    holder.do(kind, "f", "ex", "try", -10, 20, "cur")
    assert held(observer, kind) == [("ex", 40, 20)]
    holder.do(kind, "f", "sh", "try", -10, 0, "end")
    holder.do(kind, "f", "sh", "try", 0, -5, "cur")
    assert held(observer, kind) == [("ex", 40, 5), ("sh", 45, 5), ("ex", 50, 10), ("sh", 90, 0)]
    holder.do(kind, "f", "un", "try", 0, 1, "end")
    assert held(observer, kind)[3:] == [("sh", 90, 10), ("sh", 101, 0)]


@pytest.mark.parametrize("kind", RECORD)
@pytest.mark.parametrize("mine,theirs,allowed", [("sh", "sh", True), ("sh", "ex", False), ("ex", "sh", False),
                                                 ("ex", "ex", False)])
def test_modes_against_each_other(place, lockers, kind, mine, theirs, allowed):
    a, b = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    a.do(kind, "f", mine, "try", 10, 10)
    assert b.ask(kind, "f", theirs, "try", 15, 1).errno == (None if allowed else "EAGAIN")
    assert b.ask(kind, "f", theirs, "try", 0, 10).ok
    assert b.ask(kind, "f", theirs, "try", 20, 0).ok
    a.do(kind, "f", "un", "try", 10, 10)
    assert b.ask(kind, "f", theirs, "try", 15, 1).ok


@pytest.mark.parametrize("kind", RECORD)
def test_upgrade_is_refused_while_another_reads(place, lockers, kind):
    a, b, c = (lockers().open("f", place / "f") for _ in range(3))
    a.do(kind, "f", "sh", "try", 0, 10)
    b.do(kind, "f", "sh", "try", 9, 10)
    assert a.ask(kind, "f", "ex", "try", 0, 10).errno == "EAGAIN"
    assert c.ask(kind, "f", "ex", "try", 0, 1).errno == "EAGAIN"  # a refused upgrade keeps the read lock
    assert a.ask(kind, "f", "ex", "try", 0, 9).ok
    b.do(kind, "f", "un", "try", 0, 0)
    assert a.ask(kind, "f", "ex", "try", 0, 10).ok


def test_getlk_tells_type_range_and_pid(place, lockers):
    a, b = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    a.do("posix", "f", "sh", "try", 7, 5)
    assert b.do("posix", "f", "sh", "test", 0, 0) is None
    assert b.do("posix", "f", "ex", "test", 0, 0) == {"mode": "sh", "start": 7, "length": 5, "pid": a.pid}
    assert b.do("posix", "f", "ex", "test", 0, 7) is None
    assert b.do("posix", "f", "ex", "test", 12, 0) is None
    assert a.do("posix", "f", "ex", "test", 0, 0) is None  # never one's own
    a.do("posix", "f", "ex", "try", 100, 1)
    assert b.do("posix", "f", "sh", "test", 0, 0) == {"mode": "ex", "start": 100, "length": 1, "pid": a.pid}


def test_getlk_of_ofd_locks_tells_no_pid(place, lockers):
    a, b = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    a.do("ofd", "f", "ex", "try", 7, 5)
    expected = {"mode": "ex", "start": 7, "length": 5, "pid": -1}
    assert b.do("ofd", "f", "sh", "test", 0, 0) == expected
    lock = b.do("posix", "f", "sh", "test", 0, 0)
    assert (lock["mode"], lock["start"], lock["length"]) == ("ex", 7, 5)


def test_ofd_locks_of_one_process_exclude_each_other(place, lockers):
    a = lockers().open("f", place / "f").open("g", place / "f")
    a.do("ofd", "f", "ex", "try", 0, 10)
    assert a.ask("ofd", "g", "sh", "try", 0, 1).errno == "EAGAIN"
    assert a.ask("posix", "f", "sh", "try", 0, 1).errno == "EAGAIN"
    a.do("posix", "f", "ex", "try", 10, 10)
    assert a.ask("ofd", "f", "ex", "try", 10, 1).errno == "EAGAIN"
    assert a.ask("posix", "g", "ex", "try", 10, 10).ok  # a POSIX lock belongs to the process


def test_flock_and_fcntl_do_not_see_each_other(place, lockers):
    a, b = lockers().open("f", place / "f"), lockers().open("f", place / "f")
    a.do("flock", "f", "ex", "try")
    b.do("posix", "f", "ex", "try", 0, 0)
    assert a.do("posix", "f", "sh", "test", 0, 0)["pid"] == b.pid
    assert b.ask("flock", "f", "sh", "try").errno == "EAGAIN"
    b.do("posix", "f", "un", "try", 0, 0)
    assert b.ask("flock", "f", "sh", "try").errno == "EAGAIN"
    a.do("flock", "f", "un", "try")
    b.do("ofd", "f", "ex", "try", 0, 0)
    a.do("flock", "f", "ex", "try")
