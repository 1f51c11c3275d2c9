"""The recorded runs of tests/captures, and ways to damage them."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import strategies as st

FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "captures")
#: What a label and a reading have in common.
FIELDS = (
    "outcome", "session_id", "tools_started", "tools_finished", "input_tokens", "output_tokens", "cost_usd", "final_text",
    "retries_seen",
)  # fmt: skip
#: The outcomes of tests/captures/README.md.
OUTCOMES = frozenset(
    [
        "success",
        "tool_failed_but_finished",
        "permission_denied_but_finished",
        "auth",
        "no_auth",
        "rate_limit",
        "quota",
        "overloaded",
        "server_error",
        "network",
        "context_too_long",
        "invalid_request",
        "model_not_found",
        "empty_reply",
        "max_turns",
        "max_budget",
        "interrupted",
        "killed",
        "usage_error",
        "unknown_session",
        "not_trusted",
        "truncated",
        "crashed",
    ]
)
SUCCESS = frozenset({"success", "tool_failed_but_finished", "permission_denied_but_finished"})


class Recorded:
    """One run and its label."""

    def __init__(self, name: str, label: dict[str, Any]) -> None:
        self.name = name
        self.label = label
        base = os.path.join(FOLDER, name)
        with open(base + ".stdout.jsonl", "rb") as file:
            self.stdout = file.read()
        with open(base + ".stderr.txt", encoding="utf-8") as file:
            self.stderr = file.read()
        self.exit: int = label["exit"]

    def __repr__(self) -> str:
        return self.name


def runs(cli: str) -> list[Recorded]:
    """Every run of one CLI."""
    with open(os.path.join(FOLDER, cli, "labels.json"), encoding="utf-8") as file:
        return [Recorded(name, label) for name, label in json.load(file).items()]


EXITS = st.sampled_from([0, 1, 2, 101, 129, 143, -1, -2, -6, -9, -15, None])


@st.composite
def damaged(draw: st.DrawFn, recorded: list[Recorded]) -> bytes:
    """A run with lines dropped, doubled, swapped or replaced by garbage, and cut at any byte."""
    lines = draw(st.sampled_from(recorded)).stdout.split(b"\n")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        match draw(st.sampled_from(["drop", "double", "garbage", "bitten", "swap"])):
            case "drop":
                del lines[at : at + 1]
            case "double":
                lines[at:at] = lines[at : at + 1]
            case "garbage":
                lines.insert(at, draw(st.binary(max_size=60)))
            case "bitten" if lines:
                where = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:where] + draw(st.binary(max_size=3)) + lines[at][where + 1 :]
            case _:
                lines[at : at + 2] = lines[at : at + 2][::-1]
    data = b"\n".join(lines)
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def parsed(stdout: bytes) -> list[dict[str, Any]]:
    """The lines that are JSON objects, to whoever reads them."""
    found: list[dict[str, Any]] = []
    for line in stdout.split(b"\n"):
        try:
            data = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            found.append(data)
    return found
