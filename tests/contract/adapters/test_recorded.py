"""For each of the six: a recorded run is read as its label says, and no damage makes a success."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agents import registry
from holdfast.agents.replay import replay
from holdfast.model.outcome import SUCCESS
from tests.contract.adapters import recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    Lines = list[dict[str, Any]]

RUNS = {agent: recorded.runs(agent) for agent in recorded.AGENTS}
#: A run of each that ended well.
WHOLE = {
    "claude": "text",
    "codex": "text",
    "copilot": "text",
    "gemini": "write_yolo",
    "opencode": "text",
    "pi": "new-text",
}


def _opencode_ended_well(lines: Lines) -> bool:
    """Its last step ended the run, normally or by a rejection."""
    reason, rejected = "", False
    for line in lines:
        match line:
            case {"type": "step_start"}:
                reason, rejected = "", False
            case {"type": "tool_use", "part": {"state": {"error": str(error)}}}:
                rejected = rejected or "rejected" in error
            case {"type": "step_finish", "part": {"reason": str(reason)}}:
                pass
            case _:
                pass
    return reason == "stop" or (reason == "tool-calls" and rejected)


def _pi_ended_well(lines: Lines) -> bool:
    """The last of the lines that begin and end runs ends one."""
    last = False
    for line in lines:
        if line.get("type") in ("agent_start", "auto_retry_start"):
            last = False
        elif line.get("type") in ("agent_end", "agent_settled"):
            last = last if line.get("willRetry") else True
    return last


#: Whether the lines that can be read at all say that it ended well.
SAYS_SUCCESS: dict[str, Callable[[Lines], bool]] = {
    "claude": lambda lines: any(
        line.get("type") == "result" and line.get("is_error") is False for line in lines
    ),
    "codex": lambda lines: any(line.get("type") == "turn.completed" for line in lines),
    "copilot": lambda lines: any(
        line.get("type") == "result" and line.get("exitCode") == 0 for line in lines
    ),
    "gemini": lambda lines: any(
        line.get("type") == "result" and line.get("status") == "success" for line in lines
    ),
    "opencode": _opencode_ended_well,
    "pi": _pi_ended_well,
}


def _was_all_over(agent: str, stdout: bytes, exit: int) -> bool:
    """Whether its last event counts regardless of how the process ended."""
    if agent == "pi":
        return b"agent_settled" in stdout
    return agent in ("copilot", "gemini") and exit < 0


of_each_agent = pytest.mark.parametrize("agent", recorded.AGENTS)


@pytest.mark.req("OUT-10", "W-C4", "RES-1", "OUT-8")
@pytest.mark.parametrize("run", [run for runs in RUNS.values() for run in runs], ids=str)
def test_a_recorded_run_is_read_as_labelled(run: recorded.Recorded) -> None:
    found = replay(registry.adapter(run.agent), run.stdout, run.stderr, run.exit)
    label = {name: run.label[name] for name in recorded.FIELDS}
    if label["cost_usd"] is not None:
        label["cost_usd"] = pytest.approx(label["cost_usd"], abs=1e-9)
    assert {name: found[name] for name in recorded.FIELDS} == label


@of_each_agent
@settings(deadline=None, max_examples=150)
@given(data=st.data(), exit=recorded.EXITS)
def test_damage_never_raises_and_never_makes_a_success(
    agent: str, data: st.DataObject, exit: int | None
) -> None:
    run = data.draw(st.sampled_from(RUNS[agent]))
    stdout = data.draw(recorded.damaged(run.stdout))
    stderr = run.stderr if data.draw(st.booleans()) else ""
    found = replay(registry.adapter(agent), stdout, stderr, exit)
    assert found["outcome"] in recorded.OUTCOMES
    if found["outcome"] in SUCCESS:
        assert SAYS_SUCCESS[agent](recorded.parsed(stdout))
        assert exit in (0, None) or _was_all_over(agent, stdout, exit)


@of_each_agent
def test_a_run_cut_anywhere_is_no_success(agent: str) -> None:
    whole = recorded.run(f"{agent}/{WHOLE[agent]}").stdout
    adapter = registry.adapter(agent)
    assert replay(adapter, whole, "", 0)["outcome"] in SUCCESS
    last_word = max(end for end in range(len(whole)) if not SAYS_SUCCESS[agent](recorded.parsed(whole[:end])))
    for end in range(0, last_word, 7):
        assert replay(adapter, whole[:end], "", 0)["outcome"] not in SUCCESS


_KEYS = st.sampled_from(
    [
        "type",
        "part",
        "error",
        "state",
        "data",
        "sessionID",
        "text",
        "message",
        "usage",
        "role",
        "id",
        "args",
        "content",
        "result",
    ]
)
_JSON = st.recursive(
    st.none() | st.text() | st.floats(),
    lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner),
).map(lambda data: json.dumps(data).encode())


@of_each_agent
@settings(deadline=None, max_examples=150)
@given(
    lines=st.lists(st.binary(max_size=300) | _JSON | st.sampled_from(recorded.HOSTILE)), exit=recorded.EXITS
)
def test_any_line_can_come(agent: str, lines: list[bytes], exit: int | None) -> None:
    assert replay(registry.adapter(agent), b"\n".join(lines) + b"\n", "", exit)["outcome"] not in SUCCESS


@pytest.mark.parametrize("agent", recorded.AGENTS)
def test_pieces_change_no_event_but_the_last_words(agent: str) -> None:
    """In a long backlog they are skipped, wherever they occur."""
    adapter = registry.adapter(agent)
    pieces = tuple(piece.encode() for piece in adapter.capabilities.pieces)
    for run in RUNS[agent]:
        with_them, without = adapter.reader(), adapter.reader()
        for line in run.stdout.split(b"\n"):
            found = with_them.read(line)
            expected = [] if pieces and line.startswith(pieces) else without.read(line)
            assert found == expected, (run, line[:100])


@pytest.mark.parametrize("agent", ["claude", "copilot", "pi"])
def test_pieces_are_recorded(agent: str) -> None:
    """Otherwise the program may print them in another form now, and nothing would be skipped."""
    pieces = tuple(piece.encode() for piece in registry.adapter(agent).capabilities.pieces)
    lines = [line for run in RUNS[agent] for line in run.stdout.split(b"\n")]
    assert any(line.startswith(pieces) for line in lines)
