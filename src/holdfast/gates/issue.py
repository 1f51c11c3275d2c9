"""Filing an issue: run the user's command at most once per run of a task and side of the work.

The note `state/issues/<name>.json` is written before the command runs. If the process is killed in between,
the note remains, and the issue is not filed twice.
"""

from __future__ import annotations

import tempfile

from holdfast import clock
from holdfast.gates import shell
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.store.layout import Packet

_LINE_CHARS = 200


def file(
    packet: Packet,
    name: str,
    text: str,
    *,
    command: str,
    cwd: str,
    limit_s: float,
    redact: Callable[[str], str],
) -> str:
    """Run the command with the text on stdin, unless that was done before. Returns the outcome."""
    path = packet.issue(name)
    note: dict[str, Any] | None = atomic.read_json(path)
    if note is not None:
        return str(note.get("told") or "filing an issue was interrupted; it may or may not exist")
    atomic.make_directory(packet.issues)
    started: dict[str, Any] = {"schema": "holdfast.issue/1", "at": clock.iso_now(), "told": "", "text": text}
    atomic.write_json(path, started, durable=True)
    outcome = redact(_run(text, command, cwd=cwd, limit_s=limit_s))
    atomic.write_json(path, {**started, "told": outcome}, durable=True)
    return outcome


def _run(text: str, command: str, *, cwd: str, limit_s: float) -> str:
    with tempfile.TemporaryFile() as stdin:
        stdin.write(text.encode("utf-8", "backslashreplace") + b"\n")
        stdin.seek(0)
        done = shell.run(["/bin/sh", "-c", command], cwd=cwd, limit_s=limit_s, stdin=stdin.fileno())
    lines = [line.strip() for line in done.output.decode("utf-8", "replace").splitlines() if line.strip()]
    last_line = f": {lines[-1][:_LINE_CHARS]}" if lines else ""
    if done.is_timeout:
        return f"no issue was filed: the command timed out after {clock.duration_text(done.lasted_s)}"
    if done.exit_code:
        return f"no issue was filed: the command failed with exit status {done.exit_code}{last_line}"
    return f"an issue was filed{last_line}"
