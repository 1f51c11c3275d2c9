"""next_action: what a person or a brain does now, from a closed set, with the command that does it.

Pure. Every state of a task has exactly one answer, so the summary alone says how to continue.
"""

from __future__ import annotations

import re

from holdfast.model.record import Record
from holdfast.model.status import BY_DOWN, Status
from holdfast.pipeline.triage import FailureClass, remedy


class NextAction(Record):
    """What to do, the command for it, and why."""

    name: str
    command: str = ""
    why: str
    #: What follows when the command has been looked at or has worked.
    then: str = ""


class Action(Record):
    """One member of the set. `{task}`, `{stage}`, `{agent}`, `{login}` and `{again}` are filled in.

    `{again}` is `holdfast resume TASK` if the task is parked and `holdfast retry TASK` if it has ended.
    """

    means: str
    command: str = ""
    then: str = ""


ACTIONS: dict[str, Action] = {
    "none": Action(means="Nothing is left to do."),
    "read_diff": Action(means="Completed; look at what it changed.", command="holdfast diff {task}"),
    "apply": Action(
        means="Completed in a worktree of its own; take the changes over.",
        command="holdfast diff {task}",
        then="holdfast apply {task}",
    ),
    "wait": Action(means="It goes on by itself.", command="holdfast wait {task}"),
    "resume": Action(means="It was interrupted and can go on.", command="holdfast resume {task}"),
    "answer": Action(means="It asks a question.", command="holdfast resume {task} -m 'ANSWER'"),
    "approve": Action(
        means="A stage may start only when a person agrees.", command="holdfast approve {task}"
    ),
    "login": Action(
        means="The agent is not logged in, or its key is refused.", command="{login}", then="{again}"
    ),
    "raise_budget": Action(
        means="A budget is used up; to go on is to allow as much again.", command="{again}"
    ),
    "raise_time": Action(means="A time limit was reached.", command="{again}"),
    "retry": Action(means="It may work another time.", command="{again}"),
    "fix_scope": Action(
        means="It changed files outside its scope.",
        command="holdfast diff {task} --all",
        then="{again} -m 'WHAT TO LEAVE ALONE'",
    ),
    "fix_contract": Action(
        means="A gate did not pass.", command="holdfast show {task}", then="{again} -m 'WHAT IS MISSING'"
    ),
    "install_tool": Action(
        means="A program is missing, or refuses how it is called.",
        command="holdfast agent probe {agent}",
        then="{again}",
    ),
    "fix_setup": Action(
        means="Something that the stage needs is not as it should be.",
        command="holdfast show {task}",
        then="{again}",
    ),
    "split_task": Action(
        means="The prompt does not fit into the model, not even with the digest.",
        command="holdfast show {task}",
        then="{again}",
    ),
    "read_log": Action(
        means="No rule knows what happened.", command="holdfast logs {task} -n 40", then="{again}"
    ),
}


class ActionView(Record):
    """What of a task decides on the action."""

    task_id: str
    status: str
    reason: str = ""
    stage: str = ""
    agent: str = ""
    #: How a person logs in to the agent (its adapter's words).
    login: str = ""
    #: Of the last failure that was not healed; empty where there is none.
    failure_class: str = ""
    #: What that attempt came to.
    failure_outcome: str = ""
    #: The question, where the task is interrupted with one.
    question: str = ""
    #: The stage that waits for a person's approval.
    approval: str = ""
    wake_at: str | None = None
    #: Its active time is used up.
    is_past_deadline: bool = False
    has_changes: bool = False
    workspace: str = "in_place"


def for_task(view: ActionView) -> NextAction:
    """What to do now. Total: a state of a later version is waited for."""
    match view.status:
        case Status.COMPLETED:
            return _completed(view)
        case Status.INTERRUPTED:
            return _interrupted(view)
        case Status.FAILED | Status.TIMEOUT:
            return _failed(view)
        case Status.ABANDONED if view.is_past_deadline or not view.failure_class:
            why = view.reason or "its deadline is over"
            return _filled("raise_time", view, why).evolve(command=f"{_again(view)} --deadline 10h")
        case Status.ABANDONED:
            return _failed(view)
        case Status.KILLED:
            return _filled("retry", view, "it was stopped on request")
        case Status.WAITING:
            return _filled("wait", view, f"it goes on at {view.wake_at}" if view.wake_at else view.reason)
        case _:
            return _filled("wait", view, f"it is {view.status}")


def _completed(view: ActionView) -> NextAction:
    if not view.has_changes:
        return _filled("none", view, "it is completed")
    name = "apply" if view.workspace == "worktree" else "read_diff"
    return _filled(name, view, "it is completed and changed files")


def _interrupted(view: ActionView) -> NextAction:
    if view.approval:
        return _filled("approve", view, f"stage {view.approval} waits for approval")
    if view.failure_class:
        return _failed(view)
    if view.question and view.question != BY_DOWN:
        return _filled("answer", view, view.question)
    return _filled("resume", view, view.reason or "it was interrupted")


def _failed(view: ActionView) -> NextAction:
    if view.failure_class in tuple(FailureClass):
        name = remedy(FailureClass(view.failure_class), view.failure_outcome, view.reason)[0]
    else:
        name = "raise_time" if view.status == Status.TIMEOUT else "read_log"
    # The reason stands beside it wherever it is shown; here, what the class means is news.
    return _filled(name, view, "")


def _filled(name: str, view: ActionView, why: str) -> NextAction:
    action, again = ACTIONS[name], _again(view)
    words = {
        "{task}": view.task_id,
        "{stage}": view.stage,
        "{agent}": view.agent,
        "{login}": view.login,
        "{again}": again,
    }
    command, then = _replaced(action.command, words), _replaced(action.then, words)
    why = why or action.means
    # What an adapter says about logging in may be a sentence; only a plain command is offered as one.
    if name == "login" and not re.fullmatch(r"[\w./-]+(?: [\w./-]+)*", command):
        return NextAction(
            name=name, command=again, why=f"{why} (log in first{': ' + view.login if view.login else ''})"
        )
    if name == "install_tool" and view.agent in ("", "command"):
        command = f"holdfast logs {view.task_id} -n 40"
    return NextAction(name=name, command=command, then=then, why=why)


def _replaced(template: str, words: dict[str, str]) -> str:
    for name, text in words.items():
        template = template.replace(name, text)
    return template


def _again(view: ActionView) -> str:
    return f"holdfast {'resume' if view.status == Status.INTERRUPTED else 'retry'} {view.task_id}"
