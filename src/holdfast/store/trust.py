"""What the user trusts of a project, by digest: one file per project beside the user's settings.

It is decided when a task is created, and what was allowed is copied into the packet. A record that is torn,
that others can write, or that an agent of the project could have written counts as no trust.
"""

from __future__ import annotations

import json
import os

from holdfast import clock, paths
from holdfast.errors import NotPossible
from holdfast.store import atomic, trust_dir
from holdfast.store.digest import sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.config.needs import Need, Part

SCHEMA = "holdfast.trust/1"


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
    return trust_dir.path_for(project, "json")


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


def is_made(folder: str) -> bool:
    """Whether a person made this very directory with `holdfast new`. An archive may bring another one of its
    name."""
    if is_writable_from(folder):
        return False
    record = _read(path_of(folder))
    try:
        return (
            record is not None
            and record["project"] == os.path.realpath(folder)
            and record.get("made") == os.stat(folder).st_ino
        )
    except OSError:
        return False


def accept(project: str, parts: Iterable[Part], *, by: str, is_new: bool = False) -> None:
    """Trust these parts of a project, and nothing else of it. With `is_new`, it is a packet that the user
    just made. Raises NotPossible, StorageError."""
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
        "made": os.stat(project).st_ino if is_new or is_made(project) else None,
        "parts": {
            part.name: {"digest": digest_of(part), "lines": lines_of(part)} for part in parts if part.needs
        },
    }
    trust_dir.make()
    if not trust_dir.is_own_folder(paths.trust_dir()):
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


def _read(path: str) -> dict[str, Any] | None:
    """A valid record; None if there is none."""
    try:
        data = trust_dir.read(path)
        record = None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None
    return record if _is_valid(record) else None


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
