"""audit.jsonl: who did what to which task, one line each.

A line is one O_APPEND write, so lines of several processes never mix. The audit is not the source of truth
(that is the journal), and a line that cannot be written is dropped. A large file is renamed to the next free
`audit.<n>.jsonl`; a process that still has it open writes to the renamed file, so nothing is lost.
"""

from __future__ import annotations

import os

from holdfast import clock, ids, quick_json
from holdfast import files as file_access
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from holdfast.store.layout import Home

SCHEMA = "holdfast.audit/1"
#: A larger file is rotated.
ROTATE_BYTES = 64 * 1024 * 1024
_LONGEST = 4000


def append(home: Home, entry: dict[str, Any]) -> None:
    """Add a line: `operation` (`task.created`, `task.moved`, `request`, …) and the known ones of `by,
    task_id, old, new, reason, answer, level, iteration`. Best effort; never raises. The caller redacts."""
    line = {"schema": SCHEMA, "at": clock.iso_now(), "level": "info", **entry}
    for name in ("reason", "by", "answer"):
        if isinstance(line.get(name), str):
            line[name] = line[name][:_LONGEST]
    try:
        data = quick_json.dumps(line, ensure_ascii=False, is_compact=True) + "\n"
        descriptor = atomic.open_own(home.audit, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, data.encode("utf-8", "backslashreplace"))
            if os.fstat(descriptor).st_size > ROTATE_BYTES:
                _rotate(home.audit, descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError, TypeError):
        return


def _rotate(path: str, descriptor: int) -> None:
    """Rename the file under a lock on the file itself, so that only one process does, and its successor is
    not renamed."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.stat(path).st_ino != os.fstat(descriptor).st_ino:
        return
    number = 1
    while os.path.lexists(aside := f"{path.removesuffix('.jsonl')}.{number}.jsonl"):
        number += 1
    os.rename(path, aside)


def whoami() -> str:
    """The acting user, as `user@machine`."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or _login()
    return f"{user}@{os.uname().nodename}"


def _login() -> str:
    import pwd  # services and containers may have neither variable

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"


def files(home: Home) -> list[str]:
    """All audit files, oldest first."""
    folder, name = os.path.split(home.audit)
    stem = name.removesuffix(".jsonl")
    numbers: list[int] = []
    try:
        for other in os.listdir(folder):
            middle = other.removeprefix(f"{stem}.").removesuffix(".jsonl")
            number = ids.number_in(middle)
            if number is not None and other == f"{stem}.{number}.jsonl":
                numbers.append(number)
    except OSError:
        return []
    rotated = [os.path.join(folder, f"{stem}.{number}.jsonl") for number in sorted(numbers)]
    return [*rotated, home.audit]


def read(
    home: Home,
    *,
    task_id: str | None = None,
    since: float | None = None,
    operation: str | None = None,
) -> Iterator[dict[str, Any]]:
    """The entries, oldest first: of one task, since a time (seconds since 1970), or of an operation
    (`task.` is a prefix)."""
    needle = task_id.encode() if task_id is not None else None
    since_at = clock.iso(since) if since is not None else ""
    for path in files(home):
        try:
            with file_access.stream(path) as file:
                for line in file_access.lines(file):
                    if needle is not None and needle not in line:
                        continue
                    entry = _entry(line)
                    if entry is None or str(entry.get("at", "")) < since_at:
                        continue
                    if task_id is not None and entry.get("task_id") != task_id:
                        continue
                    if operation is not None and not _is_of(str(entry.get("operation")), operation):
                        continue
                    yield entry
        except OSError as error:
            # A rotated file may be gone meanwhile. What is no file has no entries; what may not be read may
            # have many.
            is_no_file = error.errno in file_access.UNUSABLE and not isinstance(error, PermissionError)
            if not isinstance(error, FileNotFoundError) and not is_no_file:
                atomic.storage_failed(error, f"cannot read {path}")


def _entry(line: bytes) -> dict[str, Any] | None:
    """The entry of a line; None for an incomplete one (the disk may have been full)."""
    try:
        data = quick_json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _is_of(operation: str, wanted: str) -> bool:
    return operation == wanted or (wanted.endswith(".") and operation.startswith(wanted))
