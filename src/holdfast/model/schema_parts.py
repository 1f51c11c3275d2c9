"""What schemas are made of: the small pieces, and the schema of a record."""

from __future__ import annotations

import inspect
import sys
import types
import typing

from holdfast.model.record import Record
from holdfast.model.status import Status

Schema = dict[str, typing.Any]

ULID = "^[0-9A-HJKMNP-TV-Z]{26}$"
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
TASK_ID = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number"}
AT: Schema = {"type": "string", "pattern": TIME}
TEXTS: Schema = {"type": "array", "items": TEXT}
STATUS: Schema = {"enum": [str(status) for status in Status]}


# ── from records ────────────────────────────────────────────────────────────


def hints(cls: type[Record]) -> dict[str, typing.Any]:
    """The types of a record's fields. Its annotations are text, and some of their names exist for type checkers only."""
    found: dict[str, typing.Any] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Record) and base is not Record:
            names = {**vars(typing), **vars(sys.modules[base.__module__])}
            for name, text in inspect.get_annotations(base).items():
                if name in cls.fields:
                    found[name] = eval(text, names)  # our own source, not input
    return found


def notes(cls: type[Record]) -> dict[str, str]:
    """What the `#:` comments above the fields of a record say."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, Record) or base is Record:
            continue
        note: list[str] = []
        for line in inspect.getsource(base).splitlines():
            text = line.strip()
            if text.startswith("#:"):
                note.append(text[2:].strip())
                continue
            name = text.partition(":")[0]
            if note and name in cls.fields:
                found[name] = " ".join(note)
            note = []
    return found


def of_record(cls: type[Record]) -> Schema:
    """The schema of a record, with the comments above its fields as descriptions."""
    said = notes(cls)
    properties: Schema = {}
    for name, kind in hints(cls).items():
        properties[name] = of_field(name, kind, cls)
        if name in said:
            properties[name]["description"] = said[name]
    return {
        "type": "object",
        "required": [name for name in cls.fields if name in cls.must_have],
        "properties": properties,
    }


def of_field(name: str, kind: typing.Any, cls: type[Record]) -> Schema:
    """The schema of one field: its type, and the pattern of a time where its name says so."""
    if name == "schema":
        return {"const": cls.all_fields["schema"]}
    schema = of_type(kind)
    if (name == "at" or name.endswith("_at")) and "string" in schema.get("type", ()):
        schema["pattern"] = f"^$|{TIME}" if cls.all_fields[name] == "" else TIME
    return schema


def of_type(kind: typing.Any) -> Schema:
    """The schema of a type, for the few shapes that records have."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return optional([of_type(arg) for arg in args])
    if origin in (list, tuple):
        return {"type": "array", "items": of_type(args[0])}
    if origin is dict:
        inner = of_type(args[1])
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
    if kind in (typing.Any, object):
        return {}
    if isinstance(kind, type) and issubclass(kind, Record):
        return of_record(kind)
    return {"type": NAMES[kind]}


NAMES: dict[typing.Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def optional(parts: list[Schema]) -> Schema:
    """`X | None`: the schema of X whose type may also be null."""
    merged: Schema = {}
    for part in parts:
        merged.update(part)
    merged["type"] = [part["type"] for part in parts]
    return merged


# ── by hand ─────────────────────────────────────────────────────────────────

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def named(name: str, schema: Schema, description: str, *, version: bool = True) -> Schema:
    """A schema with its title, and unless `version` is false with the field `schema` that every file carries."""
    title = f"holdfast.{name}/1"
    schema = {**schema, "properties": dict(schema["properties"]), "required": list(schema["required"])}
    if version:
        schema["properties"] = {"schema": {"const": title}, **schema["properties"]}
        schema["required"] = ["schema", *(field for field in schema["required"] if field != "schema")]
    return {"$schema": DRAFT, "title": title, "description": description, **schema}


def of_fields(properties: Schema, optional: tuple[str, ...] = ()) -> Schema:
    """An object with these fields."""
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
    }


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}
