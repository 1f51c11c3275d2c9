"""holdfast prune: remove old packets. Says what would go, unless --yes."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import HoldfastError
from holdfast.model.retention import Candidate, choose
from holdfast.packet import archive
from holdfast.packet.remove import remove
from holdfast.queue.waiters import Waiters
from holdfast.store import audit, index
from holdfast.store.layout import Home, Packet
from holdfast.views import retention, traces
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.show import amounts, out, wrapped_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="prune",
    summary="Remove old tasks with all their files; without --yes only say which.",
    description="Of tasks that have ended, archived or not. Without options those that ended longer ago than the setting "
    "keep_for (30d). A task that has not ended, or whose worktree holds work that is not merged, is never removed; "
    "files outside the home are never touched.",
    examples=(
        "holdfast prune",
        "holdfast prune --older-than 14d --keep 50 --yes",
        "holdfast prune --max-size 10GB --keep-summaries --yes",
    ),
    options=(
        Option(flags=("--older-than",), dest="older_than", metavar="TIME", help="Those that ended before: 30d."),
        Option(flags=("--keep",), dest="keep", metavar="N", help="Always keep the N newest."),
        Option(
            flags=("--max-size",), dest="max_size", metavar="SIZE", help="The oldest, until the rest fits: 10GB."
        ),
        Option(flags=("--archived",), dest="archived", kind="flag", help="Only of the archive."),
        Option(flags=("--ended",), dest="ended", kind="flag", help="Only those that are not in the archive."),
        Option(
            flags=("--keep-summaries",), dest="keep_summaries", kind="flag",
            help="Keep summary, markers and manifest, in the archive.",
        ),
        Option(flags=("--yes",), dest="yes", kind="flag", help="Remove them."),
        JSON,
    ),
)  # fmt: skip


def run(values: dict[str, Any]) -> int:
    """Choose, show, and with --yes remove."""
    home = Home(paths.home())
    option_values.only_one(values, "archived", "ended")
    packets = _packets(home, values)
    older_s = option_values.duration(values["older_than"], "--older-than")
    keep = option_values.whole_number(values["keep"], "--keep")
    max_bytes = option_values.size(values["max_size"], "--max-size")
    if older_s is None and keep is None and max_bytes is None:
        older_s = _keep_for_s()
    found = choose(
        [retention.candidate(packet, is_archived=is_archived) for packet, is_archived in packets.values()],
        clock.now(),
        older_than_s=older_s,
        keep=keep or 0,
        max_bytes=max_bytes,
    )
    status, waiters = 0, Waiters(home)
    rows: list[dict[str, Any]] = []
    for item, why in found:
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
            retention.check_merged(packet)
        except HoldfastError as error:
            row["error"] = str(error)  # without --yes it says so too: nothing went wrong
            continue
        try:
            if values["yes"]:
                if not values["keep_summaries"]:
                    waiters.note_removal(packet.task_id)
                _remove(packet, item, keep_summaries=values["keep_summaries"])
                row["removed"] = True
        except HoldfastError as error:
            row["error"] = str(error)
            status = error.exit_status
    _say(rows, values)
    return status


def _packets(home: Home, values: dict[str, Any]) -> dict[str, tuple[Packet, bool]]:
    found: dict[str, tuple[Packet, bool]] = {}
    if not values["ended"]:
        for packet in retention.archived(home):
            if not (values["keep_summaries"] and archive.is_stripped(packet)):
                found[packet.task_id] = (packet, True)
    if not values["archived"]:
        found |= {packet.task_id: (packet, False) for packet in retention.ended(home)}
    return found


def _keep_for_s() -> float:
    from holdfast.config import settings
    from holdfast.config.keys import KEYS

    value = KEYS["keep_for"].default
    if paths.settings_files(paths.project(None)):
        found = settings.load(paths.project(None)).get("keep_for")
        value = found.value if found is not None else value
    return clock.parse_duration(str(value))


def _remove(packet: Packet, item: Candidate, *, keep_summaries: bool) -> None:
    home = packet.home
    if left := retention.remove_worktree(packet).words:
        out.talk(f"{packet.task_id}: {left}")
    if keep_summaries:
        archive.strip(packet if item.is_archived else archive.archive(packet))
    else:
        left_in_home = traces.of(packet)
        remove(packet)
        traces.clear(home, left_in_home)
        index.forget(home, packet.task_id)
    audit.append(
        home,
        {
            "operation": "task.pruned",
            "task_id": packet.task_id,
            "by": audit.whoami(),
            "reason": "its summary is kept" if keep_summaries else "",
        },
    )


def _say(rows: list[dict[str, Any]], values: dict[str, Any]) -> None:
    if values["json"]:
        out.data({"schema": "holdfast.prune/1", "removed": values["yes"], "tasks": rows})
        return
    if not rows:
        out.talk("nothing is old enough to go")
        return
    wrapped_table.show(
        ("TASK", "ENDED", "SIZE", "WHERE", "WHY"),
        [
            (
                row["task_id"],
                row["ended_at"][:16].replace("T", " "),
                amounts.size(row["bytes"]),
                "archive" if row["archived"] else "tasks",
                f"stays: {row['error']}" if row["error"] else row["why"],
            )
            for row in rows
        ],
    )
    going = [row for row in rows if not row["error"]]
    total = amounts.size(sum(row["bytes"] for row in going))
    gone = "put into the archive as a summary" if values["keep_summaries"] else "removed"
    done = gone if values["yes"] else f"would be {gone}; --yes does it"
    out.talk(f"{amounts.plural(len(going), 'task')}, {total}, {done}")
