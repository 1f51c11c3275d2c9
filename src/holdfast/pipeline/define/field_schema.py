"""The JSON Schema of the value of a field of manifest.yaml, for editors and forms."""

from __future__ import annotations

from holdfast.pipeline.define.checker import MAX_ITEMS, MAX_TEXT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.pipeline.define.manifest_fields import Field

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT}
_NAME: dict[str, Any] = {"type": "string", "minLength": 1}


def of_value(field: Field) -> dict[str, Any]:
    """The schema of a value, without a description. (That of an id is in the contracts.)"""
    match field.kind:
        case "choice":
            return {"enum": list(field.choices)}
        case "whole":
            return {"type": "integer", "minimum": field.least, "maximum": field.most}
        case "number":
            return {"type": "number", "exclusiveMinimum": 0, "maximum": field.most}
        case "flag":
            return {"type": "boolean"}
        case "texts" | "patterns" | "labels":
            return {"type": "array", "items": _TEXT, "maxItems": MAX_ITEMS}
        case "stages" | "agents" | "variables":
            return {"type": "array", "items": _NAME, "maxItems": MAX_ITEMS, "uniqueItems": True}
        case "paths":
            # As in the check: not absolute, no `..`, no leading `!`.
            path = {**_TEXT, "pattern": r"^(?![/~!\\])(?!(.*[/\\])?\.\.([/\\]|$)).+$"}
            return {"type": "array", "items": path, "maxItems": MAX_ITEMS}
        case "options":
            return {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean", "array"]},
            }
        case _:
            return _TEXT
