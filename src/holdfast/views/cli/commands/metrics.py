"""holdfast metrics: show statistics of the home or a task."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.model import metrics as statistics
from holdfast.packet import load, metrics
from holdfast.store.layout import Home
from holdfast.views import option_values
from holdfast.views.cli.parse.command_spec import JSON, Argument, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.facts import day_budget, queue_places
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="metrics",
    summary="Show statistics of this home or a task.",
    description="Rates, durations, tokens, cost and tools, from the journals of all tasks including "
    "archived ones. Also written to metrics.json in the home. A cost that an agent does not report is "
    "unknown, not 0.",
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
            help="Print the Prometheus text format.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Print the statistics."""
    home = Home(paths.home())
    option_values.only_one(values, "json", "prometheus")
    if values["task"]:
        task = metrics.of_packet(load.find(home, values["task"], archived=True))
        if values["json"]:
            out.data({"schema": "holdfast.task-metrics/1", **task})
        elif values["prometheus"]:
            print(statistics.prometheus(statistics.of_home([task], clock.now()), [task]), end="")
        else:
            _print(_task_rows(task))
        return 0
    everything = metrics.refresh(home, held=queue_places.held(home))
    if values["prometheus"]:
        home_figures, tasks = everything["home"], everything["tasks"].values()
        print(statistics.prometheus(home_figures, tasks, removed=everything["removed"]), end="")
    elif values["json"]:
        out.data(everything)
    else:
        missing_usd = day_budget.removed_usd(home, everything["last_24h"]["api_usage"]["cost_usd"])
        _print(_home_rows(everything["home"], missing_usd))
        if everything["last_24h"] == everything["home"]:
            print("\nlast 24 h: the same")
        else:
            print("\nlast 24 h")
            _print(_home_rows(everything["last_24h"], missing_usd))
    return 0


def _print(rows: list[tuple[str, str]]) -> None:
    for name, text in rows:
        out.fact(name, text, at=12)


def _task_rows(task: dict[str, Any]) -> list[tuple[str, str]]:
    took = "-" if task["duration_s"] is None else clock.duration_text(task["duration_s"])
    last = " in the last run" if task["runs"] > 1 else ""
    return [
        ("task", task["task_id"]),
        ("state", task["status"]),
        ("agent", task["agent"] or "-"),
        ("duration", f"{took}{last}, active {clock.duration_text(task['active_s'])}{amounts.in_runs(task)}"),
        (
            "attempts",
            f"{task['attempts']}, {amounts.plural(task['retries'], 'retry')}, "
            f"{amounts.plural(task['interrupts'], 'interrupt')}",
        ),
        (
            "messages",
            f"{task['messages']}" + (f", {amounts.plural(task['turns'], 'turn')}" if task["turns"] else ""),
        ),
        ("usage", amounts.usage(task["api_usage"], paid_calls=task["api_usage"]["paid_calls"])),
        ("tools", _tools(task["tool_usage"])),
    ]


def _home_rows(home: dict[str, Any], missing_usd: float | None) -> list[tuple[str, str]]:
    states = ", ".join(f"{count} {state}" for state, count in home["by_status"].items()) or "none"
    average, longest, used = home["average_duration_s"], home["longest_duration_s"], home["api_usage"]
    took = (
        "-"
        if average is None
        else f"{clock.duration_text(average)} on average, {clock.duration_text(longest)} at most"
    )
    return [
        ("tasks", f"{home['tasks']}: {states}" if home["tasks"] else "none"),
        (
            "success",
            f"{_percent(home['success_rate'])} of {home['ended']} ended"
            if home["ended"]
            else "none ended yet",
        ),
        (
            "interrupts",
            f"{home['interrupts']}, in {_percent(home['interrupt_rate'])} of tasks" if home["tasks"] else "0",
        ),
        ("attempts", f"{home['attempts']}, {amounts.plural(home['retries'], 'retry')}"),
        ("per hour", _per_hour(home["iterations_per_hour"])),
        ("duration", took),
        ("active", clock.duration_text(home["active_s"])),
        ("usage", amounts.usage(used, paid_calls=used["paid_calls"]) + amounts.without_removed(missing_usd)),
        ("tools", _tools(home["tool_usage"])),
    ]


def _per_hour(rate: float | None) -> str:
    return "-" if rate is None else f"{amounts.plural(round(rate, 1), 'task')}, counted over at least an hour"


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate * 100:.0f} %"


def _tools(tools: dict[str, Any]) -> str:
    if not tools["total"]:
        return "none"
    parts = ", ".join(f"{name} {count}" for name, count in list(tools["breakdown"].items())[:8])
    return f"{tools['total']}: {parts}"
