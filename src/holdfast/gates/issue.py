"""Filing an issue: a command of the person's, run at most once for each run of a task and each side of the work.

The note `state/issues/<name>.json` is written before the command is run: who is killed in between leaves a note that says so, and
nobody files the same issue twice.
"""

from __future__ import annotations

import os
import tempfile

from holdfast import clock
from holdfast.gates import shell
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.gates.quality import Work
    from holdfast.store.layout import Packet

_SAID_CHARS = 200


def file(packet: Packet, name: str, text: str, *, work: Work) -> str:
    """Run the command, unless that was done before. Returns what became of it, in words."""
    path = os.path.join(packet.issues, f"{name}.json")
    note: dict[str, Any] | None = atomic.read_json(path)
    if note is not None:
        return str(note.get("told") or "an issue was to be filed, and whether that happened is not known")
    atomic.make_directory(packet.issues)
    began: dict[str, Any] = {"schema": "holdfast.issue/1", "at": clock.iso_now(), "told": "", "text": text}
    atomic.write_json(path, began, durable=True)
    told = work.redact(_run(text, work))
    atomic.write_json(path, {**began, "told": told}, durable=True)
    return told


def _run(text: str, work: Work) -> str:
    with tempfile.TemporaryFile() as reasons:
        reasons.write(text.encode("utf-8", "backslashreplace") + b"\n")
        reasons.seek(0)
        done = shell.run(
            ["/bin/sh", "-c", work.quality.issue_command or "false"],
            cwd=work.directory,
            limit_s=work.quality.timeout_s,
            stdin=reasons.fileno(),
        )
    lines = [line.strip() for line in done.output.decode("utf-8", "replace").splitlines() if line.strip()]
    said = f": {lines[-1][:_SAID_CHARS]}" if lines else ""
    if done.is_timeout:
        return f"no issue was filed: the command was ended after {clock.words(done.lasted_s)}"
    if done.exit_code:
        return f"no issue was filed: the command failed with exit status {done.exit_code}{said}"
    return f"an issue was filed{said}"
