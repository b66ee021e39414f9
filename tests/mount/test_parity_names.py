"""Everything that makes, finds, moves and removes names, call by call against a local directory."""

import os
import stat

import pytest

import parity
from parity import RENAME_EXCHANGE, RENAME_NOREPLACE, compare, renameat2

KINDS = ["file", "empty-dir", "full-dir", "link", "dangling", "loop", "fifo", "missing"]


def furnish(side, suffix=""):
    """One of each kind, named as in KINDS."""
    side.write("file" + suffix, b"a file")
    os.mkdir(side.path("empty-dir" + suffix))
    os.mkdir(side.path("full-dir" + suffix))
    side.write(f"full-dir{suffix}/inner", b"inner")
    os.symlink("file" + suffix, side.path("link" + suffix))
    os.symlink("nowhere" + suffix, side.path("dangling" + suffix))
    os.symlink("loop" + suffix, side.path("loop" + suffix))
    os.mkfifo(side.path("fifo" + suffix))


def names_with_trouble():
    return ["", "file/", "file/x", "missing/x", "loop", "loop/x", "dangling/x", "link/", "empty-dir/..", "empty-dir/.",
            "n" * 255, "n" * 256, "full-dir/" + "n" * 255, "full-dir/" + "n" * 256, "x/" * 2100]


def test_lookup(mount, folder):
    def case(side):
        furnish(side)
        for name in KINDS + names_with_trouble():
            side.stat(name)
            side.call(("stat", name), lambda: parity.facts(os.stat(side.path(name))))
            side.call(("readlink", name), os.readlink, side.path(name))
            side.call(("listdir", name), lambda: sorted(os.listdir(side.path(name))))
            side.call(("chdir", name), lambda: (os.chdir(side.path(name)), os.chdir("/")) and None)

    compare(mount, folder, case)


def test_negative_lookups_end_when_the_name_appears(mount, folder):
    def case(side):
        for name in ("a", "b", "c"):
            side.stat(name)
        side.write("a")
        os.mkdir(side.path("b"))
        os.symlink("a", side.path("c"))
        for name in ("a", "b", "c"):
            side.stat(name)
            side.call(("rename", name), os.rename, side.path(name), side.path(name + "2"))
            side.stat(name)
            side.stat(name + "2")

    compare(mount, folder, case)


@pytest.mark.parametrize("kind", KINDS)
def test_making_over_what_is_there(mount, folder, kind):
    def case(side):
        furnish(side)
        path = side.path(kind)
        side.call("mkdir", os.mkdir, path)
        side.call("mkfifo", os.mkfifo, path)
        side.call("symlink", os.symlink, "target", path)
        side.call("link", os.link, side.path("file"), path)
        side.call("mknod", os.mknod, path, stat.S_IFREG | 0o600)
        fd = side.open(kind, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        if fd is not None:
            os.close(fd)
        side.stat(kind)

    compare(mount, folder, case)


@pytest.mark.parametrize("kind", KINDS)
def test_removing(mount, folder, kind):
    def case(side):
        furnish(side)
        side.call("rmdir", os.rmdir, side.path(kind))
        side.call("unlink", os.unlink, side.path(kind))
        side.stat(kind)
        side.call("rmdir again", os.rmdir, side.path(kind))
        side.call("unlink again", os.unlink, side.path(kind))

    compare(mount, folder, case)


def test_removing_with_trouble(mount, folder):
    def case(side):
        furnish(side)
        for name in names_with_trouble():
            side.call(("rmdir", name), os.rmdir, side.path(name))
            side.call(("unlink", name), os.unlink, side.path(name))
            side.call(("mkdir", name), os.mkdir, side.path(name))
            side.call(("symlink", name), os.symlink, "t", side.path(name))
            side.call(("rename", name), os.rename, side.path(name), side.path("moved"))
            side.stat("moved")

    compare(mount, folder, case)


@pytest.mark.parametrize("flags", [0, RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_NOREPLACE | RENAME_EXCHANGE, 1 << 10])
@pytest.mark.parametrize("kind", KINDS)
def test_rename(mount, folder, kind, flags):
    def case(side):
        for target in KINDS:
            os.mkdir(side.path("in-" + target))
            inside = parity.Side(side.path("in-" + target))
            furnish(inside)
            furnish(inside, "2")
            side.call(("rename", target), renameat2, inside.path(kind), inside.path(target + "2"), flags)
            for name in {kind, kind + "2", target, target + "2"}:
                inside.stat(name)
            side.log += inside.log

    compare(mount, folder, case)


def test_rename_to_itself_below_itself_and_away(mount, folder):
    def case(side):
        furnish(side)
        for flags in (0, RENAME_NOREPLACE, RENAME_EXCHANGE):
            side.call("same", renameat2, side.path("file"), side.path("file"), flags)
            side.call("below", renameat2, side.path("full-dir"), side.path("full-dir/sub"), flags)
            side.call("above", renameat2, side.path("full-dir/inner"), side.path("full-dir"), flags)
            side.call("to proc", renameat2, side.path("file"), "/proc/file", flags)
        os.link(side.path("file"), side.path("hard"))
        side.call("onto own link", os.rename, side.path("file"), side.path("hard"))
        side.call("into", os.rename, side.path("file"), side.path("full-dir/file"))
        side.call("dir into dir", os.rename, side.path("empty-dir"), side.path("full-dir/moved"))
        side.stat("full-dir/moved/..")
        side.stat("full-dir")

    compare(mount, folder, case)


def test_rename_over_an_open_file(mount, folder):
    def case(side):
        side.write("old", b"old content")
        side.write("new", b"new")
        fd = side.open("old", os.O_RDWR)
        side.call("rename", os.rename, side.path("new"), side.path("old"))
        side.fstat(fd)
        side.call("read", os.pread, fd, 100, 0)
        side.call("write", os.pwrite, fd, b"more", 0)
        side.content("old")
        os.close(fd)

    compare(mount, folder, case)


def test_unlink_of_an_open_file(mount, folder):
    def case(side):
        side.write("f", b"content")
        fd = side.open("f", os.O_RDWR)
        side.call("unlink", os.unlink, side.path("f"))
        side.stat("f")
        side.fstat(fd)
        side.call("write", os.pwrite, fd, b"more", 7)
        side.call("truncate", os.ftruncate, fd, 9)
        side.call("chmod", os.fchmod, fd, 0o600)
        side.fstat(fd)
        side.call("read", os.pread, fd, 100, 0)
        side.write("f", b"another file")
        side.call("read", os.pread, fd, 100, 0)
        os.close(fd)

    compare(mount, folder, case)


def test_links(mount, folder):
    def case(side):
        furnish(side)
        for kind in KINDS:
            for follow in (True, False):
                name = f"hard-{kind}-{follow}"
                side.call(("link", name), os.link, side.path(kind), side.path(name), follow_symlinks=follow)
                side.stat(name)
                side.stat(kind)
        side.call("change by one name", os.chmod, side.path("hard-file-True"), 0o640)
        side.write("hard-file-True", b"longer than before")
        side.stat("file")
        side.content("file")
        os.unlink(side.path("file"))
        side.stat("hard-file-True")
        side.call("same inode", lambda: os.path.samefile(side.path("hard-file-True"), side.path("hard-link-True")))

    compare(mount, folder, case)


def test_symlinks_of_all_lengths(mount, folder):
    def case(side):
        for length in (0, 1, 59, 60, 61, 255, 1000, 4094, 4095, 4096, 5000):
            name = f"l{length}"
            side.call(("symlink", length), os.symlink, "t" * length, side.path(name))
            side.call(("readlink", length), os.readlink, side.path(name))
            side.stat(name)
        os.symlink("../x/\u00fc \n", side.path("odd \u00fc\n"))
        side.call("odd", os.readlink, side.path("odd \u00fc\n"))

    compare(mount, folder, case)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_modes_and_umask(mount, folder, mask):
    def case(side):
        os.umask(mask)
        for mode in (0o777, 0o644, 0o000, 0o7777, 0o2755, 0o1777):
            side.call("mkdir", os.mkdir, side.path(f"d{mode:o}"), mode)
            side.call("mkfifo", os.mkfifo, side.path(f"p{mode:o}"), mode)
            side.call("mknod", os.mknod, side.path(f"n{mode:o}"), stat.S_IFREG | mode)
            fd = side.open(f"f{mode:o}", os.O_CREAT | os.O_RDWR, mode)
            side.fstat(fd)
            os.close(fd)
        os.umask(0o022)

    compare(mount, folder, case)


def test_mknod(mount, folder):
    def case(side):
        kinds = {"reg": stat.S_IFREG, "zero": 0, "fifo": stat.S_IFIFO, "sock": stat.S_IFSOCK, "chr": stat.S_IFCHR,
                 "blk": stat.S_IFBLK, "dir": stat.S_IFDIR, "lnk": stat.S_IFLNK, "odd": 0o130000}
        for name, kind in kinds.items():
            side.call(("mknod", name), os.mknod, side.path(name), kind | 0o640, os.makedev(1, 3))
            side.stat(name)

    compare(mount, folder, case)


def test_a_directory_gives_its_group_on(mount, folder):
    def case(side):
        os.mkdir(side.path("d"))
        os.chown(side.path("d"), 1234, 5678)
        os.chmod(side.path("d"), 0o2770)
        os.mkdir(side.path("d/sub"))
        side.write("d/file")
        for name in ("d", "d/sub", "d/file"):
            side.stat(name)

    compare(mount, folder, case)


@pytest.mark.parametrize("count", [0, 1, 2, 100, 3000])
def test_readdir(mount, folder, count):
    def case(side):
        makers = [side.write, lambda n: os.mkdir(side.path(n)), lambda n: os.symlink("t", side.path(n)),
                  lambda n: os.mkfifo(side.path(n))]
        for i in range(count):
            makers[i % 4](f"{i:04d}-" + "long" * (i % 40))
        directory = parity.Directory(side.root)
        entries = [(name, kind) for name, _, kind in directory.rest()]
        side.note("entries", sorted(entries))
        side.note("no entry twice", len(entries) == len(set(entries)) == count + 2)
        side.note("again at the end", directory.next())
        directory.rewind()
        side.note("rewound", [(name, kind) for name, _, kind in directory.rest()] == entries)
        directory.close()
        side.note("by scandir", sorted((e.name, e.is_dir(follow_symlinks=False)) for e in os.scandir(side.root)))
        side.note("inodes", all(e.inode() == os.lstat(e.path).st_ino for e in os.scandir(side.root)))

    compare(mount, folder, case)


def test_readdir_positions(mount, folder):
    def case(side):
        for i in range(300):
            side.write(f"name{i}")
        directory = parity.Directory(side.root)
        positions, names = [], []
        while True:
            positions.append(directory.tell())
            entry = directory.next()
            if entry is None:
                break
            names.append(entry[0])
        side.note("count", len(names))
        for index in list(range(0, 302, 7)) + [301, 0, 150, 302]:
            directory.seek(positions[index])
            entry = directory.next()
            side.note(("seek", index), (entry and entry[0]) == (names[index] if index < 302 else None))
            side.note("then all the rest", [n for n, _, _ in directory.rest()] == names[index + 1:])
        directory.close()

    compare(mount, folder, case)


def test_readdir_while_names_come_and_go(mount, folder):
    def case(side):
        for i in range(500):
            side.write(f"name{i}")
        directory = parity.Directory(side.root)
        removed = 0
        while entry := directory.next():
            if entry[0] not in (".", ".."):
                os.unlink(side.path(entry[0]))
                removed += 1
        side.note("removed each once", removed)
        side.write("late")
        directory.rewind()
        side.note("afterwards", sorted(name for name, _, _ in directory.rest()))
        directory.close()

    compare(mount, folder, case)


def test_a_removed_directory_that_is_open(mount, folder):
    def case(side):
        os.mkdir(side.path("d"))
        fd = side.open("d", os.O_RDONLY | os.O_DIRECTORY)
        side.call("rmdir", os.rmdir, side.path("d"))
        side.call("listdir", os.listdir, fd)
        side.call("fstat", lambda: stat.S_ISDIR(os.fstat(fd).st_mode))
        side.call("create in it", lambda: os.open("x", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        side.call("mkdir in it", lambda: os.mkdir("x", dir_fd=fd))
        os.close(fd)

    compare(mount, folder, case)
