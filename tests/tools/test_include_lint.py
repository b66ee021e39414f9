"""The include lint finds what it is there to find."""

import subprocess
import sys
from pathlib import Path

import pytest

LINT = Path(__file__).parent / "include_lint.py"


@pytest.fixture
def tree(tmp_path):
    files = {
        "include/latchfs/base/error.hpp": "#include <string>\n",
        "include/latchfs/engine/fence.hpp": '#include "latchfs/base/error.hpp"\n',
        "src/engine/fence.cpp": '#include "latchfs/engine/fence.hpp"\n#include "engine/inner.hpp"\n#include <mutex>\n',
        "src/engine/inner.hpp": "",
        "src/fusefs/ops.cpp": '#include <fuse_lowlevel.h>\n#include "latchfs/engine/fence.hpp"\n',
    }
    for name, text in files.items():
        write(tmp_path, name, text)
    return tmp_path


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def lint(root):
    done = subprocess.run([sys.executable, LINT, root], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_a_clean_tree_passes(tree):
    code, out = lint(tree)
    assert code == 0, out
    assert "5 files, 0 wrong" in out


@pytest.mark.parametrize("name, text, complaint", [
    ("src/base/bad.cpp", '#include "latchfs/engine/fence.hpp"', "layer base must not know layer engine"),
    ("src/share/bad.cpp", '  #  include "latchfs/engine/fence.hpp"', "layer share must not know layer engine"),
    ("src/fusefs/bad.cpp", '#include "engine/inner.hpp"', "is private to layer engine"),
    ("include/latchfs/engine/bad.hpp", '#include "engine/inner.hpp"', "a public header includes the private"),
    ("src/engine/bad.cpp", "#include <fuse_lowlevel.h>", "only fusefs knows FUSE"),
    ("src/engine/bad.cpp", "#include <spdlog/spdlog.h>", "only control knows the logging library"),
    ("src/protocol/bad.cpp", "#include <sys/stat.h>", "layer protocol is pure"),
    ("src/locktable/bad.cpp", "#include <mutex>", "layer locktable is pure"),
    ("src/engine/bad.cpp", '#include "../base/error.hpp"', "by a relative path"),
    ("src/engine/bad.cpp", '#include "latchfs/base/gone.hpp"', "which is not there"),
    ("src/newlayer/bad.cpp", "", "there is no layer 'newlayer'"),
])
def test_a_wrong_include_is_named(tree, name, text, complaint):
    write(tree, name, text + "\n")
    code, out = lint(tree)
    assert code == 1
    assert f"{name}: " in out
    assert complaint in out


def test_an_empty_tree_is_no_success(tmp_path):
    assert lint(tmp_path)[0] == 1
