"""The environment of a task, captured where it was asked for, so that a keeper under systemd runs it like the shell."""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

#: Captured for every agent; a trailing * is a prefix.
NAMES = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "XDG_*", "LANG", "LC_*", "SSH_AUTH_SOCK",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    # An agent may run holdfast itself, and then means this home.
    "HOLDFAST_HOME",
)  # fmt: skip
_LIMITS = ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_STACK", "RLIMIT_AS", "RLIMIT_FSIZE")


def capture(environ: dict[str, str], extra: Iterable[str] = ()) -> dict[str, Any]:
    """`env.json`: the chosen variables, umask and resource limits of this process."""
    wanted = (*NAMES, *extra)
    exact = {name for name in wanted if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in wanted if name.endswith("*"))
    kept = {name: value for name, value in environ.items() if name in exact or name.startswith(prefixes)}
    umask = os.umask(0o077)
    os.umask(umask)
    limits = {
        name: list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS if hasattr(resource, name)
    }
    return {"schema": "holdfast.env/1", "env": kept, "umask": umask, "limits": limits}
