#!/usr/bin/python3
"""Adds up test results: JUnit files, and a list of stages that have none.

Usage: tally.py FOLDER    reads FOLDER/*.xml and FOLDER/stages (lines "STAGE passed|failed|skipped").
Prints "N passed, N failed, N skipped" as its last line; ends with 1 when something failed or nothing passed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path


def outcome(case):
    """What became of one <testcase>, as CTest and pytest write it."""
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def read_junit(path):
    """(counts, names of failed cases) of one file; a file that cannot be read counts as failed."""
    try:
        cases = list(ElementTree.parse(path).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        return Counter(failed=1), [f"{path.name}: {error}"]
    results = [(outcome(case), case.get("name", "?")) for case in cases]
    return Counter(result for result, _ in results), [name for result, name in results if result == "failed"]


def main():
    folder = Path(sys.argv[1])
    total = Counter()
    failed = []
    for path in sorted(folder.glob("*.xml")):
        counts, names = read_junit(path)
        total += counts
        failed += [f"{path.stem}: {name}" for name in names]
    stages = folder / "stages"
    for line in stages.read_text(encoding="utf-8").splitlines() if stages.exists() else []:
        stage, result = line.rsplit(" ", 1)
        total[result] += 1
        if result == "failed":
            failed.append(stage)
    for name in failed:
        print(f"FAILED {name}")
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    sys.exit(1 if total["failed"] or not total["passed"] else 0)


if __name__ == "__main__":
    main()
