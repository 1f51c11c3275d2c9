"""holdfast archive: move ended tasks to the archive."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.packet import load
from holdfast.packet.archive import archive
from holdfast.store.layout import Home, Packet
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import Argument, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.removal import retention
from holdfast.views.removal.session_notes import write_notes
from holdfast.views.removal.worktree import check_merged
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="archive",
    summary="Archive ended tasks.",
    description="Moves their packets to archive/ in the home. 'show', 'logs', 'events' and 'metrics' still "
    "read them; 'ls --archived' lists them; 'rm' and 'prune' remove them. Tasks that have not ended, or "
    "whose worktree has unmerged work, are not archived.",
    examples=(
        "holdfast archive 20260131-fix",
        "holdfast archive --all-ended --older-than 7d",
        "holdfast archive --all-ended --notes",
    ),
    arguments=(Argument(dest="task", metavar="[TASK…]", required=False, many=True, completes="ended-task"),),
    options=(
        Option(flags=("--all-ended",), dest="all_ended", kind="flag", help="Archive every ended task."),
        Option(
            flags=("--older-than",), dest="older_than", metavar="TIME",
            help="Only tasks that ended longer ago: 7d, 12h.",
        ),
        Option(
            flags=("--notes",), dest="notes", kind="flag",
            help="Save each summary in docs/sessions/ of its project.",
        ),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Archive each task; a failure does not stop the others."""
    home = Home(paths.home())
    if bool(values["task"]) == values["all_ended"]:
        raise UsageError(
            "give either tasks or --all-ended", hint="'holdfast ls --state completed' lists completed tasks"
        )
    older_s = option_values.duration(values["older_than"], "--older-than")
    status, count = 0, 0
    packets = retention.ended(home) if values["all_ended"] else _find(home, values["task"])
    for packet in packets:
        if isinstance(packet, HoldfastError):
            status = status or out.complain(packet)
            continue
        if older_s is not None and clock.now() - retention.ended_at(packet) <= older_s:
            continue
        try:
            check_merged(packet)
            page = _write_notes(packet, make=values["notes"])
            target = archive(packet)
            count += 1
            out.talk(f"archived {packet.task_id} in {target.path}" + (f", notes in {page}" if page else ""))
        except HoldfastError as error:
            out.complain(error)
            status = status or error.exit_status
    if not count and not status:
        out.talk("nothing to archive")
    elif values["all_ended"]:
        out.talk(f"{amounts.plural(count, 'task')} archived")
    return status


def _find(home: Home, texts: list[str]) -> list[Packet | HoldfastError]:
    packets: list[Packet | HoldfastError] = []
    for text in texts:
        try:
            packets.append(load.find(home, text))
        except HoldfastError as error:
            packets.append(error)
    return packets


def _write_notes(packet: Packet, *, make: bool) -> str | None:
    """Save the summary in the project, if --notes or the setting `knowledge` says so; returns its path."""
    folder = "docs" if make else ""
    project = load.fold(packet).spec.project_dir
    if paths.settings_files(project):
        from holdfast.config import settings
        from holdfast.store.trust import TrustCheck

        setting = settings.load(project, TrustCheck(project)).get("knowledge")
        folder = str(setting.value) if setting is not None else folder
    return write_notes(packet, folder, make=make) if folder else None
