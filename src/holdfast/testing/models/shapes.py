"""Read untrusted JSON: wrong types give empty values, and nothing raises."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.testing.agent.kinds import as_list, as_object

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["text", "call", "result"]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One part of a request to the model, the same for every API."""

    message: int
    """Index of its message; -1 for system prompts."""
    role: Role
    kind: Kind
    text: str
    """The text; a call's arguments as JSON; a result's output."""
    name: str = ""
    id: str = ""
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool that the client offers to the model."""

    name: str
    schema: dict[str, Any]
    is_freeform: bool = False
    """Whether it takes plain text instead of JSON (a "custom" tool of the Responses API)."""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; empty if `value` is not a list."""
    found = (as_object(item) for item in as_list(value) or [])
    return [item for item in found if item is not None]


def object_at(value: Any, *keys: str) -> dict[str, Any]:
    """The object at these keys; empty if there is none."""
    for key in keys:
        value = (as_object(value) or {}).get(key)
    return as_object(value) or {}


def string(value: Any) -> str:
    """The value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""


def as_text(value: Any) -> str:
    """The text of a string or of parts with a `text`; anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    parts = objects(value)
    if parts and all("text" in part for part in parts):
        return "\n".join(string(part["text"]) for part in parts)
    return json.dumps(value, ensure_ascii=False)


def texts(value: Any) -> list[str]:
    """The texts of a string or of a list of parts, without empty ones."""
    if isinstance(value, str):
        return [value] if value else []
    return [text for part in objects(value) if (text := string(part.get("text")))]


def sample(schema: dict[str, Any], depth: int = 8) -> Any:
    """The simplest value that is valid for a JSON schema. Type names may be upper case (Gemini)."""
    for choice in ("anyOf", "oneOf", "allOf"):
        if options := objects(schema.get(choice)):
            return sample(options[0], depth - 1) if depth else None
    if allowed := as_list(schema.get("enum")):
        return allowed[0]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    kind = (as_list(kind) or [kind])[0]
    match string(kind).lower():
        case "object":
            properties = object_at(schema, "properties")
            needed = as_list(schema.get("required"))
            names = [name for name in properties if needed is None or name in needed]
            return {name: sample(object_at(properties, name), depth - 1) for name in names} if depth else {}
        case "array":
            return []
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "ok" if kind else {}
