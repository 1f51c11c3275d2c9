"""holdfast review: have agents review an implementation, from a context pack and a report."""

from __future__ import annotations

import os

from holdfast import ids, paths
from holdfast.errors import DuplicateTask, UnreadableFile, UsageError
from holdfast.packet.inputs import contents
from holdfast.pipeline.define import new_packet
from holdfast.pipeline.define.new_packet import Draft
from holdfast.pipeline.results import export
from holdfast.store import atomic, foreign
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.commands import run as run_verb
from holdfast.views.cli.parse import command_spec
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.parse.task_options import PROJECT, TRUST_PROJECT
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INTENTS = {"cross": "review_cross", "post-impl": "post_impl_review"}
#: Six stages, and one retry of each.
_PAID_CALL_BUDGET = 12
_MAX_BYTES = 8 * 1024**2

COMMAND = Command(
    name="review",
    summary="Have agents review an implementation.",
    description="Creates a packet from the context pack and the implementer's report, runs and follows it "
    "like 'run', and copies the results to OUT_DIR (default: ./review-<task-id>). 'cross' (intent "
    "review_cross) is two reviews and their consolidation; 'post-impl' (post_impl_review) is six steps. The "
    "project is not changed.",
    examples=(
        "holdfast review cross context_pack.md report.md",
        'holdfast review post-impl context_pack.md report.md out/ --accept "make test"',
    ),
    arguments=(
        Argument(dest="kind", metavar="cross|post-impl", choices=tuple(INTENTS)),
        Argument(dest="context", metavar="CONTEXT_PACK", completes="file"),
        Argument(dest="report", metavar="IMPL_REPORT", completes="file"),
        Argument(dest="out", metavar="[OUT_DIR]", required=False, completes="folder"),
    ),
    options=(
        PROJECT.evolve(help="Project to review (default: here)."),
        Option(flags=("--id",), dest="id", metavar="ID", help="Task id."),
        Option(
            flags=("--profile",),
            dest="profile",
            metavar="NAME",
            help="Pipeline profile.",
        ),
        Option(
            flags=("--accept",),
            dest="accept",
            kind="many",
            metavar="COMMAND",
            help="Command that verifies the work; repeatable.",
        ),
        TRUST_PROJECT,
        JSON.evolve(help="Print the final manifest instead of the id."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Create the packet, run it, and copy its results."""
    project = paths.project(values["project"])
    context, report = _bytes(values["context"], project), _bytes(values["report"], project)
    goal = f"review the implementation that {os.path.basename(values['report'])} reports"
    task_id = ids.new_task_id("review") if values["id"] is None else ids.check_task_id(values["id"])
    target = os.path.abspath(values["out"] or f"review-{task_id}")
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise DuplicateTask(f"{target} exists and is not empty", hint="choose another folder, or remove it")
    foreign.refuse_way_out(target, project)
    draft = Draft(
        task_id=task_id,
        goal=goal,
        intent=INTENTS[values["kind"]],
        profile=values["profile"],
        commands=tuple(values["accept"]),
        paid_call_budget=_PAID_CALL_BUDGET,
    )
    status = _run(
        draft,
        project,
        context=context,
        report=report,
        trust_project=values["trust_project"],
        as_json=values["json"],
    )
    packet = Home(paths.home()).packet(task_id)
    if status == 130:
        out.talk(f"the results will be in {packet.outputs}")
        return status
    # Again: its name can be guessed, and an agent may have put a link there meanwhile.
    foreign.refuse_way_out(target, project)
    export.export(packet, target)
    out.talk(f"results: {target}")
    return status


def _run(
    draft: Draft, project: str, *, context: bytes, report: bytes, trust_project: bool, as_json: bool
) -> int:
    with new_packet.temporary(draft) as folder:
        packet = Packet(folder)
        request = f"{draft.goal}. The report is among the attachments: impl_report.md.\n"
        for path, data in (
            (packet.context_pack, context),
            (os.path.join(packet.attachments, "impl_report.md"), report),
            (packet.user_request, request.encode()),
        ):
            atomic.write(path, data, durable=False)
        values = {
            **command_spec.defaults(run_verb.COMMAND),
            "packet": folder,
            "manifest": new_packet.manifest(draft).encode(),
            "project": project,
            "trust_project": trust_project,
            "json": as_json,
        }
        return run_verb.run(values)


def _bytes(path: str, project: str) -> bytes:
    foreign.refuse_way_out(path, project)
    try:
        data = contents(path, _MAX_BYTES)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}", hint="check path and permissions"
        ) from error
    if len(data) > _MAX_BYTES or not data.strip():
        why = "is empty" if not data.strip() else f"is larger than {_MAX_BYTES // 1024**2} MiB"
        raise UsageError(f"{path} {why}")
    return data
