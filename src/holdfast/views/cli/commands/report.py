"""holdfast report: report on the home: state, queue, recent results."""

from __future__ import annotations

from holdfast import paths
from holdfast.store.layout import Home
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.rows import report_text
from holdfast.views.cli.show import out
from holdfast.views.facts import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SINCE = "24h"

COMMAND = Command(
    name="report",
    summary="Report on this home: state, queue, results, questions, statistics.",
    examples=(
        "holdfast report",
        "holdfast report --since 7d --detailed",
        "holdfast report --json | jq .interrupts",
    ),
    options=(
        Option(
            flags=("--since",),
            dest="since",
            metavar="TIME",
            help=f"How far back to look ({_SINCE}).",
        ),
        Option(
            flags=("--detailed",),
            dest="detailed",
            kind="flag",
            help="List every task, and add all-time statistics.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the report."""
    since_s = option_values.duration(_SINCE if values["since"] is None else values["since"], "--since")
    facts = report.gather(Home(paths.home()), since_s=since_s or 0.0)
    if values["json"]:
        out.data(facts)
        return 0
    for line in report_text.render(facts, detailed=values["detailed"]).split("\n"):
        out.say(line, rest="  " if line.startswith("- ") else "")
    return 0
