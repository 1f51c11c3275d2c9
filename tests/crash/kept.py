"""Lives with other processes of holdfast: a command line, a seed, a keeper that starts everything."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from holdfast import seed_client
from holdfast.model.status import Status
from holdfast.packet import inbox
from holdfast.store import lock as locks
from holdfast.testing import Scenario as Script
from tests.crash import plain
from tests.crash.drive import Case
from tests.support import processes
from tests.support.waiting import eventually


def by_command_line(case: Case) -> None:
    argv = [
        "run",
        "-d",
        "--id",
        "task",
        "--project",
        case.project,
        "--base-interval",
        "0.3s",
        "--stale",
        "none",
    ]
    argv += ["--", *plain.counting("exec sleep 60")]
    if case.holdfast(*argv) != 0 and not os.path.isdir(case.packet.path):
        # Nothing was created, so the command is typed again.
        assert case.holdfast(*argv) == 0


def stop_by_command_line(case: Case) -> None:
    argv = ("stop", "task", "--no-wait")
    if case.holdfast(*argv) != 0 and not inbox.names(case.packet) and case.status is Status.RUNNING:
        # Killed before the request was renamed into place, so the command is typed again.
        case.holdfast(*argv)


def from_seed(case: Case) -> None:
    plain.plain(case)
    seed = subprocess.Popen([sys.executable, "-m", "holdfast.seed"], env=case.env, stderr=subprocess.DEVNULL)
    case.others.append(seed)
    while seed_client.ask(case.home, {"verb": "ping"}) is None:
        if seed.poll() is not None:
            return  # killed where it answered: the runner is started without it
        case.pause()
    seed_client.fork_runner(case.packet)


def kept(case: Case) -> None:
    """A keeper restarts runners, and the test restarts the keeper."""
    os.unlink(case.home.down)
    script = plain.say_lines(1, 3, Script().fail_if_running()).crash("KILL", tries=1)
    case.create(scenario=plain.script_file(case, plain.say_lines(4, 6, script).result("done")))
    tend_keeper(case)


def kept_by(begin: Callable[[Case], None]) -> Callable[[Case], None]:
    """A life in which a keeper starts everything."""

    def begin_with_keeper(case: Case) -> None:
        os.unlink(case.home.down)
        begin(case)
        tend_keeper(case)

    return begin_with_keeper


def tend_keeper(case: Case) -> None:
    if locks.is_held(case.home.keeper_lock) or any(other.poll() is None for other in case.others):
        return
    with open(case.log, "ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "holdfast.keeper"],
            env=case.env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    case.others.append(keeper)


def dismiss(case: Case) -> None:
    """End keeper and seed, which outlive the task."""
    plain.touch(case.home.down)

    def are_gone() -> bool:
        own = [
            p
            for p in processes.marked(case.root)
            if "holdfast.keeper" in p.command or "holdfast.seed" in p.command
        ]
        processes.kill(own)
        return not own

    eventually(are_gone, within_s=10, what="keeper and seed are gone")
