"""The pytest plug-in that gathers the cells and writes the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.conformance.pins import PINS
from tests.conformance.scenarios import ROWS
from tests.conformance.scenarios import TOGETHER as JOINTS
from tests.conformance.table import TOGETHER, Cell, render

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
WANTED = [
    *((name, pin.agent) for name, row in ROWS.items() if not row.not_built for pin in PINS),
    *((name, TOGETHER) for name in JOINTS),
]


class Gathering:
    """Runs in the controller, which gets the reports of all workers."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str], Cell] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call or teardown of one cell; a failure in any of them is a failure, and so is a skip."""
        facts: dict[str, Any] = dict(report.user_properties)
        if "scenario" not in facts:
            return
        key = (facts["scenario"], facts["agent"])
        if report.failed or report.skipped:
            self.cells[key] = Cell("**fails**", (_why(report),))
        elif report.when == "call":
            told = [str(text) for kind, text in report.user_properties if kind in ("note", "cannot")]
            self.cells[key] = Cell("instead" if "cannot" in facts else "pass", tuple(told))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """A full run writes the page; a partial run only prints its rows."""
        if not self.cells:
            return
        if all(key in self.cells for key in WANTED):
            PAGE.write_text(render(ROWS, self.cells, together=JOINTS), encoding="utf-8")
            terminalreporter.write_line(f"wrote docs/{PAGE.name}")
        else:
            seen = {name for name, _ in self.cells}
            rows = {name: row for name, row in ROWS.items() if name in seen}
            joints = {name: joint for name, joint in JOINTS.items() if name in seen}
            terminalreporter.write_line(render(rows, self.cells, together=joints, is_part=True))


def pytest_configure(config: pytest.Config) -> None:
    """In the controller only: workers send their reports to it."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Gathering(), "conformance-table")


def _why(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash is not None else str(report.longrepr)).strip().splitlines()
    return f"{report.when}: {lines[0][:200] if lines else 'failed'}"
