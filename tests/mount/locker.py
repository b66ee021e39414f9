#!/usr/bin/python3
"""A process that locks what it is told to. One command a line on stdin, one JSON answer a line on stdout, with the
monotonic time before and after the call. Lock calls go straight to libc, so that the errno is the kernel's and an interrupted call is not begun
again.

  open NAME PATH [rdonly|wronly|rdwr]          dup NAME NEW        close NAME
  posix|ofd NAME sh|ex|un try|wait START LENGTH [set|cur|end]
  posix|ofd NAME sh|ex test START LENGTH [set|cur|end]
  flock NAME sh|ex|un try|wait
  seek NAME OFFSET       write NAME OFFSET TEXT       read NAME OFFSET COUNT       size NAME
  map NAME LENGTH        mapread NAME OFFSET COUNT    sync NAME
  child hold | child close NAME | reap PID     crowd PATH COUNT | crowd-result
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import shlex
import signal
import sys
import threading
import time

F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW = 36, 37, 38
COMMANDS = {
    ("posix", "test"): fcntl.F_GETLK, ("posix", "try"): fcntl.F_SETLK, ("posix", "wait"): fcntl.F_SETLKW,
    ("ofd", "test"): F_OFD_GETLK, ("ofd", "try"): F_OFD_SETLK, ("ofd", "wait"): F_OFD_SETLKW,
}
TYPES = {"sh": fcntl.F_RDLCK, "ex": fcntl.F_WRLCK, "un": fcntl.F_UNLCK}
FLOCKS = {"sh": fcntl.LOCK_SH, "ex": fcntl.LOCK_EX, "un": fcntl.LOCK_UN}
WHENCE = {"set": os.SEEK_SET, "cur": os.SEEK_CUR, "end": os.SEEK_END}
FLAGS = {"rdonly": os.O_RDONLY, "wronly": os.O_WRONLY, "rdwr": os.O_RDWR | os.O_CREAT}
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)


class Flock(ctypes.Structure):
    """struct flock with 64-bit offsets."""

    _fields_ = [("type", ctypes.c_short), ("whence", ctypes.c_short), ("start", ctypes.c_int64),
                ("length", ctypes.c_int64), ("pid", ctypes.c_int32)]


def checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def record_lock(kind, fd, mode, how, start, length, whence="set"):
    lock = Flock(TYPES[mode], WHENCE[whence], int(start), int(length), 0)
    checked(libc.fcntl(fd, COMMANDS[kind, how], ctypes.byref(lock)))
    if how != "test":
        return None
    names = {number: name for name, number in TYPES.items()}
    if lock.type == fcntl.F_UNLCK:
        return None
    return {"mode": names[lock.type], "start": lock.start, "length": lock.length, "pid": lock.pid}


def file_lock(fd, mode, how):
    checked(libc.flock(fd, FLOCKS[mode] | (fcntl.LOCK_NB if how == "try" else 0)))


class Crowd:
    """Many threads, each with a descriptor of its own, that wait for one flock, count and let go."""

    def __init__(self, path, count):
        threading.stack_size(128 * 1024)
        self.path = path
        self.counted = 0
        self.errors = []
        self.threads = [threading.Thread(target=self.one) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def one(self):
        try:
            fd = os.open(self.path, os.O_RDWR)
            file_lock(fd, "ex", "wait")
            seen = self.counted
            time.sleep(0)  # gives another thread the chance to spoil the sum, where it could be in here
            self.counted = seen + 1
            os.close(fd)
        except OSError as error:
            self.errors.append(str(error))

    def result(self):
        for thread in self.threads:
            thread.join()
        return {"counted": self.counted, "errors": self.errors}


class Locker:
    def __init__(self):
        self.files = {}
        self.maps = {}
        self.crowd = None

    def run(self, words):
        verb, rest = words[0], words[1:]
        if verb in ("posix", "ofd"):
            return record_lock(verb, self.files[rest[0]], *rest[1:])
        if verb == "flock":
            return file_lock(self.files[rest[0]], *rest[1:])
        return getattr(self, "do_" + verb.replace("-", "_"))(*rest)

    def do_open(self, name, path, flags="rdwr"):
        self.files[name] = os.open(path, FLAGS[flags], 0o644)

    def do_dup(self, name, new):
        self.files[new] = os.dup(self.files[name])

    def do_close(self, name):
        os.close(self.files.pop(name))

    def do_seek(self, name, offset):
        return os.lseek(self.files[name], int(offset), os.SEEK_SET)

    def do_write(self, name, offset, text):
        return os.pwrite(self.files[name], text.encode(), int(offset))

    def do_read(self, name, offset, count):
        return os.pread(self.files[name], int(count), int(offset)).decode()

    def do_size(self, name):
        return os.fstat(self.files[name]).st_size

    def do_sync(self, name):
        os.fsync(self.files[name])

    def do_map(self, name, length):
        self.maps[name] = mmap.mmap(self.files[name], int(length), mmap.MAP_SHARED, mmap.PROT_READ)

    def do_mapread(self, name, offset, count):
        return self.maps[name][int(offset):int(offset) + int(count)].decode()

    def do_child(self, what, name=None):
        """A fork of this process: `hold` stays with all descriptors open until reaped, `close` closes one and ends."""
        child = os.fork()
        if child:
            if what == "close":
                os.waitpid(child, 0)
            return child
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if what == "close":
            os.close(self.files[name])
            os._exit(0)
        while True:
            signal.pause()

    def do_reap(self, pid):
        os.kill(int(pid), signal.SIGKILL)
        os.waitpid(int(pid), 0)

    def do_crowd(self, path, count):
        self.crowd = Crowd(path, int(count))

    def do_crowd_result(self):
        return self.crowd.result()


def main():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGUSR1, lambda number, frame: None)  # interrupts a waiting call and does nothing else
    locker = Locker()
    for line in sys.stdin:
        answer = {"value": None, "errno": None, "start": time.monotonic()}
        try:
            answer["value"] = locker.run(shlex.split(line))
        except OSError as error:
            answer["errno"] = errno.errorcode.get(error.errno, str(error.errno))
        answer["end"] = time.monotonic()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
