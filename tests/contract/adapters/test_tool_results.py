"""The results of tools, as recorded runs report them, and when a line was printed."""

from __future__ import annotations

import json

import pytest

from holdfast import clock
from holdfast.agents import registry
from holdfast.agents.shared import json_lines
from holdfast.model import events as ev
from tests.contract.adapters import recorded

NO_TOOL = (
    'Tool "no_such_tool" not found. Did you mean one of: "write_todos", "update_topic", "list_directory"?'
)


def results(name: str) -> list[str]:
    run = recorded.run(name)
    reader = registry.adapter(run.agent).reader()
    events = [event for line in run.stdout.split(b"\n") for event in reader.read(line)]
    assert all(event.is_sound() for event in events)
    return [event.result for event in events if isinstance(event, ev.AgentToolFinished)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude/badtool", ["Exit code 3\noops"]),
        ("claude/hooks", ["slept"]),
        ("codex/badtool", ["oops\n"]),
        ("gemini/multi", ["", "Command exited with code: 1", "File not found.", NO_TOOL]),
        ("copilot/shell5", ["hi\n<shellId: 0 completed with exit code 0>"]),
        ("opencode/tool", ["slept\n", "Wrote file successfully."]),
        ("pi/v15-tool", ["slept\n", "Successfully wrote to /lab/projv15/stub_out.txt"]),
    ],
)
def test_a_recorded_run_reports_what_its_tools_returned(name: str, expected: list[str]) -> None:
    assert results(name) == expected


@pytest.mark.parametrize("agent", recorded.AGENTS)
def test_every_finished_tool_has_a_text(agent: str) -> None:
    found = [result for run in recorded.runs(agent) for result in results(run.name)]
    assert any(found)


@pytest.mark.parametrize(
    "text", ["x" * 50_000, "é" * 50_000, "\n" * 50_000, "\\" * 50_000, "\U0001f600" * 20_000]
)
@pytest.mark.parametrize("escapes", [True, False])
def test_of_a_long_result_the_beginning_is_decoded(text: str, escapes: bool) -> None:
    for shift in range(7):
        raw = json.dumps("a" * shift + text, ensure_ascii=escapes).encode()
        found = json_lines.result_text(raw)
        assert len(found) > 1000
        assert ("a" * shift + text).startswith(found.rstrip("?\ufffd"))


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"7", b"{", b'"', b'"\\u12', b'{"content":7}', b'[{"text":7}]']
)
def test_what_is_no_text_is_no_result(raw: bytes) -> None:
    assert json_lines.result_text(raw) in ("", "\u1200")


def test_opencode_says_when_a_call_began() -> None:
    run = recorded.run("opencode/tool")
    reader = registry.adapter("opencode").reader()
    for line in run.stdout.split(b"\n"):
        started = [event for event in reader.read(line) if isinstance(event, ev.AgentToolStarted)]
        if started:
            printed = json_lines.timestamp(line)
            break
    else:
        raise AssertionError("no call in the recording")
    assert started[0].said_at is not None
    assert printed is not None
    # It slept for three seconds before it was printed.
    assert 3 < printed - clock.parse_iso(started[0].said_at) < 6


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"type":"init","timestamp":"2026-11-15T07:07:28.309Z"}', "2026-11-15T07:07:28.309Z"),
        (b'{"type":"text","timestamp":1794727154500}', "2026-11-15T07:19:14.500Z"),
        (
            b'{"data":{"timestamp":1},"type":"x","timestamp":"2026-11-15T07:07:28Z"}',
            "2026-11-15T07:07:28.000Z",
        ),
        (b'{"type":"text","text":"\\"timestamp\\":1"}', None),
        (b'{"timestamp":"soon"}', None),
        (b'{"timestamp":[]}', None),
        (b"{", None),
    ],
)
def test_a_line_says_when_it_was_printed(line: bytes, expected: str | None) -> None:
    found = json_lines.timestamp(line)
    assert (None if found is None else clock.iso(found)) == expected
