"""The tests' end of a locker.py process."""

import json
import os
import select
import shlex
import signal
import subprocess
import time
from pathlib import Path

from mounting import die_with_parent, poll

SCRIPT = Path(__file__).with_name("locker.py")
LOCK_CALLS = ("72", "73")  # fcntl and flock on x86-64
if os.uname().machine == "aarch64":
    LOCK_CALLS = ("25", "32")


def winners(kind, rounds, paths):
    """Runs rivals.py: how many processes got the lock in each round."""
    command = ["/usr/bin/python3", "-E", str(SCRIPT.with_name("rivals.py")), kind, str(rounds), *map(str, paths)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, preexec_fn=die_with_parent)
    try:
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        return [int(word) for word in output.split()]
    finally:
        process.kill()
        process.wait()


class Answer:
    def __init__(self, text):
        fields = json.loads(text)
        self.value = fields["value"]
        self.errno = fields["errno"]
        self.start = fields["start"]
        self.end = fields["end"]

    @property
    def ok(self):
        return self.errno is None

    def __repr__(self):
        return f"Answer({self.errno or self.value!r})"


class Locker:
    def __init__(self):
        self.process = subprocess.Popen(["/usr/bin/python3", "-SE", str(SCRIPT)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self._unread = b""

    @property
    def pid(self):
        return self.process.pid

    def send(self, *words):
        """Gives a command without waiting for its answer."""
        self.process.stdin.write((shlex.join(str(w) for w in words) + "\n").encode())
        self.process.stdin.flush()

    def answer(self, bound=60.0):
        deadline = time.monotonic() + bound
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            assert left > 0, f"no answer within {bound:g} s"
            if select.select([self.process.stdout], [], [], left)[0]:
                data = os.read(self.process.stdout.fileno(), 65536)
                assert data, "the locker process has ended"
                self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return Answer(line)

    def answered(self):
        return b"\n" in self._unread or bool(select.select([self.process.stdout], [], [], 0)[0])

    def ask(self, *words, bound=60.0):
        self.send(*words)
        return self.answer(bound)

    def do(self, *words, bound=60.0):
        """A command that must succeed; its value."""
        answer = self.ask(*words, bound=bound)
        assert answer.ok, f"{words}: {answer.errno}"
        return answer.value

    def open(self, name, path, flags="rdwr"):
        self.do("open", name, path, flags)
        return self

    def calls_waiting(self):
        """How many threads of the process sleep in a lock call now."""
        count = 0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            try:
                count += (task / "syscall").read_text().split()[0] in LOCK_CALLS
            except (FileNotFoundError, ProcessLookupError):
                pass
        return count

    def wait_blocked(self):
        """Returns when the process sleeps in a lock call."""
        poll(lambda: self.calls_waiting() == 1, "the locker to wait for its lock")
        assert not self.answered()

    def interrupt(self):
        os.kill(self.pid, signal.SIGUSR1)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
