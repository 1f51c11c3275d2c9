"""Every state of a task has one next action, with a command that exists."""

from __future__ import annotations

import re
import shlex

import pytest

from holdfast.agents import registry
from holdfast.model.next_action import ACTIONS, NextAction, TaskFacts, for_manifest, for_task, hint
from holdfast.model.permissions import Denial
from holdfast.model.status import Status
from holdfast.pipeline.triage import FailureClass, remedy
from holdfast.views.cli import verbs

DENIED = Denial(stage="claude_run", tools="Write", allow="full")


def view(status: str, *, failure_class: str = "", **facts: object) -> TaskFacts:
    if failure_class:
        known = failure_class in tuple(FailureClass)
        facts["remedy"] = remedy(FailureClass(failure_class), "")[0] if known else "of a later version"
    return TaskFacts(task_id="t1", status=status, agent="claude", login="claude auth login", **facts)  # type: ignore[arg-type]


@pytest.mark.req("GAT-10")
@pytest.mark.parametrize(
    ("seen", "name", "command", "then"),
    [
        (view("completed"), "none", "", ""),
        (view("completed", has_changes=True), "read_diff", "holdfast diff t1", ""),
        (
            view("completed", has_changes=True, workspace="worktree"),
            "apply",
            "holdfast diff t1",
            "holdfast apply t1",
        ),
        (view("queued"), "wait", "holdfast wait t1", ""),
        (view("running"), "wait", "holdfast wait t1", ""),
        (view("waiting", wake_at="2026-01-31T12:00:00.000Z"), "wait", "holdfast wait t1", ""),
        (view("interrupted"), "resume", "holdfast resume t1", ""),
        (view("interrupted", question="which?"), "answer", "holdfast resume t1 -m 'ANSWER'", ""),
        (
            view("interrupted", question="quality gate failed: …", cause="checks").evolve(
                remedy="fix_contract"
            ),
            "fix_checks",
            "holdfast resume t1 -m 'WHAT TO FIX'",
            "",
        ),
        (view("interrupted", approval="codex_impl"), "approve", "holdfast approve t1", ""),
        (view("interrupted", failure_class="auth"), "login", "claude auth login", "holdfast resume t1"),
        (
            view("interrupted", failure_class="budget"),
            "raise_budget",
            "holdfast resume t1",
            "",
        ),
        (view("interrupted", failure_class="timeout"), "raise_time", "holdfast resume t1", ""),
        (view("failed", has_merged=True), "read_diff", "holdfast diff t1", "holdfast retry t1"),
        (view("failed", failure_class="auth"), "login", "claude auth login", "holdfast retry t1"),
        (view("failed", failure_class="transient"), "retry", "holdfast retry t1", ""),
        (
            view("failed", failure_class="scope_violation"),
            "fix_scope",
            "holdfast diff t1 --all",
            "holdfast retry t1 -m 'WHAT TO LEAVE ALONE'",
        ),
        (
            view("failed", failure_class="contract_violation"),
            "fix_contract",
            "holdfast show t1",
            "holdfast retry t1 -m 'WHAT IS MISSING'",
        ),
        (
            view("failed", failure_class="tooling"),
            "install_tool",
            "holdfast agent probe claude",
            "holdfast retry t1",
        ),
        (
            view("failed", failure_class="prompt_too_large"),
            "split_task",
            "holdfast show t1",
            "holdfast retry t1",
        ),
        (view("failed", failure_class="unknown"), "read_log", "holdfast logs t1 -n 40", "holdfast retry t1"),
        (view("failed"), "read_log", "holdfast logs t1 -n 40", "holdfast retry t1"),
        (view("timeout"), "raise_time", "holdfast retry t1", ""),
        (view("abandoned"), "raise_time", "holdfast retry t1 --deadline 10h", ""),
        (
            view("abandoned", failure_class="transient", is_past_deadline=True),
            "raise_time",
            "holdfast retry t1 --deadline 10h",
            "",
        ),
        (view("abandoned", failure_class="transient"), "retry", "holdfast retry t1", ""),
        (view("killed"), "retry", "holdfast retry t1", ""),
        (view("a state of a later version"), "wait", "holdfast wait t1", ""),
        (
            view("completed", has_changes=True).evolve(denied=DENIED),
            "allow_tools",
            "holdfast retry t1 --from claude_run --permissions full",
            "",
        ),
        (
            view("completed").evolve(denied=DENIED.evolve(allow="")),
            "read_log",
            "holdfast logs t1 -n 40",
            "",
        ),
    ],
)
def test_what_to_do(seen: TaskFacts, name: str, command: str, then: str) -> None:
    action = for_task(seen)
    assert (action.name, action.command, action.then) == (name, command, then)
    assert action.why


def everything() -> list[TaskFacts]:
    return [
        view("completed").evolve(denied=DENIED),
        *_without_denials(),
    ]


def _without_denials() -> list[TaskFacts]:
    return [
        view(status, failure_class=found, question=question, approval=approval, has_changes=changed).evolve(
            objection=objection
        )
        for status in Status
        for found in ("", *FailureClass, "a class of a later version")
        for question in ("", "which?")
        for approval in ("", "codex_impl")
        for changed in (True, False)
        for objection in ("", "codex_review: 1 blocker")
    ]


def test_the_set_is_closed_and_nothing_in_it_is_idle() -> None:
    assert {for_task(each).name for each in everything()} | {
        "apply",
        "fix_setup",
        "fix_work",
        "fix_checks",
    } == set(ACTIONS)


@pytest.mark.req("CTX-6")
def test_every_command_is_one_that_exists() -> None:
    for each in everything():
        action = for_task(each)
        for command in (each for step in action.choices for each in step.command.split(" && ")):
            assert "{" not in command
            if command.startswith("holdfast "):
                _, verb, *words = shlex.split(command)
                assert verb in (*verbs.VERBS, "approve")
                if verb in verbs.VERBS:
                    known = {flag for option in verbs.load(verb).COMMAND.options for flag in option.flags}
                    assert {word for word in words if word.startswith("-")} <= known, command


@pytest.mark.parametrize("agent", sorted(registry.BUILT_IN))
def test_how_to_log_in_is_a_command_where_the_agent_has_one(agent: str) -> None:
    login = registry.adapter(agent).capabilities.login
    action = for_task(
        view("interrupted", failure_class="auth", reason="401").evolve(agent=agent, login=login)
    )
    if re.search(r"[,(]", login) or not login:
        assert action.command == "holdfast resume t1"
        assert login in action.why
    else:
        assert (action.command, action.then) == (login, "holdfast resume t1")


def test_a_plain_command_is_not_probed() -> None:
    action = for_task(view("failed", failure_class="tooling").evolve(agent="command"))
    assert action.command == "holdfast logs t1 -n 40"


# ── from a manifest ──


def manifest(status: str, **fields: object) -> dict[str, object]:
    return {"task_id": "t1", "status": status, "agent": "claude", **fields}


def failed_with(name: str, detail: str = "") -> dict[str, object]:
    return {"detail": detail, "next_action": {"name": name}}


@pytest.mark.parametrize("status", sorted(Status))
def test_every_state_offers_something_to_type(status: str) -> None:
    steps = for_manifest(manifest(status)).choices
    assert steps
    assert all(step.command.startswith("holdfast ") and " t1" in step.command for step in steps)
    assert all(step.does for step in steps)


@pytest.mark.parametrize(
    ("action", "commands"),
    [
        (
            for_manifest(manifest("queued")),
            ["queue show t1", "queue rm t1", "wait t1"],
        ),
        (for_manifest(manifest("queued"), queue_state="held"), ["queue retry t1", "queue rm t1"]),
        (
            for_manifest(manifest("queued"), queue_state="held", held_by="t0"),
            ["retry t0", "queue retry t1", "queue rm t1"],
        ),
        (for_manifest(manifest("running")), ["logs -f t1", "stop t1", "wait t1"]),
        (for_manifest(manifest("running"), is_runner_lost=True), ["up", "logs -f t1", "stop t1", "wait t1"]),
        (for_manifest(manifest("waiting")), ["resume t1", "stop t1", "wait t1"]),
        (
            for_manifest(manifest("interrupted", interrupt={"reason": "which?"})),
            ["resume t1 -m 'ANSWER'", "stop t1"],
        ),
        (
            for_manifest(manifest("interrupted", status_reason="any text", status_cause="down")),
            ["resume t1", "stop t1"],
        ),
        # A person may use the same words.
        (
            for_manifest(manifest("interrupted", status_reason="holdfast down --now", status_cause="")),
            ["resume t1 -m 'ANSWER'", "stop t1"],
        ),
        (
            for_manifest(manifest("interrupted", interrupt={"reason": "?", "approval": "impl"})),
            ["approve t1", "reject t1 -m 'WHY'"],
        ),
        (
            for_manifest(
                manifest(
                    "interrupted",
                    interrupt={"reason": "?", "approval": "verify"},
                    stages=[{"name": "impl", "changed": 2}, {"name": "verify"}],
                )
            ),
            ["approve t1", "diff t1", "reject t1 -m 'WHY'"],
        ),
        (
            for_manifest(manifest("interrupted", status_cause="timeout", active_s=90.0)),
            ["resume t1", "stop t1 && holdfast retry t1 --set timeout=3m", "stop t1"],
        ),
        (
            for_manifest(manifest("timeout", active_s=40.0)),
            ["retry t1", "retry t1 --set timeout=80s", "logs t1 -n 40"],
        ),
        (
            for_manifest(
                manifest("abandoned", active_s=3.0, stages=[{"state": "failed", "outcome": "timeout"}])
            ),
            ["retry t1 --set timeout=6s", "retry t1", "logs t1 -n 40"],
        ),
        (for_manifest(manifest("completed")), ["logs t1", "rm t1"]),
        (for_manifest(manifest("completed"), workspace="in_place"), ["diff t1", "logs t1", "rm t1"]),
        (
            for_manifest(manifest("completed"), workspace="worktree"),
            ["diff t1", "apply t1", "logs t1", "rm t1"],
        ),
        (for_manifest(manifest("failed")), ["logs t1 -n 40", "retry t1"]),
        (for_manifest(manifest("killed")), ["retry t1", "logs t1 -n 40"]),
        (
            for_manifest(manifest("abandoned", status_reason="no time left", is_past_deadline=True)),
            ["retry t1 --deadline 10h", "logs t1 -n 40"],
        ),
        (
            for_manifest(
                manifest("abandoned", status_reason="10 retries are used up; context deadline exceeded")
            ),
            ["logs t1 -n 40", "retry t1"],
        ),
    ],
)
def test_what_a_view_offers(action: NextAction, commands: list[str]) -> None:
    assert [step.command.removeprefix("holdfast ") for step in action.choices] == commands


def test_a_recorded_failure_decides_while_it_is_the_one_that_stopped_the_task() -> None:
    scope = failed_with("fix_scope", "it changed x")
    assert for_manifest(manifest("failed"), failure=scope).name == "fix_scope"
    for status in ("interrupted", "abandoned"):
        stopped = manifest(status, status_reason="any text", status_cause="failure")
        assert for_manifest(stopped, failure=scope).name == "fix_scope"
    # A question that quotes the failure is still a question.
    other = manifest("interrupted", status_reason="it changed x: is that right?", status_cause="")
    assert for_manifest(other, failure=scope).name == "answer"
    ended = manifest("abandoned", status_reason="it changed x", status_cause="")
    assert for_manifest(ended, failure=scope).name == "read_log"
    late = manifest("abandoned", status_cause="failure", is_past_deadline=True)
    assert for_manifest(late, failure=scope).command == "holdfast retry t1 --deadline 10h"


@pytest.mark.parametrize(
    ("active_s", "longer"),
    [(0.2, "1s"), (20.01, "40s"), (90.0, "3m"), (3600.0, "2h"), (18000.4, "10h"), (None, "10h")],
)
def test_a_longer_deadline_is_twice_the_time_that_was_not_enough(active_s: float | None, longer: str) -> None:
    late = manifest("abandoned", is_past_deadline=True, active_s=active_s)
    assert for_manifest(late).command == f"holdfast retry t1 --deadline {longer}"


def test_a_hint_has_no_quotes_inside_quotes() -> None:
    action = for_manifest(manifest("interrupted", interrupt={"reason": "which?"}))
    assert hint(action.choices) == (
        "'holdfast resume t1' to answer and go on, 'holdfast stop t1' to give it up"
    )
