"""Mounts that must not come about: refused with an exit code of mount(8) and a sentence that names the reason."""

import errno
import os
import re
import subprocess

import pytest

import mounting
from mounting import SANITIZED, TIMES, Times


@pytest.fixture
def share(stage):
    made = stage.share()
    (made.base / "mnt").mkdir()
    return made


@pytest.fixture
def refuse(stage, share):
    """Checks that a mount is refused for a reason that matches, and that nothing was left mounted or made."""

    def check(reason, source=None, mountpoint=None, options=()):
        code, said = stage.refused(source or share.source, mountpoint or share.base / "mnt", options)
        assert code in (1, 2, 32), said
        assert re.search(reason, said, re.IGNORECASE), said
        assert any(line.startswith("latchfs: ") for line in said.splitlines()), said
        assert "terminate called" not in said
        return said

    return check


def test_a_source_that_is_missing_or_no_directory(share, refuse):
    refuse("no such file", source=share.base / "missing")
    (share.base / "file").write_text("")
    refuse("director", source=share.base / "file")


def test_a_mountpoint_that_is_missing_or_no_directory(share, refuse):
    refuse("no such file", mountpoint=share.base / "missing")
    (share.base / "file").write_text("")
    refuse("director", mountpoint=share.base / "file")
    assert share.sessions() == []


def test_a_mountpoint_in_or_at_the_source(share, refuse):
    refuse("mount ?point", mountpoint=share.source)
    (share.source / "below").mkdir()
    refuse("mount ?point", mountpoint=share.source / "below")
    os.symlink(share.source / "below", share.base / "by-link")
    refuse("mount ?point", mountpoint=share.base / "by-link")
    assert not share.control.exists()


def test_a_source_that_cannot_be_written(stage, share, refuse):
    bound = share.base / "read-only"
    bound.mkdir()
    (share.source / "file").write_text("x")
    subprocess.run(["mount", "--bind", share.source, bound], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", bound], check=True)
        refuse("writ|read-only", source=bound)
    finally:
        subprocess.run(["umount", bound], check=True)


# ---- the control directory


def test_a_control_directory_that_is_a_link(share, refuse):
    (share.base / "elsewhere").mkdir()
    os.symlink(share.base / "elsewhere", share.control)
    refuse("link")
    assert os.listdir(share.base / "elsewhere") == []


def test_a_control_directory_that_is_a_file(share, refuse):
    share.control.write_text("")
    refuse("director")


def test_a_control_directory_of_another_owner(share, refuse):
    share.control.mkdir(0o700)
    os.chown(share.control, 1234, 1234)
    refuse("another user")


@pytest.mark.parametrize("mode", [0o777, 0o702])
def test_a_control_directory_that_all_can_write(share, refuse, mode):
    share.control.mkdir()
    share.control.chmod(mode)
    refuse("writ")


@pytest.mark.parametrize("name", ["sessions", "beats", "inbox", "locks"])
def test_a_folder_in_the_control_directory_that_is_a_link(share, refuse, name):
    (share.base / "elsewhere").mkdir()
    share.control.mkdir(0o700)
    os.symlink(share.base / "elsewhere", share.control / name)
    refuse("link|director")
    assert os.listdir(share.base / "elsewhere") == []


def test_a_folder_of_locks_that_is_a_link(stage, share, lockers):
    """Planted while the share is mounted: nothing is granted, and nothing is made behind the link."""
    (share.base / "elsewhere").mkdir()
    mount = stage.mount(share)
    (share.control / "locks").rmdir()
    os.symlink(share.base / "elsewhere", share.control / "locks")
    locker = lockers().open("f", mount.path / "f")
    for words in (("posix", "f", "ex", "try", 0, 0), ("ofd", "f", "sh", "wait", 0, 0), ("flock", "f", "ex", "try")):
        assert locker.ask(*words).errno == "ENOLCK"
    assert os.listdir(share.base / "elsewhere") == []


@pytest.mark.parametrize("content", ["", "format: [", "format: 999\n", "\0\xff"])
def test_a_format_that_cannot_be_read(share, refuse, content):
    share.control.mkdir(0o700)
    (share.control / "format").write_text(content, encoding="latin-1")
    refuse("format")
    assert (share.control / "format").read_text(encoding="latin-1") == content


def test_a_format_of_another_file(stage, share, refuse):
    """A copy of the share, or one whose file numbers changed: names made with the old numbers would protect nothing."""
    stage.mount(share).stop()
    text = (share.control / "format").read_text()
    os.rename(share.control / "format", share.control / "other")
    (share.control / "format").write_text(text)
    refuse("inode|number|copy|copied")
    os.rename(share.control / "other", share.control / "format")


# ---- shares in shares


def test_a_source_below_another_share(stage, share, refuse):
    (share.source / "sub" / "deep").mkdir(parents=True)
    mount = stage.mount(share)
    refuse("share", source=share.source / "sub")
    refuse("share", source=share.source / "sub" / "deep")
    mount.stop()
    refuse("share", source=share.source / "sub" / "deep")  # also while nobody has it mounted
    assert not (share.source / "sub" / ".latchfs").exists()


def test_a_source_on_a_latchfs_mount(stage, share, refuse):
    mount = stage.mount(share)
    (mount.path / "sub").mkdir()
    refuse("latchfs", source=mount.path)
    refuse("latchfs", source=mount.path / "sub")


# ---- options


def test_other_lease_times_than_the_live_share(stage, share, refuse):
    first = stage.mount(share, host_id="a")
    other = Times(TIMES.beat, TIMES.fence_after + 1, TIMES.break_after + 5)
    refuse("beat|fence_after|break_after|lease", options=other.options())
    stage.mount(share, host_id="b").stop()  # the same times
    adopted = stage.mount(share, host_id="c", times=None)  # whatever the share has
    assert f"{TIMES.break_after}s" in adopted.stderr()
    adopted.stop()
    first.stop()
    last = stage.mount(share, times=other)  # nobody is there any more: the old times give way
    assert f"{other.break_after}s" in last.stderr()


@pytest.mark.parametrize("words,reason", [
    (["beat=5s", "fence_after=14s", "break_after=60s"], "fence_after"),
    (["beat=1s", "fence_after=8s", "break_after=9s"], "break_after"),
    (["beat=1ms", "fence_after=8s", "break_after=12s"], "beat"),
    (["beat=1"], "beat"), (["beat=-1s"], "beat"), (["beet=1s"], "beat"), (["nonsense"], "nonsense"),
    (["allow_other"], "allow_other"), (["config=/does/not/exist.yaml"], "/does/not/exist.yaml"),
])
def test_options(refuse, share, words, reason):
    refuse(reason, options=words)
    assert not share.control.exists()


def test_one_argument_is_too_few(share):
    done = subprocess.run([str(mounting.LATCHFS), str(share.source)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "MOUNTPOINT" in done.stderr


# ---- read-only mounts are no refusals, but refuse


def test_a_read_only_mount(stage, share, lockers):
    (share.source / "file").write_text("content")
    mount = stage.mount(share, times=None, options=["ro"])
    path = mount.path / "file"
    assert path.read_text() == "content"
    for call in (lambda: os.mkdir(mount.path / "d"), lambda: os.unlink(path), lambda: os.open(path, os.O_WRONLY)):
        with pytest.raises(OSError) as caught:
            call()
        assert caught.value.errno == errno.EROFS
    locker = lockers().open("f", path, "rdonly")
    for words in (("posix", "f", "sh", "try", 0, 0), ("posix", "f", "sh", "wait", 0, 0),
                  ("posix", "f", "sh", "test", 0, 0), ("ofd", "f", "sh", "try", 0, 0),
                  ("flock", "f", "sh", "try"), ("flock", "f", "ex", "wait")):
        assert locker.ask(*words).errno == "ENOLCK", words
    assert not share.control.exists()


def test_a_configuration_file(stage, share):
    file = share.base / "share.yaml"
    times = Times(2, 21, 31) if SANITIZED else Times(1, 9, 13)
    file.write_text("".join(f"{word.replace('=', ': ')}\n" for word in [*times.options(), "host_id=by-file"]))
    mount = stage.mount(share, times=None, options=[f"config={file}"])
    assert f"{times.break_after}s" in mount.stderr()
    assert "by-file" in (share.control / "sessions" / share.sessions()[0]).read_text()
