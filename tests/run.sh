#!/bin/bash
# Builds and tests everything. The last line is "N passed, N failed, N skipped".
# Usage: run.sh [-q|--quick|--full]
#   quick: the dev build only; full: also the unit tests under tsan, the clang build and the fuzz targets
set -uo pipefail

extent=usual
case ${1:-} in
  "") ;;
  -q | --quick) extent=quick ;;
  --full) extent=full ;;
  *) echo "Usage: run.sh [-q|--quick|--full]" >&2; exit 2 ;;
esac

cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
root=$PWD
results=$root/build/results
python=/usr/bin/python3
fuzz_seconds=10
longest_test=600
longest_stage=3600
export ASAN_OPTIONS=detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

rm -rf "$results"
mkdir -p "$results"

# stage NAME COMMAND...: runs it and prints its time. What it did is counted from its JUnit file NAME.xml; where that
# is not there, or tells of no failure although the command failed, the stage itself counts.
stage() {
  local name=$1 began=$SECONDS code=0 result=passed
  shift
  echo "== $name"
  timeout --kill-after=30 "$longest_stage" "$@" || code=$?
  [[ $code -eq 0 ]] || result=failed
  [[ $code -ne 77 ]] || result=skipped
  echo "== $name: $result after $((SECONDS - began)) s"
  if [[ ! -e $results/$name.xml ]] || { [[ $result == failed ]] && ! grep -qE '<(failure|error)' "$results/$name.xml"; }; then
    echo "$name $result" >> "$results/stages"
  fi
  [[ $code -eq 0 ]]
}

# ThreadSanitizer of g++ 12 cannot place its shadow memory when addresses are randomised as far as new kernels do.
plain_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then plain_addresses=(setarch "$(uname -m)" -R); fi

build() { stage "build-$1" "${plain_addresses[@]}" tests/tools/build.sh "$1"; }

ctest_stage() {
  local preset=$1
  shift
  stage "ctest-$preset" "${plain_addresses[@]}" ctest --test-dir "build/$preset" --output-on-failure --timeout "$longest_test" \
    --no-tests=error --output-junit "$results/ctest-$preset.xml" "$@"
}

mount_tests() {
  stage "mount-$1" env LATCHFS_BUILD="$root/build/$1" LATCHFS_SANITIZED="$2" "$python" -m pytest -q -rs \
    --junitxml "$results/mount-$1.xml" tests/mount
}

stage dependencies packaging/dependencies.sh || exec "$python" tests/tools/tally.py "$results"
stage include-lint tests/tools/include_lint.py
stage tools "$python" -m pytest -q --junitxml "$results/tools.xml" tests/tools
mapfile -t scripts < <(find packaging tests .ci -name '*.sh' -o -path .ci/run)
stage shellcheck shellcheck "${scripts[@]}"
stage codespell codespell

if build dev; then
  ctest_stage dev
  mount_tests dev 0
fi

if [[ $extent != quick ]] && build asan-ubsan; then
  ctest_stage asan-ubsan -R '^(unit|contract)/'
  mount_tests asan-ubsan 1
fi

if [[ $extent == full ]]; then
  if build tsan; then ctest_stage tsan -R '^unit/'; fi
  if build clang; then
    for target in build/clang/tests/fuzz/fuzz_*; do
      [[ -x $target && -f $target ]] || continue
      stage "fuzz-${target##*/fuzz_}" tests/tools/fuzz.sh "$target" "$fuzz_seconds"
    done
  fi
fi

"$python" tests/tools/tally.py "$results"
