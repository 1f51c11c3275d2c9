"""The environment of a task, captured where it was created, so that a keeper under systemd runs it like
the shell."""

from __future__ import annotations

import os
import resource

from holdfast import files, paths, program_search, quick_json
from holdfast.errors import CorruptFile, UnreadableFile, UsageError
from holdfast.store import atomic
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.store.layout import Packet

#: Captured for every agent; a trailing * means a prefix.
NAMES = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TZ", "TMPDIR", "XDG_*", "LANG", "LC_*",
    "SSH_AUTH_SOCK", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    # An agent may run holdfast, which should then use this home.
    "HOLDFAST_HOME",
)  # fmt: skip
#: Set by the runner; an env file must not set them.
_OURS = (
    "HOLDFAST_ROLE",
    program_search.AROUND,
    "HOLDFAST_TASK",
    "HOLDFAST_ATTEMPT",
    "HOLDFAST_PACKET",
    "HOLDFAST_RESUME_COUNT",
    "HOLDFAST_ANSWER",
    "HOLDFAST_JOURNAL",
    paths.TRUST_DIR,
)
_LIMITS = ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_STACK", "RLIMIT_AS", "RLIMIT_FSIZE")


def capture(environ: dict[str, str], extra: Iterable[str] = ()) -> dict[str, Any]:
    """`env.json`: the selected variables, the umask and the resource limits of this process."""
    wanted = (*NAMES, *extra)
    exact = {name for name in wanted if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in wanted if name.endswith("*"))
    captured = {name: value for name, value in environ.items() if name in exact or name.startswith(prefixes)}
    if around := program_search.around():
        captured[program_search.AROUND] = around
    umask = os.umask(0o077)
    os.umask(umask)
    limits = {
        name: list(resource.getrlimit(getattr(resource, name))) for name in _LIMITS if hasattr(resource, name)
    }
    return {"schema": "holdfast.env/1", "env": captured, "umask": umask, "limits": limits}


def read_captured(packet: Packet, expected: str) -> dict[str, Any]:
    """`env.json` of a task, if it is the one of which the journal has the digest `expected`; {} if neither is
    there. Raises CorruptFile: an agent can write it or remove it, and its variables choose programs."""
    try:
        data = files.read(packet.env)
    except FileNotFoundError as error:
        if not expected:
            return {}
        raise CorruptFile(f"{packet.env} is missing") from error
    except OSError as error:
        raise atomic.unusable(error, packet.env) from error
    # Read once: it may be replaced between a check and a second look.
    if expected and sha256(data) != expected:
        raise CorruptFile(f"{packet.env} was changed by something other than holdfast")
    try:
        env = quick_json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"{packet.env} is not JSON: {error}") from error
    if not isinstance(env, dict):
        raise CorruptFile(f"{packet.env} is not a JSON object")
    return env  # pyright: ignore[reportUnknownVariableType]


def digest_of(variables: dict[str, str]) -> str:
    """A digest of the variables of an environment file; empty if there are none."""
    return sha256(quick_json.dumps(sorted(variables.items())).encode()) if variables else ""


def read_file(path: str, data: bytes | None = None) -> dict[str, str]:
    """Read an env file: `NAME=VALUE` lines, `#` comments, optional quotes around values.

    Nothing is expanded: `$` has no meaning. `data`: its content, if it was read already. Raises
    UnreadableFile, or UsageError with the line number.
    """
    if data is None:
        try:
            data = files.read_argument(path)
        except OSError as error:
            raise UnreadableFile(
                f"cannot read the environment file {path}: {error.strerror}", hint="check its path and mode"
            ) from error
    lines = data.decode("utf-8", "surrogateescape").splitlines()
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text[0] == "#":
            continue
        name, equals, value = text.removeprefix("export ").partition("=")
        name = name.strip()
        # The line is not shown: it may contain a secret.
        if not equals or not name.isidentifier() or not name.isascii():
            raise UsageError(
                f"{path}, line {number}: not NAME=VALUE", hint="write NAME=VALUE, or # for a comment"
            )
        if name in _OURS:
            raise UsageError(f"{path}, line {number}: {name} is set by holdfast itself")
        try:
            variables[name] = _unquote(value.strip())
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {name}: {error}") from error
    return variables


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


def _unquote(value: str) -> str:
    """In '…' nothing is special; "…" supports \\n and the like; without quotes, ` #` starts a comment."""
    if value[:1] not in ("'", '"'):
        return value.partition(" #")[0].rstrip()
    quote, out, rest = value[0], "", iter(value[1:])
    for char in rest:
        if char == quote:
            behind = "".join(rest).strip()
            if behind and behind[0] != "#":
                raise ValueError("unexpected text after the closing quote")
            return out
        if char == "\\" and quote == '"':
            escaped = next(rest, "")
            out += _ESCAPES.get(escaped, "\\" + escaped)
        else:
            out += char
    raise ValueError(f"missing closing quote {quote}")
