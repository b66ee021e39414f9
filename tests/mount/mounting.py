"""Starts and ends real latchfs daemons, each over directories of its own. Ends only what it started, by process id."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

BUILD = Path(os.environ.get("LATCHFS_BUILD", "build/dev")).resolve()
LATCHFS = BUILD / "src/apps/latchfs"
LATCHCTL = BUILD / "src/apps/latchctl"
SANITIZED = os.environ.get("LATCHFS_SANITIZED") == "1"

PR_SET_PDEATHSIG = 1
SANITIZER_REPORT = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")
_libc = ctypes.CDLL(None, use_errno=True)


class Times(NamedTuple):
    """The lease times of a share, in seconds."""

    beat: float
    fence_after: float
    break_after: float

    def options(self):
        return [f"beat={self.beat}s", f"fence_after={self.fence_after}s", f"break_after={self.break_after}s"]


TIMES = Times(2, 20, 30) if SANITIZED else Times(1, 8, 12)


def scaled(count):
    """A number of rounds: a fifth of it where a sanitizer makes everything slow."""
    return max(1, count // 5) if SANITIZED else count


def poll(condition, what, bound=60.0, pause=0.02):
    """The first true answer of condition(). The machine may be slow: bounds are there to end a test, not to measure."""
    deadline = time.monotonic() + bound
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {bound:g} s in vain: {what}"
        time.sleep(pause)


def die_with_parent():
    """For preexec_fn: whoever kills the test run must not leave processes behind."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def mounts():
    """(mount point, type, source) of everything mounted. Never asks a file system, so it cannot hang."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = [re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), f) for f in line.split(" ")]
        dash = fields.index("-")
        found.append((fields[4], fields[dash + 1], fields[dash + 2]))
    return found


def is_mounted(path):
    return any(point == str(path) for point, _, _ in mounts())


class Share:
    """A directory that several mounts share, with a plain directory of the same file system beside it."""

    def __init__(self, base):
        self.base = base
        self.source = base / "source"
        self.local = base / "local"
        self.source.mkdir()
        self.local.mkdir()
        self.must_end_clean = True

    @property
    def control(self):
        return self.source / ".latchfs"

    def names(self, folder):
        """The names in a folder of the control directory and below it; names that go meanwhile are no error."""
        return [name for _, folders, files in os.walk(self.control / folder) for name in folders + files]

    def claims(self):
        return [n for n in self.names("locks") if n.startswith(("h.", "c.", "q."))]

    def sessions(self):
        return self.names("sessions")

    def leftovers(self):
        """What a clean end must not leave: all but `format`, `README` and empty folders that are no names of claims."""
        left = self.claims()
        for folder, _, files in os.walk(self.control):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), self.control)
                if path not in ("format", "README"):
                    left.append(path)
        return left + [f"inbox/{n}" for n in self.names("inbox")]


class MountFailed(AssertionError):
    def __init__(self, code, stderr):
        super().__init__(f"latchfs ended with {code} instead of mounting:\n{stderr}")
        self.code = code
        self.stderr = stderr


class Mount:
    """One daemon in the foreground and its mount point."""

    def __init__(self, share, name, options):
        self.share = share
        self.name = name
        self.path = share.base / name
        self.path.mkdir()
        self._stderr_path = share.base / f"{name}.stderr"
        command = [str(LATCHFS), "-f", "-o", ",".join(options), str(share.source), str(self.path)]
        with open(self._stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr,
                                            preexec_fn=die_with_parent)
        self.ended = False
        self.killed = False

    @property
    def pid(self):
        return self.process.pid

    def stderr(self):
        return self._stderr_path.read_text(errors="replace")

    def wait_ready(self):
        def answers():
            if self.process.poll() is not None:
                raise MountFailed(self.process.returncode, self.stderr())
            if not is_mounted(self.path):
                return False
            # In a process of its own: a daemon that hangs must not hang the test.
            asked = subprocess.run(["stat", "-f", str(self.path)], capture_output=True, timeout=60)
            return asked.returncode == 0

        poll(answers, f"{self.name} to answer")

    def stop_running(self):
        """As a host that hangs or sleeps: nothing of the daemon runs until go_on()."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        """SIGKILL, as a crash does. The dead mount stays; its names wait for the peers."""
        self.killed = True
        self.share.must_end_clean = False
        self.process.kill()
        self.process.wait()

    def detach(self):
        subprocess.run(["umount", "-l", str(self.path)], capture_output=True, timeout=60)
        poll(lambda: not is_mounted(self.path), f"{self.path} to be unmounted")

    def problems(self):
        """Ends the daemon cleanly; what went wrong, as sentences."""
        if self.ended:
            return []
        self.ended = True
        if self.process.poll() is not None:
            return self._problems_of_the_ended()
        self.go_on()
        found = [] if self._unmount() else [f"{self.name} could not be unmounted"]
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            found.append(f"{self.name} did not end after its unmount")
        return found + self._verdict()

    def _problems_of_the_ended(self):
        if is_mounted(self.path):
            self.detach()
        return [] if self.killed else self._verdict()

    def _verdict(self):
        found = []
        if self.process.returncode != 0:
            found.append(f"{self.name} ended with {self.process.returncode}")
        if SANITIZER_REPORT.search(self.stderr()):
            found.append(f"{self.name} has a sanitizer report")
        return found

    def _unmount(self):
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and self.process.poll() is None:
            if not is_mounted(self.path):
                return True
            try:
                if subprocess.run(["umount", str(self.path)], capture_output=True, timeout=30).returncode == 0:
                    return True
            except subprocess.TimeoutExpired:
                break
            time.sleep(0.05)
        if is_mounted(self.path):
            self.detach()
            return False
        return True

    def stop(self):
        problems = self.problems()
        assert not problems, "; ".join(problems) + "\n" + self.stderr()


class Stage:
    """Everything that a test (or a module of tests) sets up; takes it down and tells what did not end well."""

    live = []  # all stages now, for the report of a failed test and for the watchdog

    def __enter__(self):
        self._base = Path(tempfile.mkdtemp(prefix="latchfs-test-")).resolve()
        self._shares = []
        self.mounts = []
        Stage.live.append(self)
        return self

    def share(self):
        base = self._base / f"share{len(self._shares)}"
        base.mkdir()
        self._shares.append(Share(base))
        return self._shares[-1]

    def mount(self, share, *, host_id=None, times=TIMES, options=(), name=None):
        words = list(times.options() if times else []) + list(options)
        if host_id:
            words.append(f"host_id={host_id}")
        mount = Mount(share, name or f"mount{len(self.mounts)}", words or ["rw"])
        self.mounts.append(mount)
        mount.wait_ready()
        return mount

    def refused(self, source, mountpoint, options=()):
        """Starts latchfs, which must end by itself without having mounted; its exit code and what it said."""
        command = [str(LATCHFS), "-f", *(["-o", ",".join(options)] if options else []), str(source), str(mountpoint)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, preexec_fn=die_with_parent)
        mounted = lambda: any(point == str(mountpoint) and kind == "fuse.latchfs" for point, kind, _ in mounts())
        poll(lambda: process.poll() is not None or mounted(), "latchfs to refuse")
        was_mounted = mounted()
        if was_mounted:
            subprocess.run(["umount", "-l", str(mountpoint)], capture_output=True, timeout=60)
        try:
            output = process.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0]
        assert not was_mounted, f"not refused: {command}\n{output}"
        return process.returncode, output

    def kill_all(self):
        for mount in self.mounts:
            if mount.process.poll() is None:
                mount.process.kill()

    def stop_all(self):
        problems = [p for mount in self.mounts for p in mount.problems()]
        for share in self._shares:
            if share.must_end_clean and share.leftovers():
                problems.append(f"left in the control directory: {share.leftovers()}")
        return problems

    def __exit__(self, kind, value, trace):
        problems = self.stop_all()
        log = "\n".join(f"--- {m.name}\n{m.stderr()}" for m in self.mounts)
        Stage.live.remove(self)
        left = [point for point, _, _ in mounts() if point.startswith(f"{self._base}/")]
        if not left:  # never delete through a mount
            shutil.rmtree(self._base, ignore_errors=True)
        assert not left, f"still mounted: {left}"
        assert not problems, "; ".join(problems) + "\n" + log
