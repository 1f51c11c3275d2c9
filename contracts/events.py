"""The schema of one line of events.jsonl, made from the event classes."""

from __future__ import annotations

import inspect

from contracts.parts import AT, DRAFT, ULID, Schema, of_record
from holdfast.model import events as ev


def _schema() -> Schema:
    """A type that is not listed is allowed, and ignored by readers."""
    definitions: dict[str, Schema] = {}
    for name, cls in ev.EVENTS.items():
        body = of_record(cls)
        definitions[name] = {
            "type": "object",
            "description": inspect.getdoc(cls) or "",
            "required": ["id", "at", "type", *body["required"]],
            "properties": {
                "id": {"type": "string", "pattern": ULID},
                "at": dict(AT),
                "type": {"const": name},
                **body["properties"],
            },
        }
    unknown = {
        "type": "object",
        "description": "An event of a later version.",
        "required": ["id", "at", "type"],
        "properties": {"type": {"type": "string", "not": {"enum": list(ev.EVENTS)}}},
    }
    lines = {**definitions, "unknown": unknown}
    return {
        "$schema": DRAFT,
        "title": "holdfast.events/1",
        "description": "events.jsonl, one line: an event of the journal",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": lines,
    }


SCHEMA = _schema()
