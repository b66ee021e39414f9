#!/bin/bash
# Runs one libFuzzer target for some seconds, on from the inputs that are kept and what earlier runs found.
# Usage: fuzz.sh TARGET SECONDS
set -euo pipefail
target=$1
corpus=$(dirname "$target")/corpus-$(basename "$target")
kept=$(dirname "$(readlink -f "$0")")/../fuzz/corpus/${target##*/fuzz_}
mkdir -p "$corpus"
corpora=("$corpus")
[[ ! -d $kept ]] || corpora+=("$kept")
log=$corpus.log
if ! "$target" -max_total_time="$2" -timeout=10 -max_len=4096 -rss_limit_mb=2048 -artifact_prefix="$corpus-" "${corpora[@]}" >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  exit 1
fi
tail -n 1 "$log"
