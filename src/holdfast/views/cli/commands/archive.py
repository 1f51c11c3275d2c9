"""holdfast archive: put tasks that have ended away."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.packet import load
from holdfast.packet.archive import archive
from holdfast.store.layout import Home, Packet
from holdfast.views import retention
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import Argument, Command, Option
from holdfast.views.cli.show import amounts, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="archive",
    summary="Put tasks that have ended away; they can still be read.",
    description="Moves their packets to archive/ of the home. 'show', 'logs', 'events' and 'metrics' read them there, 'ls "
    "--archived' lists them, 'rm' and 'prune' remove them. A task that has not ended, or whose worktree holds work that "
    "is not merged, stays.",
    examples=(
        "holdfast archive 20260131-fix",
        "holdfast archive --all-ended --older-than 7d",
        "holdfast archive --all-ended --notes",
    ),
    arguments=(Argument(dest="task", metavar="[TASK…]", required=False, many=True, completes="task"),),
    options=(
        Option(flags=("--all-ended",), dest="all_ended", kind="flag", help="Every task that has ended."),
        Option(
            flags=("--older-than",), dest="older_than", metavar="TIME", help="Only those that ended before: 7d, 12h."
        ),
        Option(
            flags=("--notes",), dest="notes", kind="flag",
            help="File each summary in docs/sessions/ of its project.",
        ),
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Archive each; one that cannot be archived does not stop the others."""
    home = Home(paths.home())
    if bool(values["task"]) == values["all_ended"]:
        raise UsageError(
            "name the tasks, or say --all-ended", hint="'holdfast ls --state completed' lists some"
        )
    older_s = option_values.duration(values["older_than"], "--older-than")
    status, count = 0, 0
    packets = retention.ended(home) if values["all_ended"] else _named(home, values["task"])
    for packet in packets:
        if isinstance(packet, HoldfastError):
            status = status or out.complain(packet)
            continue
        if older_s is not None and clock.now() - retention.ended_at(packet) <= older_s:
            continue
        try:
            retention.check_merged(packet)
            filed = _file(packet, make=values["notes"])
            target = archive(packet)
            count += 1
            out.talk(
                f"archived {packet.task_id} in {target.path}" + (f", its page is {filed}" if filed else "")
            )
        except HoldfastError as error:
            out.complain(error)
            status = status or error.exit_status
    if not count and not status:
        out.talk("nothing to archive")
    elif values["all_ended"]:
        out.talk(f"{amounts.plural(count, 'task')} archived")
    return status


def _named(home: Home, texts: list[str]) -> list[Packet | HoldfastError]:
    found: list[Packet | HoldfastError] = []
    for text in texts:
        try:
            found.append(load.find(home, text))
        except HoldfastError as error:
            found.append(error)
    return found


def _file(packet: Packet, *, make: bool) -> str | None:
    """The page in the project's knowledge, where it keeps one."""
    folder = "docs" if make else ""
    project = str(load.read_manifest(packet)["project_dir"])
    if paths.settings_files(project):
        from holdfast.config import settings

        found = settings.load(project).get("knowledge")
        folder = str(found.value) if found is not None else folder
    return retention.file_notes(packet, folder, make=make) if folder else None
