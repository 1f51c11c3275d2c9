"""All JSON Schemas, for programs in other languages that read holdfast's files and output.

A schema states what a reader may rely on: fields without a default are required, and unknown fields are
allowed, because a later version may add some.
"""

from __future__ import annotations

import json
import os

from contracts import command_output, events, home_files, packet_files
from contracts.parts import CONTRACTS, Schema, named


def schemas() -> dict[str, Schema]:
    """Every schema by its name, which is also the name of its file."""
    tables = (packet_files.SCHEMAS, home_files.SCHEMAS, command_output.SCHEMAS)
    by_name = {"events": events.SCHEMA}
    for table in tables:
        for name, (schema, description) in table.items():
            # The content of a lock file has no field `schema`.
            by_name[name] = named(name, schema, description, version=name != "lock")
    return by_name


def as_text(schema: Schema) -> str:
    """A schema as its file holds it."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def write() -> None:
    """Write one file per schema to docs/contracts/schemas."""
    for name, schema in schemas().items():
        with open(os.path.join(CONTRACTS, "schemas", f"{name}.json"), "w", encoding="utf-8") as file:
            file.write(as_text(schema))
