"""Whether an attempt left a session that can be resumed, for each program, as observed with the real
programs."""

from __future__ import annotations

import pytest

from holdfast.agents import registry
from holdfast.agents.base import End
from holdfast.agents.replay import exit_of, fold, replay
from holdfast.model.outcome import NEEDS_FRESH_SESSION, SUCCESS
from tests.contract.adapters import recorded

RUNS = {run.name: run for agent in recorded.AGENTS for run in recorded.runs(agent)}
#: A first turn that failed (Gemini), or that was cut off before its first answer was complete (Pi).
NOTHING_KEPT = frozenset(
    [
        "gemini/e400", "gemini/e401", "gemini/e429", "gemini/e503", "gemini/err_first",
        "pi/old-kill-midstream", "pi/old-TERM-midstream", "pi/new-INT-midstream", "pi/new-sid-kill",
    ]
)  # fmt: skip


def _resumable(name: str, *, mode: str = "fresh") -> bool:
    run = RUNS[name]
    adapter = registry.adapter(name.partition("/")[0])
    attempt = fold(adapter, run.stdout, run.stderr)
    attempt.mode = mode
    return adapter.classify(End(exit=exit_of(run.exit), stderr_tail=run.stderr[-4096:]), attempt).resumable


@pytest.mark.parametrize("name", sorted(name for name in RUNS if RUNS[name].stdout))
def test_only_these_runs_left_nothing(name: str) -> None:
    agent, run = name.partition("/")[0], RUNS[name]
    found = replay(registry.adapter(agent), run.stdout, run.stderr, run.exit)
    if found["outcome"] in SUCCESS | NEEDS_FRESH_SESSION:
        return
    mode = "resume" if "resume" in name else "fresh"
    assert _resumable(name, mode=mode) == (name not in NOTHING_KEPT)


@pytest.mark.parametrize("name", sorted(NOTHING_KEPT))
def test_the_same_end_of_a_resumed_attempt_leaves_the_session(name: str) -> None:
    assert _resumable(name, mode="resume")


@pytest.mark.parametrize("agent", ["claude", "copilot", "gemini", "pi"])
@pytest.mark.parametrize("exit", [-9, -15, 1, 0])
def test_an_agent_without_output_has_no_session_to_resume(agent: str, exit: int) -> None:
    assert not replay(registry.adapter(agent), b"", "", exit)["resumable"]


def test_a_success_is_never_called_lost() -> None:
    for name, run in RUNS.items():
        found = replay(registry.adapter(name.partition("/")[0]), run.stdout, run.stderr, run.exit)
        assert found["resumable"] or found["outcome"] not in SUCCESS
