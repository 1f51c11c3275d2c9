"""The script file: read, checked, and turned into turns and rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, get_args

from holdfast.testing.agent.kinds import KINDS, as_list, as_object
from holdfast.testing.models.builders import LONG
from holdfast.testing.models.routes import APIS
from holdfast.testing.models.script import Rule, Script
from holdfast.testing.models.turns import (
    Call,
    Failure,
    FailureKind,
    Fault,
    RawReply,
    ScriptError,
    Turn,
    Usage,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

SCHEMA = "holdfast.model-script/1"
FAILURES: tuple[FailureKind, ...] = get_args(FailureKind)

_USAGE = dict.fromkeys(Usage.__dataclass_fields__, "whole")
_FAILURE = {"status": "whole", "message": "text", "retry_after_s": "seconds", "in_stream": "bool"}
_CALL = {"name": "text", "arguments": "object"}
#: Keys of a turn and the kinds of their values. The value of a nested object is its own table.
TURN: dict[str, Any] = {
    "text": "text",
    "tool": _CALL,
    "tools": [_CALL],
    "shell": "text",
    "write": {"path": "text", "content": "text"},
    "empty": "bool",
    "raw": {"status": "whole", "body": "text", "headers": "object"},
    "stall": {"after": "whole", "limit_s": "seconds"},
    "drop": {"after": "whole", "how": "how"},
    "piece_delay_s": "seconds",
    "head_delay_s": "seconds",
    "pieces": "count",
    "is_cut_off": "bool",
    "usage": _USAGE,
    "times": "times",
    **dict.fromkeys(FAILURES, _FAILURE),
}
WHEN = {
    "contains": "text",
    "anywhere": "text",
    "model": "text",
    "api": "api",
    "nth": "count",
    "is_side": "bool",
}
FILE: dict[str, Any] = {
    "schema": "text",
    "turns": [TURN],
    "rules": [{"when": WHEN, "turn": TURN, "times": "count"}],
    "after": TURN,
    "side": TURN,
    "side_requests": "side",
    "usage": _USAGE,
    "models": "words",
}
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **KINDS,
    "how": ('"reset" or "close"', lambda v: v in ("reset", "close")),
    "times": ('a whole number, at least 1, or "forever"', lambda v: v == "forever" or KINDS["count"][1](v)),
    "api": (f"one of {', '.join(APIS)}", lambda v: isinstance(v, str) and v in APIS),
    "side": ('"without_tools" or "none"', lambda v: v in ("without_tools", "none")),
}
_REQUIRED = {"name": _CALL, "path": TURN["write"], "content": TURN["write"], "status": TURN["raw"]}


def load(path: str | os.PathLike[str]) -> Script:
    """Read and check the script file at `path`."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except OSError as error:
        raise ScriptError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ScriptError(f"{path}: not JSON: {error}") from error
    try:
        return from_data(data)
    except ScriptError as error:
        raise ScriptError(f"{path}: {error}") from None


def from_data(data: Any) -> Script:
    """A script from the contents of a file."""
    _check("", FILE, data)
    if data.get("schema") != SCHEMA:
        raise ScriptError(f'schema: expected "{SCHEMA}", got {json.dumps(data.get("schema"))}')
    given: dict[str, Any] = {name: turn_from(name, data[name]) for name in ("after", "side") if name in data}
    if "usage" in data:
        given["usage"] = Usage(**data["usage"])
    given |= {name: data[name] for name in ("side_requests", "models") if name in data}
    turns = [turn_from(f"turns[{i}]", turn) for i, turn in enumerate(data.get("turns", []))]
    rules = [_rule(f"rules[{i}]", rule) for i, rule in enumerate(data.get("rules", []))]
    return Script(turns, rules=rules, **given)


def turn_from(place: str, data: dict[str, Any]) -> Turn:
    """A turn from its JSON form."""
    _check(place, TURN, data)
    kinds: list[FailureKind] = [kind for kind in FAILURES if kind in data]
    says = [key for key in ("text", "tool", "tools", "shell", "write", "empty") if key in data]
    if len(kinds) + ("raw" in data) + bool(says) > 1:
        raise ScriptError(f"{place}: {', '.join([*kinds, *says])} exclude each other")
    if {"stall", "drop"} <= data.keys():
        raise ScriptError(f"{place}: stall and drop exclude each other")
    fields: dict[str, Any] = {
        key: data[key] for key in ("piece_delay_s", "head_delay_s", "pieces", "is_cut_off") if key in data
    }
    if "stall" in data or "drop" in data:
        kind = "stall" if "stall" in data else "drop"
        fields["fault"] = Fault(kind=kind, **data[kind])
    if "usage" in data:
        fields["usage"] = Usage(**data["usage"])
    if kinds:
        fields["failure"] = Failure(kind=kinds[0], **data[kinds[0]])
    elif "raw" in data:
        raw = data["raw"]
        headers = tuple((name, str(value)) for name, value in raw.get("headers", {}).items())
        fields["raw"] = RawReply(status=raw["status"], body=raw.get("body", ""), headers=headers)
    times = data.get("times", 1)
    # A fault alone gets a text that it can cut off.
    text = data.get("text", LONG if "fault" in fields and not says else "")
    return Turn(text=text, calls=_calls(data), repeats=None if times == "forever" else times, **fields)


def _calls(data: dict[str, Any]) -> tuple[Call, ...]:
    given = [*data.get("tools", []), *([data["tool"]] if "tool" in data else [])]
    calls = [Call(name=call["name"], arguments=call.get("arguments", {})) for call in given]
    if "shell" in data:
        calls.append(Call(name="", arguments={"command": data["shell"]}, portable="shell"))
    if "write" in data:
        calls.append(Call(name="", arguments=data["write"], portable="write"))
    return tuple(calls)


def _rule(place: str, data: dict[str, Any]) -> Rule:
    if "turn" not in data:
        raise ScriptError(f"{place}.turn: missing")
    turn = turn_from(f"{place}.turn", data["turn"])
    return Rule(turn=turn, times=data.get("times"), **data.get("when", {}))


def _check(place: str, expected: Any, value: Any) -> None:
    if isinstance(expected, str):
        words, is_right = _KINDS[expected]
        if not is_right(value):
            raise ScriptError(f"{place}: expected {words}, got {json.dumps(value)[:60]}")
    elif (kinds := as_list(expected)) is not None:
        items = as_list(value)
        if items is None:
            raise ScriptError(f"{place}: expected a list, got {json.dumps(value)[:60]}")
        for index, item in enumerate(items):
            _check(f"{place}[{index}]", kinds[0], item)
    else:
        found = as_object(value)
        if found is None:
            raise ScriptError(f"{place or 'script'}: expected an object, got {json.dumps(value)[:60]}")
        for key, item in found.items():
            here = f"{place}.{key}" if place else key
            if key not in expected:
                raise ScriptError(f"{here}: unknown key (known: {', '.join(expected)})")
            _check(here, expected[key], item)
        for key, owner in _REQUIRED.items():
            if owner is expected and key not in found:
                raise ScriptError(f"{place}.{key}: missing")
