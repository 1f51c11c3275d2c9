"""What an attempt is told: the request, the prompt of a stage, or a message to continue."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from holdfast import clock
from holdfast.errors import UnreadableFile
from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.model.status import Status
from holdfast.runner.stage import prompts
from tests.support.bench import PIPELINE, Bench, put, text_of
from tests.support.packets import PACK, brief

BRIEF = StageSpec(name="codex_brief", agent="codex", role="brief")
IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)
REVIEW = StageSpec(name="claude_review", agent="claude", role="review")
MERGED = StageSpec(name="codex_review_consolidate", agent="codex", role="review_consolidate")
FIX = StageSpec(name="codex_fix", agent="codex", role="fix", writes=True)
VERIFY = StageSpec(name="claude_verify", agent="claude", role="verify")
CLAUDE = StageSpec(name="claude_run", agent="claude")
COMMAND = StageSpec(name="command_run", agent="command")

Make = Callable[..., Bench]


def composed(task: Bench, stage: StageSpec | None = None) -> str | None:
    stage = stage or task.stage
    prompt = prompts.compose(task.ledger, stage, task.task.stage_state(stage.name))
    return None if prompt is None else prompt.decode()


# ── a plain run ──


@pytest.mark.parametrize(
    ("stage", "passed", "is_told"),
    [(CLAUDE, None, False), (CLAUDE, True, False), (CLAUDE, False, True), (COMMAND, False, False)],
)
def test_the_prompt_of_a_plain_run_is_the_request_after_checks_that_failed_before_it(
    bench: Make, stage: StageSpec, passed: bool | None, is_told: bool
) -> None:
    task = bench(stage, prompt="fix it\n")
    if passed is not None:
        task.tell(ev.PreWorkChecked(stage=stage.name, passed=passed, reasons=("make test: exit 2",)))
    told = "Before you began, these checks of the repository failed:\n- make test: exit 2\n\n"
    assert composed(task) == (told if is_told else "") + "fix it\n"


def test_a_command_without_a_request_has_no_prompt(bench: Make) -> None:
    assert composed(bench(COMMAND)) is None


# ── a stage ──


def refused(task: Bench, stage: StageSpec) -> None:
    task.tell(
        ev.GateJudged(stage=stage.name, attempt=1, passed=False, failed="patch", reasons=("no change",))
    )


def sent_back(task: Bench, stage: StageSpec) -> None:
    task.tell(
        ev.RepairPlanned(
            stage=stage.name, after=1, failed_stage=VERIFY.name, number=1, reasons=("make test: exit 2",),
            evidence="1 failed",
        )
    )  # fmt: skip


def answered(task: Bench, stage: StageSpec) -> None:
    task.move(Status.INTERRUPTED, interrupt="which?").move(Status.SPAWNING, answer="the second one")


def ran_and_answered(task: Bench, stage: StageSpec) -> None:
    task.ran(1, "crashed")
    answered(task, stage)


@pytest.mark.parametrize(
    ("past", "told", "not_told"),
    [
        (None, (), ("did not pass", "A person answered")),
        (refused, ("did not pass the check", "- no change"), ()),
        (sent_back, ("- make test: exit 2", "1 failed", "claude_verify.artifact.md"), ()),
        (answered, ("A person answered:\n\nthe second one",), ()),
        # The message to a session that continues has it.
        (ran_and_answered, (), ("A person answered",)),
    ],
)
def test_the_prompt_of_a_stage_has_the_reasons_for_which_it_runs_again(
    bench: Make,
    past: Callable[[Bench, StageSpec], None] | None,
    told: tuple[str, ...],
    not_told: tuple[str, ...],
) -> None:
    task = bench(IMPL, VERIFY, pipeline=PIPELINE, prompt="fix it\n")
    if past is not None:
        past(task, IMPL)
    prompt = composed(task) or ""
    assert "Goal: the goal" in prompt
    assert "fix it" in prompt
    assert [part for part in told if part not in prompt] == []
    assert [part for part in not_told if part in prompt] == []
    assert text_of(task.packet.prompt("codex", "impl")) == prompt, "the packet has a copy"


@pytest.mark.parametrize(
    ("stage", "attached"),
    [
        (BRIEF, set[str]()),
        (IMPL, set[str]()),
        (REVIEW, {"report of codex_impl", "the patch", "checks of codex_impl"}),
        (
            MERGED,
            {
                "report of codex_brief",
                "report of codex_impl",
                "report of claude_review",
                "the patch",
                "checks of codex_impl",
                "_findings.md",
            },
        ),
        (FIX, {"report of codex_review_consolidate", "_findings.md"}),
        (VERIFY, {"report of codex_impl", "report of codex_fix", "the patch", "checks of codex_impl"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_stage_gets_the_reports_and_results_that_its_role_reads(
    bench: Make, stage: StageSpec, attached: set[str]
) -> None:
    stages = (BRIEF, IMPL, REVIEW, MERGED, FIX, VERIFY)
    task = bench(*stages, pipeline=PIPELINE, prompt="fix it\n")
    for number, earlier in enumerate(stages[: stages.index(stage)], start=1):
        task.finish(earlier.name, number)
    # The reports of later stages are left from an earlier run.
    for each in stages:
        put(task.packet.output(each.name, each.agent, "out"), f"report of {each.name}\n")
    put(task.packet.artifact(IMPL.name), "checks of codex_impl\n")
    put(task.packet.changes, "the patch\n")
    prompt = composed(task, stage) or ""
    known = {f"report of {each.name}\n" for each in stages}
    known |= {"the patch\n", "checks of codex_impl\n", "BEGIN attachment _findings.md"}
    found = {text.strip().removeprefix("BEGIN attachment ") for text in known if text in prompt}
    assert found == attached


def test_the_report_of_a_stage_that_is_not_done_is_not_attached(bench: Make) -> None:
    task = bench(IMPL, REVIEW, pipeline=PIPELINE, prompt="fix it\n")
    put(task.packet.output(IMPL.name, "codex", "out"), "half a report")
    assert "half a report" not in (composed(task, REVIEW) or "")


def test_after_a_prompt_that_was_too_long_the_context_is_a_digest(bench: Make) -> None:
    task = bench(IMPL, pipeline=PIPELINE, prompt="fix it\n")
    put(task.packet.context_pack, PACK + "\n".join(f"line {number}" for number in range(300)))
    assert "line 250\n" in (composed(task) or "")
    task.ran(1, "context_too_long")
    assert "line 250\n" not in (composed(task) or "")


# ── an attempt that continues ──


@pytest.mark.parametrize(
    ("mode", "begin", "has_request"),
    [
        ("fresh", "the request", True),
        ("again", "the request", True),
        ("resume", "Your process ended before the task was finished (crashed).", False),
        ("briefing", "An earlier session worked on this task", True),
    ],
)
def test_the_text_for_each_mode(bench: Make, mode: str, begin: str, has_request: bool) -> None:
    task = bench(CLAUDE).ran(1, "crashed", session_id="S")
    text = (prompts.for_mode(task.ledger, task.state, mode, b"the request") or b"").decode()
    assert text.startswith(begin)
    assert ("the request" in text) == has_request


def test_the_users_own_session_gets_the_request_itself(bench: Make) -> None:
    task = bench(CLAUDE, session="mine")
    assert prompts.for_mode(task.ledger, task.state, "resume", b"the request") == b"the request"


def test_a_command_without_a_prompt_gets_none_in_any_mode(bench: Make) -> None:
    task = bench(COMMAND).ran(1, "crashed")
    assert [prompts.for_mode(task.ledger, task.state, mode, None) for mode in ("again", "resume")] == [
        None
    ] * 2


@pytest.mark.parametrize(("judged", "is_told"), [(2, True), (1, False)])
def test_a_session_is_told_of_a_refusal_once(bench: Make, judged: int, is_told: bool) -> None:
    """The attempt after the refused one was told; if it crashes, the next one is told of the crash."""
    task = (
        bench(IMPL, pipeline=PIPELINE).ran(1, session_id="S").ran(2, "crashed", mode="resume", session_id="S")
    )
    task.tell(
        ev.GateJudged(stage=IMPL.name, attempt=judged, passed=False, failed="patch", reasons=("no change",))
    )
    text = (prompts.for_mode(task.ledger, task.state, "resume", b"p") or b"").decode()
    assert ("- no change" in text) == is_told
    assert ("Your process ended" in text) != is_told


def test_files_changed_since_the_last_attempt_started_are_named(bench: Make, tmp_path: object) -> None:
    task = bench(CLAUDE, project_dir=str(tmp_path))
    before, after = put(f"{tmp_path}/before.txt", ""), put(f"{tmp_path}/sub/after.txt", "")
    assert prompts.changed_files(task.ledger, task.state) == (), "no attempt yet"
    began = clock.now() - 1000.0
    os.utime(before, (began - 10, began - 10))
    os.utime(after, (began + 10, began + 10))
    task.open().start(at=began).end(1, "crashed")
    assert prompts.changed_files(task.ledger, task.state) == ("sub/after.txt",)


# ── the system prompt ──


OPENED = ev.AttemptOpened(attempt=1, attempt_id="ses_1", stage="claude_run", agent="claude", mode="fresh")


@pytest.mark.parametrize(
    ("of_task", "of_stage", "bootstrap", "text"),
    [
        (None, None, None, ""),
        ("task.md", None, None, "text of task.md"),
        ("task.md", None, "own.md", "text of own.md\n\ntext of task.md"),
        ("task.md", "stage.md", "own.md", "text of own.md\n\ntext of stage.md"),
    ],
)
def test_the_system_prompt_has_the_bootstrap_and_then_the_file(
    bench: Make, tmp_path: object, of_task: str | None, of_stage: str | None, bootstrap: str | None, text: str
) -> None:
    def path(name: str | None) -> str | None:
        return None if name is None else put(f"{tmp_path}/{name}", f"text of {name}")

    def options(name: str | None) -> dict[str, object]:
        return {} if name is None else {"system_prompt_path": path(name)}

    task = bench(
        CLAUDE.evolve(options=options(of_stage)), options=options(of_task), bootstrap=path(bootstrap)
    )
    assert prompts.system_prompt(task.ledger, task.stage, OPENED).decode() == text


def test_a_system_prompt_that_cannot_be_read_is_an_error_that_names_it(bench: Make, tmp_path: object) -> None:
    task = bench(CLAUDE, options={"system_prompt_path": f"{tmp_path}/none.md"})
    with pytest.raises(UnreadableFile, match=r"none\.md: No such file"):
        prompts.system_prompt(task.ledger, task.stage, OPENED)


# ── the hand-off ──


def test_a_brief_hands_over_its_context_pack_and_its_commands_once(bench: Make) -> None:
    task = bench(BRIEF, IMPL, pipeline=PIPELINE).ran()
    put(task.packet.output(BRIEF.name, "codex", "out"), brief("make test"))
    prompts.hand_off(task.ledger, BRIEF, task.attempt())
    assert task.recorded().script == "make test\n"
    assert "said by the brief" in (text_of(task.packet.context_pack) or "")
    assert text_of(task.packet.commands_override) == "make test\n"
    length = task.ledger.journal_bytes
    prompts.hand_off(task.ledger, BRIEF, task.attempt())
    assert task.ledger.journal_bytes == length, "a kill in between costs no second event"


def test_a_brief_without_commands_withdraws_those_of_the_brief_before_it(bench: Make) -> None:
    task = bench(BRIEF, IMPL, pipeline=PIPELINE).ran().tell(ev.HandoffMade(stage=BRIEF.name, script="old\n"))
    put(task.packet.commands_override, "old\n")
    put(task.packet.output(BRIEF.name, "codex", "out"), brief())
    prompts.hand_off(task.ledger, BRIEF, task.attempt())
    assert task.recorded().script is None
    assert text_of(task.packet.commands_override) is None


@pytest.mark.parametrize(("stage", "has_findings"), [(REVIEW, True), (IMPL, False)])
def test_a_review_hands_over_its_findings(bench: Make, stage: StageSpec, has_findings: bool) -> None:
    task = bench(stage, pipeline=PIPELINE).ran()
    put(task.packet.output(stage.name, stage.agent, "out"), "## Findings\n\n- [major] a.py:1: wrong\n")
    prompts.hand_off(task.ledger, stage, task.attempt())
    assert ("wrong" in (text_of(task.packet.findings) or "")) == has_findings
