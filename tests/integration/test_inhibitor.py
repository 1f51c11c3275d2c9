"""The machine stays awake while tasks run, and no longer than its keeper lives."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator

import pytest

from holdfast import paths
from holdfast.packet import inbox
from holdfast.store import atomic
from holdfast.store.layout import Home
from holdfast.views.cli.commands import up
from tests.support import keepers, kin, processes
from tests.support.tasks import Task, workspace
from tests.support.waiting import eventually

#: A keeper that keeps its lock for a shorter time.
KEEPER = """
from holdfast.keeper import inhibitor, main
inhibitor.KEPT_S = 0.2
main.main([])
"""
#: Like the real one: it holds the lock while its command runs.
STAND_IN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
echo "taken $$" >> %s
"$@"
echo released >> %s
"""
#: `up --no-inhibit`.
VALUES = {"slots": None, "max_iterations": None, "iteration_delay": None, "no_inhibit": True}


class Machine:
    """A machine whose lock against sleep is a stand-in that writes a log."""

    def __init__(self, home: str, folder: str) -> None:
        self.home, self.folder = home, folder
        self.log = os.path.join(folder, "log")
        os.makedirs(folder)
        os.symlink("/bin/cat", os.path.join(folder, "cat"))
        self.keeper: subprocess.Popen[bytes] | None = None

    def install(self, script: str = "") -> None:
        path = os.path.join(self.folder, "systemd-inhibit")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script or STAND_IN % (self.log, self.log))
        os.chmod(path, stat.S_IRWXU)

    def start_keeper(self) -> int:
        with open(os.path.join(self.folder, "keeper.log"), "wb") as log:
            self.keeper = subprocess.Popen(
                [sys.executable, "-P", "-c", KEEPER],
                env={**os.environ, "HOLDFAST_ROLE": "keeper", "PATH": f"{self.folder}:{os.environ['PATH']}"},
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        return keepers.wait_for(self.home)

    def keeper_log(self) -> str:
        with open(os.path.join(self.folder, "keeper.log"), encoding="utf-8") as file:
            return file.read()

    def lines(self) -> list[str]:
        try:
            with open(self.log, encoding="utf-8") as file:
                return [line.split()[0] for line in file]
        except FileNotFoundError:
            return []

    def holders(self) -> list[int]:
        return [
            process.pid for process in processes.marked(f"HOLDFAST_HOME={self.home}") if self._is(process)
        ]

    def _is(self, process: processes.Process) -> bool:
        return os.path.join(self.folder, "cat") in process.command

    def ring(self) -> bool:
        inbox.ring_keeper(Home(self.home))
        return True

    def end(self) -> None:
        if self.keeper is not None:
            self.keeper.kill()
            self.keeper.wait(timeout=10)


@pytest.fixture
def machine(home: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """No other keeper is started: the one of the test is the only one."""
    workspace()
    machine = Machine(home, str(tmp_path_factory.mktemp("machine") / "bin"))
    yield machine
    machine.end()


def test_it_is_awake_while_a_task_runs_and_may_sleep_afterwards(machine: Machine) -> None:
    machine.install()
    machine.start_keeper()
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    eventually(lambda: machine.ring() and machine.lines() == ["taken"], what="the lock is taken")
    machine.ring()
    assert len(machine.holders()) >= 1
    kin.go()
    task.wait_for("completed")
    eventually(lambda: machine.ring() and machine.lines() == ["taken", "released"], what="it is released")
    eventually(lambda: not machine.holders(), what="nothing is left")


def test_two_tasks_share_one_lock(machine: Machine) -> None:
    machine.install()
    machine.start_keeper()
    tasks = [Task.shell(kin.WAIT), Task.shell(kin.WAIT)]
    for task in tasks:
        task.agent_pid()
        eventually(lambda: machine.ring() and machine.lines() == ["taken"], what="the lock is taken")
    kin.go()
    for task in tasks:
        task.wait_for("completed")
    eventually(lambda: machine.ring() and machine.lines() == ["taken", "released"], what="it is released")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_ends_with_its_keeper(machine: Machine, number: int) -> None:
    machine.install()
    keeper = machine.start_keeper()
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    eventually(lambda: machine.ring() and machine.lines() == ["taken"], what="the lock is taken")
    os.kill(keeper, number)
    eventually(lambda: machine.lines() == ["taken", "released"], what="it is released")
    eventually(lambda: not machine.holders(), what="nothing is left")
    kin.go()
    task.wait_for("completed")


def test_a_lock_that_cannot_be_taken_is_logged_once_and_ends_no_task(machine: Machine) -> None:
    machine.install("#!/bin/sh\nexit 1\n")
    machine.start_keeper()
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    eventually(lambda: machine.ring() and "may sleep" in machine.keeper_log(), what="it is logged")
    keepers.stays(lambda: machine.ring() and machine.keeper_log().count("may sleep") == 1, 0.5, "logged once")
    kin.go()
    task.wait_for("completed")


@pytest.mark.parametrize("by", ["settings", "up"])
def test_no_lock_is_taken_if_a_person_wants_none(machine: Machine, by: str) -> None:
    machine.install()
    if by == "settings":
        os.makedirs(os.path.dirname(paths.user_settings()), exist_ok=True)
        with open(paths.user_settings(), "w", encoding="utf-8") as file:
            file.write('inhibit_sleep = "off"\n')
    else:
        # The command starts a keeper that the test does not know, so only what it tells the keeper is taken.
        options = up._loop_options(VALUES)  # pyright: ignore[reportPrivateUsage]
        atomic.write_json(Home(machine.home).up, {"schema": "holdfast.up/1", "loop": options}, durable=False)
    machine.start_keeper()
    task = Task.shell(kin.WAIT)
    task.agent_pid()
    keepers.stays(lambda: machine.ring() and not machine.lines(), 1.0, "no lock is taken")
    kin.go()
    task.wait_for("completed")
