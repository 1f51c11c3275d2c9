"""holdfast show: show one task."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.errors import UsageError
from holdfast.store.layout import Home, Packet
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import out, terminal
from holdfast.views.facts.detail import detail
from holdfast.views.text import describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Width of the column with names.
_AT = 10
#: Further indentation of a wrapped line, where it is not that of its first line.
_HANGING: dict[str, int] = {"attempts": 4, "repairs": 2, "next": 2, "output": 0}

COMMAND = Command(
    name="show",
    summary="Show a task: state, stages, attempts, usage and next steps.",
    examples=(
        "holdfast show 20260131-fix",
        "holdfast show 20260131-fix --findings",
        "holdfast show 20260131-fix --json | jq .status",
    ),
    arguments=(TASK,),
    options=(
        Option(
            flags=("--findings",),
            dest="findings",
            kind="flag",
            help="Print what its reviewers and verifiers reported.",
        ),
        Option(
            flags=("--summary",), dest="summary", kind="flag", help="Print its summary (outputs/_summary.md)."
        ),
        Option(
            flags=("--detail",),
            dest="detail",
            kind="flag",
            help="With --json: attempts, gates, budgets, questions, next steps and files too.",
        ),
        JSON.evolve(help="Print manifest.json, or the summary."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the facts, or the manifest as JSON."""
    task = detail(Home(paths.home()), values["task"])
    packet, manifest = task.packet, task.manifest
    if values["detail"] and (values["summary"] or not values["json"]):
        raise UsageError("--detail is for --json", hint=f"'holdfast show {packet.task_id} --detail --json'")
    if values["summary"]:
        return _print_summary(packet, manifest, values)
    if values["json"]:
        out.data(task.to_json() if values["detail"] else task.shown)
        return 0
    if values["findings"]:
        from holdfast.views.facts import findings

        for line in findings.lines(packet, manifest):
            print(fit_text.printable(line))
        return 0
    from holdfast.views.cli.rows.task_facts import task_facts  # not needed for --json

    columns = terminal.width()
    section = ""
    for name, text in task_facts(task, clock.now()):
        section = name or section
        lines = fit_text.wrap(
            fit_text.as_displayed(text),
            columns,
            first=f"{name:{_AT}}",
            rest=" " * (_AT + _HANGING.get(section, _indent(text))),
            is_quoted=section == "output",
        )
        if name == "state":
            state = describe.state(manifest)
            lines[0] = lines[0].replace(state, terminal.coloured_state(state), 1)
        for line in lines:
            print(line)
    return 0


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _print_summary(packet: Packet, manifest: dict[str, Any], values: dict[str, Any]) -> int:
    from holdfast.views import option_values
    from holdfast.views.facts import summary

    option_values.only_one(values, "summary", "findings")
    found = summary.gather(packet, manifest)
    if values["json"]:
        out.data(found)
        return 0
    if not found["text"]:
        out.talk(f"{packet.task_id} has no summary yet; 'holdfast show {packet.task_id}' shows it")
    for line in found["text"].splitlines():
        print(fit_text.printable(line))
    if found["left_out_bytes"]:
        out.talk(f"{found['left_out_bytes']} more bytes are in {found['path']}")
    return 0
