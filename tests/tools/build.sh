#!/bin/bash
# Configures and builds one CMake preset. Usage: build.sh PRESET
set -euo pipefail
cmake --preset "$1" >/dev/null
exec cmake --build --preset "$1" -- --quiet
