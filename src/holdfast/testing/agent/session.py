"""What a session remembers on disk: `<state-dir>/<session-id>/`.

    journal.jsonl   start, begin, done, skip, effect, failed, left: in order
    lock            held by the process that performed `fail_if_running`
    overlap         one line for each process that found the lock held; absent if there was none

Only complete lines count. A line torn by a crash did not happen.
"""

from __future__ import annotations

import fcntl
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Variables that are recorded at a start: they identify the attempt.
ENV_NAMES = ("HOLDFAST_RESUME_COUNT", "HOLDFAST_TASK", "HOLDFAST_ATTEMPT")


def default_state_dir() -> str:
    """The default directory of sessions."""
    if own := os.environ.get("HOLDFAST_SCRIPTED_STATE"):
        return own
    if packet := os.environ.get("HOLDFAST_PACKET"):
        # In the task's home, so that nothing is left elsewhere; not in the packet: another task may resume
        # the session.
        return os.path.join(os.path.dirname(os.path.dirname(packet)), "scripted-agent")
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "scripted-agent")


def new_session_id() -> str:
    """A random UUID (version 4), without importing uuid."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def is_uuid(text: str) -> bool:
    """Whether a text is valid as a session id."""
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        char in "0123456789abcdefABCDEF" for part in parts for char in part
    )


class Session:
    """One session. Reading has no side effects; `begin_process` creates the directory."""

    def __init__(self, state_dir: str, session_id: str) -> None:
        self.id = session_id
        self.directory = os.path.abspath(os.path.join(state_dir, session_id))
        self._journal = os.path.join(self.directory, "journal.jsonl")
        self._fd = -1
        self._lock_fd = -1
        self.records = self._read()
        self.process_number = len(self._of("start"))

    @property
    def is_known(self) -> bool:
        """Whether the session had an earlier process."""
        return self.process_number > 0

    @property
    def directory_of_work(self) -> str | None:
        """The working directory in which the session was started."""
        starts = self._of("start")
        return starts[0]["cwd"] if starts else None

    def begin_process(self, *, argv: list[str], prompt: str, is_resume: bool) -> None:
        """Record this process, durably, before its first output."""
        from hashlib import sha256

        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(self._journal, flags, 0o600)
        size = os.fstat(self._fd).st_size
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, b"\n")  # end a torn line, so that ours is not lost with it
        self.process_number += 1
        self.record_durably(
            "start",
            pid=os.getpid(),
            start_ticks=_start_ticks(),
            process=self.process_number,
            is_resume=is_resume,
            argv=argv,
            cwd=os.getcwd(),
            prompt=prompt,
            prompt_sha256=sha256(prompt.encode("utf-8", "surrogateescape")).hexdigest(),
            env={name: os.environ[name] for name in ENV_NAMES if name in os.environ},
        )

    def record(self, kind: str, **facts: Any) -> None:
        """Record something; a power failure may lose it."""
        line = json.dumps({"kind": kind, "at": time.time(), **facts}) + "\n"
        # One write with O_APPEND: lines of two processes, or of a signal handler, never mix.
        os.write(self._fd, line.encode())

    def record_durably(self, kind: str, **facts: Any) -> None:
        """Record something durably."""
        self.record(kind, **facts)
        os.fsync(self._fd)

    def times_begun(self, place: str) -> int:
        """How often earlier processes reached the step at `place` and meant to perform it."""
        return sum(record["step"] == place for record in self._of("begin"))

    def next_index(self, list_name: str) -> int:
        """The index after the last finished step of `list_name`."""
        passed = [
            int(record["step"][len(list_name) + 1 : -1])
            for record in self._of("done") + self._of("skip")
            if record["step"].startswith(list_name + "[")
        ]
        return max(passed, default=-1) + 1

    def claim(self) -> int | None:
        """Take the session's lock for the life of this process.

        Returns None, or the pid that holds it; that is then written to `overlap`. A POSIX record lock, not
        flock: a forked child must not keep it when the agent dies.
        """
        path = os.path.join(self.directory, "lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = int(os.pread(fd, 20, 0) or b"0")
            os.close(fd)
            self._note_overlap(holder)
            return holder
        self._lock_fd = fd
        os.pwrite(fd, b"%-19d\n" % os.getpid(), 0)
        return None

    def _note_overlap(self, holder: int) -> None:
        path = os.path.join(self.directory, "overlap")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        line = json.dumps({"at": time.time(), "pid": os.getpid(), "holder": holder})
        os.write(fd, line.encode() + b"\n")
        os.fsync(fd)
        os.close(fd)

    def _of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["kind"] == kind]

    def _read(self) -> list[dict[str, Any]]:
        try:
            with open(self._journal, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        records: list[dict[str, Any]] = []
        for line in lines[:-1]:  # text after the last newline is torn
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
        return records


def _start_ticks() -> int | None:
    """The kernel's start time of this process (Linux), to recognize a reused pid."""
    try:
        with open("/proc/self/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None
