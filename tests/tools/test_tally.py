"""The tally counts what CTest and pytest write, and calls nothing a success that is none."""

import subprocess
import sys
from pathlib import Path

TALLY = Path(__file__).parent / "tally.py"
CTEST = """<?xml version="1.0"?><testsuite tests="4" failures="1" disabled="0" skipped="2">
<testcase name="good" status="run"/><testcase name="bad" status="fail"><failure message=""/></testcase>
<testcase name="off" status="disabled"/><testcase name="away" status="notrun"><skipped message=""/></testcase></testsuite>"""
PYTEST = """<?xml version="1.0"?><testsuites><testsuite name="pytest" tests="3" errors="1">
<testcase name="one"/><testcase name="two"><error message="x"/></testcase><testcase name="three"><skipped/></testcase>
</testsuite></testsuites>"""


def tally(folder):
    done = subprocess.run([sys.executable, TALLY, folder], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


def test_results_are_added_up_and_failures_named(tmp_path):
    (tmp_path / "ctest.xml").write_text(CTEST)
    (tmp_path / "pytest.xml").write_text(PYTEST)
    (tmp_path / "stages").write_text("lint passed\nbuild of tsan failed\n")
    code, lines = tally(tmp_path)
    assert code == 1
    assert lines == ["FAILED ctest: bad", "FAILED pytest: two", "FAILED build of tsan", "3 passed, 3 failed, 3 skipped"]


def test_all_good_is_success(tmp_path):
    (tmp_path / "stages").write_text("lint passed\n")
    assert tally(tmp_path) == (0, ["1 passed, 0 failed, 0 skipped"])


def test_nothing_run_is_no_success(tmp_path):
    assert tally(tmp_path) == (1, ["0 passed, 0 failed, 0 skipped"])
    (tmp_path / "stages").write_text("mount skipped\n")
    assert tally(tmp_path)[0] == 1


def test_a_torn_file_counts_as_failed(tmp_path):
    (tmp_path / "stages").write_text("lint passed\n")
    (tmp_path / "ctest.xml").write_text(CTEST[:80])
    code, lines = tally(tmp_path)
    assert code == 1
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"
