"""Opening, reading, writing and what else is done with file contents, call by call against a local directory."""

import errno
import itertools
import mmap
import os
import random

import pytest

import parity
from parity import COLLAPSE_RANGE, KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE, compare, fallocate

MODES = {"r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR, "path": os.O_PATH}
EXTRA = {"": 0, "creat": os.O_CREAT, "excl": os.O_CREAT | os.O_EXCL, "trunc": os.O_TRUNC, "append": os.O_APPEND,
         "creat-trunc": os.O_CREAT | os.O_TRUNC, "directory": os.O_DIRECTORY, "nofollow": os.O_NOFOLLOW,
         "nofollow-creat": os.O_NOFOLLOW | os.O_CREAT, "directory-nofollow": os.O_DIRECTORY | os.O_NOFOLLOW,
         "excl-alone": os.O_EXCL, "sync": os.O_SYNC, "dsync-append": os.O_DSYNC | os.O_APPEND, "noatime": os.O_NOATIME}
TARGETS = ["file", "dir", "link", "link-to-dir", "dangling", "fifo", "missing", "missing/x", "file/x", "loop"]


def furnish(side):
    side.write("file", b"0123456789")
    os.mkdir(side.path("dir"))
    os.mkfifo(side.path("fifo"))
    for name, target in (("link", "file"), ("link-to-dir", "dir"), ("dangling", "nowhere"), ("loop", "loop")):
        os.symlink(target, side.path(name))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("extra", EXTRA)
def test_open(mount, folder, mode, extra):
    def case(side):
        for target in TARGETS:
            top = target.split("/")[0]
            os.mkdir(side.path("for-" + target.replace("/", "-")))
            inside = parity.Side(side.path("for-" + target.replace("/", "-")))
            furnish(inside)
            fd = inside.open(target, MODES[mode] | EXTRA[extra] | os.O_NONBLOCK, 0o640)
            if fd is not None:
                inside.fstat(fd)
                if top != "fifo":
                    inside.call("read", os.read, fd, 100)
                    inside.call("write", os.write, fd, b"new")
                    inside.call("truncate", os.ftruncate, fd, 5)
                inside.call("seek", os.lseek, fd, 0, os.SEEK_CUR)
                inside.call("getattr", lambda: parity.facts(os.stat(f"/proc/self/fd/{fd}")))
                os.close(fd)
            inside.stat(target)
            side.log += inside.log

    compare(mount, folder, case)


def test_closed_and_wrong_descriptors(mount, folder):
    def case(side):
        side.write("f")
        fd = side.open("f", os.O_RDONLY)
        os.close(fd)
        for call in (lambda: os.read(fd, 1), lambda: os.pwrite(fd, b"x", 0), lambda: os.fstat(fd),
                     lambda: os.fsync(fd), lambda: os.close(fd)):
            side.call("closed", call)
        path = side.open("f", os.O_PATH)
        for call in (lambda: os.read(path, 1), lambda: os.pwrite(path, b"x", 0), lambda: os.fchmod(path, 0o600),
                     lambda: os.fsync(path), lambda: os.ftruncate(path, 0), lambda: os.lseek(path, 0, os.SEEK_SET)):
            side.call("path only", call)
        again = side.call("opened again", lambda: os.close(os.open(f"/proc/self/fd/{path}", os.O_RDWR)))
        side.note("nothing", again)
        os.close(path)

    compare(mount, folder, case)


def test_read_and_write_at_ends_and_holes(mount, folder):
    def case(side):
        fd = side.open("f")
        for offset, data in ((0, b"begin"), (5, b"more"), (100000, b"far"), (4096, b"page"), (4095, b"xx"), (0, b"")):
            side.call(("pwrite", offset), os.pwrite, fd, data, offset)
            side.fstat(fd)
        for offset, count in ((0, 9), (0, 0), (3, 100), (50000, 10), (99999, 10), (100002, 10), (100003, 1),
                              (1 << 40, 5), (0, 1 << 20)):
            side.call(("pread", offset, count), os.pread, fd, count, offset)
        side.call("negative", os.pread, fd, 1, -1)
        side.call("negative", os.pwrite, fd, b"x", -1)
        side.call("too far", os.pwrite, fd, b"x", (1 << 63) - 2)
        side.call("beyond the file system", os.pwrite, fd, b"x", 1 << 61)
        side.call("vectors", os.pwritev, fd, [b"one", b"", b"two" * 2000], 10)
        buffers = [bytearray(5), bytearray(7000)]
        side.call("vectors", os.preadv, fd, buffers, 8)
        side.note("read", [bytes(b) for b in buffers])
        os.close(fd)

    compare(mount, folder, case)


def test_sequential_io_and_seeking(mount, folder):
    def case(side):
        fd = side.open("f")
        for i in range(20):
            side.call("write", os.write, fd, bytes([65 + i]) * 1000 * i)
        for offset, whence in ((0, os.SEEK_SET), (-5, os.SEEK_END), (-10, os.SEEK_CUR), (-1, os.SEEK_SET),
                               (10**7, os.SEEK_END), (0, 99), (17, os.SEEK_SET)):
            side.call(("seek", offset, whence), os.lseek, fd, offset, whence)
            side.call("read", os.read, fd, 3000)
        os.close(fd)

    compare(mount, folder, case)


def test_append(mount, folder):
    def case(side):
        side.write("f", b"start")
        first, second = side.open("f", os.O_WRONLY | os.O_APPEND), side.open("f", os.O_RDWR | os.O_APPEND)
        for i in range(10):
            side.call("append", os.write, (first, second)[i % 2], str(i).encode() * i)
            side.call("position", os.lseek, first, 0, os.SEEK_CUR)
        side.call("pwrite appends too", os.pwrite, first, b"END", 0)
        side.call("truncate", os.ftruncate, second, 3)
        side.call("append", os.write, first, b"after")
        os.close(first)
        os.close(second)

    compare(mount, folder, case)


@pytest.mark.parametrize("seed", range(4))
def test_random_io(mount, folder, seed):
    def case(side):
        dice = random.Random(seed)
        fd = side.open("f")
        for _ in range(300):
            offset, length = dice.randrange(200000), dice.randrange(1, 30000)
            step = dice.randrange(8)
            if step < 4:
                side.call("pwrite", os.pwrite, fd, dice.randbytes(length), offset)
            elif step < 7:
                side.call("pread", os.pread, fd, length, offset)
            else:
                side.call("truncate", os.ftruncate, fd, offset)
        os.close(fd)

    compare(mount, folder, case)


def test_large_writes(mount, folder):
    def case(side):
        data = random.Random(1).randbytes(5 << 20)
        fd = side.open("f")
        side.call("write", os.pwrite, fd, data, 12345)
        side.call("read", os.pread, fd, 6 << 20, 0)
        os.close(fd)
        side.content("f")

    compare(mount, folder, case)


def test_mmap_shared(mount, folder):
    def case(side):
        side.write("f", b"0" * 10000)
        fd = side.open("f", os.O_RDWR)
        view = mmap.mmap(fd, 10000, mmap.MAP_SHARED)
        view[0:5] = b"first"
        view[9990:10000] = b"at the end"
        view.flush()
        side.call("read", os.pread, fd, 10000, 0)
        side.call("write", os.pwrite, fd, b"written", 4096)
        side.note("seen by the map", view[4090:4110])
        view[100:104] = b"late"
        view.close()
        os.close(fd)
        side.content("f")

    compare(mount, folder, case)


def test_mmap_private_and_read_only(mount, folder):
    def case(side):
        side.write("f", b"0" * 5000)
        fd = side.open("f", os.O_RDONLY)
        private = mmap.mmap(fd, 5000, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        private[0:5] = b"local"
        side.call("read", os.pread, fd, 10, 0)
        shared = mmap.mmap(fd, 5000, mmap.MAP_SHARED, mmap.PROT_READ)
        side.note("shared", shared[0:10])
        side.call("not writable", lambda: mmap.mmap(fd, 5000, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE) and 0)
        os.close(fd)
        side.note("after close", (private[0:10], shared[4990:5000]))
        private.close()
        shared.close()

    compare(mount, folder, case)


def test_sync(mount, folder):
    def case(side):
        fd = side.open("f")
        os.write(fd, b"data")
        side.call("fsync", os.fsync, fd)
        side.call("fdatasync", os.fdatasync, fd)
        os.close(fd)
        fd = side.open("f", os.O_RDONLY)
        side.call("fsync read-only", os.fsync, fd)
        os.close(fd)
        os.mkdir(side.path("d"))
        for name in ("d", "."):
            fd = side.open(name, os.O_RDONLY | os.O_DIRECTORY)
            side.call("fsync of a directory", os.fsync, fd)
            side.call("fdatasync of a directory", os.fdatasync, fd)
            os.close(fd)

    compare(mount, folder, case)


@pytest.mark.parametrize("mode", [0, KEEP_SIZE, PUNCH_HOLE | KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE, ZERO_RANGE | KEEP_SIZE])
def test_fallocate(mount, folder, mode):
    def case(side):
        fd = side.open("f")
        os.write(fd, b"x" * 20000)
        for offset, length in ((0, 4096), (4096, 8192), (100, 50), (19000, 30000), (100000, 10), (-1, 5), (0, 0),
                               (5, -1), (1 << 62, 1 << 62)):
            side.call(("fallocate", offset, length), fallocate, fd, mode, offset, length)
            side.fstat(fd)
        side.call("content", os.pread, fd, 200000, 0)
        os.close(fd)
        reader = side.open("f", os.O_RDONLY)
        side.call("read-only", fallocate, reader, mode, 0, 10)
        os.close(reader)

    compare(mount, folder, case)


def test_fallocate_that_fuse_does_not_pass_on(mount, folder):
    """The kernel's FUSE refuses to collapse ranges, whatever is below."""
    fd = os.open(mount.path / folder, os.O_RDWR | os.O_CREAT)
    os.write(fd, b"x" * 16384)
    with pytest.raises(OSError) as caught:
        fallocate(fd, COLLAPSE_RANGE, 0, 4096)
    assert caught.value.errno == errno.EOPNOTSUPP
    assert os.pread(fd, 20000, 0) == b"x" * 16384
    os.close(fd)


def test_seek_data_and_hole(mount, folder):
    def case(side):
        fd = side.open("f")
        os.pwrite(fd, b"x" * 4096, 0)
        os.pwrite(fd, b"y" * 4096, 1 << 20)
        os.ftruncate(fd, 3 << 20)
        os.fsync(fd)
        for offset in (0, 100, 4096, 5000, 1 << 20, (1 << 20) + 4096, 2 << 20, (3 << 20) - 1, 3 << 20, -1):
            side.call(("data", offset), os.lseek, fd, offset, os.SEEK_DATA)
            side.call(("hole", offset), os.lseek, fd, offset, os.SEEK_HOLE)
            side.call("position", os.lseek, fd, 0, os.SEEK_CUR)
        os.close(fd)

    compare(mount, folder, case)


def test_copy_file_range(mount, folder):
    def case(side):
        side.write("from", bytes(range(256)) * 100)
        os.mkdir(side.path("d"))
        source, target = side.open("from", os.O_RDWR), side.open("to")
        append, reader = side.open("app", os.O_CREAT | os.O_WRONLY | os.O_APPEND), side.open("to", os.O_RDONLY)
        folder_fd = side.open("d", os.O_RDONLY | os.O_DIRECTORY)
        for pair, count, begin, to in itertools.product([(source, target), (source, source), (source, append),
                                                         (source, reader), (target, source), (source, folder_fd)],
                                                        [0, 10, 5000, 10**6], [0, 100, 25600, 30000], [0, 25000]):
            side.call(("copy", count, begin, to), os.copy_file_range, pair[0], pair[1], count, begin, to)
            side.fstat(target)
        side.call("with positions", lambda: os.copy_file_range(source, target, 100))
        side.call("position", os.lseek, source, 0, os.SEEK_CUR)
        side.call("position", os.lseek, target, 0, os.SEEK_CUR)
        for fd in (source, target, append, reader, folder_fd):
            os.close(fd)

    compare(mount, folder, case)


def test_long_names(mount, folder):
    def case(side):
        for length in (254, 255, 256, 1024, 1025):
            fd = side.open("n" * length)
            if fd is not None:
                os.close(fd)
            side.call(("rename", length), os.rename, side.path("n" * length), side.path("m" * length))
            side.call(("link", length), os.link, side.path("m" * length), side.path("l" * length))
            side.call(("unlink", length), os.unlink, side.path("m" * length))
        fd = side.open("\u00e4" * 127)
        os.close(fd)
        side.open("\u00e4" * 128)

    compare(mount, folder, case)


def test_deep_folders(mount, folder):
    def case(side):
        path = "/".join(["deep"] * 200)
        os.makedirs(side.path(path))
        side.write(path + "/f", b"found")
        side.content(path + "/f")
        side.call("move up", os.rename, side.path(path), side.path("up"))
        side.content("up/f")

    compare(mount, folder, case)


def test_calls_relative_to_a_descriptor(mount, folder):
    def case(side):
        os.mkdir(side.path("d"))
        fd = side.open("d", os.O_RDONLY | os.O_DIRECTORY)
        path_fd = side.open("d", os.O_PATH)
        for base in (fd, path_fd):
            side.call("mkdir", os.mkdir, "sub", dir_fd=base)
            side.call("open", lambda: os.close(os.open("f", os.O_CREAT | os.O_RDWR, 0o600, dir_fd=base)))
            side.call("rename", os.rename, "f", "sub/f", src_dir_fd=base, dst_dir_fd=base)
            side.call("stat", lambda: parity.facts(os.stat("sub/f", dir_fd=base)))
            side.call("unlink", os.unlink, "sub/f", dir_fd=base)
            side.call("rmdir", os.rmdir, "sub", dir_fd=base)
        os.close(fd)
        os.close(path_fd)

    compare(mount, folder, case)
