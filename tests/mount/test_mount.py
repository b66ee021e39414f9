"""What a mount shows of itself, and what it hides: the control directory, shares below it, and its own descriptors."""

import errno
import json
import os
import signal
import subprocess

import pytest

import mounting
from mounting import LATCHFS, TIMES, poll, scaled

HIDDEN = ".latchfs"


def errno_of(call, *args, **named):
    """The errno of a call that must fail."""
    with pytest.raises(OSError) as caught:
        call(*args, **named)
    return caught.value.errno


def test_type_and_source_in_the_table_of_mounts(mount):
    assert (str(mount.path), "fuse.latchfs", str(mount.share.source)) in mounting.mounts()
    found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,SOURCE", str(mount.path)], capture_output=True, text=True)
    assert found.stdout.split() == ["fuse.latchfs", str(mount.share.source)]


# ---- the control directory


@pytest.fixture(params=["root", "below"])
def holder_of_hidden(request, mount, folder):
    """A directory of the mount that has a `.latchfs` on the share: the root, or one with a directory so named."""
    if request.param == "root":
        return mount.path
    (mount.share.source / folder / HIDDEN / "sessions").mkdir(parents=True)
    return mount.path / folder


def test_the_control_directory_cannot_be_seen(mount, holder_of_hidden):
    hidden = holder_of_hidden / HIDDEN
    assert os.path.isdir(mount.share.source / hidden.relative_to(mount.path))  # it is there
    assert HIDDEN not in os.listdir(holder_of_hidden)
    assert HIDDEN not in [entry.name for entry in os.scandir(holder_of_hidden)]
    for path in (hidden, hidden / "sessions", holder_of_hidden / "." / HIDDEN):
        for call in (os.stat, os.lstat, os.listdir, os.chdir, os.readlink, os.statvfs, os.listxattr):
            assert errno_of(call, path) == errno.ENOENT
        for flags in (os.O_RDONLY, os.O_PATH, os.O_RDONLY | os.O_DIRECTORY, os.O_WRONLY):
            assert errno_of(os.open, path, flags) == errno.ENOENT
    assert not os.access(hidden, os.F_OK)


def test_the_control_directory_cannot_be_touched(mount, holder_of_hidden, folder):
    hidden = holder_of_hidden / HIDDEN
    raw = mount.share.source / hidden.relative_to(mount.path)
    before = sorted(os.listdir(raw))
    (mount.path / f"{folder}-file").write_bytes(b"x")
    (mount.path / f"{folder}-dir").mkdir()
    for call, args in ((os.mkdir, (hidden,)), (os.symlink, ("t", hidden)), (os.mkfifo, (hidden,)),
                       (os.link, (mount.path / f"{folder}-file", hidden)),
                       (os.rename, (mount.path / f"{folder}-file", hidden)),
                       (os.rename, (mount.path / f"{folder}-dir", hidden)),
                       (os.rename, (hidden, mount.path / f"{folder}-stolen")),
                       (os.rmdir, (hidden,)), (os.unlink, (hidden,)), (os.chmod, (hidden, 0o777)),
                       (os.utime, (hidden,)), (os.truncate, (hidden, 0)), (os.mkdir, (hidden / "x",)),
                       (os.unlink, (hidden / "format",))):
        assert errno_of(call, *args) in (errno.ENOENT, errno.EPERM), call
    for flags in (os.O_CREAT | os.O_RDWR, os.O_CREAT | os.O_EXCL | os.O_WRONLY, os.O_CREAT | os.O_TRUNC | os.O_WRONLY):
        assert errno_of(os.open, hidden, flags) in (errno.ENOENT, errno.EPERM)
    assert sorted(os.listdir(raw)) == before
    assert not (mount.path / f"{folder}-stolen").exists()


def test_the_name_is_free_where_it_is_longer(mount, folder):
    (mount.path / folder).mkdir()
    for name in (".latchfs2", "a.latchfs", ".latch", "latchfs"):
        (mount.path / folder / name).mkdir()
        assert name in os.listdir(mount.path / folder)


def test_a_directory_with_a_hidden_entry_is_not_empty(mount, folder):
    (mount.share.source / folder / HIDDEN).mkdir(parents=True)
    assert os.listdir(mount.path / folder) == []
    assert errno_of(os.rmdir, mount.path / folder) == errno.ENOTEMPTY


def test_a_share_below_answers_ebusy(stage):
    """All hosts must mount the same directory: what is a share of its own cannot be used through its parent's mount."""
    share = stage.share()
    (share.source / "sub" / HIDDEN).mkdir(parents=True)
    (share.source / "sub" / HIDDEN / "format").write_text("format: 1\n")
    (share.source / "sub" / "file").write_text("x")
    mount = stage.mount(share)
    sub = mount.path / "sub"
    for _ in range(3):
        assert errno_of(os.listdir, sub) == errno.EBUSY
        assert errno_of(os.open, sub / "file", os.O_RDONLY) == errno.EBUSY
        assert errno_of(os.mkdir, sub / "new") == errno.EBUSY
    (mount.path / "file").write_text("others go on")
    assert len([line for line in mount.stderr().splitlines() if "share of its own" in line]) == 1


# ---- descriptors


def descriptors(mount):
    """How many descriptors of the daemon lie on the share. (Worker threads, whose number changes, have pipes.)"""
    count = 0
    for name in os.listdir(f"/proc/{mount.pid}/fd"):
        try:
            count += os.readlink(f"/proc/{mount.pid}/fd/{name}").startswith(str(mount.share.source))
        except FileNotFoundError:
            pass
    return count


def failing_calls(root):
    """Calls that fail on every path through the daemon; none leaves anything behind."""
    file, folder = root / "file", root / "dir"
    return [
        lambda: os.stat(root / "missing"), lambda: os.open(root / "missing", os.O_RDONLY),
        lambda: os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY), lambda: os.open(folder, os.O_WRONLY),
        lambda: os.open(root / ("n" * 256), os.O_CREAT | os.O_WRONLY), lambda: os.mkdir(folder),
        lambda: os.open(root / "fifo", os.O_WRONLY | os.O_NONBLOCK), lambda: os.rmdir(root), lambda: os.unlink(folder),
        lambda: os.link(file, folder), lambda: os.symlink("t", file), lambda: os.mknod(file, 0o600),
        lambda: os.rename(root / "missing", file), lambda: os.rename(folder, file), lambda: os.listdir(file),
        lambda: os.readlink(file), lambda: os.setxattr(file, "odd.name", b"v"), lambda: os.getxattr(file, "user.none"),
        lambda: os.removexattr(file, "user.none"), lambda: os.truncate(file, -1), lambda: os.truncate(file, 1 << 62),
        lambda: os.statvfs(root / "missing"), lambda: os.mkdir(root / HIDDEN),
        lambda: os.open(root / HIDDEN, os.O_CREAT | os.O_RDWR), lambda: os.rename(file, root / HIDDEN),
    ]


def test_failing_calls_leak_no_descriptor(mount, folder):
    root = mount.path / folder
    (root / "dir").mkdir(parents=True)
    (root / "file").write_bytes(b"x")
    os.mkfifo(root / "fifo")
    calls = failing_calls(root)
    for call in calls:  # what the kernel keeps for known names is there before the count
        errno_of(call)
    before = descriptors(mount)
    for _ in range(20):
        for call in calls:
            errno_of(call)
    poll(lambda: descriptors(mount) <= before, f"descriptors to come down to {before}")


def test_files_that_come_and_go_leak_no_descriptor(mount, folder):
    root = mount.path / folder
    root.mkdir()
    os.listdir(root)
    before = descriptors(mount)
    for i in range(scaled(200)):
        path = root / f"f{i}"
        path.write_bytes(b"x")
        with open(path) as file:
            os.stat(path)
            os.rename(path, root / "g")
            assert file.read() == "x"
        os.unlink(root / "g")
        path.mkdir()
        os.listdir(path)
        os.rmdir(path)
        os.symlink("t", path)
        os.readlink(path)
        os.unlink(path)
    poll(lambda: descriptors(mount) <= before, f"descriptors to come down to {before}")


# ---- background


def daemon_of(share):
    """The pid that a session file names, of the one session of a share."""
    (sid,) = share.sessions()
    return json.loads((share.control / "sessions" / sid).read_text())["pid"]


def test_in_the_background_zero_means_that_the_mount_answers(stage):
    share = stage.share()
    path = share.base / "mnt"
    path.mkdir()
    (share.source / "file").write_text("there")
    command = [str(LATCHFS), "-o", ",".join(TIMES.options()), str(share.source), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    try:
        # At once, with nothing polled: that is what the exit code says.
        assert (done.returncode, mounting.is_mounted(path)) == (0, True), done.stderr
        assert (path / "file").read_text() == "there"
        assert len(share.names("beats")) == 1
        pid = daemon_of(share)
        assert os.getsid(pid) != os.getsid(0)
        subprocess.run(["flock", "-n", path / "file", "true"], check=True)
    finally:
        subprocess.run(["umount", path], check=True, timeout=60)
    poll(lambda: not os.path.exists(f"/proc/{pid}"), "the daemon to end")
    assert share.leftovers() == []


def test_in_the_background_a_failure_is_told(stage):
    share = stage.share()
    path = share.base / "mnt"
    path.mkdir()
    (share.source / HIDDEN).write_text("in the way")
    done = subprocess.run([str(LATCHFS), str(share.source), str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2, 32)
    assert done.stderr.startswith("latchfs: ")
    assert not mounting.is_mounted(path)
    (share.source / HIDDEN).unlink()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_daemon_cleanly(stage, lockers, number):
    share = stage.share()
    mount = stage.mount(share)
    holder = lockers().open("f", mount.path / "f")
    assert holder.ask("flock", "f", "ex", "try").ok
    mount.process.send_signal(number)
    assert mount.process.wait(60) == 0
    assert not mounting.is_mounted(mount.path)
    assert share.leftovers() == []


def test_help_and_version():
    for word in ("-h", "--help"):
        done = subprocess.run([str(LATCHFS), word], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0
        assert "SOURCE" in done.stdout and "break_after" in done.stdout
    done = subprocess.run([str(LATCHFS), "-V"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("latchfs ")
