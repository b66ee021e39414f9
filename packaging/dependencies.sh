#!/bin/bash
# The one list of the Debian packages that latchfs needs. Installs those that are missing.
# Usage: dependencies.sh [--list] [GROUP...]     groups: build run demo test; none: all of them
set -euo pipefail

build=(
  g++ cmake ninja-build ccache pkg-config go-md2man
  libfuse3-dev libfmt-dev libspdlog-dev libyaml-cpp-dev libexpected-dev libcli11-dev nlohmann-json3-dev
  libsystemd-dev libmount-dev libsmartcols-dev libxxhash-dev
)
run=(fuse3)
demo=(python3 sqlite3 util-linux)
test=(
  doctest-dev librapidcheck-dev python3 python3-pytest sqlite3 stress-ng ctdb
  clang-14 libclang-rt-14-dev clang-format-14 clang-tidy-14 shellcheck codespell
)

list_only=no
if [[ ${1:-} == --list ]]; then
  list_only=yes
  shift
fi
groups=("$@")
[[ $# -gt 0 ]] || groups=(build run demo test)

wanted=()
for group in "${groups[@]}"; do
  case $group in
    build) wanted+=("${build[@]}") ;;
    run) wanted+=("${run[@]}") ;;
    demo) wanted+=("${demo[@]}") ;;
    test) wanted+=("${test[@]}") ;;
    *) echo "dependencies.sh: unknown group '$group' (build, run, demo, test)" >&2; exit 2 ;;
  esac
done

if [[ $list_only == yes ]]; then
  printf '%s\n' "${wanted[@]}" | sort -u
  exit 0
fi

if ! command -v dpkg-query >/dev/null; then
  echo "dependencies.sh: this is no Debian system; install what corresponds to: ${wanted[*]}" >&2
  exit 1
fi

missing=()
for package in "${wanted[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

echo "Installing Debian packages: ${missing[*]}"
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "dependencies.sh: run this as root, or: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
