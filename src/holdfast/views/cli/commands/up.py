"""holdfast up: start the keeper of this home."""

from __future__ import annotations

import os
import signal
import sys

from holdfast import clock, own_python, paths, program_search, spawn
from holdfast.errors import NotPossible, UsageError
from holdfast.packet import inbox
from holdfast.store import atomic, audit, lock_owner, process, up_options
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views import descriptors
from holdfast.views.cli.parse.command_spec import JSON, Command, Option
from holdfast.views.cli.queue import failures
from holdfast.views.cli.show import out
from holdfast.views.text import queue_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.process import ProcessIdentity

_START_S = 10.0

COMMAND = Command(
    name="up",
    summary="Start the keeper: it restarts what died and runs the queue.",
    description="'run' also starts it, and so does 'submit' unless the home is down. A keeper started by "
    "'up' runs until 'down'. In the foreground, Ctrl-C stops it and interrupts the running tasks of the "
    "queue; 'resume' continues them.",
    examples=("holdfast up", "holdfast up --slots 4", "holdfast up --foreground --max-iterations 10"),
    options=(
        Option(
            flags=("--foreground",), dest="foreground", kind="flag", help="Run the keeper in this process."
        ),
        Option(
            flags=("--slots",),
            dest="slots",
            metavar="N",
            help="Queued tasks that may run at the same time (1).",
        ),
        Option(
            flags=("--max-iterations",),
            dest="max_iterations",
            metavar="N",
            help="Stop after starting N tasks (0: no limit).",
        ),
        Option(
            flags=("--iteration-delay",),
            dest="iteration_delay",
            metavar="TIME",
            help="Pause between two tasks of a slot (5s).",
        ),
        Option(
            flags=("--no-inhibit",),
            dest="no_inhibit",
            kind="flag",
            help="Let the machine sleep while tasks run.",
        ),
        JSON.evolve(help="Print what 'status --json' prints."),
    ),
)


def run(values: dict[str, Any]) -> int:
    """Remove `down`, and make sure that a keeper runs."""
    _check_settings()
    process.require_proc()
    descriptors.need_for_runner()
    home = Home(paths.ensure_home(paths.home()))
    loop = {**_loop_options(values), "project": _working_directory()}
    if values["foreground"]:
        _refuse_second(home)
    spawn.allow_keeper(home)
    if os.environ.get("HOLDFAST_KEEPER") == "off":
        raise NotPossible("HOLDFAST_KEEPER=off forbids a keeper", hint="unset it and try again")
    # Read by the current keeper, and by its successor after a crash.
    options = atomic.encode_json({"schema": "holdfast.up/1", "at": clock.iso_now(), "loop": loop})
    up_options.note(home.path, options)
    atomic.write(home.up, options, durable=True)
    audit.append(home, {"operation": "home.up", "by": audit.whoami(), "reason": loop["project"]})
    # Count iterations from zero again.
    if forgotten := failures.forget(home, removes_file=False, also={"since_up": 0}):
        out.talk(forgotten)
    if values["foreground"]:
        os.environ |= {"HOLDFAST_ROLE": "keeper", program_search.AROUND: program_search.around()}
        for name in spawn.ATTEMPT_VARIABLES:
            os.environ.pop(name, None)
        # Blocked until the keeper handles it: while it loads, Ctrl-C would print a traceback.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        os.execv(sys.executable, own_python.command("holdfast.keeper", "--foreground"))
    spawn.ensure_keeper(home, by_person=True, for_good=True)
    owner = _await_keeper(home)
    inbox.ring_keeper(home)  # a keeper that was already running reads the new options
    if values["json"]:
        from holdfast.views.facts import home_status

        out.data(home_status.gather(home))
    else:
        out.talk(f"the keeper of {home.path} is running (process {owner.pid})")
        if not forgotten and (question := queue_reason.question_of(home)):
            out.talk(question)
    return 0


def _check_settings() -> None:
    """Raises UsageError for invalid settings. A running keeper would only keep the previous ones."""
    from holdfast.config import settings, variables

    settings.effective(None, os.environ)
    variables.check_keeper(os.environ)


def _refuse_second(home: Home) -> None:
    """A background keeper is replaced, but not one in another foreground."""
    if locks.is_held(home.keeper_lock) and lock_owner.role(home.keeper_lock) == "loop":
        owner = lock_owner.owner(home.keeper_lock)
        pid = f" (process {owner.pid})" if owner is not None else ""
        raise NotPossible(
            f"a keeper of this home is already running in the foreground{pid}",
            hint="stop it with Ctrl-C, or 'holdfast down'",
        )


def _loop_options(values: dict[str, Any]) -> dict[str, Any]:
    """The options of the loop that were given; settings provide the others."""
    options: dict[str, Any] = {}
    for name, least in (("slots", 1), ("max_iterations", 0)):
        if values[name] is not None:
            options[name] = _count(name, values[name], least)
    if values["no_inhibit"]:
        options["inhibit_sleep"] = False
    if values["iteration_delay"] is not None:
        try:
            options["iteration_delay_s"] = clock.parse_duration(values["iteration_delay"], needs_unit=True)
        except ValueError as error:
            raise UsageError(
                f"--iteration-delay: {error}", hint="for example --iteration-delay 5s"
            ) from error
    return options


def _working_directory() -> str:
    """The project of items that sources bring; empty if the directory was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


#: Longest number accepted.
_DIGITS = 9


def _count(name: str, text: str, least: int) -> int:
    if not text.isdecimal() or len(text) > _DIGITS or int(text) < least:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(f"{flag} {text}: must be a number, {least} or more", hint=f"for example {flag} 4")
    return int(text)


def _await_keeper(home: Home) -> ProcessIdentity:
    """Wait for the keeper to hold the lock. Just after a start, the file may still name its predecessor."""
    ends_mono = clock.mono() + _START_S
    while True:
        owner = lock_owner.owner(home.keeper_lock) if locks.is_held(home.keeper_lock) else None
        if owner is not None and process.is_alive(owner):
            return owner
        if clock.mono() > ends_mono:
            raise NotPossible(f"the keeper of {home.path} did not start", hint=f"see {home.keeper_log}")
        clock.sleep(0.01)
