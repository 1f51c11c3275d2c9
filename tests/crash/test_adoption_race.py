"""A runner is stopped between two reads of an attempt's directory while the agent starts and exits."""

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
def test_an_agent_that_starts_and_exits_between_two_reads_is_not_taken_for_one_that_never_started(
    place: Place, clean_env: dict[str, str]
) -> None:
    """The child is stopped before it writes identity.json, so that the runner's first read finds nothing.

    A runner that reads identity.json before exit.json would then see an exit without an identity, and run the
    agent again.
    """
    case = Case(place.root, "race", "recorder.before_identity=stop,adopt.between_reads=stop")
    del case.env["HOLDFAST_FAILPOINT_ONCE"]  # both points act, each in its own process
    BY_NAME["plain"].begin(case)
    directory = case.packet.attempt("001-command_run")
    try:
        case.start_runner()
        runner = case.runner
        assert runner is not None
        eventually(lambda: _is_stopped(runner.pid), what="the runner is stopped between its reads")
        (child,) = eventually(lambda: _stopped(case) - {runner.pid}, what="the agent is held back")
        assert not os.path.exists(directory.identity)

        os.kill(child, signal.SIGCONT)
        eventually(lambda: os.path.exists(directory.exit), what="meanwhile the agent starts and exits")
        # The point may act again: each stop is answered with a SIGCONT.
        eventually(lambda: _go_on(runner.pid) or case.has_ended, within_s=20, journal=case.packet.journal)
        task = invariants.check(case, end=Status.COMPLETED, retries=0)
        assert task.last_number == 1, "it ran once"
    finally:
        case.close()


def _go_on(pid: int) -> None:
    if _is_stopped(pid):
        os.kill(pid, signal.SIGCONT)


def _stopped(case: Case) -> set[int]:
    return {process.pid for process in processes.marked(case.root) if process.state == "T"}


def _is_stopped(pid: int) -> bool:
    process = processes.look(pid)
    return process is not None and process.state == "T"
