"""The log of a task with what its journal adds."""

from __future__ import annotations

from typing import Any

from holdfast.model import agent_events as ev
from holdfast.model import readable
from holdfast.model.events import encode
from holdfast.views.text.narration import Narration

CALL = ev.AgentToolStarted(tool_id="a", name="Bash", summary="pytest -q")


def journal(*events: tuple[int, ev.AgentEvent]) -> list[dict[str, Any]]:
    return [encode(event.place(1, 0), f"2026-01-31T12:00:{at:02d}.000Z") for at, event in events]


def told(events: list[dict[str, Any]], *log: str) -> list[str]:
    narration = Narration()
    narration.add(events)
    return narration.tell(log)


def test_a_tool_has_its_time_and_the_beginning_of_its_result() -> None:
    done = ev.AgentToolFinished(tool_id="a", result="one\n\ntwo\nthree\nfour\nfive\n")
    lines = told(journal((0, CALL), (3, done)), "[tool] Bash pytest -q")
    assert lines == ["[tool] Bash pytest -q", "  → 3.0s: one", "    two", "    three", "    … 2 more lines"]


def test_the_order_is_that_of_the_events_and_plain_output_stays() -> None:
    done = ev.AgentToolFinished(tool_id="a", is_error=True, result="no such file")
    events = journal(
        (0, ev.AgentText(text="I run it.\nNow.")), (1, CALL), (2, done), (3, ev.AgentText(text="Oh."))
    )
    log = ["noise", "I run it.", "Now.", "[tool] Bash pytest -q", "noise", "[tool failed]", "Oh."]
    assert told(events, *log) == [
        "noise", "I run it.", "Now.", "[tool] Bash pytest -q", "noise",
        "  → failed after 1.0s: no such file", "Oh.",
    ]  # fmt: skip


def test_tools_at_the_same_time_have_names() -> None:
    other = ev.AgentToolStarted(tool_id="b", name="Read", summary="x.py")
    events = journal(
        (0, CALL), (1, other), (5, ev.AgentToolFinished(tool_id="a")), (6, ev.AgentToolFinished(tool_id="b"))
    )
    log = [line for event in (CALL, other) for line in readable.lines(event)]
    assert told(events, *log) == [*log, "  → Bash 5.0s", "  → 5.0s"]


def test_the_result_has_tokens_and_cost() -> None:
    used = ev.AgentUsage(input_tokens=12_300, output_tokens=950, cost_usd=1.2, cumulative=True)
    events = journal((0, used), (1, ev.AgentResult(is_error=False, subtype="success")))
    assert told(events, "[result: ok success]") == [
        "[result: ok success]",
        "  → 12.3k tokens in, 950 out, cost $1.20",
    ]


def test_events_may_come_before_their_lines_and_in_pieces() -> None:
    narration = Narration()
    narration.add(journal((0, CALL), (2, ev.AgentToolFinished(tool_id="a", result="ok"))))
    assert narration.tell([]) == []
    assert narration.tell(["[tool] Bash pytest -q"]) == ["[tool] Bash pytest -q", "  → 2.0s: ok"]


def test_an_event_that_the_log_leaves_out_holds_nothing_up() -> None:
    narration = Narration()
    narration.add(journal((0, ev.AgentText(text="left out"))))
    narration.add(journal((1, CALL), (2, ev.AgentToolFinished(tool_id="a", result="ok"))))
    assert narration.tell(["[tool] Bash pytest -q"]) == ["[tool] Bash pytest -q", "  → 1.0s: ok"]
    narration.add(journal((3, CALL), (5, ev.AgentToolFinished(tool_id="a", result="later"))))
    lines = [line for _ in range(25) for line in narration.tell([])]
    assert lines == ["  → 2.0s: later"]


def test_control_characters_of_a_result_are_not_shown() -> None:
    done = ev.AgentToolFinished(tool_id="a", result="\x1b[2Jgone")
    assert told(journal((0, CALL), (1, done)), "[tool] Bash pytest -q")[1] == "  → 1.0s: gone"


def test_another_version_and_damage_are_skipped() -> None:
    odd: list[dict[str, Any]] = [{}, {"type": "agent.tool_finished"}, {"type": "agent.of_tomorrow"}]
    assert told(odd, "line") == ["line"]
