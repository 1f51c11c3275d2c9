"""The summary: at most 80 lines for any task, with the conclusion and the next action first."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import clock
from holdfast.model import events as ev
from holdfast.model.fold import apply
from holdfast.model.next_action import NextAction, Suggestion
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.model.status import Status
from holdfast.model.task import Task
from holdfast.pipeline.results.summary import render
from holdfast.pipeline.results.summary_facts import FailureView, StageLine, SummaryView, view_of
from holdfast.pipeline.triage import FailureClass

ACTION = NextAction(
    name="fix_scope",
    why="it strayed",
    steps=(
        Suggestion(command="holdfast diff t1", does="see what it changed"),
        Suggestion(command="holdfast retry t1", does="go on"),
    ),
)
FAILURE = FailureView(
    stage="codex_impl",
    failure_class="scope_violation",
    signature="0f1e2d3c4b5a6978",
    exit_code=1,
    gate_failed="scope",
    gate_reasons=("docs/x.md is outside scope.allow",),
    suggested_actions=("look",),
    excerpt="\n".join(f"err {number}" for number in range(1, 101)),
)


def view(**facts: object) -> SummaryView:
    base: dict[str, object] = {
        "task_id": "t1",
        "task_name": "fix the door",
        "status": "failed",
        "reason": "the gate of codex_impl did not pass",
        "action": ACTION,
        "paid_calls": 3,
        "paid_call_budget": 10,
    }
    return SummaryView(**{**base, **facts})  # type: ignore[arg-type]


def stage(number: int, state: str = "failed", **facts: object) -> StageLine:
    base: dict[str, object] = {"name": f"codex_{number}", "state": state, "agent": "codex", "role": "impl"}
    return StageLine(**{**base, "exit_code": 1, "worked_s": 12.5, **facts})  # type: ignore[arg-type]


def section(text: str, heading: str) -> list[str]:
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith(f"## {heading}"))
    end = next((n for n in range(at + 1, len(lines)) if lines[n].startswith("## ")), len(lines))
    return lines[at:end]


# ── shape ──


@pytest.mark.req("CON-3", "GAT-10")
def test_the_conclusion_and_the_next_action_come_first() -> None:
    lines = render(view(stages=(stage(1),), failure=FAILURE)).splitlines()
    assert lines[0] == "# fix the door: failed"
    assert lines[2].startswith("The task failed")
    assert "did not pass" in lines[2]
    assert lines[4] == "- next_action: **fix_scope** (it strayed)"
    assert lines[5:7] == ["- command: `holdfast diff t1`", "- then: `holdfast retry t1`"]
    assert lines[7] == "- error: scope_violation, signature `0f1e2d3c4b5a6978`, in codex_impl"


@pytest.mark.req("CON-2", "CON-3", "GAT-10")
def test_stages_failure_and_budgets_have_their_sections() -> None:
    done = stage(1, "done", exit_code=0, outcome="success", output_lines=42)
    bad = stage(2, failure_class="scope_violation", signature="0f1e2d3c4b5a6978", attempts=2)
    text = render(
        view(stages=(done, bad, stage(3, "pending", exit_code=None, worked_s=0.0)), failure=FAILURE)
    )
    stages = section(text, "Stages")
    assert "### codex_1 (codex/impl) — done" in stages
    assert "exit 0, 12.5s, success, 42 lines of output" in stages
    assert "exit 1, 12.5s, 2 attempts, scope_violation `0f1e2d3c4b5a6978`" in stages
    assert stages[-2:] == ["nothing yet", ""]
    said = json.loads(section(text, "Last Failure")[3])
    assert (said["class"], said["signature"], said["gate_result"]) == (
        "scope_violation",
        "0f1e2d3c4b5a6978",
        "scope",
    )
    assert said["suggested_actions"] == ["look"]
    assert "- docs/x.md is outside scope.allow" in text
    assert "- paid calls: 3 of 10" in section(text, "Budgets")


@pytest.mark.req("CON-2")
def test_of_stderr_only_the_first_and_last_twenty_lines_are_shown() -> None:
    text = render(view(failure=FAILURE))
    shown = re.findall(r"^err (\d+)$", text, re.MULTILINE)
    assert shown == [str(number) for number in (*range(1, 21), *range(81, 101))]
    assert "… 60 lines left out …" in text


def test_a_short_stderr_is_shown_whole() -> None:
    text = render(view(failure=FAILURE.evolve(excerpt="one\ntwo\n")))
    assert section(text, "Last Failure")[-4:] == ["```", "one", "two", "```"]


def test_what_is_unknown_is_not_zero() -> None:
    text = render(view())
    assert "- tokens: unknown; cost: unknown" in text
    text = render(view(input_tokens=10, output_tokens=5, cost_usd=0.5, budget_usd=2.0, budget_tokens=100))
    assert "- tokens: 10 in, 5 out of 100; cost: $0.50 of $2.00" in text


def test_a_failure_that_was_healed_does_not_look_like_the_end() -> None:
    text = render(view(status="completed", reason="", failure=FAILURE.evolve(is_healed=True)))
    assert "- error:" not in text
    assert "## Last Failure (recovered)" in text


def test_a_task_without_failure_shows_the_end_of_its_output() -> None:
    tail = "\n".join(f"line {number}" for number in range(1, 51))
    text = render(view(status="completed", reason="success", tail=tail))
    shown = [line for line in section(text, "Last output") if line.startswith("line ")]
    assert shown == [f"line {number}" for number in range(31, 51)]


# ── 80 lines ──


@pytest.mark.req("CON-2", "TST-7")
def test_six_failed_stages_fit_and_keep_the_conclusion() -> None:
    """An earlier design gave each failed stage forty lines and cut the end off."""
    text = render(view(stages=tuple(stage(n, failure_class="unknown") for n in range(6)), failure=FAILURE))
    lines = text.splitlines()
    assert len(lines) <= 80
    assert "failed" in lines[0]
    assert len([line for line in lines if "— failed" in line]) == 6
    assert "## Budgets" in lines
    assert lines[-1].startswith("```")
    assert "err 100" in lines


@pytest.mark.req("CON-2")
def test_forty_stages_have_a_line_each_or_are_counted() -> None:
    stages = tuple(stage(n, "failed" if n == 20 else "done" if n < 20 else "pending") for n in range(40))
    text = render(view(stages=stages, failure=FAILURE))
    assert len(text.splitlines()) <= 80
    assert "codex_20 (codex/impl) — failed" in text
    shown = [line for line in text.splitlines() if line.startswith("- codex_")]
    more = re.search(r"^- and (\d+) more: ", text, re.MULTILINE)
    assert more is not None
    assert len(shown) + int(more[1]) == 40
    assert "err 100" in text


def test_hostile_words_neither_break_lines_nor_close_their_block() -> None:
    evil = "a\nb\r\n```\n# heading\u2028next\x0bline\x85end `tick` \x1b[31mred"
    text = render(
        view(
            task_name=evil,
            reason=evil * 50,
            goal=evil,
            stages=(stage(1, name=evil, outcome=evil), stage(2)),
            failure=FAILURE.evolve(stage=evil, detail=evil, gate_reasons=(evil,) * 40, excerpt=evil * 50),
        )
    )
    lines = text.splitlines()
    assert len(lines) <= 80
    assert "\x1b" not in text
    fences = [line for line in lines if re.match(r"^`{3,}", line)]
    assert fences[:2] == ["```json", "```"]
    # The excerpt contains fences of three backticks; the fence around it is longer.
    assert fences[2] == fences[-1] == "````"
    assert set(fences[3:-1]) == {"```"}
    json.loads(lines[lines.index("```json") + 1])
    assert "and 33 more reasons" in text


words = st.text(max_size=400) | st.text("`\n\r#- \u2028a", max_size=400) | st.just("x" * 5000)
many = st.text(st.sampled_from("ab`\n\r\u2028\x0c"), max_size=3000)
stages_of = st.builds(
    StageLine,
    name=words,
    state=st.sampled_from(["pending", "running", "checking", "done", "failed"]) | words,
    agent=words,
    role=words,
    attempts=st.integers(0, 99),
    exit_code=st.none() | st.integers(0, 255),
    worked_s=st.floats(0, 1e7),
    outcome=words,
    failure_class=words,
    signature=words,
    output_lines=st.none() | st.integers(0, 10**9),
)
failures_of = st.builds(
    FailureView,
    stage=words,
    failure_class=st.sampled_from(list(FailureClass)) | words,
    signature=words,
    outcome=words,
    detail=words,
    exit_code=st.none() | st.integers(),
    gate_failed=words,
    gate_reasons=st.lists(words, max_size=12).map(tuple),
    suggested_actions=st.lists(words, max_size=5).map(tuple),
    excerpt=many,
    is_healed=st.booleans(),
)
views_of = st.builds(
    SummaryView,
    task_id=words,
    task_name=words,
    status=st.sampled_from(list(Status)),
    reason=words,
    goal=words,
    updated_at=st.sampled_from(["", "2026-01-31T12:00:00.000Z"]),
    exit_code=st.none() | st.integers(0, 255),
    stages=st.lists(stages_of, max_size=8).map(lambda some: tuple(some) * (1 + len(some) % 9)),
    action=st.builds(
        NextAction,
        name=st.sampled_from(["none", "retry"]),
        why=words,
        steps=st.lists(st.builds(Suggestion, command=words, does=words), max_size=2).map(tuple),
    ),
    failure=st.none() | failures_of,
    paid_calls=st.none() | st.integers(0, 99),
    call_limit_s=st.none() | st.floats(0, 1e7),
    deadline_s=st.none() | st.floats(0, 1e7),
    cost_usd=st.none() | st.floats(0, 1e7),
    leftovers=words,
    tail=many,
)


@pytest.mark.req("CON-2")
@settings(max_examples=150, deadline=None)
@given(views_of)
def test_any_task_has_at_most_eighty_lines_with_the_conclusion_in_the_first_five(seen: SummaryView) -> None:
    text = render(seen)
    lines = text.splitlines()
    assert len(lines) <= 80
    assert text.count("\n") == len(lines)
    assert lines[0].endswith(f": {seen.status}")
    assert f"**{seen.action.name}**" in lines[4]
    assert max(map(len, lines)) < 2000
    assert "## Budgets" in lines
    if seen.stages:
        assert "## Stages" in lines
    if seen.failure is not None:
        assert any(line.startswith("## Last Failure") for line in lines)


# ── from a task ──


def task_of(*events: ev.Event, pipeline: bool = True, task_id: str = "t1", **fields: object) -> Task:
    names = ("gemini_brief", "codex_impl") if pipeline else ("command_run",)
    spec = TaskSpec(
        task_id=task_id,
        task_name="fix the door",
        goal="a door that closes",
        agent="codex",
        project_dir="/placeholder",
        stages=tuple(
            StageSpec(name=name, agent=name.split("_")[0], role=name.split("_")[1]) for name in names
        ),
        limits=Limits(),
        pipeline=PipelineSpec(intent="safe_impl", group="impl", profile="safe_impl") if pipeline else None,
        **fields,  # type: ignore[arg-type]
    )
    task = Task()
    apply(task, ev.TaskCreated(task_id="t1", spec=spec.to_json(), status="spawning"), clock.iso(1e9))
    for number, event in enumerate(events):
        apply(task, event, clock.iso(1e9 + number))
    return task


def attempt(number: int, stage: str, outcome: str, exit_code: int = 1) -> list[ev.Event]:
    return [
        ev.AttemptOpened(
            attempt=number, attempt_id="ses_00000000", stage=stage, agent=stage.split("_")[0], mode="fresh"
        ),
        ev.AttemptEnded(
            attempt=number,
            outcome=outcome,
            detail="",
            exit_code=exit_code,
            exit_signal=None,
            noticed_at=clock.iso(1e9),
            lived_s=62.0,
        ),
    ]


def failed(number: int, stage: str, **facts: object) -> ev.FailureTriaged:
    base: dict[str, object] = {"stage": stage, "attempt": number, "outcome": "crashed", "signature": "a" * 16}
    return ev.FailureTriaged(**{**base, "failure_class": "tooling", "excerpt": "boom", **facts})  # type: ignore[arg-type]


def moved(new: str, reason: str = "because", **facts: object) -> ev.TaskMoved:
    return ev.TaskMoved(old="running", new=new, reason=reason, **facts)  # type: ignore[arg-type]


@pytest.mark.req("CON-2", "GAT-10", "CTX-6")
def test_a_failed_pipeline_says_everything_in_its_summary() -> None:
    task = task_of(
        *attempt(1, "gemini_brief", "success", 0),
        ev.StageDone(stage="gemini_brief", attempt=1),
        *attempt(2, "codex_impl", "crashed", 127),
        failed(2, "codex_impl", agent="codex", exit_code=127),
        moved("failed"),
    )
    text = render(view_of(task, tail="the tail"))
    assert text.startswith("# fix the door: failed\n\nThe task failed (1 of 2 stages done): because\n")
    assert "- next_action: **install_tool**" in text
    assert "- command: `holdfast agent probe codex`" in text
    assert "- then: `holdfast retry t1`" in text
    assert f"- error: tooling, signature `{'a' * 16}`, in codex_impl" in text
    assert "### gemini_brief (gemini/brief) — done\nexit 0, 1m02s, success" in text
    assert f"### codex_impl (codex/impl) — failed\nexit 127, 1m02s, crashed, tooling `{'a' * 16}`" in text
    assert "\nboom\n" in text
    assert "- paid calls: " in text


def test_the_outcome_of_a_stage_whose_work_was_refused_is_not_success() -> None:
    task = task_of(
        *attempt(1, "gemini_brief", "success", 0),
        ev.GateJudged(stage="gemini_brief", attempt=1, passed=False, failed="acceptance"),
        moved("failed"),
    )
    text = render(view_of(task))
    assert "### gemini_brief (gemini/brief) — failed\nexit 0, 1m02s, refused by its gate\n" in text


@pytest.mark.parametrize("findings", [{}, {"minor": 1}])
def test_findings_that_are_no_objection_are_offered_to_be_read(findings: dict[str, int]) -> None:
    task = task_of(
        *attempt(1, "gemini_brief", "success", 0),
        ev.GateJudged(stage="gemini_brief", attempt=1, passed=True, findings=findings),
        moved("completed"),
    )
    commands = [step.command for step in view_of(task).action.choices]
    assert ("holdfast show t1 --findings" in commands) == bool(findings)


@pytest.mark.parametrize("labels", [{}, {"fan-out": "f1"}])
def test_the_work_of_an_item_is_its_fan_outs_to_merge(labels: dict[str, str]) -> None:
    """Whether it was left out is decided after this summary was written."""
    ended = (*attempt(1, "command_run", "success", 0), moved("completed"))
    where = {"workspace": "worktree", "labels": labels, "parent": "f1"}
    task = task_of(*ended, pipeline=False, task_id="f1.a", **where)
    text = render(view_of(task, has_changes=True))
    if labels:
        assert "- next_action: **read_diff** (its fan-out f1 merges its work, or leaves it out)" in text
        assert "- command: `holdfast show f1`\n- then: `holdfast diff f1.a`" in text
    assert ("holdfast apply" in text) == (not labels)


def test_a_failure_that_a_later_attempt_overcame_is_reported_as_such() -> None:
    task = task_of(
        *attempt(1, "gemini_brief", "crashed"),
        failed(1, "gemini_brief"),
        *attempt(2, "gemini_brief", "success", 0),
        ev.StageDone(stage="gemini_brief", attempt=2),
        *attempt(3, "codex_impl", "success", 0),
        ev.StageDone(stage="codex_impl", attempt=3),
        moved("completed", ""),
    )
    seen = view_of(task, has_changes=True)
    assert seen.action.name == "read_diff"
    assert seen.failure is not None
    assert seen.failure.is_healed
    assert [line.failure_class for line in seen.stages] == ["", ""]


def test_during_a_retry_the_failure_is_not_the_state_of_the_task() -> None:
    opened, _ = attempt(2, "gemini_brief", "success")
    task = task_of(
        *attempt(1, "gemini_brief", "crashed"), failed(1, "gemini_brief"), opened, moved("running")
    )
    seen = view_of(task)
    assert seen.action.name == "wait"
    assert "- error:" not in render(seen)
    assert [(line.state, line.failure_class) for line in seen.stages] == [("running", ""), ("pending", "")]


def test_a_stage_that_could_not_start_is_the_one_that_failed() -> None:
    task = task_of(failed(0, "gemini_brief", outcome="compose_failed"), moved("failed"))
    seen = view_of(task)
    assert [line.state for line in seen.stages] == ["failed", "pending"]
    assert seen.action.name == "fix_setup"


@pytest.mark.parametrize(
    ("outcome", "status", "name"),
    [
        ("auth", "interrupted", "login"),
        ("failed", "failed", "read_log"),
        ("network", "abandoned", "retry"),
        ("max_budget", "interrupted", "raise_budget"),
        ("success", "completed", "none"),
    ],
)
def test_a_plain_run_is_understood_by_its_last_outcome(outcome: str, status: str, name: str) -> None:
    code = 0 if outcome == "success" else 3
    task = task_of(*attempt(1, "command_run", outcome, code), moved(status), pipeline=False)
    seen = view_of(task, tail="hello", login="codex login")
    assert seen.action.name == name
    text = render(seen)
    assert text.endswith("## Last output\n\n```\nhello\n```\n")
    assert f"- exit code: {code}" in text
    assert "- paid calls" not in text


def test_a_person_who_interrupts_is_asked_for_the_answer() -> None:
    opened, ended = attempt(1, "command_run", "interrupted")
    stop = ev.StopIntended(attempt=1, intent="interrupt", reason="which door?")
    task = task_of(opened, stop, ended, moved("interrupted", interrupt="which door?"), pipeline=False)
    assert view_of(task).action.name == "answer"
    assert "which door?" in render(view_of(task))


def test_a_question_and_its_answer_are_told_apart() -> None:
    seen = view_of(task_of(pipeline=False)).evolve(answers=(("it names none", "none, resumed by ada@host"),))
    assert "- asked: it names none (answer: none, resumed by ada@host)" in render(seen)
