"""holdfast status: show the state of this home."""

from __future__ import annotations

from holdfast import paths
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, Command
from holdfast.views.cli.show import out
from holdfast.views.facts import home_status
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="status",
    summary="Show the keeper, task counts and what needs attention.",
    examples=("holdfast status", "holdfast status --json"),
    options=(JSON,),
)


def run(values: dict[str, Any]) -> int:
    """Print the status."""
    home = Home(paths.home())
    facts = home_status.gather(home)
    if values["json"]:
        out.data(facts)
        return 0
    keeper, seed = facts["keeper"], facts["seed"]
    if keeper:
        keeper_state = f"process {keeper['pid']}"
    elif home_status.is_starting(home):
        keeper_state = "starting"
    else:
        keeper_state = "not running" + (" (down)" if facts["down"] else "")
    _print("home", home.path)
    _print("keeper", keeper_state)
    _print("seed", f"process {seed['pid']}" if seed else "not running")
    _print("tasks", _counts(facts["counts"]) or "none")
    if facts["queue"] is not None:
        _print("queue", _queue_line(facts["queue"]))
    if facts["outbox"]["pending"] or facts["outbox"]["given_up"]:
        _print("notices", f"{facts['outbox']['pending']} pending, {facts['outbox']['given_up']} given up")
    for line in facts["attention"]:
        _print("!", line)
    return 0


def _print(name: str, text: str) -> None:
    out.fact(name, text, at=9)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))


def _queue_line(queue: dict[str, Any]) -> str:
    started = amounts.plural(queue["loop"].get("since_up", 0), "task")
    failures = queue["loop"].get("failures", 0)
    failed = f"; {failures} failed in a row" if failures else ""
    states = _counts(queue["states"]) or "empty"
    return f"{states} ({started} started since 'up'){failed}{_paused(queue['paused'])}"


def _paused(pools: list[str]) -> str:
    """`; paused`, or `; paused: nightly` if only some pools are."""
    if not pools:
        return ""
    return "; paused" if "*" in pools else f"; paused: {', '.join(pools)}"
