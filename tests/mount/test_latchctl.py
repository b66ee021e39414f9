"""latchctl on real mounts: it finds the share through the table of mounts and needs no daemon."""

import json
import os
import subprocess
from contextlib import contextmanager

from mounting import LATCHCTL, LATCHFS, poll


def latchctl(*args):
    return subprocess.run([str(LATCHCTL), *(str(arg) for arg in args)], capture_output=True, text=True, timeout=60)


def listed(command, path):
    done = latchctl(command, "-J", path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["schema"] == 1
    return answer[command]


@contextmanager
def flock(path):
    """Holds a flock on a file in a process of its own."""
    path.touch()
    with subprocess.Popen(["flock", path, "-c", "echo held; read _"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.stdin.close()


def test_a_holder_and_a_waiter_are_shown_alike_from_each_side(pair, folder):
    first, second = pair
    with flock(first.path / folder):
        waiter = subprocess.Popen(["flock", second.path / folder, "true"])
        poll(lambda: len(listed("locks", first.path)) == 2, "the waiter to be shown")
        for path in (first.path, second.path, first.share.source, first.path / "."):
            locks = listed("locks", path)
            shown = sorted((lock["host"], lock["state"], lock["space"], lock["mode"]) for lock in locks)
            assert shown == [("host-a", "held", "flock", "WRITE"), ("host-b", "waiting", "flock", "WRITE")]
            assert {lock["fileid"] for lock in locks} == {(first.share.source / folder).stat().st_ino}
            assert {(lock["start"], lock["end"]) for lock in locks} == {(0, 2**63 - 1)}
    assert waiter.wait(60) == 0
    poll(lambda: not listed("locks", first.path), "the locks to go")


def test_sessions_name_their_daemons(pair):
    sessions = {session["host"]: session for session in listed("sessions", pair[0].path)}
    assert set(sessions) == {"host-a", "host-b"}
    for mount, host in zip(pair, ("host-a", "host-b")):
        assert sessions[host]["pid"] == mount.pid
        assert sessions[host]["mountpoint"] == str(mount.path)
        assert sessions[host]["state"] in ("live", "late")


def test_looking_changes_nothing(pair, folder):
    source = pair[0].share.source

    def names():
        return sorted(os.path.join(where, name) for where, folders, files in os.walk(source / ".latchfs")
                      for name in folders + files if "beats" not in where)

    with flock(pair[0].path / folder):
        before = names()
        listed("locks", pair[0].path)
        listed("sessions", source)
        assert names() == before


def test_a_dead_daemon_is_no_obstacle(stage):
    mount = stage.mount(stage.share(), host_id="gone")
    (mount.path / "file").touch()
    mount.kill()
    assert [session["host"] for session in listed("sessions", mount.path)] == ["gone"]
    assert listed("locks", mount.path / "file") == []
    assert latchctl("locks", mount.share.local).returncode == 3


def test_mount_8_mounts_it_with_the_words_of_an_fstab_line(stage):
    share = stage.share()
    point = share.base / "by-mount"
    point.mkdir()
    words = "rw,nosuid,noatime,_netdev,nofail,x-systemd.requires-mounts-for=/,host_id=fstab,beat=1s,fence_after=8s,break_after=12s"
    # PROGRAM#SOURCE is how mount.fuse3 is told of a program that is not installed.
    subprocess.run(["mount", "-t", "fuse", f"{LATCHFS}#{share.source}", point, "-o", words], check=True, timeout=120)
    try:
        found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,SOURCE,OPTIONS", point], capture_output=True, text=True, check=True)
        kind, source, options = found.stdout.split()
        assert (kind, source) == ("fuse.latchfs", str(share.source))
        assert {"nosuid", "noatime"} <= set(options.split(","))
        assert [session["host"] for session in listed("sessions", point)] == ["fstab"]
    finally:
        subprocess.run(["umount", point], check=True, timeout=60)
    poll(lambda: not listed("sessions", share.source), "the daemon to end")
