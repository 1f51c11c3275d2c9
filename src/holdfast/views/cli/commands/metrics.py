"""holdfast metrics: figures of a task, or of the home."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.model import metrics as figures
from holdfast.packet import load, metrics
from holdfast.store.layout import Home
from holdfast.views.cli.parse import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import amounts, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="metrics",
    summary="Show figures: rates, durations, tokens, cost, tools; of the home or of one task.",
    description="Derived from the journals, archived tasks included, and kept in metrics.json of the home. A cost that an "
    "agent does not report is unknown, never 0.",
    examples=(
        "holdfast metrics",
        "holdfast metrics 20260131-fix --json",
        "holdfast metrics --prometheus > /var/lib/node_exporter/holdfast.prom",
    ),
    arguments=(Argument(dest="task", metavar="[TASK]", required=False, completes="task"),),
    options=(
        Option(
            flags=("--prometheus",),
            dest="prometheus",
            kind="flag",
            help="Print the text format of Prometheus.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print them."""
    home = Home(paths.home())
    option_values.only_one(values, "json", "prometheus")
    if values["task"]:
        found = metrics.of_packet(load.find(home, values["task"], archived=True))
        if values["json"]:
            out.data({"schema": "holdfast.task-metrics/1", **found})
        elif values["prometheus"]:
            print(figures.prometheus(figures.of_home([found], clock.now()), [found]), end="")
        else:
            _show(_task(found))
        return 0
    everything = metrics.refresh(home)
    if values["prometheus"]:
        print(figures.prometheus(everything["home"], everything["tasks"].values()), end="")
    elif values["json"]:
        out.data(everything)
    else:
        _show(_home(everything["home"]))
        print("\nlast 24 h")
        _show(_home(everything["last_24h"]))
    return 0


def _show(rows: list[tuple[str, str]]) -> None:
    for name, text in rows:
        out.fact(name, text, at=12)


def _task(task: dict[str, Any]) -> list[tuple[str, str]]:
    took = "-" if task["duration_s"] is None else clock.words(task["duration_s"])
    return [
        ("task", task["task_id"]),
        ("state", task["status"]),
        ("agent", task["agent"] or "-"),
        ("duration", f"{took}, active {clock.words(task['active_s'])}"),
        (
            "attempts",
            f"{task['attempts']}, {amounts.plural(task['retries'], 'retry')}, {amounts.plural(task['interrupts'], 'interrupt')}",
        ),
        (
            "messages",
            f"{task['messages']}" + (f", {amounts.plural(task['turns'], 'turn')}" if task["turns"] else ""),
        ),
        ("usage", amounts.usage(task["api_usage"])),
        ("tools", _tools(task["tool_usage"])),
    ]


def _home(home: dict[str, Any]) -> list[tuple[str, str]]:
    states = ", ".join(f"{count} {state}" for state, count in home["by_status"].items()) or "none"
    average, longest = home["average_duration_s"], home["longest_duration_s"]
    took = "-" if average is None else f"{clock.words(average)} on average, {clock.words(longest)} at most"
    return [
        ("tasks", f"{home['tasks']}: {states}" if home["tasks"] else "none"),
        (
            "success",
            f"{_percent(home['success_rate'])} of {home['ended']} that ended"
            if home["ended"]
            else "none has ended",
        ),
        (
            "interrupts",
            f"{home['interrupts']}, in {_percent(home['interrupt_rate'])} of the tasks"
            if home["tasks"]
            else "0",
        ),
        ("attempts", f"{home['attempts']}, {amounts.plural(home['retries'], 'retry')}"),
        (
            "per hour",
            "-"
            if home["iterations_per_hour"] is None
            else amounts.plural(round(home["iterations_per_hour"], 1), "task"),
        ),
        ("duration", took),
        ("active", clock.words(home["active_s"])),
        ("usage", amounts.usage(home["api_usage"])),
        ("tools", _tools(home["tool_usage"])),
    ]


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"


def _tools(tools: dict[str, Any]) -> str:
    if not tools["total"]:
        return "none"
    parts = ", ".join(f"{name} {count}" for name, count in list(tools["breakdown"].items())[:8])
    return f"{tools['total']}: {parts}"
