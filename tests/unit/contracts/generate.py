"""The generated parts of docs/contracts: schemas, the event union, the table of moves.

    python -m tests.unit.contracts.generate          write them

In a page they stand between `<!-- generated: NAME -->` and `<!-- end -->`; all else is written by hand.
"""

from __future__ import annotations

import inspect
import json
import os
import re

from holdfast.model import events as ev
from holdfast.model import schema, schema_parts
from holdfast.model.outcome import (
    BLAMELESS,
    FINAL,
    MUST_WAIT,
    NEEDS_FRESH_SESSION,
    NEEDS_PERSON,
    RESUMABLE,
    SUCCESS,
)
from holdfast.model.record import Record
from holdfast.model.request import VERBS
from holdfast.model.status import ENDS, MOVES

CONTRACTS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir, os.pardir, "docs", "contracts"
)
CONTRACTS = os.path.normpath(CONTRACTS)
_PART = re.compile(r"(<!-- generated: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[str]:
    """Names of the pages that have a generated part."""
    found = []
    for name in sorted(os.listdir(CONTRACTS)):
        if name.endswith(".md") and _PART.search(read(name)):
            found.append(name)
    return found


def renewed(page: str) -> str:
    """The page with its generated parts as they should be."""
    return _PART.sub(lambda part: part[1] + PARTS[part["name"]]() + part[3], read(page))


def read(name: str) -> str:
    with open(os.path.join(CONTRACTS, name), encoding="utf-8") as file:
        return file.read()


def main() -> None:
    for page in pages():
        text = renewed(page)
        with open(os.path.join(CONTRACTS, page), "w", encoding="utf-8") as file:
            file.write(text)
    schema.main(["--write", os.path.join(CONTRACTS, "schemas")])


# ── the parts ───────────────────────────────────────────────────────────────


def events() -> str:
    """A heading, the meaning and a table of fields for every type."""
    parts = []
    for name, cls in ev.EVENTS.items():
        parts.append(f"### `{name}`\n\n{inspect.getdoc(cls)}\n\n{_fields(cls)}")
    return "\n" + "\n".join(parts) + "\n"


def moves() -> str:
    """One row per state."""
    rows = ["| from | to |", "|---|---|"]
    for old, targets in MOVES.items():
        listed = ", ".join(new for new in MOVES if new in targets)
        rows.append(f"| {old} | {listed if old not in ENDS else 'an end; left only by `run.opened`'} |")
    return "\n".join(rows) + "\n"


def outcomes() -> str:
    """The named sets of outcomes."""
    rows = ["| what follows | outcomes |", "|---|---|"]
    for meaning, kinds in (
        ("the gate, then the marker", SUCCESS),
        ("`waiting`, no retry burned", MUST_WAIT),
        ("`interrupted`: a person is asked", NEEDS_PERSON),
        ("`failed`: trying again cannot help", FINAL),
        ("resumed, a retry is burned", RESUMABLE),
        ("resumed, a retry is burned, in a new session with a briefing", NEEDS_FRESH_SESSION),
        ("resumed, no retry burned", BLAMELESS),
    ):
        rows.append(f"| {meaning} | {', '.join(f'`{kind}`' for kind in sorted(kinds))} |")
    return "\n".join(rows) + "\n"


def verbs() -> str:
    """The verbs of a request."""
    return ", ".join(f"`{verb}`" for verb in VERBS) + "\n"


def _fields(cls: type[Record]) -> str:
    said = schema_parts.notes(cls)
    rows = ["| field | type | default | |", "|---|---|---|---|"]
    for name, kind in schema_parts.hints(cls).items():
        default = "required" if name in cls.must_have else f"`{json.dumps(cls.all_fields[name])}`"
        rows.append(f"| `{name}` | {_kind(kind)} | {default} | {said.get(name, '')} |")
    return "\n".join(rows) + "\n"


def _kind(kind: object) -> str:
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    text = text.replace("typing.", "").replace("NoneType", "None").replace("None", "null")
    names = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}
    text = re.sub(r"\b(str|int|float|bool)\b", lambda match: names[match[0]], text)
    words = {"dict[text, Any]": "object", "list[dict[text, Any]]": "list of objects"}
    text = {**words, "tuple[text, ...]": "list of texts"}.get(text, text)
    return text.replace(" | ", " or ")


PARTS = {"events": events, "moves": moves, "outcomes": outcomes, "verbs": verbs}


if __name__ == "__main__":
    main()
