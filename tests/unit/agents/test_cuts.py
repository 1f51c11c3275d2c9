"""Readers cut texts far after the limit at which the ingest cuts, which masks secrets first."""

from __future__ import annotations

import importlib
import json

import msgspec
import pytest

from holdfast.agents.shared import json_lines, stream_json
from holdfast.model import events as ev

#: The longest secret that is masked whole wherever it begins, and where the ingest cuts.
SECRET_CHARS = 1500
TEXT_CHARS, SUMMARY_CHARS = 4000, 200


def assistant(*blocks: dict) -> bytes:
    return json.dumps(
        {"type": "assistant", "message": {"content": list(blocks)}}, separators=(",", ":")
    ).encode()


@pytest.mark.parametrize("name", ["claude.events.Lines", "shared.stream_json.StreamJson"])
def test_texts_and_calls_of_stream_json(name: str) -> None:
    module, _, cls = name.rpartition(".")
    reader = getattr(importlib.import_module(f"holdfast.agents.{module}"), cls)()
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "x" * 9000}}
    text, tool = reader.read(assistant({"type": "text", "text": "y" * 40_000}, call))
    assert isinstance(text, ev.AgentText)
    assert isinstance(tool, ev.AgentToolStarted)
    assert len(text.text) >= TEXT_CHARS + SECRET_CHARS
    assert len(tool.summary) >= SUMMARY_CHARS + SECRET_CHARS


def test_the_summary_of_json_arguments() -> None:
    raw = msgspec.Raw(json.dumps({"command": "x" * 9000}).encode())
    assert len(json_lines.summary(raw)) >= SUMMARY_CHARS + SECRET_CHARS


@pytest.mark.parametrize(
    "module", ["copilot.events", "gemini.events", "opencode.events", "pi.events", "codex.events"]
)
def test_every_reader_keeps_more_than_is_shown(module: str) -> None:
    found = vars(importlib.import_module(f"holdfast.agents.{module}"))
    assert max(found.get("_TEXT_CHARS", 0), found.get("_TEXT_LIMIT", 0)) >= TEXT_CHARS + SECRET_CHARS
    for name in ("_REASON_CHARS", "_MESSAGE_CHARS", "_SUMMARY_LIMIT"):
        assert found.get(name, 10_000) >= 500 + SECRET_CHARS, name


def test_a_result_of_stream_json_is_kept_far_enough() -> None:
    line = json.dumps({"type": "result", "is_error": False, "result": "z" * 40_000}).encode()
    result = stream_json.StreamJson().read(line)[-1]
    assert isinstance(result, ev.AgentResult)
    assert len(result.text) >= TEXT_CHARS + SECRET_CHARS
