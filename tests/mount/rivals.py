#!/usr/bin/python3
"""Processes that try for one lock at the same instant, many times; one for each path:

    rivals.py posix|ofd|flock ROUNDS PATH...

Prints the number of winners of each round. The winner lets go only when everybody has an answer, so that a try that
waits is found out."""

import mmap
import os
import struct
import sys

import locker


class Barrier:
    """Each process counts in a place of its own in shared memory; all go on when all have counted as far."""

    def __init__(self, count):
        self.count = count
        self.memory = mmap.mmap(-1, 8 * count)
        self.passed = 0

    def wait(self, me):
        self.passed += 1
        struct.pack_into("q", self.memory, 8 * me, self.passed)
        while min(struct.unpack_from(f"{self.count}q", self.memory)) < self.passed:
            os.sched_yield()


def attempt(kind, fd, mode):
    try:
        if kind == "flock":
            locker.file_lock(fd, mode, "try")
        else:
            locker.record_lock(kind, fd, mode, "try", 0, 0)
        return True
    except BlockingIOError:
        return False


def rival(me, kind, rounds, path, barrier, winners):
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for number in range(rounds):
        barrier.wait(me)
        won = attempt(kind, fd, "ex")
        winners[number * barrier.count + me] = won
        barrier.wait(me)
        if won:
            attempt(kind, fd, "un")
    os._exit(0)


def main():
    kind, rounds, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    locker.libc.prctl(locker.PR_SET_PDEATHSIG, locker.signal.SIGKILL)
    count = len(paths)
    barrier, winners = Barrier(count), mmap.mmap(-1, rounds * count)
    children = []
    for me, path in enumerate(paths):
        child = os.fork()
        if child == 0:
            locker.libc.prctl(locker.PR_SET_PDEATHSIG, locker.signal.SIGKILL)
            rival(me, kind, rounds, path, barrier, winners)
        children.append(child)
    failed = [os.waitpid(child, 0)[1] for child in children]
    print(*(sum(winners[n * count:(n + 1) * count]) for n in range(rounds)))
    sys.exit(any(failed))


main()
