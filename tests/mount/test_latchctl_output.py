"""What latchctl prints: keys and columns, for fcntl ranges and flocks, by every path that leads to a share."""

import json
import os
import subprocess

import pytest

from mounting import LATCHCTL, poll

LOCK_COLUMNS = ["host", "session", "state", "space", "mode", "start", "end", "fileid", "requested"]


def latchctl(*words):
    return subprocess.run([str(LATCHCTL), *map(str, words)], capture_output=True, text=True, timeout=60)


def objects(what, path):
    done = latchctl(what, "-J", path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)[what]


@pytest.fixture(params=["mount", "below", "other-mount", "share"])
def path(request, pair, folder):
    (pair[0].path / folder).mkdir()
    return {"mount": pair[0].path, "below": pair[0].path / folder, "other-mount": pair[1].path,
            "share": pair[0].share.source}[request.param]


def test_sessions(pair, path):
    sessions = objects("sessions", path)
    assert sorted(s["host"] for s in sessions) == ["host-a", "host-b"]
    assert sorted(s["session"] for s in sessions) == sorted(pair[0].share.sessions())
    table = latchctl("sessions", path)
    assert table.returncode == 0
    assert table.stdout.split()[:3] == ["HOST", "SESSION", "STATE"]
    assert len(table.stdout.splitlines()) == 3


def test_locks(pair, path, folder, lockers):
    file = pair[0].path / folder / "f"
    a, b = lockers().open("f", file), lockers().open("f", pair[1].path / folder / "f")
    a.do("posix", "f", "ex", "try", 10, 5)
    a.do("flock", "f", "sh", "try")
    b.send("posix", "f", "sh", "wait", 0, 100)
    b.wait_blocked()
    number = os.stat(file).st_ino

    def shown():
        return [lock for lock in objects("locks", path) if lock["fileid"] == number]

    poll(lambda: sorted(lock["state"] for lock in shown()) == ["held", "held", "waiting"], "three locks to be shown")
    locks = shown()
    assert all(list(lock) == LOCK_COLUMNS for lock in locks)
    assert {tuple(lock[key] for key in ("host", "space", "mode", "start", "end")) for lock in locks} == {
        ("host-a", "fcntl", "WRITE", 10, 14), ("host-a", "flock", "READ", 0, 2**63 - 1),
        ("host-b", "fcntl", "READ", 0, 99)}
    table = latchctl("locks", path)
    assert table.returncode == 0
    assert table.stdout.splitlines()[0].split() == [column.upper() for column in LOCK_COLUMNS]
    assert len([line for line in table.stdout.splitlines() if f" {number} " in line]) == 3
    a.do("posix", "f", "un", "try", 0, 0)
    assert b.answer().ok
    a.do("flock", "f", "un", "try")
    poll(lambda: [lock["host"] for lock in shown()] == ["host-b"], "one lock to be left")


def test_a_path_that_is_no_share(stage):
    share = stage.share()
    done = latchctl("locks", share.source)
    assert done.returncode != 0 and done.stderr.startswith("latchctl: ")
    assert latchctl("locks", share.base / "missing").returncode != 0
    assert not share.control.exists()


def test_usage():
    assert latchctl().returncode == 2
    assert latchctl("nonsense").returncode == 2
    assert latchctl("locks").returncode == 2
    assert latchctl("--help").returncode == 0
