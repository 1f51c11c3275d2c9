"""Reading JSON that others sent: nothing is taken for granted, nothing raises."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.testing.agent.kinds import as_list, as_object

Role = Literal["system", "user", "assistant", "tool"]
Kind = Literal["text", "call", "result"]


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One piece of what the model was sent, the same for every API."""

    message: int
    """Which message it stands in; system prompts are -1."""
    role: Role
    kind: Kind
    text: str
    """The text; a call's arguments as JSON; a result's output."""
    name: str = ""
    id: str = ""
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class OfferedTool:
    """A tool that the client lets the model use."""

    name: str
    schema: dict[str, Any]
    is_freeform: bool = False
    """Takes plain text instead of JSON (the "custom" tools of the Responses API)."""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; empty where it is none."""
    found = (as_object(item) for item in as_list(value) or [])
    return [item for item in found if item is not None]


def object_at(value: Any, *keys: str) -> dict[str, Any]:
    """The object behind these keys; empty where there is none."""
    for key in keys:
        value = (as_object(value) or {}).get(key)
    return as_object(value) or {}


def string(value: Any) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_text(value: Any) -> str:
    """Text as APIs write it: a string, or parts that carry a `text`; anything else as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    parts = objects(value)
    if parts and all("text" in part for part in parts):
        return "\n".join(string(part["text"]) for part in parts)
    return json.dumps(value, ensure_ascii=False)


def texts(value: Any) -> list[str]:
    """Each text of a string or of a list of parts, the empty ones left out."""
    if isinstance(value, str):
        return [value] if value else []
    return [text for part in objects(value) if (text := string(part.get("text")))]


def sample(schema: dict[str, Any], depth: int = 8) -> Any:
    """The plainest value that fits a JSON schema; type names may be upper case, as Gemini writes them."""
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
