#!/usr/bin/python3
"""Writes rows into an SQLite database, one transaction each:  sqlite_writer.py FILE NAME TRANSACTIONS"""

import sqlite3
import sys


def main():
    path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    base = sqlite3.connect(path, timeout=60, isolation_level=None)
    for number in range(count):
        base.execute("BEGIN IMMEDIATE")
        base.execute("INSERT INTO entries(writer, number) VALUES (?, ?)", (name, number))
        base.execute("UPDATE total SET count = count + 1")
        base.execute("COMMIT")
    base.close()


main()
