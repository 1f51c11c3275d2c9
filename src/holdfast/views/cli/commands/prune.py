"""holdfast prune: remove old tasks. Lists them only, unless --yes."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import HoldfastError
from holdfast.model.retention import Candidate, choose
from holdfast.packet import archive, load
from holdfast.queue.dependents import Dependents
from holdfast.store import audit
from holdfast.store.layout import Home, Packet
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import out, wrapped_table
from holdfast.views.removal import retention
from holdfast.views.removal.task import remove_task
from holdfast.views.removal.worktree import check_merged, remove_worktree
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="prune",
    summary="Remove old tasks with all their files.",
    description="Without --yes it only lists them. It considers ended tasks, archived or not; without "
    "options, those that ended longer ago than the setting keep_for (30d). Tasks that have not ended, "
    "whose worktree has unmerged work, or that others wait for, are kept. Files outside the home are "
    "never touched.",
    examples=(
        "holdfast prune",
        "holdfast prune --older-than 14d --keep 50 --yes",
        "holdfast prune --max-size 10GB --keep-summaries --yes",
    ),
    options=(
        Option(
            flags=("--older-than",), dest="older_than", metavar="TIME", help="Tasks that ended before: 30d."
        ),
        Option(flags=("--keep",), dest="keep", metavar="N", help="Always keep the N newest."),
        Option(
            flags=("--max-size",), dest="max_size", metavar="SIZE",
            help="The oldest tasks, until the rest fits: 10GB.",
        ),
        Option(flags=("--archived",), dest="archived", kind="flag", help="Only archived tasks."),
        Option(flags=("--ended",), dest="ended", kind="flag", help="Only tasks that are not archived."),
        Option(
            flags=("--keep-summaries",), dest="keep_summaries", kind="flag",
            help="Archive summary, markers and manifest of each.",
        ),
        Option(flags=("--yes",), dest="yes", kind="flag", help="Really remove them."),
        JSON,
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Choose, remove with --yes, and print the list."""
    home = Home(paths.home())
    option_values.only_one(values, "archived", "ended")
    packets = _packets(home, values)
    older_s = option_values.duration(values["older_than"], "--older-than")
    keep = option_values.whole_number(values["keep"], "--keep")
    max_bytes = option_values.size(values["max_size"], "--max-size")
    if older_s is None and keep is None and max_bytes is None:
        older_s = _keep_for_s()
    chosen = choose(
        [retention.candidate(packet, is_archived=is_archived) for packet, is_archived in packets.values()],
        clock.now(),
        older_than_s=older_s,
        keep=keep or 0,
        max_bytes=max_bytes,
    )
    status, dependents = 0, Dependents(home)
    rows: list[dict[str, Any]] = []
    for item, why in chosen:
        packet, _ = packets[item.task_id]
        row = {
            "task_id": item.task_id,
            "ended_at": clock.iso(item.ended),
            "bytes": item.size_bytes,
            "archived": item.is_archived,
            "why": why,
            "removed": False,
            "error": None,
        }
        rows.append(row)
        try:
            check_merged(packet)
            if not item.is_archived:
                dependents.check_unneeded(packet.task_id, "remove")
        except HoldfastError as error:
            row["error"] = str(error)  # kept on purpose: not a failure
            continue
        try:
            if values["yes"]:
                if not values["keep_summaries"]:
                    dependents.note_removal(packet.task_id)
                _remove(packet, item, keep_summaries=values["keep_summaries"])
                row["removed"] = True
        except HoldfastError as error:
            row["error"] = str(error)
            status = error.exit_status
    _print(rows, values)
    return status


def _packets(home: Home, values: dict[str, Any]) -> dict[str, tuple[Packet, bool]]:
    """Ended tasks by id, each with whether it is archived."""
    packets: dict[str, tuple[Packet, bool]] = {}
    if not values["ended"]:
        for packet in retention.archived(home):
            if not (values["keep_summaries"] and load.is_stripped(packet)):
                packets[packet.task_id] = (packet, True)
    if not values["archived"]:
        packets |= {packet.task_id: (packet, False) for packet in retention.ended(home)}
    return packets


def _keep_for_s() -> float:
    from holdfast.config import settings
    from holdfast.config.keys import KEYS
    from holdfast.store.trust import TrustCheck

    value = KEYS["keep_for"].default
    if paths.settings_files(paths.project(None)):
        project = paths.project(None)
        setting = settings.load(project, TrustCheck(project)).get("keep_for")
        value = setting.value if setting is not None else value
    return clock.parse_duration(str(value))


def _remove(packet: Packet, item: Candidate, *, keep_summaries: bool) -> None:
    if worktree_note := remove_worktree(packet).note:
        out.talk(f"{packet.task_id}: {worktree_note}")
    if keep_summaries:
        archive.strip(packet if item.is_archived else archive.archive(packet))
    else:
        remove_task(packet)
    audit.append(
        packet.home,
        {
            "operation": "task.pruned",
            "task_id": packet.task_id,
            "by": audit.whoami(),
            "reason": "summary kept" if keep_summaries else "",
        },
    )


def _print(rows: list[dict[str, Any]], values: dict[str, Any]) -> None:
    if values["json"]:
        out.data({"schema": "holdfast.prune/1", "removed": values["yes"], "tasks": rows})
        return
    if not rows:
        out.talk("nothing to remove")
        return
    wrapped_table.show(
        ("TASK", "ENDED", "SIZE", "WHERE", "WHY"),
        [
            (
                row["task_id"],
                clock.local(row["ended_at"], "%Y-%m-%d %H:%M"),
                amounts.size(row["bytes"]),
                "archive" if row["archived"] else "tasks",
                f"kept: {row['error']}" if row["error"] else row["why"],
            )
            for row in rows
        ],
    )
    going = [row for row in rows if not row["error"]]
    total = amounts.size(sum(row["bytes"] for row in going))
    result = "reduced to a summary in the archive" if values["keep_summaries"] else "removed"
    if not values["yes"]:
        result = f"would be {result}; --yes does it"
    out.talk(f"{amounts.plural(len(going), 'task')}, {total}, {result}")
