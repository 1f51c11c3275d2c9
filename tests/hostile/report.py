"""A pytest plug-in: adds up the counts of all hostile tests, prints them, and writes docs/resilience.md."""

from __future__ import annotations

import os
from collections import defaultdict

import pytest

from tests.hostile import counts
from tests.support import pages

PAGE = os.path.join("docs", "resilience.md")
_COLUMNS = ("cases", "passed", "tasks", "ends", "overlaps", "leftovers")
_BEGIN, _END = "<!-- generated: make hostile -->", "<!-- end -->"


class Sums:
    """Counts by test file."""

    def __init__(self) -> None:
        self._by_file: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COLUMNS, 0))

    def add(self, report: pytest.TestReport) -> None:
        sums = self._by_file[os.path.basename(report.location[0]).removeprefix("test_").removesuffix(".py")]
        if report.when == "call":
            own = [value for name, value in report.user_properties if name == "cases"]
            cases = sum(int(value) for value in own if isinstance(value, int)) or 1
            sums["cases"] += cases
            sums["passed"] += cases if report.passed else 0
        elif report.when == "teardown":
            for name, found in report.user_properties:
                if name == counts.PROPERTY and isinstance(found, dict):
                    for column in ("tasks", "ends", "overlaps"):
                        sums[column] += found[column]
            sums["leftovers"] += report.failed and "still alive" in str(report.longrepr)

    def table(self) -> str:
        """As Markdown."""
        rows = sorted(self._by_file.items())
        total = {column: sum(sums[column] for _, sums in rows) for column in _COLUMNS}
        lines = [f"| | {' | '.join(_COLUMNS)} |", f"|---|{'---:|' * len(_COLUMNS)}"]
        for name, sums in [*rows, ("**all**", total)]:
            cells = " | ".join(str(sums[column]) for column in _COLUMNS)
            lines.append(f"| {name.replace('_', ' ')} | {cells} |")
        return "\n".join(lines)


_sums = Sums()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _sums.add(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    table = _sums.table()
    terminalreporter.write_line(table)
    if os.environ.get("HOLDFAST_HOSTILE_WRITE"):
        text = pages.read(PAGE)
        before, _, rest = text.partition(_BEGIN)
        after = rest.partition(_END)[2]
        with open(os.path.join(pages.ROOT, PAGE), "w", encoding="utf-8") as file:
            file.write(f"{before}{_BEGIN}\n{table}\n{_END}{after}")
