"""What a person should do next about a task: one answer for every state, with the commands to type.

Pure, and the only source of such advice: the summary, `last_failure.json` and every view take it from here.
"""

from __future__ import annotations

from holdfast.model import concerns
from holdfast.model.permissions import Denial
from holdfast.model.record import Record
from holdfast.model.status import ENDS, INTERRUPTED_BY, Cause, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class Suggestion(Record):
    """A command that a person can type, and what it does ("try again")."""

    command: str
    does: str

    def as_hint(self) -> str:
        """`'holdfast retry t1' to try again`; without a message to the agent, which has its own quotes."""
        return f"'{self.command.partition(' -m ')[0]}' to {self.does}"


class ActionTemplate(Record):
    """One member of the closed set of next actions.

    `{task}`, `{agent}`, `{login}`, `{stage}`, `{allow}` and `{again}` are filled in. `{again}` is `holdfast
    resume TASK` for an interrupted task and `holdfast retry TASK` for one that has ended.
    """

    means: str
    #: What to do, in order: at most two.
    steps: tuple[Suggestion, ...] = ()
    #: What can be done instead.
    otherwise: tuple[Suggestion, ...] = ()


class NextAction(Record):
    """What to do about one task."""

    name: str
    why: str
    steps: tuple[Suggestion, ...] = ()
    otherwise: tuple[Suggestion, ...] = ()

    @property
    def command(self) -> str:
        """The first command; empty if there is nothing to do."""
        return self.steps[0].command if self.steps else ""

    @property
    def then(self) -> str:
        """The command that follows; empty if there is none."""
        return self.steps[1].command if len(self.steps) > 1 else ""

    @property
    def choices(self) -> tuple[Suggestion, ...]:
        """Everything that makes sense now, the best first. Waiting, which happens anyway, is last."""
        if self.name == "wait":
            return (*self.otherwise, *self.steps)
        return (*self.steps, *self.otherwise)

    def to_json(self) -> dict[str, Any]:
        """As it is written into last_failure.json."""
        return {"name": self.name, "command": self.command, "why": self.why, "then": self.then}


_LOG = Suggestion(command="holdfast logs {task} -n 40", does="see what happened")
_GIVE_UP = Suggestion(command="holdfast stop {task}", does="give it up")
_OF_COMPLETED = (
    Suggestion(command="holdfast logs {task}", does="read its output"),
    Suggestion(command="holdfast rm {task}", does="remove its files"),
)
_FINDINGS = Suggestion(command="holdfast show {task} --findings", does="read what its reviewers found")
_DIFF = Suggestion(command="holdfast diff {task}", does="show its changes")
_THEN_GO_ON = Suggestion(command="{again}", does="go on, once that is done")

ACTIONS: dict[str, ActionTemplate] = {
    "none": ActionTemplate(means="Nothing is left to do.", otherwise=_OF_COMPLETED),
    "read_diff": ActionTemplate(
        means="Completed; look at what it changed.", steps=(_DIFF,), otherwise=_OF_COMPLETED
    ),
    "apply": ActionTemplate(
        means="Completed in its own worktree; merge the changes into the project.",
        steps=(_DIFF, Suggestion(command="holdfast apply {task}", does="merge them into the project")),
        otherwise=_OF_COMPLETED,
    ),
    "read_findings": ActionTemplate(
        means="Completed, but its own reviewers or verifiers object.",
        steps=(
            Suggestion(command="holdfast show {task} --findings", does="read what they object to"),
            Suggestion(command="holdfast retry {task} -m 'WHAT TO FIX'", does="have it fixed"),
        ),
        otherwise=(_DIFF, *_OF_COMPLETED),
    ),
    "allow_tools": ActionTemplate(
        means="Completed, but tools were denied: the work may be incomplete.",
        steps=(
            Suggestion(
                command="holdfast retry {task} --from {stage} --permissions {allow}",
                does="let the agent go on, with these tools allowed",
            ),
        ),
    ),
    "wait": ActionTemplate(
        means="It goes on by itself.",
        steps=(Suggestion(command="holdfast wait {task}", does="wait until it ends"),),
        otherwise=(
            Suggestion(command="holdfast logs -f {task}", does="follow its output"),
            Suggestion(command="holdfast stop {task}", does="stop it"),
        ),
    ),
    "resume": ActionTemplate(
        means="It was interrupted and can go on.",
        steps=(Suggestion(command="holdfast resume {task}", does="go on"),),
        otherwise=(_GIVE_UP,),
    ),
    "answer": ActionTemplate(
        means="It asks a question.",
        steps=(Suggestion(command="holdfast resume {task} -m 'ANSWER'", does="answer and go on"),),
        otherwise=(_GIVE_UP,),
    ),
    "approve": ActionTemplate(
        means="A stage starts only after a person approves it.",
        steps=(Suggestion(command="holdfast approve {task}", does="let the stage start"),),
        otherwise=(Suggestion(command="holdfast reject {task} -m 'WHY'", does="end it"),),
    ),
    "login": ActionTemplate(
        means="The agent is not logged in, or its key is refused.",
        steps=(Suggestion(command="{login}", does="log in"), _THEN_GO_ON),
    ),
    "raise_budget": ActionTemplate(
        means="A budget is used up; going on grants it once more.",
        steps=(Suggestion(command="{again}", does="go on with the budget granted once more"),),
    ),
    "raise_time": ActionTemplate(
        means="A time limit was reached.",
        steps=(Suggestion(command="{again}", does="go on, for the same time again"),),
    ),
    "retry": ActionTemplate(
        means="It may work another time.", steps=(Suggestion(command="{again}", does="try again"),)
    ),
    "fix_scope": ActionTemplate(
        means="It changed files outside its scope.",
        steps=(
            Suggestion(command="holdfast diff {task} --all", does="see what it changed outside its scope"),
            Suggestion(command="{again} -m 'WHAT TO LEAVE ALONE'", does="go on, with a message to the agent"),
        ),
    ),
    "fix_contract": ActionTemplate(
        means="A gate did not pass.",
        steps=(
            Suggestion(command="holdfast show {task}", does="see which gate did not pass"),
            Suggestion(command="{again} -m 'WHAT IS MISSING'", does="go on, with a message to the agent"),
        ),
    ),
    "fix_work": ActionTemplate(
        means="Its acceptance commands refuse the work.",
        steps=(
            _DIFF,
            Suggestion(command="{again} -m 'WHAT TO FIX'", does="go on, with a message to the agent"),
        ),
        otherwise=(_LOG,),
    ),
    "fix_checks": ActionTemplate(
        means="The checks of the repository failed.",
        steps=(
            Suggestion(
                command="{again} -m 'WHAT TO FIX'",
                does="call the agent again with what failed; the message is optional",
            ),
        ),
        otherwise=(_DIFF, _GIVE_UP),
    ),
    "install_tool": ActionTemplate(
        means="A program is missing, or rejects how it is called.",
        steps=(
            Suggestion(command="holdfast agent probe {agent}", does="see what is missing"),
            _THEN_GO_ON,
        ),
    ),
    "fix_setup": ActionTemplate(
        means="Something that the stage needs is missing or wrong.",
        steps=(Suggestion(command="holdfast show {task}", does="see what is wrong"), _THEN_GO_ON),
    ),
    "split_task": ActionTemplate(
        means="The prompt is too large for the model, even with the digest.",
        steps=(
            Suggestion(command="holdfast show {task}", does="see which stage it is"),
            Suggestion(command="{again}", does="go on, once the task is smaller"),
        ),
    ),
    "read_log": ActionTemplate(
        means="The cause is not known.", steps=(_LOG, Suggestion(command="{again}", does="try again"))
    ),
}

#: For a task without a runner, in a home in which nothing starts another.
START_KEEPER = Suggestion(command="holdfast up", does="start a keeper, which starts another runner")


class TaskFacts(Record):
    """The facts about a task that decide."""

    task_id: str
    status: str
    reason: str = ""
    #: As `Cause`.
    cause: str = ""
    agent: str = ""
    #: How to log in to the agent, as its adapter says.
    login: str = ""
    #: The name of the action that helps against the failure that stopped the task; empty if none did.
    remedy: str = ""
    #: The question, if it is interrupted with one.
    question: str = ""
    #: The stage that waits for approval.
    approval: str = ""
    wake_at: str | None = None
    is_past_deadline: bool = False
    #: Active time of its last run.
    active_s: float | None = None
    has_changes: bool = False
    #: The number of files that it had changed, at most, as its gates counted them; None if none did.
    changed: int | None = None
    #: What its reviewers or verifiers object to; empty if nothing.
    objection: str = ""
    #: Its reviewers or verifiers found something, which may be no objection.
    has_findings: bool = False
    #: Its work was applied to the project: `merged into main`; empty if it was not.
    applied: str = ""
    workspace: str = "in_place"
    #: Of a fan-out: the work of some items was merged.
    has_merged: bool = False
    #: Of a completed task: the first stage in which tools were denied.
    denied: Denial | None = None
    #: Of a queued task: its item's state in the queue.
    queue_state: str = ""
    #: The failed task for which the queue holds it.
    held_by: str = ""
    #: It has lost its runner, and this home is down.
    is_runner_lost: bool = False


def for_task(facts: TaskFacts) -> NextAction:
    """What to do now. A state that this version does not know is waited for."""
    match facts.status:
        case Status.COMPLETED:
            return _completed(facts)
        case Status.INTERRUPTED:
            return _interrupted(facts)
        case Status.FAILED | Status.TIMEOUT:
            return _failed(facts)
        case Status.ABANDONED if facts.is_past_deadline or not facts.remedy:
            longer = Suggestion(
                command=f"{_again(facts)} --deadline {_twice(facts.active_s)}", does="go on, with more time"
            )
            action = _filled("raise_time", facts, facts.reason or "its deadline is over")
            return action.evolve(steps=(longer,), otherwise=_fill((_LOG,), facts))
        case Status.ABANDONED:
            return _failed(facts)
        case Status.KILLED:
            return _filled("retry", facts, "it was stopped on request")
        case Status.QUEUED:
            return _queued(facts)
        case Status.WAITING:
            why = f"it goes on at {facts.wake_at}" if facts.wake_at else facts.reason
            action = _filled("wait", facts, why)
            now = Suggestion(command=f"holdfast resume {facts.task_id}", does="go on now")
            return _running(action.evolve(otherwise=_fill((now, _GIVE_UP), facts)), facts)
        case _:
            return _running(_filled("wait", facts, f"it is {facts.status}"), facts)


def for_manifest(
    manifest: dict[str, Any],
    *,
    failure: dict[str, Any] | None = None,
    login: str = "",
    queue_state: str = "",
    held_by: str = "",
    is_runner_lost: bool = False,
    workspace: str = "",
    has_merged: bool = False,
) -> NextAction:
    """The same from a manifest, or a row of the index, and what a view knows besides: the content of
    last_failure.json, how to log in, the state in the queue and the failed task that holds it there, the
    workspace, if a completed task changed files in it, and whether items of a fan-out were merged."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    status, reason = manifest["status"], manifest.get("status_reason") or ""
    denied: list[dict[str, Any]] = manifest.get("denied") or []
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    cause = _cause(manifest, failure or {})
    return for_task(
        TaskFacts(
            task_id=manifest["task_id"],
            status=status,
            reason=reason,
            cause=cause,
            agent=manifest.get("agent") or "",
            login=login,
            remedy=_remedy(manifest, cause, failure or {}),
            question=question_in(interrupt.get("reason") or reason, interrupt.get("asked_by") or ""),
            approval=interrupt.get("approval") or "",
            wake_at=manifest.get("wake_at"),
            is_past_deadline=bool(manifest.get("is_past_deadline")),
            active_s=manifest.get("active_s"),
            has_changes=bool(workspace),
            changed=most(stage.get("changed") for stage in stages),
            objection=concerns.all_as_text(manifest.get("concerns") or ()),
            has_findings=any(stage.get("findings") for stage in stages),
            applied=applied_words(manifest),
            workspace=workspace,
            has_merged=has_merged,
            denied=Denial.from_json(denied[0]) if denied else None,
            queue_state=queue_state,
            held_by=held_by,
            is_runner_lost=is_runner_lost,
        )
    )


def applied_words(manifest: dict[str, Any]) -> str:
    """`merged into main`, `applied as a patch`; empty if its work was not applied."""
    applied: dict[str, Any] = manifest.get("applied") or {}
    if not applied:
        return ""
    return f"merged into {applied.get('branch')}" if applied.get("how") == "merge" else "applied as a patch"


def most(counts: Iterable[int | None]) -> int | None:
    """The largest of the counts; None if there is none."""
    # An agent can write the manifest from which they are.
    return max((count for count in counts if isinstance(count, int)), default=None)


def _cause(manifest: dict[str, Any], failure: dict[str, Any]) -> str:
    cause = manifest.get("status_cause")
    if cause is not None:
        return cause
    from holdfast.model import legacy  # only manifests of older versions need it

    return legacy.cause_of(manifest, failure)


def _remedy(manifest: dict[str, Any], cause: str, failure: dict[str, Any]) -> str:
    """What last_failure.json recommends, if a failure stopped the task; a plain run has no such file."""
    status = manifest["status"]
    action: dict[str, Any] = failure.get("next_action") or {}
    is_current = status in (Status.FAILED, Status.TIMEOUT) or cause == Cause.FAILURE
    if is_current and action.get("name"):
        return action["name"]
    stages: list[dict[str, Any]] = manifest.get("stages") or []
    if (
        status == Status.FAILED
        and manifest.get("accept")
        and len(stages) == 1
        and stages[0].get("gate") == "failed"
    ):
        return "fix_work"
    if status != Status.ABANDONED:
        return ""
    is_out_of_time = any(stage.get("outcome") == "timeout" for stage in stages)
    return "raise_time" if is_out_of_time else "read_log"


def is_question(manifest: dict[str, Any]) -> bool:
    """Whether an interrupted task asks something. One that a person or `holdfast down` interrupted can just
    go on."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    return not is_of_down(manifest) and interrupt.get("asked_by") != "person"


def is_of_down(manifest: dict[str, Any]) -> bool:
    """Whether `holdfast down` interrupted it."""
    return _cause(manifest, {}) == Cause.DOWN


def question_in(reason: str, asked_by: str) -> str:
    """The question in the reason of an interrupt; empty if a person interrupted the task. `asked_by` is as in
    `Answer`."""
    is_by_person = asked_by == "person" or (asked_by != "agent" and reason.startswith(INTERRUPTED_BY))
    return "" if is_by_person else reason


def hint(steps: Iterable[Suggestion]) -> str:
    """Steps as a sentence: `'holdfast resume t1' to go on, 'holdfast stop t1' to give it up`."""
    return ", ".join(step.as_hint() for step in steps)


def _completed(facts: TaskFacts) -> NextAction:
    if facts.denied is not None:
        # First: what reviewers object to may be missing because of it.
        as_it_is = _completed(facts.evolve(denied=None)).choices
        why = f"it is completed, but in {facts.denied.stage} {facts.denied.as_text()}"
        action = _filled("allow_tools" if facts.denied.allow else "read_log", facts, why)
        return action.evolve(steps=action.steps[:1], otherwise=as_it_is)
    if facts.applied and not facts.has_changes:
        return _filled("none", facts, f"it is completed and {facts.applied}")
    if facts.objection:
        return _filled("read_findings", facts, facts.objection)
    if not facts.has_changes:
        action = _filled("none", facts, "it is completed")
    elif facts.workspace == "worktree":
        action = _filled("apply", facts, "it completed and changed files")
    else:
        action = _filled("read_diff", facts, "it completed, and may have changed files")
    if not facts.has_findings:
        return action
    return action.evolve(otherwise=(*_fill((_FINDINGS,), facts), *action.otherwise))


def _interrupted(facts: TaskFacts) -> NextAction:
    if facts.approval:
        action = _filled("approve", facts, f"stage {facts.approval} waits for approval")
        diff = _DIFF.evolve(does="show what you approve")
        return (
            action.evolve(otherwise=(*_fill((diff,), facts), *action.otherwise)) if facts.changed else action
        )
    if facts.remedy and facts.cause not in (Cause.SETUP, Cause.CHECKS):
        return _failed(facts)
    if facts.cause in _BY_CAUSE:
        return _filled(_BY_CAUSE[facts.cause], facts, "")
    if facts.question and facts.cause != Cause.DOWN:
        return _filled("answer", facts, facts.question)
    return _filled("resume", facts, facts.reason or "it was interrupted")


#: What helps at a limit, or after a check.
_BY_CAUSE: dict[str, str] = {
    Cause.BUDGET: "raise_budget",
    Cause.TIMEOUT: "raise_time",
    Cause.OUTPUT: "resume",
    Cause.SETUP: "fix_setup",
    Cause.CHECKS: "fix_checks",
}

#: What an interrupted task needs, in a word for lists, by the name of its next action.
_NEEDS: dict[str, str] = {
    "answer": "question",
    "approve": "approval",
    "login": "login",
    "raise_budget": "budget",
    "raise_time": "time",
    "resume": "stopped",
    "fix_checks": "checks",
}


def need(action: str) -> str:
    """What an interrupted task needs, in a word, by the name of its next action: the same in every view.
    `failure` if the cause has no word of its own."""
    return _NEEDS.get(action, "failure")


def _queued(facts: TaskFacts) -> NextAction:
    task_id = facts.task_id
    remove = Suggestion(command=f"holdfast queue rm {task_id}", does="give it up")
    if facts.queue_state in ("held", "poison"):
        anyway = Suggestion(command=f"holdfast queue retry {task_id}", does="run it anyway")
        why = f"it is {facts.queue_state} in the queue"
        steps = (anyway,)
        if on_id := facts.held_by:
            steps = (Suggestion(command=f"holdfast retry {on_id}", does=f"try {on_id} again"), anyway)
        return NextAction(name="retry", why=why, steps=steps, otherwise=(remove,))
    look = Suggestion(command=f"holdfast queue show {task_id}", does="see what it waits for")
    return _filled("wait", facts, "it is queued").evolve(otherwise=(look, remove))


def _running(action: NextAction, facts: TaskFacts) -> NextAction:
    if not facts.is_runner_lost:
        return action
    why = "its runner is gone, and this home is down"
    return NextAction(name="resume", why=why, steps=(START_KEEPER,), otherwise=action.choices)


def _failed(facts: TaskFacts) -> NextAction:
    name = "fix_setup" if facts.cause == Cause.SETUP else facts.remedy
    if name not in ACTIONS:
        name = "raise_time" if facts.status == Status.TIMEOUT else "read_log"
    # The reason is shown beside it everywhere; what the action means is not.
    action = _filled(name, facts, "")
    if name != "read_log" or not facts.has_merged:
        return action
    log, again = action.steps
    diff = Suggestion(command=f"holdfast diff {facts.task_id}", does="show what was merged")
    again = again.evolve(does="try what was left out again")
    why = "Some items were merged, others were left out."
    return NextAction(name="read_diff", why=why, steps=(diff, again), otherwise=(log,))


def _filled(name: str, facts: TaskFacts, why: str) -> NextAction:
    action = ACTIONS[name]
    why = why or action.means
    steps, otherwise = action.steps, action.otherwise
    if name == "login" and not _is_plain_command(facts.login):
        # Some adapters describe the login in a sentence; only a plain command is offered as one.
        how = f": {facts.login}" if facts.login else ""
        why = f"{why} (log in first{how})"
        steps = (Suggestion(command="{again}", does=f"go on, once you are logged in{how}"),)
    if name == "install_tool" and facts.agent in ("", "command"):
        steps = (_LOG, *steps[1:])
    if name == "fix_work" and facts.agent == "command":
        steps = (_DIFF, Suggestion(command="{again}", does="run it again"))  # nobody reads a message
    if name == "fix_checks" and facts.agent == "command":
        steps = (Suggestion(command="{again}", does="run it again"),)
    if name == "fix_work" and facts.changed == 0:
        steps, otherwise = (_LOG, *steps[1:]), ()
    if name == "raise_time" and facts.status == Status.ABANDONED:  # for a deadline, see `for_task`
        steps, otherwise = (_more_time(facts),), (*steps, _LOG)
    elif name == "raise_time":
        otherwise = (_more_time(facts), *([_GIVE_UP] if facts.status == Status.INTERRUPTED else [_LOG]))
    if not otherwise and facts.status == Status.INTERRUPTED:
        otherwise = (_GIVE_UP,)
    elif not otherwise and len(steps) == 1 and facts.status in ENDS:
        otherwise = (_LOG,)
    return NextAction(name=name, why=why, steps=_fill(steps, facts), otherwise=_fill(otherwise, facts))


def _more_time(facts: TaskFacts) -> Suggestion:
    """Only an ended task can be changed."""
    ended = "holdfast stop {task} && " if facts.status == Status.INTERRUPTED else ""
    longer = f"holdfast retry {{task}} --set timeout={_twice(facts.active_s)}"
    return Suggestion(command=f"{ended}{longer}", does="go on, with more time")


def _is_plain_command(text: str) -> bool:
    words = text.split(" ")
    return all(word and all(char.isalnum() or char in "_./-" for char in word) for word in words)


def _fill(steps: tuple[Suggestion, ...], facts: TaskFacts) -> tuple[Suggestion, ...]:
    # An agent can write the manifest from which these are, and people copy the commands.
    words = {
        "task": facts.task_id,
        "agent": _word(facts.agent),
        "login": facts.login,
        "stage": _word(facts.denied.stage) if facts.denied is not None else "",
        "allow": _word(facts.denied.allow) if facts.denied is not None else "",
        "again": _again(facts),
    }
    return tuple(step.evolve(command=step.command.format(**words)) for step in steps)


def _word(text: str) -> str:
    """A word of a command, quoted if it needs to be."""
    if _is_plain_command(text) and " " not in text:
        return text
    from shlex import quote  # a name of ours needs no quotes

    return quote(text)


def _twice(active_s: float | None) -> str:
    """A longer deadline: twice the time that was not enough, `40s`, `10h`. Twice the default if unknown."""
    if active_s is None:
        return "10h"
    for unit, seconds in (("h", 3600), ("m", 60)):
        if active_s >= seconds:
            return f"{round(2 * active_s / seconds)}{unit}"
    return f"{max(1, round(2 * active_s))}s"


def _again(facts: TaskFacts) -> str:
    return f"holdfast {'resume' if facts.status == Status.INTERRUPTED else 'retry'} {facts.task_id}"
