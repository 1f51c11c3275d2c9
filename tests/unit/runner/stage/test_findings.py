"""The merged findings: which reports they come from."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.runner.stage import findings
from tests.support.bench import PIPELINE, SECRET, Bench, put, text_of

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)
FIRST = StageSpec(name="claude_review", agent="claude", role="review")
SECOND = StageSpec(name="gemini_security_review", agent="gemini", role="security_review")
MERGED = StageSpec(name="codex_review_consolidate", agent="codex", role="review_consolidate")

Make = Callable[..., Bench]


@pytest.fixture
def reviewed(bench: Make) -> Bench:
    """A task in which every stage has left a report, and only the first is done."""
    task = bench(IMPL, FIRST, SECOND, MERGED, pipeline=PIPELINE).finish(IMPL.name)
    for stage in task.task.spec.stages:
        report(task, stage.name, stage.agent, f"[major] a.py:1: found by {stage.agent}")
    return task


def report(task: Bench, stage: str, agent: str, finding: str) -> None:
    put(task.packet.output(stage, agent, "out"), f"## Findings\n\n- {finding}\n")


def done(task: Bench, *stages: StageSpec) -> Bench:
    for number, stage in enumerate(stages, start=2):
        task.finish(stage.name, number)
    return task


@pytest.mark.parametrize(
    ("stages", "passed", "agents"),
    [
        ((), None, None),
        # The report of an implementation has none.
        ((), IMPL.name, None),
        ((FIRST,), None, ("claude",)),
        # It passed its gate, and is marked next.
        ((FIRST,), SECOND.name, ("claude", "gemini")),
        ((SECOND,), None, ("gemini",)),
        # The consolidation replaces what it read.
        ((FIRST, SECOND), MERGED.name, ("codex",)),
        ((FIRST, SECOND, MERGED), None, ("codex",)),
    ],
)
def test_the_findings_are_those_of_reviews_that_are_done(
    reviewed: Bench, stages: tuple[StageSpec, ...], passed: str | None, agents: tuple[str, ...] | None
) -> None:
    text = findings.text(done(reviewed, *stages).ledger, passed=passed)
    if agents is None:
        assert text is None
    else:
        assert text is not None
        names = ("codex", "claude", "gemini")
        assert {name for name in names if f"found by {name}" in text} == set(agents)


def test_the_report_is_that_of_the_agent_that_took_over(reviewed: Bench) -> None:
    reviewed.tell(ev.AgentSwitched(stage=FIRST.name, old="claude", new="pi", reason="quota"))
    report(reviewed, FIRST.name, "pi", "[minor] b.py:2: by its successor")
    text = findings.text(done(reviewed, FIRST).ledger) or ""
    assert "by its successor" in text
    assert "found by claude" not in text


def test_a_review_without_a_report_counts_as_a_reviewer(bench: Make) -> None:
    task = bench(FIRST, pipeline=PIPELINE).finish(FIRST.name)
    assert findings.text(task.ledger) == "# Findings\n\nNone. (Reviewers: claude_review)\n"


def test_the_file_has_no_secrets(reviewed: Bench) -> None:
    report(reviewed, FIRST.name, "claude", f"[major] a.py:1: the key is {SECRET}")
    findings.write(reviewed.ledger, FIRST.name)
    text = text_of(reviewed.packet.findings) or ""
    assert "the key is ***" in text


def test_without_a_review_no_file_is_written(reviewed: Bench) -> None:
    findings.write(reviewed.ledger, IMPL.name)
    assert text_of(reviewed.packet.findings) is None
