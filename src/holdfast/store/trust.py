"""What the user trusts of a project, by digest: one file per project beside the user's settings.

It is decided when a task is created, and what was allowed is copied into the packet. A record that is torn,
that others can write, or that an agent of the project could have written counts as no trust.
"""

from __future__ import annotations

import json
import os
import stat

from holdfast import clock, paths
from holdfast.errors import HoldfastError, NotPossible
from holdfast.store import atomic
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.config.needs import Need, Part

SCHEMA, _UP_SCHEMA = "holdfast.trust/1", "holdfast.trust-up/1"
_RULES_SCHEMA = "holdfast.trust-rules/1"
_MAX_BYTES = 8 * 1024 * 1024
_KEY_BYTES = 32
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class TrustCheck:
    """Decides for one command what of a project is trusted, and remembers what was asked."""

    def __init__(self, project: str, *, by_flag: bool = False) -> None:
        """`by_flag`: the user trusts the project for this command (`--trust-project`)."""
        self.project = project
        self._by_flag = by_flag
        self._known: dict[str, dict[str, Any]] | None = None
        #: Parts that need trust and do not have it.
        self.ignored: list[Part] = []
        #: Parts that were allowed: name → digest.
        self.granted: dict[str, str] = {}
        #: Parts that the user trusted and that ask for nothing any more, with what they asked for.
        self.gone: dict[str, list[str]] = {}

    def __call__(self, part: Part) -> bool:
        """Whether a part may have what it asks for."""
        if self._known is None:
            self._known = read(self.project)
        known = self._known.get(part.name)
        if not part.needs:
            if known is not None:
                self.gone[part.name] = [_name_in(line) for line in known["lines"]]
            return True
        digest = digest_of(part)
        if self._by_flag or (known is not None and known["digest"] == digest):
            self.granted[part.name] = digest
            return True
        if all(part.name != other.name for other in self.ignored):
            self.ignored.append(part)
        return False

    @property
    def was_trusted(self) -> bool:
        """Whether the user trusts another state of the project."""
        return bool(self._known)

    def record(self) -> dict[str, object]:
        """What was allowed, for the task's journal; empty if nothing was asked for."""
        if not self.granted:
            return {}
        by = "--trust-project" if self._by_flag else "holdfast trust"
        return {"by": by, "project": os.path.realpath(self.project), "parts": dict(self.granted)}

    def notices(self) -> list[str]:
        """Lines for the user about what is ignored; usually one or none."""
        from shlex import quote  # only needed for these lines

        lines: list[str] = []
        command = f"'holdfast trust {quote(self.project)}'"
        if self.ignored:
            names = [f"{need.name} ({part.name})" for part in self.ignored for need in part.needs]
            shown = ", ".join(dict.fromkeys(names[:6])) + (f" and {len(names) - 6} more" if names[6:] else "")
            why = "changed since you trusted it" if self.was_trusted else "is not trusted"
            lines.append(f"ignored, as {self.project} {why}: {shown}; {command} shows and allows it")
        if self.gone and not self.ignored:
            names = [name for names in self.gone.values() for name in names]
            lines.append(
                f"{self.project} no longer has settings that you trusted: {', '.join(names[:6])}; "
                f"{command} accepts that"
            )
        return lines


def is_in_repository(path: str, project: str) -> bool:
    """Whether others may have written a file: it is in the project, or in a repository or project of any
    kind."""
    place = os.path.realpath(path)
    top = os.path.realpath(project)
    if place == top or place.startswith(top.rstrip("/") + "/"):
        return True
    while True:
        if any(os.path.lexists(os.path.join(place, name)) for name in (".git", ".holdfast")):
            return True
        if place == os.path.dirname(place):
            return False
        place = os.path.dirname(place)


def lines_of(part: Part) -> list[str]:
    """What a part asks for, a line each: for a diff. The digest covers more than these lines."""
    return [_line(need) for need in part.needs]


def digest_of(part: Part) -> str:
    """The digest of the canonical content."""
    content = [
        [need.kind, need.name, need.text, None if need.data is None else sha256(need.data)]
        for need in part.needs
    ]
    return sha256(json.dumps(content).encode())


def _line(need: Need) -> str:
    content = f" (sha256 {sha256(need.data)[:16]})" if need.data is not None else ""
    return f"{need.kind}: {need.name} = {need.text}{content}"


def _name_in(line: str) -> str:
    return line.partition(": ")[2].partition(" = ")[0]


# ── records ──


def path_of(project: str) -> str:
    """The record of a project, by its real path."""
    name = sha256(os.fsencode(os.path.realpath(project)))[:32]
    return os.path.join(paths.trust_dir(), f"{name}.json")


def read(project: str) -> dict[str, dict[str, Any]]:
    """What is trusted of a project: part → its `digest` and `lines`. Empty if nothing, or if in doubt."""
    if is_writable_from(project):
        return {}
    record = _read(path_of(project))
    return record["parts"] if record is not None and record["project"] == os.path.realpath(project) else {}


def is_writable_from(project: str) -> bool:
    """Whether an agent that may write in the project could write records: the project contains them."""
    top, place = os.path.realpath(project), os.path.realpath(paths.trust_dir())
    return os.path.commonpath((top, place)) == top


def everything() -> list[dict[str, Any]]:
    """All valid records, by project."""
    try:
        names = os.listdir(paths.trust_dir())
    except OSError:
        return []
    found = [_read(os.path.join(paths.trust_dir(), name)) for name in names if name.endswith(".json")]
    return sorted((record for record in found if record is not None), key=lambda record: record["project"])


def accept(project: str, parts: Iterable[Part], *, by: str) -> None:
    """Trust these parts of a project, and nothing else of it. Raises NotPossible, StorageError."""
    if is_writable_from(project):
        raise NotPossible(
            f"cannot trust {project}: it contains {paths.trust_dir()}, so its agents could trust it "
            "themselves",
            hint="work in a subdirectory, or set XDG_CONFIG_HOME to a directory outside",
        )
    record = {
        "schema": SCHEMA,
        "project": os.path.realpath(project),
        "at": clock.iso_now(),
        "by": by,
        "parts": {
            part.name: {"digest": digest_of(part), "lines": lines_of(part)} for part in parts if part.needs
        },
    }
    os.makedirs(paths.trust_dir(), mode=0o700, exist_ok=True)
    if not _is_ours(os.stat(paths.trust_dir(), follow_symlinks=False), stat.S_IFDIR):
        raise NotPossible(
            f"other users can write to {paths.trust_dir()}, or it is a link", hint="make it yours, mode 0700"
        )
    atomic.write_json(path_of(project), record, durable=True)


def forget(project: str) -> bool:
    """Take trust back. Returns False if there was none."""
    path = path_of(project)
    is_there = os.path.lexists(path)
    atomic.remove(path)
    return is_there


def note_up(home: str, text: bytes) -> None:
    """`up` was run with these options. They name sources, which can run commands; an agent can write in the
    home, but not here. Raises StorageError."""
    os.makedirs(paths.trust_dir(), mode=0o700, exist_ok=True)
    record = {"schema": _UP_SCHEMA, "home": os.path.realpath(home), "digest": sha256(text)}
    atomic.write_json(_up_path(home), record, durable=True)


def is_up(home: str, text: bytes) -> bool:
    """Whether the last `up` in this home had these options."""
    try:
        record = atomic.read_json(_up_path(home)) or {}
    except HoldfastError:
        return False
    return record.get("schema") == _UP_SCHEMA and record.get("digest") == sha256(text)


def note_rules(rules: list[dict[str, Any]]) -> None:
    """These are the user's notification rules; they stay so while the settings cannot be read. Rules can run
    commands; an agent can write in the home, where the rules are kept, but not here. Raises OSError,
    StorageError."""
    digests = sorted({_rule_digest(rule) for rule in rules})
    if digests == _rule_digests():
        return
    os.makedirs(paths.trust_dir(), mode=0o700, exist_ok=True)
    atomic.write_json(_rules_path(), {"schema": _RULES_SCHEMA, "digests": digests}, durable=True)


def is_rule(rule: dict[str, Any]) -> bool:
    """Whether it was one of the user's notification rules when they could last be read."""
    return _rule_digest(rule) in _rule_digests()


def _rule_digests() -> list[str]:
    try:
        record = atomic.read_json(_rules_path()) or {}
    except HoldfastError:
        return []
    digests: list[str] = record.get("digests") or []
    return digests if record.get("schema") == _RULES_SCHEMA else []


def _rule_digest(rule: dict[str, Any]) -> str:
    return sha256(json.dumps(rule, sort_keys=True, default=str).encode())


def _rules_path() -> str:
    return os.path.join(paths.trust_dir(), "notify.rules")


def _up_path(home: str) -> str:
    name = sha256(os.fsencode(os.path.realpath(home)))[:32]
    return os.path.join(paths.trust_dir(), f"{name}.up")


def reply_key(home: str, *, create: bool) -> bytes | None:
    """The key that signs the buttons of notices of a home; None if there is none and it is not created.

    Beside the settings: in the home, an agent could write it, and a copy of the home would have it. Raises
    NotPossible if others can write or read it, StorageError.
    """
    name = sha256(os.fsencode(os.path.realpath(home)))[:32]
    path = os.path.join(paths.trust_dir(), f"{name}.reply-key")
    if create and not os.path.lexists(path):
        os.makedirs(paths.trust_dir(), mode=0o700, exist_ok=True)
        atomic.create(path, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
    if not os.path.lexists(path):
        return None
    text = _bytes_of(path, others=stat.S_IRWXG | stat.S_IRWXO)
    try:
        key = bytes.fromhex((text or b"").decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise NotPossible(
            f"{path} is not a key that only you can read and write",
            hint="remove it: buttons of notices that were sent then do nothing",
        )
    return key


def _read(path: str) -> dict[str, Any] | None:
    """A valid record; None if there is none."""
    try:
        data = _bytes_of(path)
        record = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if _is_valid(record) else None


def _bytes_of(path: str, *, others: int = stat.S_IWGRP | stat.S_IWOTH) -> bytes | None:
    """The bytes of a trust file; None if it does not exist, or if other users have a right in `others`."""
    try:
        if not _is_ours(os.stat(os.path.dirname(path), follow_symlinks=False), stat.S_IFDIR):
            return None
        descriptor = os.open(path, _OPEN)
        try:
            found = os.fstat(descriptor)
            if not _is_ours(found, stat.S_IFREG) or found.st_size > _MAX_BYTES or found.st_mode & others:
                return None
            data = b""
            while len(data) <= _MAX_BYTES and (piece := os.read(descriptor, _MAX_BYTES)):
                data += piece
            return data
        finally:
            os.close(descriptor)
    except OSError:
        return None


def _is_ours(found: os.stat_result, kind: int) -> bool:
    is_safe = not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_IFMT(found.st_mode) == kind and found.st_uid == os.geteuid() and is_safe


def _is_valid(record: Any) -> bool:
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:  # pyright: ignore
        return False
    parts: Any = record.get("parts")  # pyright: ignore
    if not isinstance(record.get("project"), str) or not isinstance(parts, dict):  # pyright: ignore
        return False
    return all(
        isinstance(part, dict)
        and isinstance(part.get("digest"), str)  # pyright: ignore
        and isinstance(part.get("lines"), list)  # pyright: ignore
        and all(isinstance(line, str) for line in part["lines"])  # pyright: ignore
        for part in parts.values()  # pyright: ignore
    )
