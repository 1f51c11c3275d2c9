"""holdfast report: report on the home: state, queue, recent results."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.rows import report_text
from holdfast.views.cli.show import out, user_file
from holdfast.views.facts import report
from holdfast.views.text import describe, fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SINCE = describe.LOOK_BACK

COMMAND = Command(
    name="report",
    summary="Report on this home: what needs you, results, queue, statistics.",
    examples=(
        "holdfast report",
        "holdfast report --since 7d --detailed",
        "holdfast report --html report.html",
        "holdfast report --json | jq .needs",
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
            help="Add last lines, the whole queue and all-time statistics.",
        ),
        Option(flags=("--markdown",), dest="markdown", kind="flag", help="Print Markdown."),
        Option(
            flags=("--html",),
            dest="html",
            metavar="FILE",
            completes="file",
            help="Write a page that needs no other file.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the report."""
    if sum(map(bool, (values["json"], values["markdown"], values["html"]))) > 1:
        raise UsageError("choose one of --json, --markdown and --html")
    if values["html"]:
        user_file.check(values["html"])
    since_s = option_values.duration(_SINCE if values["since"] is None else values["since"], "--since")
    facts = report.gather(Home(paths.home()), since_s=since_s or 0.0)
    if values["json"]:
        out.data(facts)
        return 0
    if values["html"]:
        page = report_text.html(facts, detailed=values["detailed"])
        user_file.write(values["html"], page.encode("utf-8", "xmlcharrefreplace"))
        if values["html"] != user_file.STDOUT:
            out.talk(f"wrote {values['html']}")
        return 0
    if values["markdown"]:
        for line in report_text.markdown(facts, detailed=values["detailed"]).split("\n"):
            print(fit_text.printable(line))
        return 0
    for line in report_text.render(facts, detailed=values["detailed"]).split("\n"):
        out.say(line, rest="  " if line.startswith("- ") else "")
    return 0
