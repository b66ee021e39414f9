#!/bin/bash
# Two mounts of one temporary directory take each other for two hosts, alpha and beta. Unchanged programs on both at
# once must exclude each other; each notes when it held its lock, and the notes are checked at the end.
# Usage: demonstration.sh FOLDER_OF_THE_PROGRAMS
set -euo pipefail

programs=$1
here=$(dirname "$(readlink -f "$0")")
python=/usr/bin/python3
hosts=(alpha beta)
flock_rounds=8
lockf_rounds=100
sqlite_rounds=50
patience=30 # seconds until something that must happen counts as failed

work=$(mktemp -d --tmpdir latchfs-demonstration.XXXXXX)
notes=$work/notes
touch "$notes"

cleanup() {
  status=$?
  trap - EXIT INT TERM
  local pids
  pids=$(jobs -p)
  # shellcheck disable=SC2086 # a list of process ids
  [[ -z $pids ]] || kill $pids 2>/dev/null || true
  wait || true
  for host in "${hosts[@]}"; do
    if mountpoint -q "$work/$host"; then umount "$work/$host" 2>/dev/null || umount -l "$work/$host" || true; fi
  done
  wait_until no_sessions_left || echo "A daemon still runs; its files are left in $work" >&2
  if no_sessions_left; then rm -rf "$work"; fi
  exit "$status"
}

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

wait_until() {
  local end=$((SECONDS + patience))
  until "$@"; do
    [[ $SECONDS -lt $end ]] || return 1
    sleep 0.1
  done
}

no_sessions_left() {
  [[ -d $work/share/.latchfs ]] || return 0
  local sessions
  sessions=$("$programs/latchctl" sessions -n "$work/share") && [[ -z $sessions ]]
}

one_held_one_waits() {
  local states
  states=$("$programs/latchctl" locks -nr -o STATE "$work/alpha" | sort | tr '\n' ' ')
  [[ $states == "held waiting " ]]
}

# Adds one to a number in a file, under flock(1).
flock_worker() {
  local host=$1 round
  for ((round = 0; round < flock_rounds; round++)); do
    # shellcheck disable=SC2016 # the inner shell expands these
    HOST=$host NOTES=$notes NUMBER=$work/$host/flock.number flock "$work/$host/flock.lock" bash -c '
      start=$(date +%s.%N)
      number=$(cat "$NUMBER")
      sleep 0.02
      echo $((number + 1)) > "$NUMBER"
      echo "flock $HOST $start $(date +%s.%N)" >> "$NOTES"'
  done
}

# Adds rows by the sqlite3 program; it says itself when a transaction holds the write lock.
sqlite_worker() {
  local host=$1 round now="printf('%.3f', (julianday('now') - 2440587.5) * 86400)"
  {
    echo ".timeout 60000"
    for ((round = 0; round < sqlite_rounds; round++)); do
      echo "BEGIN IMMEDIATE;"
      echo "CREATE TEMP TABLE IF NOT EXISTS began(at TEXT); DELETE FROM began; INSERT INTO began VALUES ($now);"
      echo "INSERT INTO entry(host, round) VALUES ('$host', $round);"
      echo "SELECT 'sqlite3 $host ' || at || ' ' || $now FROM began;"
      echo "COMMIT;"
    done
  } | sqlite3 -bail "$work/$host/database" >> "$notes"
}

lockf_worker() { "$python" "$here/lockf_worker.py" "$1" "$work/$1/lockf.number" "$lockf_rounds" >> "$notes"; }

on_both() {
  local pids=() host pid
  for host in "${hosts[@]}"; do
    "$1" "$host" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || fail "$1 ended with an error"; done
}

expect() {
  [[ $2 == "$3" ]] || fail "$1 is '$2' and should be '$3'"
  echo "$1: $2, as it should be"
}

trap cleanup EXIT
trap 'exit 130' INT TERM

mkdir "$work/share"
for host in "${hosts[@]}"; do
  mkdir "$work/$host"
  "$programs/latchfs" -o "host_id=$host" "$work/share" "$work/$host"
done
echo "== One directory, two mounts that take each other for two hosts"
"$programs/latchctl" sessions -o HOST,STATE,BEAT,MOUNTPOINT "$work/share"

echo
echo "== A program on alpha holds a lock, one on beta waits for it: latchctl locks $work/alpha"
flock --no-fork "$work/alpha/held" sleep 1000 &
holder=$!
wait_until "$python" "$here/is_locked.py" "$work/beta/held" || fail "the lock on alpha is not seen on beta"
flock "$work/beta/held" true &
waiter=$!
wait_until one_held_one_waits || fail "latchctl does not show a holder and a waiter"
"$programs/latchctl" locks "$work/alpha"
kill "$holder"
wait "$holder" 2>/dev/null || true
wait "$waiter"
echo "The holder was ended, and the waiter on beta got the lock."

echo
echo "== flock(1), Python's fcntl.lockf and sqlite3 write on both at once"
echo 0 > "$work/alpha/flock.number"
echo 0 > "$work/alpha/lockf.number"
sqlite3 "$work/alpha/database" 'CREATE TABLE entry(host TEXT, round INTEGER)'
on_both flock_worker
on_both lockf_worker
on_both sqlite_worker

"$python" "$here/check_notes.py" "$notes"
expect "Number counted up under flock(1)" "$(cat "$work/beta/flock.number")" $((2 * flock_rounds))
expect "Number counted up under fcntl.lockf" "$(cat "$work/beta/lockf.number")" $((2 * lockf_rounds))
expect "Rows in the database" "$(sqlite3 "$work/beta/database" 'SELECT count(DISTINCT host || round) FROM entry')" $((2 * sqlite_rounds))
expect "Integrity of the database" "$(sqlite3 "$work/beta/database" 'PRAGMA integrity_check')" ok
echo
echo "All locks held across both mounts."
