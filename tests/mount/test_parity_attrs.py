"""Attributes, times, extended attributes and statvfs, call by call against a local directory."""

import os
import stat

import pytest

import parity
from parity import UTIME_NOW, UTIME_OMIT, compare

XATTR_CREATE, XATTR_REPLACE = os.XATTR_CREATE, os.XATTR_REPLACE
ALL = ["file", "dir", "fifo", "link", "dangling", "missing"]


def furnish(side):
    side.write("file", b"0123456789")
    os.mkdir(side.path("dir"))
    os.mkfifo(side.path("fifo"))
    os.symlink("file", side.path("link"))
    os.symlink("nowhere", side.path("dangling"))


@pytest.mark.parametrize("name", ALL)
def test_chmod(mount, folder, name):
    def case(side):
        furnish(side)
        for mode in (0o000, 0o400, 0o644, 0o777, 0o4755, 0o2755, 0o1777, 0o7777):
            side.call(("chmod", oct(mode)), os.chmod, side.path(name), mode)
            side.stat(name)
        fd = side.open("file", os.O_RDONLY)
        side.call("fchmod", os.fchmod, fd, 0o611)
        side.fstat(fd)
        os.close(fd)
        side.stat("file")

    compare(mount, folder, case)


@pytest.mark.parametrize("name", ALL)
def test_chown(mount, folder, name):
    def case(side):
        furnish(side)
        for user, group in ((1000, 1001), (-1, 5), (6, -1), (-1, -1), (0, 0)):
            for follow in (True, False):
                side.call(("chown", user, group, follow), os.chown, side.path(name), user, group,
                          follow_symlinks=follow)
                side.stat(name)
                side.stat("file")
        fd = side.open("file", os.O_RDONLY)
        side.call("fchown", os.fchown, fd, 7, 8)
        side.fstat(fd)
        os.close(fd)

    compare(mount, folder, case)


def test_a_change_of_owner_drops_set_id_bits(mount, folder):
    def case(side):
        for mode in (0o4755, 0o2755, 0o6711, 0o2644):
            side.write("f")
            os.chmod(side.path("f"), mode)
            side.call("chown", os.chown, side.path("f"), 1000, 1000)
            side.stat("f")
            os.unlink(side.path("f"))

    compare(mount, folder, case)


@pytest.mark.parametrize("name", ALL)
def test_truncate(mount, folder, name):
    def case(side):
        furnish(side)
        for size in (4, 0, 5000, 1 << 33, 10, -1, 1 << 62):
            if name == "fifo":
                continue
            side.call(("truncate", size), os.truncate, side.path(name), size)
            side.stat(name)
            side.stat("file")
        side.content("file")

    compare(mount, folder, case)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR | os.O_APPEND])
def test_ftruncate(mount, folder, flags):
    def case(side):
        furnish(side)
        fd = side.open("file", flags)
        for size in (4, 100, 0, 7, -1, 1 << 62):
            side.call(("ftruncate", size), os.ftruncate, fd, size)
            side.fstat(fd)
        os.close(fd)
        side.content("file")

    compare(mount, folder, case)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("follow", [True, False])
def test_times_given(mount, folder, name, follow):
    def case(side):
        furnish(side)
        flags = 0 if follow else 0x100
        for access, modify in (((1, 2), (3, 4)), ((0, 0), (0, 999999999)), ((2**31 + 5, 0), (2**32 + 7, 1)),
                               ((-5, 500), (-1, 0)), ((0, UTIME_OMIT), (9, 9)), ((8, 8), (0, UTIME_OMIT)),
                               ((0, UTIME_OMIT), (0, UTIME_OMIT)), ((0, 1000000000), (0, 0))):
            side.call(("utimensat", access, modify), parity.utimensat, side.path(name), access, modify, flags)
            # Following a link moves its own access time, so that the link is looked at only where it is not followed.
            side.call("times", lambda: parity.times(os.stat(side.path(name), follow_symlinks=follow)))
        side.note("the target", os.stat(side.path("file")).st_mtime > 1e9)

    compare(mount, folder, case)


def test_times_now(mount, folder):
    def case(side):
        furnish(side)
        path = side.path("file")
        fd = side.open("file", os.O_RDWR)
        long_ago = (1000, 5)
        for access, modify in ((UTIME_NOW, UTIME_OMIT), (UTIME_OMIT, UTIME_NOW), (UTIME_NOW, UTIME_NOW)):
            for how in (lambda *t: parity.utimensat(path, *t), lambda *t: parity.futimens(fd, *t)):
                side.call("long ago", parity.futimens, fd, long_ago, long_ago)
                side.call("now", how, (0, access), (0, modify))
                # "Now" is no value to compare; that it moved, and what it left alone, is.
                side.note("moved", [t > 1e18 for t in parity.times(os.fstat(fd))])
                side.note("kept", [t == 1000 * 10**9 + 5 for t in parity.times(os.fstat(fd))])
        os.close(fd)
        side.call("both now", os.utime, path)
        side.note("both moved", [t > 1e18 for t in parity.times(os.stat(path))])

    compare(mount, folder, case)


def test_times_by_descriptor_of_an_unlinked_file(mount, folder):
    def case(side):
        fd = side.open("f")
        os.unlink(side.path("f"))
        side.call("futimens", parity.futimens, fd, (11, 12), (13, 14))
        side.note("times", parity.times(os.fstat(fd)))
        os.close(fd)

    compare(mount, folder, case)


def test_writing_moves_the_times(mount, folder):
    def case(side):
        side.write("f", b"x")
        fd = side.open("f", os.O_RDWR)
        for what, change in (("write", lambda: os.pwrite(fd, b"y", 0)), ("truncate", lambda: os.ftruncate(fd, 5)),
                             ("allocate", lambda: parity.fallocate(fd, 0, 0, 50)),
                             ("punch", lambda: parity.fallocate(fd, 3, 0, 5))):
            parity.futimens(fd, (1, 1), (1, 1))
            changed = os.fstat(fd).st_ctime_ns
            side.call(what, change)
            side.note("modified", os.fstat(fd).st_mtime > 1)
            side.note("changed", os.fstat(fd).st_ctime_ns >= changed)
        os.close(fd)
        parity.utimensat(side.root, (1, 1), (1, 1))
        side.write("new")
        side.note("the directory too", os.stat(side.root).st_mtime > 1)

    compare(mount, folder, case)


@pytest.mark.parametrize("name", ALL)
def test_access(mount, folder, name):
    def case(side):
        furnish(side)
        for mode in (0o000, 0o444, 0o555, 0o777):
            side.call("chmod", os.chmod, side.path(name), mode)
            for wanted in (os.F_OK, os.R_OK, os.W_OK, os.X_OK, os.R_OK | os.W_OK | os.X_OK):
                side.call(("access", wanted), os.access, side.path(name), wanted)

    compare(mount, folder, case)


def test_inode_numbers_are_those_of_the_share(mount, folder):
    root = mount.path / folder
    raw = mount.share.source / folder
    root.mkdir()
    furnish(parity.Side(str(root)))
    for name in ["", "file", "dir", "fifo", "link"]:
        assert os.lstat(root / name).st_ino == os.lstat(raw / name).st_ino
    assert len({os.lstat(root / n).st_dev for n in ["", "file", "dir"]}) == 1


def test_block_counts(mount, folder):
    def case(side):
        fd = side.open("f")
        os.pwrite(fd, b"x" * 100000, 0)
        os.fsync(fd)
        side.note("written", os.fstat(fd).st_blocks)
        parity.fallocate(fd, 0, 1 << 20, 1 << 16)
        os.fsync(fd)
        side.note("allocated", os.stat(side.path("f")).st_blocks)
        side.note("block size", os.fstat(fd).st_blksize)
        os.close(fd)

    compare(mount, folder, case)


def test_statvfs(mount, folder):
    def case(side):
        os.mkdir(side.path("d"))
        side.write("f")
        fd = side.open("f", os.O_RDONLY)
        for target in (side.root, side.path("d"), side.path("f"), side.path("missing"), fd):
            wanted = ("f_bsize", "f_frsize", "f_blocks", "f_files", "f_namemax")
            side.call("statvfs", lambda: [getattr(os.statvfs(target), field) for field in wanted])
            side.call("free", lambda: 0 < os.statvfs(target).f_bavail <= os.statvfs(target).f_bfree)
        os.close(fd)

    compare(mount, folder, case)


# ---- extended attributes


@pytest.mark.parametrize("name", ["file", "dir", "link", "fifo", "dangling", "missing"])
@pytest.mark.parametrize("follow", [True, False])
def test_xattrs(mount, folder, name, follow):
    def case(side):
        furnish(side)
        path, how = side.path(name), {"follow_symlinks": follow}
        for key in ("user.a", "trusted.a", "odd", "odd.a", "user.", "", "user." + "n" * 250, "user." + "n" * 251):
            side.call(("get none", key), os.getxattr, path, key, **how)
            side.call(("remove none", key), os.removexattr, path, key, **how)
            side.call(("replace none", key), os.setxattr, path, key, b"v", XATTR_REPLACE, **how)
            side.call(("create", key), os.setxattr, path, key, b"value", XATTR_CREATE, **how)
            side.call(("create again", key), os.setxattr, path, key, b"other", XATTR_CREATE, **how)
            side.call(("get", key), os.getxattr, path, key, **how)
            side.call(("replace", key), os.setxattr, path, key, b"", XATTR_REPLACE, **how)
            side.call(("get", key), os.getxattr, path, key, **how)
            side.call(("set", key), os.setxattr, path, key, b"\0binary\xff", **how)
            side.call(("both flags", key), os.setxattr, path, key, b"v", XATTR_CREATE | XATTR_REPLACE, **how)
        side.call("list", lambda: sorted(os.listxattr(path, **how)))
        for key in ("user.a", "trusted.a"):
            side.call(("remove", key), os.removexattr, path, key, **how)
        side.call("list", lambda: sorted(os.listxattr(path, **how)))

    compare(mount, folder, case)


def test_xattr_sizes(mount, folder):
    def case(side):
        side.write("f")
        path = side.path("f")
        for length in (0, 1, 100, 1000, 3000, 65536, 65537, 1 << 20):
            side.call(("set", length), os.setxattr, path, "user.sized", b"v" * length)
            side.call(("get", length), os.getxattr, path, "user.sized")
        os.setxattr(path, "user.sized", b"0123456789")
        os.setxattr(path, "user.second", b"x")
        for size in (0, 1, 9, 10, 11, 4096):
            side.call(("get into", size), parity.getxattr, path, "user.sized", size)
        for size in (0, 1, 10, 22, 23, 24, 25, 4096):
            side.call(("list into", size), parity.listxattr, path, size)

    compare(mount, folder, case)


def test_xattrs_by_descriptor(mount, folder):
    def case(side):
        side.write("f")
        fd = side.open("f", os.O_RDONLY)
        side.call("set", os.setxattr, fd, "user.a", b"by descriptor")
        side.call("get", os.getxattr, side.path("f"), "user.a")
        os.unlink(side.path("f"))
        side.call("get of unlinked", os.getxattr, fd, "user.a")
        side.call("list of unlinked", os.listxattr, fd)
        side.call("remove of unlinked", os.removexattr, fd, "user.a")
        side.call("list of unlinked", os.listxattr, fd)
        os.close(fd)

    compare(mount, folder, case)


def test_many_xattrs_are_listed_whole(mount, folder):
    def case(side):
        side.write("f")
        for i in range(60):
            side.call("set", os.setxattr, side.path("f"), f"user.name-that-is-not-short-{i:03d}", b"v")
        side.call("list", lambda: sorted(os.listxattr(side.path("f"))))

    compare(mount, folder, case)


def test_stat_of_kinds(mount, folder):
    def case(side):
        furnish(side)
        for name in ALL:
            side.stat(name)
            side.call(("stat", name), lambda: parity.facts(os.stat(side.path(name))))
        fd = side.open("dir", os.O_RDONLY | os.O_DIRECTORY)
        side.note("kind", stat.S_ISDIR(os.fstat(fd).st_mode))
        side.call("at", lambda: parity.facts(os.stat("../file", dir_fd=fd)))
        os.close(fd)

    compare(mount, folder, case)
