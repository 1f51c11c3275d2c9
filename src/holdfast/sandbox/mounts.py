"""What a sandboxed command sees, as a table of paths, and the command line for it. Pure."""

from __future__ import annotations

import os

from holdfast.model.record import Record

_HERE = os.path.dirname(os.path.abspath(__file__))
_OUTSIDE, _INSIDE, _EMPTY = (os.path.join(_HERE, name) for name in ("outside.py", "inside.py", "empty"))

#: Kinds of mounts, weakest first: of two mounts of one path, the stronger one holds.
PRIVATE, WRITE, READ, HIDE_FOLDER, HIDE_FILE = "private", "write", "read", "hide folder", "hide file"
#: Another folder in the place of what is there, writable.
REPLACE = "replace"
#: A folder that shows only what is mounted in it: nothing else ever appears there.
ENCLOSE = "enclose"
#: What is in an enclosed folder: a file or folder, only read, or a symbolic link, whose target is the source.
ENTRY, LINK = "entry", "link"
_STRENGTH = {
    ENTRY: 0,
    LINK: 0,
    PRIVATE: 1,
    WRITE: 2,
    READ: 3,
    HIDE_FOLDER: 4,
    HIDE_FILE: 4,
    ENCLOSE: 4,
    REPLACE: 5,
}
#: Where the proxy of a list of hosts listens, on the loopback of the sandbox: no other program is there.
PROXY_PORT = 3128
#: Descriptors that outside.py opens for bwrap and for inside.py.
INFO_FD, STATUS_FD, LISTENER_FD = 3, 4, 5


class Mount(Record):
    """One path that differs from the read-only file system around it."""

    kind: str
    path: str
    #: What is shown there, if that is another path.
    source: str = ""


class Sandbox(Record):
    """Everything about a sandbox: the paths are absolute, resolved, and exist."""

    bwrap: str
    #: The Python that runs outside.py and inside.py.
    python: str
    mounts: tuple[Mount, ...]
    cwd: str
    network: bool = True
    #: Without network: the hosts that it reaches through a proxy.
    hosts: tuple[str, ...] = ()
    #: Whether it may make user namespaces, in which it could mount a cgroup file system.
    has_userns: bool = False
    #: Variables that lead out of the sandbox, or to something that is hidden.
    drop_env: tuple[str, ...] = ()
    #: A command that outside.py runs when the sandbox has ended, and a folder whose lock says that it lives.
    after: tuple[str, ...] = ()
    held: str = ""


def command_line(sandbox: Sandbox, command: list[str]) -> list[str]:
    """The command line that runs `command` in the sandbox, and ends as it ends."""
    # Process 1 of a sandbox with a list of hosts makes the socket of its proxy.
    descriptors = f"{STATUS_FD},{LISTENER_FD},{PROXY_PORT}" if sandbox.hosts else str(STATUS_FD)
    shown: list[str] = []
    read_only: list[str] = []
    for mount in ordered(sandbox.mounts):
        shown += _arguments(mount)
        if mount.kind in (HIDE_FOLDER, ENCLOSE):
            read_only += ["--remount-ro", mount.path]
    return [
        sandbox.python,
        *("-I", "-S", _OUTSIDE, sandbox.held, ",".join(sandbox.hosts)),
        *(str(len(sandbox.after)), *sandbox.after, sandbox.bwrap),
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if sandbox.has_userns else ("--disable-userns",)),
        *(() if sandbox.network and not sandbox.hosts else ("--unshare-net",)),
        *("--die-with-parent", "--as-pid-1", "--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--info-fd", str(INFO_FD)),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *shown,
        # Last: a mount below a hidden folder needs a directory in it.
        *read_only,
        *(part for name in sandbox.drop_env for part in ("--unsetenv", name)),
        *("--chdir", sandbox.cwd, "--"),
        *(sandbox.python, "-I", "-S", _INSIDE, descriptors, "--"),
        *command,
    ]


def ordered(mounts: tuple[Mount, ...]) -> list[Mount]:
    """One mount per path, parents first: so the more specific path always holds, whatever is around it."""
    by_path: dict[str, Mount] = {}
    for mount in mounts:
        before = by_path.get(mount.path)
        if before is None or _STRENGTH[mount.kind] > _STRENGTH[before.kind]:
            by_path[mount.path] = mount
    return sorted(by_path.values(), key=lambda mount: (mount.path.count("/"), mount.path))


def _arguments(mount: Mount) -> list[str]:
    match mount.kind:
        case "write" | "replace":
            return ["--bind", mount.source or mount.path, mount.path]
        case "read":
            return ["--ro-bind", mount.source or mount.path, mount.path]
        case "entry":
            # It may be gone by now: a temporary file of a program outside.
            return ["--ro-bind-try", mount.path, mount.path]
        case "link":
            return ["--symlink", mount.source, mount.path]
        case "hide file":
            # An empty file and not /dev/null, which could not be opened: programs read it and go on.
            return ["--ro-bind", _EMPTY, mount.path]
        case _:
            return ["--tmpfs", mount.path]
