"""holdfast status: show the state of this home."""

from __future__ import annotations

from holdfast import clock, paths
from holdfast.model.status import Status
from holdfast.store.layout import Home
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, defaults
from holdfast.views.cli.show import out
from holdfast.views.facts import home_status
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Running tasks that are listed.
_RUNNING = 10

COMMAND = Command(
    name="status",
    summary="Show what needs attention, the keeper, slots and running tasks.",
    description="What needs attention comes first. 'urgent' needs action, and 'note' can wait; 'question', "
    "'approval', 'login', 'budget', 'time', 'failure', 'stopped', 'held' and 'ended' wait for a person; "
    "a 'limit' holds the whole queue. "
    "With a TASK, the same as 'holdfast show TASK'.",
    examples=("holdfast status", "holdfast status --json", "holdfast status 20260131-fix"),
    arguments=(TASK.evolve(metavar="[TASK]", required=False),),
    options=(JSON,),
)


def run(values: dict[str, Any]) -> int:
    """Print the status."""
    if values["task"]:
        from holdfast.views.cli.commands import show

        return show.run({**defaults(show.COMMAND), **values})
    home = Home(paths.home())
    facts = home_status.gather(home)
    if values["json"]:
        out.data(facts)
        return 0
    keeper = facts["keeper"]
    if keeper:
        keeper_state = f"process {keeper['pid']}"
    elif home_status.is_starting(home):
        keeper_state = "starting"
    else:
        keeper_state = "not running" + (" (down)" if facts["down"] else "")
    for alert in facts["alerts"]:
        _print(alert["kind"] or alert["level"], alert["text"])
    _print("home", home.path)
    _print("keeper", keeper_state)
    _print("tasks", amounts.by_state(facts["counts"]) or "none")
    _print("slots", _slots_line(home, facts, queued=facts["counts"].get("queued", 0)))
    for row in facts["running"][:_RUNNING]:
        _print("waiting" if row["status"] == Status.WAITING else "running", _running_line(row))
    if len(facts["running"]) > _RUNNING:
        _print("running", f"and {len(facts['running']) - _RUNNING} more; 'holdfast ls' lists them")
    if facts["queue"] is not None:
        _print("queue", _queue_line(facts["queue"]))
        from holdfast.views.facts import day_budget  # most homes have no queue

        if budget := day_budget.as_text(home):
            _print("budget", budget)
    if facts["outbox"]["pending"] or facts["outbox"]["given_up"]:
        _print("notices", f"{facts['outbox']['pending']} pending, {facts['outbox']['given_up']} given up")
    return 0


def _print(name: str, text: str) -> None:
    out.fact(name, text, at=9)


def _slots_line(home: Home, facts: dict[str, Any], *, queued: int) -> str:
    """Slots are those of a keeper, by its options: without one there are none."""
    if facts["keeper"] or home_status.is_starting(home):
        return f"{facts['slots']['used']} of {facts['slots']['count']} used by the queue"
    if not queued:
        return "none without a keeper; 'holdfast up' starts one"
    if queued == 1:
        return "none without a keeper: the queued task starts after 'holdfast up'"
    order = "in the order of 'holdfast queue ls'"
    return f"none without a keeper: {queued} queued tasks start after 'holdfast up', {order}"


def _running_line(row: dict[str, Any]) -> str:
    state = "stopping" if row["is_stopping"] else row["status"]
    return f"{row['task_id']}  {state}, {row['agent']}, {clock.duration_text(row['elapsed_s'])}"


def _queue_line(queue: dict[str, Any]) -> str:
    # A task that was resumed or retried was started again.
    starts = amounts.plural(queue["loop"].get("since_up", 0), "start")
    failures = queue["loop"].get("failures", 0)
    failed = f"; {failures} failed in a row" if failures else ""
    # `claimed` is the word of programs that work on the queue.
    states = {"in progress" if name == "claimed" else name: count for name, count in queue["states"].items()}
    counts = amounts.by_state(states) or "empty"
    return f"{counts} ({starts} since 'up'){failed}{_paused(queue['paused'])}" + "".join(
        f"; {limit}" for limit in queue["at_limit"]
    )


def _paused(pools: list[str]) -> str:
    """`; paused`, or `; paused: nightly` if only some pools are."""
    if not pools:
        return ""
    return "; paused" if "*" in pools else f"; paused: {', '.join(pools)}"
