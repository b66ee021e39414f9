#!/usr/bin/python3
"""Adds 1 to the number in a file, many times, under a lock of one kind:  counter.py FILE lockf|flock|ofd ROUNDS"""

import fcntl
import os
import struct
import sys

F_OFD_SETLK, F_OFD_SETLKW = 37, 38


def ofd(fd, mode):
    fcntl.fcntl(fd, F_OFD_SETLKW, struct.pack("hhqqi4x", mode, os.SEEK_SET, 0, 0, 0))


LOCKS = {
    "lockf": (lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX), lambda fd: fcntl.lockf(fd, fcntl.LOCK_UN)),
    "flock": (lambda fd: fcntl.flock(fd, fcntl.LOCK_EX), lambda fd: fcntl.flock(fd, fcntl.LOCK_UN)),
    "ofd": (lambda fd: ofd(fd, fcntl.F_WRLCK), lambda fd: ofd(fd, fcntl.F_UNLCK)),
}


def main():
    path, kind, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    lock, unlock = LOCKS[kind]
    fd = os.open(path, os.O_RDWR)
    for _ in range(rounds):
        lock(fd)
        number = int(os.pread(fd, 32, 0) or b"0")
        os.pwrite(fd, str(number + 1).encode(), 0)
        unlock(fd)


main()
