"""Building blocks of schemas, and the schema of a record class."""

from __future__ import annotations

import inspect
import os
import sys
import types
import typing

from holdfast.model.record import Record
from holdfast.model.status import Status

Schema = dict[str, typing.Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
#: The directory of the pages and schemas.
CONTRACTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "contracts")

ULID = "^[0-9A-HJKMNP-TV-Z]{26}$"
TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
TASK_ID = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number"}
POSITIVE: Schema = {"type": "number", "minimum": 0}
AT: Schema = {"type": "string", "pattern": TIME}
TEXTS: Schema = {"type": "array", "items": TEXT}
STATUS: Schema = {"enum": [str(status) for status in Status]}


# ── from record classes ─────────────────────────────────────────────────────


def hints(cls: type[Record]) -> dict[str, typing.Any]:
    """Types of a record's fields, evaluated from its annotations (some names are for type checkers only)."""
    types_by_name: dict[str, typing.Any] = {}
    for base in reversed(cls.__mro__):
        if issubclass(base, Record) and base is not Record:
            names = {**vars(typing), **vars(sys.modules[base.__module__])}
            for name, text in inspect.get_annotations(base).items():
                if name in cls.fields:
                    types_by_name[name] = eval(text, names)  # our own source, not input
    return types_by_name


def notes(cls: type[Record]) -> dict[str, str]:
    """The `#:` comments above the fields of a record, by field."""
    comments: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not issubclass(base, Record) or base is Record:
            continue
        comment: list[str] = []
        for line in inspect.getsource(base).splitlines():
            text = line.strip()
            if text.startswith("#:"):
                comment.append(text[2:].strip())
                continue
            name = text.partition(":")[0]
            if comment and name in cls.fields:
                comments[name] = " ".join(comment)
            comment = []
    return comments


def of_record(cls: type[Record]) -> Schema:
    """The schema of a record, with the comments above its fields as descriptions."""
    comments = notes(cls)
    properties: Schema = {}
    for name, kind in hints(cls).items():
        properties[name] = of_field(name, kind, cls)
        if name in comments:
            properties[name]["description"] = comments[name]
    return {
        "type": "object",
        "required": [name for name in cls.fields if name in cls.must_have],
        "properties": properties,
    }


def of_field(name: str, kind: typing.Any, cls: type[Record]) -> Schema:
    """The schema of one field: its type, and the pattern of a time if it is named `at` or `*_at`."""
    if name == "schema":
        return {"const": cls.all_fields["schema"]}
    schema = of_type(kind)
    if (name == "at" or name.endswith("_at")) and "string" in schema.get("type", ()):
        schema["pattern"] = f"^$|{TIME}" if cls.all_fields[name] == "" else TIME
    return schema


def of_type(kind: typing.Any) -> Schema:
    """The schema of a type, for the few types that records use."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _union([of_type(arg) for arg in args])
    if origin in (list, tuple):
        return {"type": "array", "items": of_type(args[0])}
    if origin is dict:
        inner = of_type(args[1])
        return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
    if kind in (typing.Any, object):
        return {}
    if isinstance(kind, type) and issubclass(kind, Record):
        return of_record(kind)
    return {"type": _JSON_TYPES[kind]}


_JSON_TYPES: dict[typing.Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


def _union(schemas: list[Schema]) -> Schema:
    """`X | None`: the schema of X, with null as a second type."""
    merged: Schema = {}
    for schema in schemas:
        merged.update(schema)
    merged["type"] = [schema["type"] for schema in schemas]
    return merged


# ── written by hand ─────────────────────────────────────────────────────────


def named(name: str, schema: Schema, description: str, *, version: bool = True) -> Schema:
    """A schema with its title and, unless `version` is false, the field `schema` that every file has."""
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


def each(schema: Schema, *names: str) -> dict[str, Schema]:
    """The same schema for several fields."""
    return dict.fromkeys(names, schema)


def list_with(*names: str) -> Schema:
    """A list of objects that have at least these fields."""
    return {"type": "array", "items": {"type": "object", "required": list(names)}}


def or_null(schema: Schema) -> Schema:
    """The same schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}
