"""The scenario file: read, checked, and turned into steps.

A mistake is a `ScenarioError` with its position, such as `steps[3].tool.run_s`.
"""

from __future__ import annotations

import json

from holdfast.testing.agent.kinds import KINDS, as_list, as_object
from holdfast.testing.agent.verbs import COMMON, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = "holdfast.scenario/1"
ON_RESUME = ("continue", "restart")
KEYS = ("schema", "steps", "resume_steps", "on_resume", "on_signal", "resume_as", "model")


class ScenarioError(ValueError):
    """Raised if a scenario is malformed; the message starts with the position of the mistake."""


class Step:
    """One checked step. `place` is its address in the file and its name in the journal."""

    def __init__(self, place: str, verb: str, arguments: dict[str, Any]) -> None:
        self.place = place
        self.verb = verb
        self.arguments = arguments

    @property
    def process_limit(self) -> int | None:
        """Only the first N processes of the session perform this step."""
        return 1 if self.arguments.get("once") else self.arguments.get("times")


class Scenario:
    """A checked scenario."""

    def __init__(self, data: dict[str, Any]) -> None:
        if data.get("schema") != SCHEMA:
            raise ScenarioError(f'schema: expected "{SCHEMA}", got {_show(data.get("schema"))}')
        for key in data:
            if key not in KEYS:
                raise ScenarioError(f"{key}: unknown key{_nearest(key, KEYS)}")
        if "steps" not in data:
            raise ScenarioError("steps: missing")
        self.steps = _steps("steps", data["steps"])
        self.resume_steps: list[Step] | None = None
        if "resume_steps" in data:
            self.resume_steps = _steps("resume_steps", data["resume_steps"])
        self.on_resume: str = data.get("on_resume", "continue")
        if self.on_resume not in ON_RESUME:
            raise ScenarioError(f'on_resume: expected "continue" or "restart", got {_show(self.on_resume)}')
        self.on_signal = _on_signal(data.get("on_signal", {}))
        for key in ("resume_as", "model"):
            _check(key, "text", data.get(key, ""))
        self.resume_as: str | None = data.get("resume_as")
        self.model: str | None = data.get("model")


def load(path: str) -> Scenario:
    """Read and check the scenario file at `path`."""
    try:
        with open(path, encoding="utf-8") as file:
            data = as_object(json.load(file))
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ScenarioError(f"{path}: not JSON: {error}") from error
    if data is None:
        raise ScenarioError(f"{path}: expected a JSON object")
    try:
        return Scenario(data)
    except ScenarioError as error:
        raise ScenarioError(f"{path}: {error}") from None


def check_step(place: str, data: Any) -> Step:
    """One step, checked; shorthand is expanded."""
    written = as_object(data)
    if written is None or len(written) != 1:
        raise ScenarioError(f"{place}: expected an object with one verb, got {_show(data)}")
    [(verb, value)] = written.items()
    if verb not in VERBS:
        raise ScenarioError(f"{place}: unknown verb {_show(verb)}{_nearest(verb, VERBS)}")
    arguments = _spelled_out(f"{place}.{verb}", verb, value)
    kinds = VERBS[verb].arguments | COMMON
    for name, argument in arguments.items():
        if name not in kinds:
            raise ScenarioError(f"{place}.{verb}: unknown argument {name}{_nearest(name, kinds)}")
        _check(f"{place}.{verb}.{name}", kinds[name], argument)
    for name in VERBS[verb].required:
        if name not in arguments:
            raise ScenarioError(f"{place}.{verb}.{name}: missing")
    if verb == "crash" and {"signal", "exit"} <= arguments.keys():
        raise ScenarioError(f"{place}.crash: signal and exit exclude each other")
    return Step(place, verb, arguments)


def _steps(name: str, data: Any) -> list[Step]:
    steps = as_list(data)
    if steps is None:
        raise ScenarioError(f"{name}: expected a list of steps, got {_show(data)}")
    return [check_step(f"{name}[{i}]", step) for i, step in enumerate(steps)]


def _spelled_out(place: str, verb: str, value: Any) -> dict[str, Any]:
    arguments = as_object(value)
    if arguments is not None:
        return arguments
    short = VERBS[verb].short
    if short is not None:
        return {short: value}
    if value is True:
        return {}
    raise ScenarioError(f"{place}: expected an object with arguments, got {_show(value)}")


def _on_signal(data: Any) -> dict[str, Any]:
    actions = as_object(data)
    if actions is None:
        raise ScenarioError(f"on_signal: expected an object, got {_show(data)}")
    for name, action in actions.items():
        _check("on_signal", "catchable", name)
        _check(f"on_signal.{name}", "action", action)
    return actions


def _check(place: str, kind: str, value: Any) -> None:
    expected, is_right = KINDS[kind]
    if not is_right(value):
        raise ScenarioError(f"{place}: expected {expected}, got {_show(value)}")


def _show(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(word: str, known: Any) -> str:
    # Imported late: only a malformed scenario needs it.
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), 1)
    return f' (did you mean "{found[0]}"?)' if found else f" (known: {', '.join(known)})"
