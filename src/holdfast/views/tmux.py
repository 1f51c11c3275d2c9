"""tmux: a window onto a task, never its foundation.

A server of our own per home (`tmux -S <home>/tmux.sock`), without the user's tmux.conf, so that keys and behaviour are known.
tmux leaves its socket behind when it ends; in the home it is in nobody's way. Where the path of the home is too long for a
socket, tmux is run in the home and given the bare name: nothing of ours lies elsewhere. A command that fails raises TmuxError with the sub-command in it: nobody takes a failure for "no sessions".
"""

from __future__ import annotations

import os
import shutil
import subprocess

from holdfast.errors import NotPossible
from holdfast.spawn import ATTEMPT_VARIABLES
from holdfast.store import atomic
from holdfast.store.digest import sha256
from holdfast.store.layout import Home

#: The oldest version that is known to do all this.
OLDEST = (2, 6)
_TIMEOUT_S = 10.0
#: Of a window that nobody looks at.
_COLUMNS, _ROWS = "120", "40"
#: The path of a socket may have 107 bytes on Linux, 103 on macOS.
_SOCKET_BYTES = 103


class TmuxError(NotPossible):
    """tmux did not do what it was asked."""

    code = "tmux"
    hint = "the task does not need tmux: 'holdfast attach --no-tmux TASK' shows the same"


def program() -> str | None:
    """The path of tmux; None when it is not installed."""
    return shutil.which("tmux")


def version() -> tuple[int, int] | None:
    """Of the tmux in PATH; None when there is none, or a development build (`next-3.5`), which is new enough."""
    words = _run([program() or "tmux", "-V"], "-V").split()
    numbers = words[-1].strip("abcdefghijklmnopqrstuvwxyz-").split(".")
    return (
        (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 and all(map(str.isdigit, numbers)) else None
    )


class Server:
    """The tmux server of one home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        #: How tmux is told its socket, and where it is run: a socket's path is short, and its name is relative to there.
        self.socket, self._cwd = home.tmux_socket, "/"
        if len(os.fsencode(self.socket)) > _SOCKET_BYTES:
            self._cwd, self.socket = os.path.split(home.tmux_socket)

    def session_name(self, task_id: str) -> str:
        """`holdfast-<task>`; tmux has no dots in names, so such an id gets a mark that keeps it apart."""
        if "." not in task_id:
            return f"holdfast-{task_id}"
        return f"holdfast-{task_id.replace('.', '_')}-{sha256(task_id.encode())[:4]}"

    def sessions(self) -> list[str]:
        """Names of all sessions; none when no server runs."""
        done = self._ask("list-sessions", "-F", "#{session_name}")
        if done.returncode and _is_absent(done.stderr):
            return []
        return _checked(done, "list-sessions").split()

    def has(self, task_id: str) -> bool:
        """Whether the task has a window."""
        done = self._ask("has-session", "-t", f"={self.session_name(task_id)}")
        if done.returncode and (_is_absent(done.stderr) or "can't find" in done.stderr):
            return False
        _checked(done, "has-session")
        return True

    def open(self, task_id: str, argv: list[str]) -> None:
        """Open the task's window, detached, with `argv` in it; a window that is there stays as it is."""
        done = self._ask(
            *("new-session", "-d", "-c", "/", "-s", self.session_name(task_id), "-x", _COLUMNS, "-y", _ROWS),
            *argv,
        )
        if done.returncode and "duplicate session" not in done.stderr:
            _checked(done, "new-session")

    def attach_argv(self, task_id: str) -> list[str]:
        """The command that shows the window."""
        return [*self._command(), "attach-session", "-t", f"={self.session_name(task_id)}"]

    def attach(self, task_id: str) -> None:
        """Show the window in this terminal until it closes or the person detaches."""
        done = subprocess.run(self.attach_argv(task_id), env=_environment(), cwd=self._cwd, check=False)
        if done.returncode and self.has(task_id):
            raise TmuxError(f"tmux attach-session failed with status {done.returncode}")

    def capture(self, task_id: str) -> str:
        """What the window shows now."""
        name = f"={self.session_name(task_id)}:"
        return _checked(self._ask("capture-pane", "-p", "-t", name), "capture-pane")

    def close(self, task_id: str) -> None:
        """Close the task's window, if it has one. The task goes on."""
        done = self._ask("kill-session", "-t", f"={self.session_name(task_id)}")
        if done.returncode and not (_is_absent(done.stderr) or "can't find" in done.stderr):
            _checked(done, "kill-session")

    def shut(self) -> None:
        """Close every window, and leave no socket behind. The tasks go on, or not, by themselves."""
        if not os.path.lexists(self.home.tmux_socket):
            return
        done = self._ask("kill-server")
        if done.returncode and not _is_absent(done.stderr):
            _checked(done, "kill-server")
        atomic.forget(self.home.tmux_socket)

    def _command(self) -> list[str]:
        return [program() or "tmux", "-S", self.socket, "-f", os.devnull]

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _complete([*self._command(), *words], words[0], cwd=self._cwd)


def _environment() -> dict[str, str]:
    """The server outlives us and must not look like a tool of the attempt in which we may run."""
    env = {
        name: value for name, value in os.environ.items() if name not in ATTEMPT_VARIABLES and name != "TMUX"
    }
    return {**env, "HOLDFAST_ROLE": "window"}


def _run(argv: list[str], command: str) -> str:
    return _checked(_complete(argv, command, cwd="/"), command)


def _complete(argv: list[str], command: str, *, cwd: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            env=_environment(),
            cwd=cwd,
            check=False,
        )
    except FileNotFoundError as error:
        if not os.path.isdir(cwd):
            raise TmuxError(f"tmux {command}: there is no directory {cwd}") from error
        raise TmuxError(f"tmux {command}: tmux is not installed") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TmuxError(f"tmux {command}: {error}") from error


def _checked(done: subprocess.CompletedProcess[str], command: str) -> str:
    if done.returncode:
        said = done.stderr.strip() or f"status {done.returncode}"
        raise TmuxError(f"tmux {command} failed: {said}")
    return done.stdout


def _is_absent(stderr: str) -> bool:
    """No server: nobody has opened a window yet, or the last one was closed."""
    is_refused = "No such file" in stderr or "Connection refused" in stderr
    return "no server running" in stderr or ("error connecting to" in stderr and is_refused)
