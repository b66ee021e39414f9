"""Adds one to a number in a file under fcntl.lockf, many times; prints when it held the lock."""

import fcntl
import sys
import time


def main():
    host, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    for _ in range(rounds):
        with open(path, "r+", encoding="ascii") as file:
            fcntl.lockf(file, fcntl.LOCK_EX)
            start = time.time()
            number = int(file.read())
            file.seek(0)
            file.write(str(number + 1))
            file.flush()
            end = time.time()
            fcntl.lockf(file, fcntl.LOCK_UN)
        print(f"lockf {host} {start:.6f} {end:.6f}")


main()
