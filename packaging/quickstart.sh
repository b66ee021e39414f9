#!/bin/bash
# Builds latchfs and shows it at work, or mounts a share with it.
# Usage: quickstart.sh                    a demonstration: two mounts of one temporary directory
#        quickstart.sh SHARE MOUNTPOINT   mounts the directory SHARE on MOUNTPOINT, in the background
set -euo pipefail

if [[ $# -ne 0 && $# -ne 2 ]]; then
  echo "Usage: quickstart.sh [SHARE MOUNTPOINT]" >&2
  exit 2
fi
if [[ $# -eq 2 ]]; then
  share=$(realpath -- "$1")
  mountpoint=$(realpath -- "$2")
fi

cd "$(dirname "$(readlink -f "$0")")/.."
packaging/dependencies.sh build run demo
echo "Building latchfs in build/release ..."
cmake --preset release >/dev/null
cmake --build --preset release -- --quiet
programs=$PWD/build/release/src/apps

if [[ ! -c /dev/fuse ]]; then
  echo "quickstart.sh: there is no /dev/fuse: load the module fuse, or give the device to this container" >&2
  exit 1
fi

if [[ $# -eq 0 ]]; then
  exec packaging/demo/demonstration.sh "$programs"
fi

"$programs/latchfs" "$share" "$mountpoint"
unmount=umount
[[ $(id -u) -eq 0 ]] || unmount="fusermount3 -u"
cat <<END
$share is mounted on $mountpoint. Every host that mounts the same directory with latchfs honours its locks.
  who holds what:  $programs/latchctl locks $mountpoint
  to unmount:      $unmount $mountpoint
END
