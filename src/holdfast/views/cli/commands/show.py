"""holdfast show: what a task is doing."""

from __future__ import annotations

import json

from holdfast import paths
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views.cli.spec import JSON, Argument, Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="show",
    summary="Show one task.",
    examples=("holdfast show 20260131-fix", "holdfast show 20260131-fix --json"),
    arguments=(Argument(dest="task", metavar="TASK", completes="task"),),
    options=(JSON,),
)

_SHOWN = (
    "task_id",
    "task_name",
    "status",
    "status_reason",
    "agent",
    "stage",
    "attempt",
    "total_retries",
    "project_dir",
)


def run(values: dict[str, Any]) -> int:
    """Print the manifest."""
    packet = load.find(Home(paths.home()), values["task"])
    manifest = load.read_manifest(packet)
    if values["json"]:
        print(json.dumps(manifest, ensure_ascii=False))
        return 0
    for field in _SHOWN:
        print(f"{field:14} {manifest.get(field)}")
    print(f"{'packet':14} {packet.path}")
    return 0
