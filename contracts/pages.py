"""The generated parts of the pages in docs/contracts: the events, the tables of moves and outcomes, the
verbs.

In a page they are between `<!-- generated: NAME -->` and `<!-- end -->`; the rest is written by hand.
"""

from __future__ import annotations

import inspect
import json
import os
import re

from contracts import parts
from contracts.parts import CONTRACTS
from holdfast.model import events as ev
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
from holdfast.model.request import REQUESTS
from holdfast.model.status import ENDS, MOVES

_PART = re.compile(r"(<!-- generated: (?P<name>[a-z]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> list[str]:
    """Names of the pages that have a generated part."""
    names = sorted(name for name in os.listdir(CONTRACTS) if name.endswith(".md"))
    return [name for name in names if _PART.search(read(name))]


def regenerated(page: str) -> str:
    """The text of a page with its generated parts up to date."""
    return _PART.sub(lambda part: part[1] + PARTS[part["name"]]() + part[3], read(page))


def read(name: str) -> str:
    """The text of a file in docs/contracts."""
    with open(os.path.join(CONTRACTS, name), encoding="utf-8") as file:
        return file.read()


def write() -> None:
    """Regenerate all pages in place."""
    for page in pages():
        text = regenerated(page)
        with open(os.path.join(CONTRACTS, page), "w", encoding="utf-8") as file:
            file.write(text)


# ── the parts ───────────────────────────────────────────────────────────────


def events() -> str:
    """A heading, the meaning and a table of fields for every event type."""
    sections = [f"### `{name}`\n\n{inspect.getdoc(cls)}\n\n{_fields(cls)}" for name, cls in ev.EVENTS.items()]
    return "\n" + "\n".join(sections) + "\n"


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
        ("the gate, then the done marker", SUCCESS),
        ("`waiting`; costs no retry", MUST_WAIT),
        ("`interrupted`: needs a person", NEEDS_PERSON),
        ("`failed`: a retry cannot help", FINAL),
        ("resumed; costs a retry", RESUMABLE),
        ("resumed in a new session with a briefing; costs a retry", NEEDS_FRESH_SESSION),
        ("resumed; costs no retry", BLAMELESS),
    ):
        rows.append(f"| {meaning} | {', '.join(f'`{kind}`' for kind in sorted(kinds))} |")
    return "\n".join(rows) + "\n"


def verbs() -> str:
    """The verbs of a request."""
    return ", ".join(f"`{verb}`" for verb in REQUESTS) + "\n"


def _fields(cls: type[Record]) -> str:
    notes = parts.notes(cls)
    rows = ["| field | type | default | |", "|---|---|---|---|"]
    for name, kind in parts.hints(cls).items():
        default = "required" if name in cls.must_have else f"`{json.dumps(cls.all_fields[name])}`"
        rows.append(f"| `{name}` | {_kind(kind)} | {default} | {notes.get(name, '')} |")
    return "\n".join(rows) + "\n"


def _kind(kind: object) -> str:
    text = kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)
    text = text.replace("typing.", "").replace("NoneType", "None").replace("None", "null")
    names = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}
    text = re.sub(r"\b(str|int|float|bool)\b", lambda match: names[match[0]], text)
    phrases = {
        "dict[text, Any]": "object",
        "list[dict[text, Any]]": "list of objects",
        "tuple[text, ...]": "list of texts",
    }
    return phrases.get(text, text).replace(" | ", " or ")


PARTS = {"events": events, "moves": moves, "outcomes": outcomes, "verbs": verbs}
