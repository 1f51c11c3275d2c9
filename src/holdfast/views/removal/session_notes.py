"""Session notes: a page about an ended task, in the `sessions/` folder of its project's documentation."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.packet import load
from holdfast.store.layout import Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def write_notes(packet: Packet, folder: str, *, make: bool) -> str | None:
    """Write the summary to `<project>/<folder>/sessions/` and return its path.

    Returns None if that folder does not exist (`make` creates it) or a link leads outside the project.
    """
    manifest: dict[str, Any] = load.read_manifest(packet)
    # Not that of the manifest, which is a derived file that anyone may write.
    project = os.path.realpath(load.fold(packet).spec.project_dir)
    target = os.path.normpath(os.path.join(project, folder, "sessions"))
    # Checked before a directory is created: the folder and any part of it may be a link of an agent.
    if not os.path.realpath(target).startswith(project + os.sep) or not target.startswith(project + os.sep):
        return None
    if make and os.path.isdir(project):
        os.makedirs(target, exist_ok=True)
    real = os.path.realpath(target)
    if not os.path.isdir(real) or not real.startswith(project + os.sep):
        return None
    try:
        text = files.read(packet.summary).decode("utf-8", "replace")
    except OSError:
        text = f"# {manifest['task_name']}: {manifest['status']}\n\n{manifest.get('status_reason') or ''}\n"
    path = os.path.join(real, f"{packet.task_id}.md")
    try:
        # Never overwrite a page that someone has edited.
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return path
    except OSError:
        return None
    return path
