"""The report of a stage is that of its session."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.runner.stage import outputs
from holdfast.store.layout import Packet
from tests.support.story import Story


def _report(folder: str, *modes: str) -> str:
    """The report of the last of several attempts, of which only the first printed one."""
    packet, story = Packet(folder), Story()
    for number, mode in enumerate(modes, 1):
        story.open(number, mode=mode, agent="command").end(number, "crashed").move("running")
        directory = packet.attempt(f"{number:03d}-a_run")
        os.makedirs(directory.path)
        with open(directory.stdout, "w", encoding="utf-8") as file:
            file.write("the first report\n" if number == 1 else "\n")
    ledger: Any = SimpleNamespace(packet=packet, task=story.task)
    attempt = story.task.stage_state("a_run").attempt
    assert attempt is not None
    return outputs._last_report(ledger, attempt).strip()


@pytest.mark.parametrize(
    ("modes", "report"),
    [
        (("fresh", "resume"), "the first report"),
        (("fresh", "resume", "resume"), "the first report"),
        # Another session said nothing about the work of this one.
        (("fresh", "briefing", "resume"), ""),
        (("fresh", "fresh", "resume", "resume"), ""),
        (("fresh", "briefing"), ""),
    ],
)
def test_an_attempt_without_a_report_takes_that_of_its_session_only(
    tmp_path: os.PathLike[str], modes: tuple[str, ...], report: str
) -> None:
    assert _report(os.fspath(tmp_path), *modes) == report
