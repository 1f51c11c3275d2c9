"""A malformed scenario is refused with exit 2 and the place of the mistake; the tables agree."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.testing import Scenario, scenario
from holdfast.testing.agent.scenario import KEYS, SCHEMA, ScenarioError
from holdfast.testing.agent.verbs import COMMON, VERBS
from tests.integration.testing.conftest import Stage

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "scripted-agent.md"


def file(**fields: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "steps": [], **fields}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({}, 'schema: expected "holdfast.scenario/1", got null'),
        ({"schema": SCHEMA}, "steps: missing"),
        (file(stepz=[]), 'stepz: unknown key (did you mean "steps"?)'),
        (file(steps={}), "steps: expected a list of steps"),
        (file(steps=[{"say": "a"}, {"tol": "x"}]), 'steps[1]: unknown verb "tol" (did you mean "tool"?)'),
        (file(steps=[{"say": "a", "sleep": 1}]), "steps[0]: expected an object with one verb"),
        (file(steps=[{"say": 3}]), "steps[0].say.text: expected a string, got 3"),
        (file(steps=[{"say": {}}]), "steps[0].say.text: missing"),
        (file(steps=[{"tool": {"run_s": -1}}]), "steps[0].tool.run_s: expected a number of seconds"),
        (file(steps=[{"sleep": True}]), "steps[0].sleep.s: expected a number of seconds"),
        (file(steps=[{"tool": {"runs": 1}}]), 'unknown argument runs (did you mean "run_s"?)'),
        (file(steps=[{"hang": 3}]), "steps[0].hang: expected an object with arguments, got 3"),
        (file(steps=[{"crash": "_DFL"}]), "steps[0].crash.signal: expected a signal name"),
        (file(steps=[{"crash": {"signal": "KILL", "exit": 1}}]), "steps[0].crash: signal and exit exclude"),
        (file(steps=[{"ignore": ["KILL"]}]), "steps[0].ignore.signals: expected a list of signal names"),
        (file(steps=[{"exit": 256}]), "steps[0].exit.code: expected an exit status"),
        (file(resume_steps=[{"zzz": 1}]), 'resume_steps[0]: unknown verb "zzz" (known: say,'),
        (file(on_resume="again"), 'on_resume: expected "continue" or "restart"'),
        (file(on_signal={"TERM": {"after_s": 1}}), "on_signal.TERM: expected"),
        (file(on_signal={"KILL": "ignore"}), "on_signal: expected a signal name"),
        (file(model=3), "model: expected a string"),
        ([], "expected a JSON object"),
    ],
)
def test_a_mistake_is_named_with_its_place(stage: Stage, tmp_path: Path, data: Any, complaint: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    playing = stage.play(path, status=2)
    assert playing.errors.startswith(f"error: {path}: ")
    assert complaint in playing.errors
    assert playing.raw == b""
    assert not stage.state.exists()


@pytest.mark.parametrize("content", [b"{", b"\xff", b""])
def test_what_is_not_json_is_refused(stage: Stage, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert "not JSON" in stage.play(path, status=2).errors


def test_a_missing_file_is_refused(stage: Stage, tmp_path: Path) -> None:
    assert "No such file" in stage.play(tmp_path / "none.json", status=2).errors


def test_the_builder_checks_each_step_where_it_is_added() -> None:
    with pytest.raises(ScenarioError, match=r"steps\[1\]\.exit\.code: expected an exit status"):
        Scenario().say("x").exit(999)


def test_the_builder_writes_what_the_agent_reads(tmp_path: Path) -> None:
    built = scenario(model="m").say("x", once=True).hang(cpu=True).on_signal("TERM", {"exit": 0})
    built.on_resume("restart").resumed(Scenario().result("done"))
    assert json.loads(built.write_to(tmp_path / "s.json").read_text("utf-8")) == {
        "schema": SCHEMA,
        "model": "m",
        "steps": [{"say": {"text": "x", "once": True}}, {"hang": {"cpu": True}}],
        "resume_steps": [{"result": {"text": "done"}}],
        "on_resume": "restart",
        "on_signal": {"TERM": {"exit": 0}},
    }


@pytest.mark.parametrize("verb", VERBS)
def test_the_builder_has_every_verb_with_its_arguments(verb: str) -> None:
    parameters = inspect.signature(getattr(Scenario, verb)).parameters
    assert set(parameters) - {"self", "when"} == set(VERBS[verb].arguments)


@pytest.mark.parametrize("verb", VERBS)
def test_the_guide_has_every_verb_with_its_arguments(verb: str) -> None:
    row = next(line for line in GUIDE.read_text("utf-8").splitlines() if line.startswith(f"| `{verb}` "))
    for name in VERBS[verb].arguments:
        assert f"`{name}`" in row


@pytest.mark.parametrize("name", [*KEYS, *COMMON, "HOLDFAST_SCRIPTED_STATE", "--dialect", "--state-dir"])
def test_the_guide_has_every_setting(name: str) -> None:
    assert name in GUIDE.read_text("utf-8")
