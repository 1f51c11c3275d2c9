"""docs/conformance.md: agents × scenarios, as the suite saw them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.conformance.pins import PINS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = """# Conformance

The CLIs as npm installs them, run by holdfast against the [model servers](guides/model-servers.md) in a \
network namespace that has loopback only.
Written by `make conformance`: not by hand. `make conformance-smoke` runs the rows in bold.
"""
_TOGETHER = (
    "One task, several of the programs above, each with a model server of its own. In the pipelines no "
    "permission is bypassed: a stage may write what holdfast lets it write."
)
#: Stands for the agent in the key of a cell of that section.
TOGETHER = "together"
_LEGEND = (
    "*instead*: the CLI cannot; the note says why and what holdfast does instead, which is what the test "
    "checked. A number behind *pass* is a remark."
)


class Cell(NamedTuple):
    """The result of one scenario with one agent."""

    word: str
    notes: tuple[str, ...] = ()


class Joint(NamedTuple):
    """One scenario in which several programs work on one task."""

    title: str
    agents: tuple[str, ...]
    is_smoke: bool = False


class Row(NamedTuple):
    """One scenario."""

    title: str
    is_smoke: bool = False
    #: For a scenario without a test: why.
    not_built: str = ""


def render(
    rows: Mapping[str, Row],
    cells: Mapping[tuple[str, str], Cell],
    *,
    together: Mapping[str, Joint] | None = None,
    is_part: bool = False,
) -> str:
    """The page. Equal results give equal text. A part is for the terminal: rows and notes only."""
    notes: list[str] = []
    lines = [] if is_part else [_HEAD]
    if rows:
        lines.append("| | " + " | ".join(f"{pin.agent}<br>{pin.version}" for pin in PINS) + " |")
        lines.append("|---" * (len(PINS) + 1) + "|")
    for name, row in rows.items():
        words = [row.not_built or _word(cells.get((name, pin.agent)), notes) for pin in PINS]
        lines.append(f"| {_title(row)} | " + " | ".join(words) + " |")
    if together:
        lines += [
            *([] if is_part else ["", "## Together", "", _TOGETHER, ""]),
            "| | programs | |",
            "|---|---|---|",
        ]
    for name, joint in (together or {}).items():
        word = _word(cells.get((name, TOGETHER)), notes)
        lines.append(f"| {_title(joint)} | {', '.join(joint.agents)} | {word} |")
    lines += ["", _LEGEND] if notes and not is_part else []
    lines += ["", *(f"{number}. {note}" for number, note in enumerate(notes, 1))] if notes else []
    return "\n".join(lines) + "\n"


def _title(row: Row | Joint) -> str:
    return f"**{row.title}**" if row.is_smoke else row.title


def _word(cell: Cell | None, notes: list[str]) -> str:
    if cell is None:
        return "**did not run**"
    notes += [note for note in dict.fromkeys(cell.notes) if note not in notes]
    numbers = ", ".join(str(notes.index(note) + 1) for note in dict.fromkeys(cell.notes))
    return f"{cell.word} ({numbers})" if numbers else cell.word
