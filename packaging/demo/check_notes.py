"""Reads lines "PROGRAM HOST START END" and prints who held the lock of each program when. Exit code 1 if two held it at once."""

import datetime
import itertools
import sys

SHOWN = 6


def clock(seconds):
    return datetime.datetime.fromtimestamp(seconds).strftime("%H:%M:%S.%f")


def overlaps(held):
    """Pairs of neighbours in time where the later one began before the earlier one had ended."""
    return [(a, b) for a, b in itertools.pairwise(held) if b[0] < a[1]]


def main():
    programs = {}
    with open(sys.argv[1], encoding="ascii") as notes:
        for line in notes:
            program, host, start, end = line.split()
            programs.setdefault(program, []).append((float(start), float(end), host))
    if not programs:
        sys.exit("FAILED: nothing was noted")
    failed = False
    for program, held in programs.items():
        held.sort()
        print(f"\n{program}: the lock was held {len(held)} times")
        for start, end, host in held[:SHOWN]:
            print(f"  {clock(start)} - {clock(end)}  {host}")
        if len(held) > SHOWN:
            print(f"  ... and {len(held) - SHOWN} times more")
        wrong = overlaps(held)
        for a, b in wrong:
            print(f"  FAILED: {a[2]} held it until {clock(a[1])}, but {b[2]} had it from {clock(b[0])}")
        failed = failed or bool(wrong)
        changes = sum(a[2] != b[2] for a, b in itertools.pairwise(held))
        hosts = sorted({host for _, _, host in held})
        if len(hosts) < 2:
            print(f"  FAILED: only {hosts} held it")
            failed = True
        if not wrong:
            print(f"  No two at once; it went from one host to the other {changes} times.")
    print()
    sys.exit(1 if failed else 0)


main()
