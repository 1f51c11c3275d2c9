"""What the reviewers and verifiers of a task reported: merged findings, and reports that object."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.errors import NotFound
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_MAX_BYTES = 1024 * 1024


def lines(packet: Packet, manifest: dict[str, Any]) -> Iterator[str]:
    """The text, line by line. Raises NotFound if no stage has reported yet."""
    paths = _paths(packet, manifest)
    if not paths:
        raise NotFound(
            f"{packet.task_id} has no findings",
            hint=f"'holdfast show {packet.task_id}' shows its stages; only reviews have findings",
        )
    for number, path in enumerate(paths):
        if number:
            yield ""
        yield f"{os.path.relpath(path, packet.path)}:"
        yield ""
        yield from files.read(path, _MAX_BYTES).decode("utf-8", "replace").splitlines()


def _paths(packet: Packet, manifest: dict[str, Any]) -> list[str]:
    """The merged findings, then the reports of the stages that decide on the work."""
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    reports = [
        packet.output(str(stage["name"]), str(stage["agent"]), "out")
        for stage in stages
        if stage.get("decision")
    ]
    return [path for path in (packet.findings, *reports) if os.path.exists(path)]
