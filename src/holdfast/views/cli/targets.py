"""The tasks that a verb is for: ids, `--all`, or the filters of `ls`."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import HoldfastError, UsageError
from holdfast.model.record import Record
from holdfast.model.request import rules
from holdfast.model.status import Status
from holdfast.packet import load
from holdfast.store import admitted
from holdfast.store.layout import Home, Packet
from holdfast.views import option_values
from holdfast.views.cli import verbs
from holdfast.views.cli.parse.command_spec import Argument, Option
from holdfast.views.cli.show import out
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    #: Whether a verb is for a task, by its row of `ls`.
    Fits = Callable[[dict[str, Any]], bool]

TASKS = Argument(dest="task", metavar="TASK…", many=True, required=False, completes="task")
STATE = Option(
    flags=("--state",), dest="state", metavar="STATE", completes="state", help="Tasks in this state."
)
LABEL = Option(
    flags=("--label",),
    dest="label",
    kind="many",
    metavar="KEY=VALUE",
    help="Tasks with this label; repeatable.",
)
#: What `--state` may be.
STATES = (*Status, *describe.HELD)
NO_WAIT = Option(flags=("--no-wait",), dest="no_wait", kind="flag", help="Return as soon as it is accepted.")
#: The same for verbs that only wait a moment for a slot of the queue.
GOING_NO_WAIT = NO_WAIT.evolve(help="Do not wait a second for a slot of the queue.")
JSON_LINES = "Print each task's manifest, one per line."


def everything(which: str) -> Option:
    """`--all`, for a verb that is for `which` tasks."""
    return Option(flags=("--all",), dest="all", kind="flag", help=f"All {which}.")


class Chosen(Record):
    """The tasks of one command line."""

    packets: tuple[Packet, ...]
    #: Exit status of the first id that names no task; 0 if all do.
    status: int = 0


def choose(
    values: dict[str, Any],
    verb: str,
    *,
    fits: Fits,
    by_all: Fits | None = None,
    archived: bool = False,
    unknown: bool = False,
) -> Chosen:
    """The tasks of a command line. An id without a task is reported, and costs only itself.

    `--state` and `--label` choose among the tasks that `fits` is true for, `--all` among those of
    `by_all`, if given. With `unknown`, only among those that no command has created.
    """
    names: list[str] = list(dict.fromkeys(values["task"]))
    check_state(values["state"])
    wanted = option_values.labels(values["label"])
    is_filter = bool(values["all"] or values["state"] or wanted)
    if names and is_filter:
        raise UsageError(f"'{verb}' takes either ids or --all, --state and --label")
    home = Home(paths.home())
    if names:
        return _named(home, names, archived=archived)
    if not is_filter:
        example = verbs.load(verb).COMMAND.examples[0]
        raise UsageError(
            "which tasks? Give their ids, --all, --state STATE or --label KEY=VALUE",
            hint=f"for example: {example}",
        )
    from holdfast.model import labels
    from holdfast.views.facts import task_list  # loads a database

    rows = task_list.tasks(home, everything=True, state=values["state"])
    is_wanted = (by_all or fits) if values["all"] else fits
    packets = tuple(
        home.packet(row["task_id"]) for row in rows if is_wanted(row) and labels.match(row, wanted)
    )
    if unknown:
        packets = tuple(packet for packet in packets if not admitted.is_admitted(packet))
    elif rules(verb).lets_run:
        packets = tuple(filter(_is_known, packets))
    if not packets:
        out.talk(f"no task to {verb}")
    return Chosen(packets=packets)


def _is_known(packet: Packet) -> bool:
    """Whether a command made the packet. Otherwise a person must name it."""
    if admitted.is_admitted(packet):
        return True
    out.talk(f"left out: {admitted.objection(packet)}")
    return False


def check_state(state: str | None) -> None:
    """Raises UsageError, with what may be meant, unless it is None or a state."""
    if state is not None and state not in STATES:
        from holdfast.views.cli.parse import elsewhere
        from holdfast.views.text import suggest

        hint = suggest.did_you_mean(state, STATES, elsewhere.STATES) or f"states: {', '.join(STATES)}"
        if "," in state:
            hint = f"only one state can be given; states: {', '.join(STATES)}"
        raise UsageError(f"--state: no such state: {state!r}", hint=hint)


def _named(home: Home, names: list[str], *, archived: bool) -> Chosen:
    packets: dict[str, Packet] = {}
    status = 0
    for name in names:
        try:
            packet = load.find(home, name, archived=archived)
        except HoldfastError as error:
            if len(names) == 1:
                raise
            out.complain(error)
            status = status or error.exit_status
        else:
            packets[packet.task_id] = packet
    return Chosen(packets=tuple(packets.values()), status=status)
