"""holdfast archive: move ended tasks to the archive, or back."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import HoldfastError, NotPossible, UsageError
from holdfast.packet import fan_out, load
from holdfast.packet.archive import archive, restore
from holdfast.queue.dependents import Dependents
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
    summary="Archive ended tasks, or restore them.",
    description="Moves their packets to archive/ in the home. 'show', 'logs', 'events' and 'metrics' still "
    "read them; 'ls --archived' lists them; 'rm' and 'prune' remove them. Tasks that have not ended, or that "
    "failed while other tasks wait for them, are not archived; one whose worktree has unmerged work only "
    "with --force: the worktree and its branch stay as they are. The items of a fan-out that has not "
    "completed are archived only after it.",
    examples=(
        "holdfast archive 20260131-fix",
        "holdfast archive --all-ended --older-than 7d",
        "holdfast archive --all-ended --notes",
        "holdfast archive --force 20260131-fix",
        "holdfast archive --restore 20260131-fix",
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
        Option(
            flags=("--force",), dest="force", kind="flag",
            help="Archive tasks with unmerged work, which stays in their worktrees.",
        ),
        Option(flags=("--restore",), dest="restore", kind="flag", help="Bring archived tasks back."),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Archive each task; a failure does not stop the others."""
    home = Home(paths.home())
    if values["restore"]:
        return _restore(home, values)
    if bool(values["task"]) == values["all_ended"]:
        raise UsageError(
            "give either tasks or --all-ended", hint="'holdfast ls --state completed' lists completed tasks"
        )
    older_s = option_values.duration(values["older_than"], "--older-than")
    status, count, refused = 0, 0, 0
    unmerged: dict[str, NotPossible] = {}
    items: list[str] = []
    dependents = Dependents(home)
    packets = retention.ended(home) if values["all_ended"] else _find(home, values["task"])
    for packet in packets:
        if isinstance(packet, HoldfastError):
            out.complain(packet)
            status = status or packet.exit_status
            continue
        if older_s is not None and clock.now() - retention.ended_at(packet) <= older_s:
            continue
        try:
            if parent := fan_out.needing(packet):
                if not values["all_ended"]:
                    raise _is_needed(packet.task_id, parent)
                items.append(packet.task_id)  # said once for all of them
                continue
            dependents.check_unneeded(packet.task_id, "archive")
            kept = _unmerged(packet)
            if kept is not None and not values["force"]:
                unmerged[packet.task_id] = kept  # said once for all of them
                continue
            page = _write_notes(packet, make=values["notes"])
            target = archive(packet)
            count += 1
            out.talk(f"archived {packet.task_id} in {target.path}" + (f", notes in {page}" if page else ""))
            if kept is not None:
                out.talk(f"its worktree stays: {kept}")
        except HoldfastError as error:
            out.complain(error)
            refused += 1
            status = status or error.exit_status
    if unmerged:
        refused += len(unmerged)
        found = out.complain(_all_unmerged(unmerged))
        status = status or found
    if items:
        refused += len(items)
        out.talk(f"kept, because their fan-out has not completed and is not archived: {', '.join(items)}")
    if not count and not status:
        out.talk("nothing to archive")
    elif values["all_ended"]:
        out.talk(f"{amounts.plural(count, 'task')} archived" + (f", {refused} not" if refused else ""))
    return status


def _restore(home: Home, values: dict[str, Any]) -> int:
    """Bring each task back; a failure does not stop the others."""
    for other in ("all_ended", "older_than", "notes", "force"):
        option_values.only_one(values, "restore", other)
    if not values["task"]:
        raise UsageError("--restore needs a task", hint="'holdfast ls --archived' lists archived tasks")
    status = 0
    for packet in _find(home, values["task"], archived=True):
        try:
            if isinstance(packet, HoldfastError):
                raise packet
            if packet.path != home.archived(packet.task_id).path:
                raise NotPossible(
                    f"{packet.task_id} is not archived", hint="'holdfast ls --archived' lists archived tasks"
                )
            out.talk(f"restored {packet.task_id} to {restore(packet).path}")
        except HoldfastError as error:
            out.complain(error)
            status = status or error.exit_status
    return status


def _unmerged(packet: Packet) -> NotPossible | None:
    """Says what of its work is merged nowhere; None if all is."""
    try:
        check_merged(packet)
    except NotPossible as error:
        return error
    return None


def _is_needed(task_id: str, parent: str) -> NotPossible:
    """About an item whose fan-out stays."""
    return NotPossible(
        f"cannot archive {task_id}: its fan-out {parent} has not completed, and looks for it in a retry",
        hint=f"'holdfast retry {parent}' tries it again; 'holdfast archive {parent} {task_id}' archives both",
    )


def _all_unmerged(unmerged: dict[str, NotPossible]) -> NotPossible:
    """One error about all tasks with unmerged work."""
    if len(unmerged) == 1:
        return next(iter(unmerged.values()))
    return NotPossible(
        f"{len(unmerged)} tasks have work that is merged nowhere",
        details=tuple(map(str, unmerged.values())),
        hint="'holdfast show TASK' says what to do with the work of each; 'holdfast archive --force "
        f"{' '.join(unmerged)}' archives them and keeps their worktrees",
    )


def _find(home: Home, texts: list[str], *, archived: bool = False) -> list[Packet | HoldfastError]:
    packets: list[Packet | HoldfastError] = []
    for text in texts:
        try:
            packets.append(load.find(home, text, archived=archived))
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
