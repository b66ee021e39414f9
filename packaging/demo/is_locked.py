"""Exit code 0 when another program holds a flock on the file, else 1. The file must be there."""

import fcntl
import sys

try:
    with open(sys.argv[1], "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
except FileNotFoundError:
    sys.exit(1)
except BlockingIOError:
    sys.exit(0)
sys.exit(1)
