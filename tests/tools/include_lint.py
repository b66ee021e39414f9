#!/usr/bin/python3
"""Checks the include graph: layers look only downward, private headers stay private, pure layers touch no system.

Usage: include_lint.py [ROOT]    prints each wrong include and ends with 1 if there is one.
"""

import re
import sys
from pathlib import Path

# What each layer may include besides itself.
BELOW = {
    "base": set(),
    "protocol": {"base"},
    "locktable": {"base"},
    "share": {"base"},
    "files": {"base"},
    "engine": {"base", "protocol", "locktable", "share"},
    "fusefs": {"base", "protocol", "locktable", "share", "files", "engine"},
    "config": {"base"},
    "control": {"base"},
    "cli": {"base", "protocol", "share", "config"},
    "apps": {"base", "protocol", "locktable", "share", "files", "engine", "fusefs", "config", "control", "cli"},
}
# These get time as a parameter, make no system call and know no thread.
PURE = {"protocol", "locktable"}
IMPURE = re.compile(r"(thread|mutex|shared_mutex|condition_variable|future|semaphore|stop_token|fstream|filesystem|random"
                    r"|unistd\.h|fcntl\.h|pthread\.h|dirent\.h|signal\.h|poll\.h|time\.h|ctime|csignal|sys/.*|linux/.*)")
FUSE = re.compile(r"fuse.*\.h(pp)?")
LOGGING = re.compile(r"spdlog/.*")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def sources(root):
    """(layer, path) of every C++ file of the layers."""
    for top in ("src", "include/latchfs"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h"):
                yield path.relative_to(root / top).parts[0], path


def target(root, path, name):
    """(layer, is private) of the project header that `name` means, or None for a header of somebody else."""
    for base, private in ((path.parent, None), (root / "src", True), (root / "include", False)):
        found = (base / name).resolve()
        if not found.is_file():
            continue
        for top, is_private in ((root / "src", True), (root / "include" / "latchfs", False)):
            if found.is_relative_to(top):
                return found.relative_to(top).parts[0], is_private
    return None


def complaints(root, layer, path):
    for bracket, name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if bracket == '"':
            if name.startswith("../"):
                yield f'includes "{name}" by a relative path'
                continue
            found = target(root, path, name)
            if found is None:
                yield f'includes "{name}", which is not there'
                continue
            other, private = found
            if other != layer and other not in BELOW[layer]:
                yield f'layer {layer} must not know layer {other}: "{name}"'
            elif other != layer and private:
                yield f'"{name}" is private to layer {other}'
            elif not private and path.is_relative_to(root / "src") and not name.startswith("latchfs/"):
                yield f'public header "{name}" is written "latchfs/..."'
            elif private and path.is_relative_to(root / "include"):
                yield f'a public header includes the private "{name}"'
            continue
        if FUSE.fullmatch(name) and layer != "fusefs":
            yield f"only fusefs knows FUSE: <{name}>"
        if LOGGING.fullmatch(name) and layer != "control":
            yield f"only control knows the logging library: <{name}>"
        if layer in PURE and IMPURE.fullmatch(name):
            yield f"layer {layer} is pure: <{name}>"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2]).resolve()
    files = wrong = 0
    for layer, path in sources(root):
        files += 1
        if layer not in BELOW:
            wrong += 1
            print(f"{path.relative_to(root)}: there is no layer '{layer}'")
            continue
        for complaint in complaints(root, layer, path):
            wrong += 1
            print(f"{path.relative_to(root)}: {complaint}")
    print(f"include lint: {files} files, {wrong} wrong includes")
    sys.exit(1 if wrong or not files else 0)


if __name__ == "__main__":
    main()
