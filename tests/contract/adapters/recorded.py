"""The recorded runs of tests/captures, ways to damage them, and the task that adapters are asked to
launch."""

from __future__ import annotations

import json
import os
from typing import Any

from hypothesis import strategies as st

from holdfast.agents import registry
from holdfast.agents.base import LaunchSpec
from holdfast.model.spec import Limits, StageSpec, TaskSpec

#: The programs; `command` and `scripted` have no output of their own.
AGENTS = tuple(sorted(set(registry.BUILT_IN) - {"command", "scripted"}))
FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "captures")
#: What a label and a reading have in common.
FIELDS = (
    "outcome",
    "session_id",
    "tools_started",
    "tools_finished",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "final_text",
    "retries_seen",
)
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
#: Lines that are almost valid.
HOSTILE = [
    b"{", b"{}", b"[]", b"null", b'{"type":null}', b'{"type":"', b"[" * 5000,
    b'{"type":"result"}', b'{"type":"result","exitCode":"0"}', b'{"type":"result","status":7}',
    b'{"type":"result","status":"error","error":"x"}', b'{"type":"tool_result","tool_id":"x","error":"y"}',
    b'{"type":"message","role":"assistant","content":["x"]}', b'{"type":"message",', b'{"type":"abort"}',
    b'{"type":"message","timestamp":"","role":"assistant","content":"\xff\\ud83d","delta":true}',
    b'{"type":"assistant.message_delta","data":7}', b'{"type":"assistant.message_delta"',
    b'{"type":"session.error","data":{}}', b'{"data":{"deltaContent":"x"},"type":"assistant.message_delta"}',
    b'{"type":"assistant.message_delta","data":{"deltaContent":"\xff\\ud83d"}}',
]  # fmt: skip


def read(name: str) -> bytes:
    """A file of the recordings."""
    with open(os.path.join(FOLDER, name), "rb") as file:
        return file.read()


class Recorded:
    """One run and its label."""

    def __init__(self, name: str, label: dict[str, Any]) -> None:
        self.name = name
        self.agent = name.partition("/")[0]
        self.label = label
        self.stdout = read(name + ".stdout.jsonl")
        self.stderr = read(name + ".stderr.txt").decode()
        self.exit: int = label["exit"]

    def __repr__(self) -> str:
        return self.name


def runs(cli: str) -> list[Recorded]:
    """Every run of one CLI."""
    with open(os.path.join(FOLDER, cli, "labels.json"), encoding="utf-8") as file:
        return [Recorded(name, label) for name, label in json.load(file).items()]


def run(name: str) -> Recorded:
    """One run by its name, `claude/text`."""
    return next(one for one in runs(name.partition("/")[0]) if one.name == name)


def launch_spec(agent: str, *, options: dict[str, Any] | None = None, **changes: Any) -> LaunchSpec:
    """The first attempt of a task of one stage, with what a test changes in it."""
    task = TaskSpec(
        task_id="tsk_1", task_name="try", goal="", agent=agent, project_dir="/project", options=options or {},
        stages=(StageSpec(name="main", agent=agent),), limits=Limits(),
    )  # fmt: skip
    spec = LaunchSpec(task=task, prompt_path="/packet/prompt.md", session_id="7c1e", resume_count=0)
    return spec.evolve(**changes)


EXITS = st.sampled_from([0, 1, 2, 42, 101, 129, 143, 173, -1, -2, -6, -9, -11, -15, None])


@st.composite
def damaged(draw: st.DrawFn, stdout: bytes) -> bytes:
    """A run with lines dropped, doubled, swapped or replaced by garbage, and cut at any byte."""
    lines = stdout.split(b"\n")
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(lines) - 1)))
        match draw(st.sampled_from(["drop", "double", "garbage", "bitten", "swap", "shuffle"])):
            case "drop":
                del lines[at : at + 1]
            case "double":
                lines[at:at] = lines[at : at + 1]
            case "garbage":
                lines.insert(at, draw(st.binary(max_size=60) | st.sampled_from(HOSTILE)))
            case "bitten" if lines:
                where = draw(st.integers(0, len(lines[at])))
                lines[at] = lines[at][:where] + draw(st.binary(max_size=3)) + lines[at][where + 1 :]
            case "shuffle":
                draw(st.randoms(use_true_random=False)).shuffle(lines)
            case _:
                lines[at : at + 2] = lines[at : at + 2][::-1]
    data = b"\n".join(lines)
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


def parsed(stdout: bytes) -> list[dict[str, Any]]:
    """The lines that are JSON objects, parsed."""
    found: list[dict[str, Any]] = []
    for line in stdout.split(b"\n"):
        try:
            data = json.loads(line.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            found.append(data)
    return found
