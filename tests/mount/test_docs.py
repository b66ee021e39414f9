"""The documents tell the options and columns that the programs have."""

import re
import subprocess
from pathlib import Path

import pytest

from mounting import LATCHCTL, LATCHFS

DOCS = Path(__file__).parents[2] / "docs"


def output(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True).stdout


def helped_options():
    """{word: how the help writes it} of every row of the option table."""
    found = {}
    for line in output(LATCHFS, "-h").splitlines():
        match = re.match(r"  ([a-z_]+)(=\S+)?(?: or -(\w))?(?:\s|$)", line)
        if match:
            found[match[1]] = (match[1] + (match[2] or ""), match[3])
    return found


def table_rows():
    """(option, default) of the table of options in the reference, which has three columns."""
    for line in (DOCS / "reference/options.md").read_text().splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            yield cells[0], cells[1]


def documented_options():
    """The same from the table of the reference."""
    found = {}
    for option, _ in table_rows():
        match = re.fullmatch(r"`([a-z_]+)(=[^`]+)?`(?:, `-(\w)`)?", option)
        found[match[1]] = (match[1] + (match[2] or ""), match[3])
    return found


def manual_options():
    """The same from the manual page."""
    found = {}
    for line in (DOCS / "man/latchfs.8.md").read_text().splitlines():
        match = re.fullmatch(r"\*\*([a-z_]+)(?:(=)\*\*\*(\w+)\*|(=[a-z|]+)\*\*|\*\*(?:, \*\*-(\w)\*\*)?)", line)
        if match:
            value = f"={match[3]}" if match[2] else match[4] or ""
            found[match[1]] = (match[1] + value, match[5])
    return found


def test_the_reference_and_the_manual_have_every_option_and_no_other():
    options = helped_options()
    assert len(options) >= 12 and "beat" in options
    assert documented_options() == options
    assert manual_options() == options


def test_the_defaults_are_the_same_everywhere():
    helped = re.findall(r"\(default: ([^)]*)\)", re.sub(r"\s+", " ", output(LATCHFS, "-h")))
    manual = re.findall(r"Default: ([^.]*)\.", re.sub(r"\s+", " ", (DOCS / "man/latchfs.8.md").read_text()))
    assert helped and manual == helped
    assert [default for _, default in table_rows() if default not in ("off", "")] == helped


@pytest.mark.parametrize("command", ["locks", "sessions"])
def test_the_columns_of_latchctl_are_documented(command, mount):
    (mount.path / "file").touch()
    with subprocess.Popen(["flock", mount.path / "file", "-c", "echo held; read _"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        columns = output(LATCHCTL, command, mount.path).splitlines()[0].split()
        holder.stdin.close()
    section = (DOCS / "reference/latchctl.md").read_text().split(f"## Columns of {command}")[1].split("\n## ")[0]
    documented = [name.strip() for line in re.findall(r"^\| ([A-Z, ]+) \|", section, re.M) for name in line.split(",")]
    manual = (DOCS / "man/latchctl.8.md").read_text()
    assert documented == columns
    assert all(re.search(rf"\b{column}\b", manual) for column in columns)


def test_the_flags_of_latchctl_are_documented():
    flags = set(re.findall(r"--[a-z]+", output(LATCHCTL, "locks", "--help"))) | {"--version"}
    for name in ("reference/latchctl.md", "man/latchctl.8.md"):
        assert set(re.findall(r"--[a-z]+", (DOCS / name).read_text())) == flags


def test_the_manual_pages_render(tmp_path):
    for page in ("latchfs.8", "latchctl.8"):
        output("go-md2man", "-in", DOCS / f"man/{page}.md", "-out", tmp_path / page)
        text = (tmp_path / page).read_text()
        assert text.count("\n.SH ") >= 5
        assert f'.TH "{page.split(".")[0]}" "8"' in text or f".TH {page.split('.')[0]} 8" in text
