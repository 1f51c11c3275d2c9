"""tmux windows for tasks; a task never depends on them.

Each home has a private tmux server that ignores the user's tmux.conf, so keys and behaviour are known. Its
socket is where no agent may write (`Home.tmux_socket`). If the path is too long for a socket, tmux runs in
its directory with the bare name.

A failing tmux command raises TmuxError with its name: a failure must not look like "no sessions".
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess

from holdfast import paths, program_search
from holdfast.errors import NotPossible
from holdfast.packet import asker
from holdfast.spawn import ATTEMPT_VARIABLES
from holdfast.store import atomic, process, trust_dir
from holdfast.store.digest import sha256
from holdfast.store.layout import Home
from holdfast.views import programs

#: The oldest version known to support all commands used here.
OLDEST = (2, 6)
_TIMEOUT_S = 10.0
#: Size of a detached window.
_COLUMNS, _ROWS = "120", "40"
#: Longest path of a socket: 107 bytes on Linux, 103 on macOS.
_SOCKET_BYTES = 103


class TmuxError(NotPossible):
    """A tmux command failed."""

    code = "tmux"
    hint = "the task does not need tmux: 'holdfast attach --no-tmux TASK' shows the same"


def program() -> str | None:
    """The path of tmux; None if it is not installed."""
    return program_search.find("tmux")


def _require() -> str:
    path = program()
    if path is None:
        raise TmuxError("tmux is not installed")
    return path


def version() -> tuple[int, int] | None:
    """The version of the tmux in PATH; None for a development build (`next-3.5`), which is new enough."""
    words = _checked(_run([_require(), "-V"], "-V", cwd="/"), "-V").split()
    numbers = "".join(words[-1:]).strip("abcdefghijklmnopqrstuvwxyz-").split(".")
    is_release = len(numbers) == 2 and all(map(str.isdigit, numbers))
    return (int(numbers[0]), int(numbers[1])) if is_release else None


class NotOurs(TmuxError):
    """The server at our socket is another one. That of an agent could make any tmux client run a command."""


class Server:
    """The tmux server of one home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        #: The socket as tmux gets it, relative to the directory in which tmux runs.
        self.socket, self._cwd = home.tmux_socket, "/"
        if len(os.fsencode(self.socket)) > _SOCKET_BYTES:
            self._cwd, self.socket = os.path.split(home.tmux_socket)

    def session_name(self, task_id: str) -> str:
        """`holdfast-<task>`. tmux allows no dots in names; an id with dots gets a hash to stay unique."""
        if "." not in task_id:
            return f"holdfast-{task_id}"
        return f"holdfast-{task_id.replace('.', '_')}-{sha256(task_id.encode())[:4]}"

    def sessions(self) -> list[str]:
        """Names of all sessions of ours; empty if no server of ours is running."""
        try:
            done = self._command("list-sessions", "-F", "#{session_name}")
        except NotOurs:
            return []
        if done.returncode and _is_no_server(done.stderr):
            return []
        return _checked(done, "list-sessions").split()

    def has(self, task_id: str) -> bool:
        """Whether the task has a window."""
        done = self._command("has-session", "-t", f"={self.session_name(task_id)}")
        if done.returncode and _is_no_session(done.stderr):
            return False
        _checked(done, "has-session")
        return True

    def open(self, task_id: str, argv: list[str]) -> None:
        """Open a detached window for the task that runs `argv`; an existing window is kept."""
        name = self.session_name(task_id)
        try:
            trust_dir.make()
        except OSError as error:
            raise TmuxError(f"cannot create {paths.trust_dir()} for its socket: {error.strerror}") from error
        done = self._command(
            *("new-session", "-d", "-c", "/", "-s", name, "-n", task_id, "-x", _COLUMNS, "-y", _ROWS), *argv
        )
        if done.returncode and "duplicate session" not in done.stderr:
            _checked(done, "new-session")
        # The title of the terminal. The task may have ended, and its window with it.
        title = ("set-option", "-t", f"={name}:", "set-titles")
        self._command(*title, "on", ";", *title[:3], "set-titles-string", "holdfast: #W")

    def attach_argv(self, task_id: str) -> list[str]:
        """The command that shows the window."""
        return [*self._argv(), "attach-session", "-t", f"={self.session_name(task_id)}"]

    def attach(self, task_id: str) -> None:
        """Show the window in this terminal until it closes or the user detaches."""
        self._check_server()
        done = subprocess.run(self.attach_argv(task_id), env=_environment(), cwd=self._cwd, check=False)
        if done.returncode and self.has(task_id):
            raise TmuxError(f"tmux attach-session failed with status {done.returncode}")

    def capture(self, task_id: str) -> str:
        """The text the window shows now."""
        name = f"={self.session_name(task_id)}:"
        return _checked(self._command("capture-pane", "-p", "-t", name), "capture-pane")

    def close(self, task_id: str) -> None:
        """Close the task's window, if any. The task keeps running."""
        try:
            done = self._command("kill-session", "-t", f"={self.session_name(task_id)}")
        except NotOurs:
            return
        if done.returncode and not _is_no_session(done.stderr):
            _checked(done, "kill-session")

    def shut(self) -> None:
        """Close all windows and remove the socket. Tasks are not affected."""
        if not os.path.lexists(self.home.tmux_socket):
            return
        try:
            done = self._command("kill-server")
        except NotOurs:
            pass  # it ends with its agent
        else:
            if done.returncode and not _is_no_server(done.stderr):
                _checked(done, "kill-server")
        atomic.forget(self.home.tmux_socket)

    def _check_server(self) -> None:
        """Raises NotOurs if an agent runs the server, because it ran `attach`."""
        if not process.HAS_PROC or not os.path.lexists(self.home.tmux_socket):
            return
        pid = self._server_pid()
        if pid is None:
            return
        # Without its process, nobody knows who listens.
        agents = asker.agents_above(pid) if process.start_time(pid) is not None else ["unknown"]
        if agents:
            raise NotOurs(
                f"the tmux server at {self.home.tmux_socket} (pid {pid}) is not ours: "
                f"it runs in the agent of {os.path.basename(agents[0])}"
            )

    def _server_pid(self) -> int | None:
        """The process that listens at the socket, as the kernel knows it; None if nothing does."""
        path, name = os.path.split(self.home.tmux_socket)
        folder = os.open(path, os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
                client.settimeout(_TIMEOUT_S)
                # Through the descriptor, the path is short enough for a socket.
                client.connect(f"/proc/self/fd/{folder}/{name}")
                credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
        finally:
            os.close(folder)
        return struct.unpack("3i", credentials)[0]

    def _argv(self) -> list[str]:
        return [_require(), "-S", self.socket, "-f", os.devnull]

    def _command(self, *words: str) -> subprocess.CompletedProcess[str]:
        self._check_server()
        return _run([*self._argv(), *words], words[0], cwd=self._cwd)


def _environment() -> dict[str, str]:
    """The server outlives this command and must not look like a tool of the attempt that may have run it."""
    env = {
        name: value
        for name, value in program_search.environment().items()
        if name not in ATTEMPT_VARIABLES and name != "TMUX"
    }
    return {**env, "HOLDFAST_ROLE": "window"}


def _run(argv: list[str], command: str, *, cwd: str) -> subprocess.CompletedProcess[str]:
    try:
        return programs.run(argv, timeout_s=_TIMEOUT_S, env=_environment(), cwd=cwd)
    except FileNotFoundError as error:
        if not os.path.isdir(cwd):
            raise TmuxError(f"tmux {command}: no such directory: {cwd}") from error
        raise TmuxError(f"tmux {command}: tmux is not installed") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TmuxError(f"tmux {command}: {error}") from error


def _checked(done: subprocess.CompletedProcess[str], command: str) -> str:
    if done.returncode:
        message = done.stderr.strip() or f"status {done.returncode}"
        raise TmuxError(f"tmux {command} failed: {message}")
    return done.stdout


def _is_no_session(stderr: str) -> bool:
    """Whether the session does not exist. A server without any session calls that "no current target"."""
    return _is_no_server(stderr) or "can't find" in stderr or "no current target" in stderr


def _is_no_server(stderr: str) -> bool:
    """Whether no server is running: no window was opened yet, or the last one was closed."""
    is_refused = "No such file" in stderr or "Connection refused" in stderr
    return "no server running" in stderr or ("error connecting to" in stderr and is_refused)
