"""The triage of a failure: what of its stderr counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.pipeline.triage import Failure
from holdfast.runner.stage import triaging
from tests.support.bench import PIPELINE, SECRET, Bench, put

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)

Make = Callable[..., Bench]


def triaged(
    bench: Make,
    stderr: str | None = None,
    *,
    outcome: str = "failed",
    detail: str = "",
    task_id: str = "it",
) -> ev.FailureTriaged:
    task = bench(IMPL, pipeline=PIPELINE, task_id=task_id).open().start().end(1, outcome, exit_code=7)
    if stderr is not None:
        put(task.directory().stderr, stderr)
    failure = Failure(stage=IMPL.name, outcome=outcome, detail=detail)
    return triaging.triage(task.ledger, task.attempt(), failure)


@pytest.mark.parametrize(
    ("outcome", "stderr", "failure_class"),
    [
        ("failed", "sh: rg: command not found\n", "tooling"),
        ("failed", "connection refused\n", "transient"),
        ("failed", None, "unknown"),
        # The outcome is known: the words on stderr do not matter.
        ("auth", "connection refused\n", "auth"),
    ],
)
def test_stderr_decides_where_the_outcome_does_not(
    bench: Make, outcome: str, stderr: str | None, failure_class: str
) -> None:
    assert triaged(bench, stderr, outcome=outcome).failure_class == failure_class


def test_the_event_names_attempt_role_agent_and_exit_status(bench: Make) -> None:
    event = triaged(bench)
    assert (event.attempt, event.role, event.agent, event.exit_code) == (1, "impl", "codex", 7)


def test_the_same_failure_of_two_tasks_has_one_signature(bench: Make) -> None:
    first, second = (
        triaged(bench, f"{task_id}: broken\n", task_id=task_id) for task_id in ("first-task", "second-task")
    )
    assert first.signature == second.signature


def lines(first: int, last: int) -> str:
    return "\n".join(f"line {number}" for number in range(first, last + 1))


@pytest.mark.parametrize(
    ("stderr", "excerpt"),
    [
        (None, ""),
        ("", ""),
        (lines(1, 40), lines(1, 40)),
        (lines(1, 41), f"{lines(1, 20)}\n[…]\n{lines(22, 41)}"),
        # Longer than the two ends that are read.
        (lines(1, 9000), f"{lines(1, 20)}\n[…]\n{lines(8981, 9000)}"),
        (f"bad key {SECRET}\n", "bad key ***"),
        (f"{SECRET}\n{lines(1, 9000)}\n{SECRET}\n", f"***\n{lines(1, 19)}\n[…]\n{lines(8982, 9000)}\n***"),
    ],
    ids=["none", "empty", "short", "a line more", "long", "secret", "long with secrets"],
)
def test_the_excerpt_has_both_ends_of_stderr_without_secrets(
    bench: Make, stderr: str | None, excerpt: str
) -> None:
    assert triaged(bench, stderr).excerpt == excerpt


def test_a_secret_across_the_edge_of_what_is_read_does_not_show(bench: Make) -> None:
    """With any number of bytes before it, no part of the secret is left."""
    for before in range(8192 - len(SECRET) // 2, 8192 + 4096, 397):
        log = "x" * before + SECRET + "y" * 40_000 + SECRET + "x" * before
        assert set(triaged(bench, log, task_id=f"t{before}").excerpt) <= set("xy*\n"), before


def test_detail_and_excerpt_are_bounded(bench: Make) -> None:
    event = triaged(bench, "x" * 24_000, detail=f"{SECRET} " + "d" * 5000)
    assert (event.detail, event.excerpt) == ("*** " + "d" * 996, "x" * 20_000)
