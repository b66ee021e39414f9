"""Unchanged programs on two mounts at once."""

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from mounting import SANITIZED, die_with_parent, scaled

HERE = Path(__file__).parent


def start(*command):
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, preexec_fn=die_with_parent)


def finish(processes, bound):
    """(exit status, output) of each; none outlives the test."""
    try:
        return [(p.communicate(timeout=bound)[0], p.returncode)[::-1] for p in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.mark.limit(400)
def test_counters_are_exact(pair, folder):
    """Four processes on each of two mounts, for each kind of lock, all at once."""
    rounds = scaled(500)
    (pair[0].path / folder).mkdir()
    kinds = ["lockf", "flock", "ofd"]
    processes = []
    for kind in kinds:
        (pair[0].path / folder / kind).write_bytes(b"0")
        for host in pair:
            command = ["/usr/bin/python3", HERE / "counter.py", host.path / folder / kind, kind, rounds]
            processes += [start(*command) for _ in range(4)]
    for status, output in finish(processes, 390):
        assert status == 0, output
    for kind in kinds:
        for host in pair:
            assert int((host.path / folder / kind).read_bytes()) == 8 * rounds, kind
        assert int((pair[0].share.source / folder / kind).read_bytes()) == 8 * rounds, kind


@pytest.mark.limit(400)
def test_sqlite_writers(pair, folder):
    (pair[0].path / folder).mkdir()
    path = pair[0].path / folder / "base.db"
    base = sqlite3.connect(path)
    assert base.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    base.executescript("CREATE TABLE entries(writer TEXT, number INT, UNIQUE(writer, number));"
                       "CREATE TABLE total(count INT); INSERT INTO total VALUES (0);")
    base.close()
    count = scaled(500)
    writers = [(host, f"{host.name}-{i}") for host in pair for i in range(2)]
    processes = [start("/usr/bin/python3", HERE / "sqlite_writer.py", host.path / folder / "base.db", name, count)
                 for host, name in writers]
    for status, output in finish(processes, 390):
        assert status == 0, output
    for host in pair:
        base = sqlite3.connect(host.path / folder / "base.db", timeout=60)
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for _, name in writers:
            rows = base.execute("SELECT number FROM entries WHERE writer = ? ORDER BY number", (name,)).fetchall()
            assert rows == [(n,) for n in range(count)]
        assert base.execute("SELECT count FROM total").fetchone() == (4 * count,)
        base.close()


@pytest.mark.limit(240)
def test_ping_pong(pair, folder):
    (pair[0].path / folder).mkdir()
    processes = [start("timeout", 20, "ping_pong", "-rw", host.path / folder / "f", 3) for host in pair]
    for status, output in finish(processes, 200):
        assert status == 124, output  # ended by timeout and by nothing else
        increments = re.findall(r"data increment = (\d+)", output)
        assert "2" in increments, output
        assert set(increments) <= {"1", "2"}, output  # 1 before the other one began and after it ended
        assert not re.search(r"(?i)fail|error|at offset", output), output


@pytest.mark.limit(240)
def test_stress_ng(mount, folder):
    (mount.path / folder).mkdir()
    stressors = ["--flock", 2, "--lockf", 2, "--locka", 2, "--lockofd", 2]
    seconds = 20 if SANITIZED else 10
    how = ["--verify", "--metrics-brief", "-t", seconds, "--temp-path", mount.path / folder]
    command = ["stress-ng", *stressors, *how]
    ((status, output),) = finish([start(*command)], 200)
    assert status == 0, output
    assert not re.search(r"(?i)fail|error", output), output
    for name in ("flock", "lockf", "locka", "lockofd"):
        assert int(re.search(rf"\] {name} +(\d+) ", output)[1]) > 0, output
