"""The table: measured value, baseline, ratio, target, met or missed."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.stats import number

HEADINGS = ("#", "what", "holdfast", "baseline", "ratio", "target", "")


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The cost of the same operation elsewhere, measured in the same run."""

    name: str
    #: None: it never happens there.
    value: float | None
    #: Shown after the value: `×30`, `scaled from 10 tasks`.
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table; a row of the list of targets may have several."""

    row: int
    what: str
    value: float
    unit: str
    baseline: Baseline | None = None
    #: The target as text, and whether it is met; None if there is no target for this line.
    target: str = ""
    met: bool | None = None
    #: Notes below the table.
    notes: tuple[str, ...] = field(default=())

    def ratio(self) -> str:
        """Our value divided by the baseline: below 1 is faster or smaller."""
        if self.baseline is None or not self.baseline.value:
            return "–"
        ratio = self.value / self.baseline.value
        # Small ratios are easier to read inverted.
        return f"1/{1 / ratio:.0f}" if 0 < ratio < 0.01 else f"{number(ratio)}×"

    def cells(self) -> list[str]:
        """The cells of the line, in the order of HEADINGS."""
        return [
            str(self.row),
            self.what,
            f"{number(self.value)} {self.unit}".strip(),
            self._baseline(),
            self.ratio(),
            self.target or "–",
            {True: "met", False: "MISSED", None: "–"}[self.met],
        ]

    def _baseline(self) -> str:
        if self.baseline is None:
            return "–"
        value = (
            "never" if self.baseline.value is None else f"{number(self.baseline.value)} {self.unit}".strip()
        )
        note = f" ({self.baseline.note})" if self.baseline.note else ""
        return f"{self.baseline.name}: {value}{note}"


def as_text(lines: list[Line]) -> str:
    """For a terminal: aligned columns."""
    rows = [list(HEADINGS), *(line.cells() for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([padded[0].rstrip(), "─" * len(padded[0]), *(row.rstrip() for row in padded[1:])])


def as_markdown(lines: list[Line]) -> str:
    """For docs/benchmarks.md."""
    rows = [list(HEADINGS), ["---"] * len(HEADINGS), *(line.cells() for line in lines)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def notes(lines: list[Line]) -> list[str]:
    """Every note once, with the number of its row."""
    found: list[str] = []
    for line in lines:
        for note in line.notes:
            text = f"Row {line.row}: {note}"
            if text not in found:
                found.append(text)
    return found
