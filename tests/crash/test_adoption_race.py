"""A runner that is stopped between two reads of an attempt's directory, while the agent is born, works and ends."""

from __future__ import annotations

import os
import signal

import pytest

from holdfast.model.status import Status
from tests.conftest import Place
from tests.crash import invariants
from tests.crash.drive import Case
from tests.crash.scenarios import BY_NAME
from tests.support import processes
from tests.support.waiting import eventually


@pytest.mark.req("LCH-7", "SUP-10")
def test_an_agent_that_ends_between_two_looks_is_not_taken_for_one_that_never_started(
    place: Place, clean_env: dict[str, str]
) -> None:
    case = Case(place.root, "race", "adopt.between_reads=stop")
    BY_NAME["plain"].begin(case)
    directory = case.packet.attempt("001-command_run")
    try:
        case.start_runner()
        runner = case.runner
        assert runner is not None
        eventually(
            lambda: case.fired and _is_stopped(runner.pid), what="the runner is stopped between its reads"
        )
        eventually(lambda: os.path.exists(directory.exit), what="meanwhile the agent comes to its end")
        os.kill(runner.pid, signal.SIGCONT)
        eventually(lambda: case.has_ended, within_s=20, what="it ends", journal=case.packet.journal)
        task = invariants.check(case, end=Status.COMPLETED, retries=0)
        assert task.attempts == 1, "it ran once"
    finally:
        case.close()


def _is_stopped(pid: int) -> bool:
    found = processes.look(pid)
    return found is not None and found.state == "T"
