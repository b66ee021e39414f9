"""Runs one row of calls on the mount and on a local directory, and compares what each call answered."""

import ctypes
import errno
import os
import stat
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.opendir.restype = ctypes.c_void_p
libc.telldir.restype = ctypes.c_long

AT_FDCWD = -100
UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
KEEP_SIZE, PUNCH_HOLE, COLLAPSE_RANGE, ZERO_RANGE = 1, 2, 8, 16


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _name(path):
    return os.fsencode(path)


def renameat2(old, new, flags):
    return checked(libc.renameat2(AT_FDCWD, _name(old), AT_FDCWD, _name(new), ctypes.c_uint(flags)))


def fallocate(fd, mode, offset, length):
    return checked(libc.fallocate64(fd, mode, ctypes.c_int64(offset), ctypes.c_int64(length)))


def utimensat(path, access, modify, flags=0):
    """Times as (seconds, nanoseconds); the nanoseconds may be UTIME_NOW or UTIME_OMIT."""
    times = (ctypes.c_long * 4)(*access, *modify)
    return checked(libc.utimensat(AT_FDCWD, _name(path), times, flags))


def futimens(fd, access, modify):
    return checked(libc.futimens(fd, (ctypes.c_long * 4)(*access, *modify)))


def getxattr(path, name, size):
    """getxattr(2) with a buffer of just this size; the value, or its length where size is 0."""
    buffer = ctypes.create_string_buffer(max(size, 1))
    count = checked(libc.getxattr(_name(path), _name(name), buffer, ctypes.c_size_t(size)))
    return buffer.raw[:count] if size else count


def listxattr(path, size):
    buffer = ctypes.create_string_buffer(max(size, 1))
    count = checked(libc.listxattr(_name(path), buffer, ctypes.c_size_t(size)))
    return sorted(buffer.raw[:count].split(b"\0")) if size else count


class Directory:
    """opendir(3) and its positions, which Python does not have."""

    class _Entry(ctypes.Structure):
        _fields_ = [("ino", ctypes.c_uint64), ("off", ctypes.c_int64), ("reclen", ctypes.c_ushort),
                    ("type", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]

    def __init__(self, path):
        libc.readdir64.restype = ctypes.POINTER(self._Entry)
        self._handle = libc.opendir(_name(path))
        if not self._handle:
            raise OSError(ctypes.get_errno(), "opendir")
        self._handle = ctypes.c_void_p(self._handle)

    def next(self):
        """The next (name, inode number, type), or None at the end."""
        ctypes.set_errno(0)
        entry = libc.readdir64(self._handle)
        if not entry:
            if ctypes.get_errno():
                raise OSError(ctypes.get_errno(), "readdir")
            return None
        return entry.contents.name.decode(), entry.contents.ino, entry.contents.type

    def rest(self):
        found = []
        while entry := self.next():
            found.append(entry)
        return found

    def tell(self):
        return libc.telldir(self._handle)

    def seek(self, position):
        libc.seekdir(self._handle, ctypes.c_long(position))

    def rewind(self):
        libc.rewinddir(self._handle)

    def close(self):
        libc.closedir(self._handle)


def facts(found):
    """What stat must show alike. Times only where a test sets them; block counts and inode numbers never."""
    size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
    return (oct(found.st_mode), found.st_nlink, found.st_uid, found.st_gid, size, found.st_rdev)


def times(found):
    return found.st_atime_ns, found.st_mtime_ns


class Side:
    """One of the two directories, and what the calls in it answered."""

    def __init__(self, root):
        self.root = root
        self.log = []

    def path(self, name):
        return f"{self.root}/{name}"

    def note(self, what, value):
        self.log.append((what, value))

    def call(self, what, function, *args, **named):
        """Calls and notes the answer: the value, or the name of the errno. Gives back the value or None."""
        try:
            value = function(*args, **named)
        except OSError as error:
            self.note(what, errno.errorcode.get(error.errno, error.errno))
            return None
        self.note(what, value)
        return value

    def open(self, name, flags=os.O_RDWR | os.O_CREAT, mode=0o644):
        """Opens and notes success; the descriptor's number is no answer to compare."""
        try:
            fd = os.open(self.path(name), flags, mode)
        except OSError as error:
            self.note(("open", name, oct(flags)), errno.errorcode[error.errno])
            return None
        self.note(("open", name, oct(flags)), "ok")
        return fd

    def write(self, name, content=b"content"):
        Path(self.path(name)).write_bytes(content)

    def stat(self, name):
        return self.call(("lstat", name), lambda: facts(os.lstat(self.path(name))))

    def fstat(self, fd):
        return self.call("fstat", lambda: facts(os.fstat(fd)))

    def content(self, name):
        return self.call(("content", name), lambda: Path(self.path(name)).read_bytes())


def tree(root):
    """Everything below a directory: kinds, modes, owners, sizes, targets and contents."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            extra = None
            if stat.S_ISLNK(status.st_mode):
                extra = os.readlink(path)
            elif stat.S_ISREG(status.st_mode) and status.st_size < 1 << 24:
                extra = Path(path).read_bytes()
            found[os.path.relpath(path, root)] = (facts(status), extra)
    return found


def compare(mount, folder, case):
    """Runs case(side) on both sides and holds the answers, and what is there in the end, against each other."""
    mount_root, raw_root, local_root = (base / folder for base in (mount.path, mount.share.source, mount.share.local))
    before = os.umask(0o022)
    try:
        sides = [Side(str(root)) for root in (mount_root, local_root)]
        for side in sides:
            os.mkdir(side.root)
            case(side)
    finally:
        os.umask(before)
    differences = [f"mount: {ours!r:.500}\nlocal: {theirs!r:.500}" for ours, theirs in zip(sides[0].log, sides[1].log)
                   if ours != theirs]
    assert not differences, "\n" + "\n".join(differences[:20])
    assert len(sides[0].log) == len(sides[1].log)
    expected = tree(local_root)
    for root in (mount_root, raw_root):  # and it really is on the share
        found = tree(root)
        differences = [f"{name}: {found.get(name)!r:.300} not {expected.get(name)!r:.300}"
                       for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
        assert not differences, f"\n{root}\n" + "\n".join(differences[:20])
