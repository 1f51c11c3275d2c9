"""The process of a chore (`prepare`, `pre_work`, `gate`): its command line and its exit status.

0: done, or passed. 1: not passed. 1 to 3: the chore could not be done, and stderr has the error. 70: a bug in
holdfast.
"""

from __future__ import annotations

import os
import traceback

from holdfast.errors import HoldfastError, UsageError, print_error
from holdfast.packet import sealed
from holdfast.store.layout import Packet, packet_folders
from holdfast.workspace.git import SharedDirectories

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

COULD_NOT_JUDGE = 3
_BUG = 70


def exit_status(work: Callable[[], bool], *, on_error: int | None = None) -> int:
    """Do the work, which writes its result and returns whether it passed; return the exit status.

    `on_error` is the status of a HoldfastError; by default its own, at most 3, because a runner gives higher
    ones another meaning.
    """
    try:
        with SharedDirectories():
            return 0 if work() else 1
    except HoldfastError as error:
        print_error(error)
        return min(error.exit_status, 3) if on_error is None else on_error
    except Exception:  # a bug must not look like a verdict; the attempt's stderr has the traceback
        traceback.print_exc()
        return _BUG


def options(
    argv: list[str], *, required: tuple[str, ...], optional: tuple[str, ...] = (), usage: str
) -> dict[str, str]:
    """The options of a command line that has nothing else. `--attempt` is a number. Raises UsageError.

    `--packet` becomes its real path, once: an agent that puts a link there later leads to no other packet.
    `--journal` (the runner adds it) is how much of the journal this process believes.
    """
    values = dict(zip(argv[::2], argv[1::2], strict=False))
    known = {*required, *optional, "--journal"}
    is_known = set(required) <= values.keys() <= known and len(argv) == 2 * len(values)
    if not is_known or not values.get("--attempt", "0").isdigit():
        raise UsageError("unexpected arguments", hint=usage)
    if "--packet" in values:
        # The other paths begin with this one, which may be a link to where a user has moved the packet.
        packet_folders.add(os.path.dirname(values["--packet"]))
        values["--packet"] = os.path.realpath(values["--packet"])
    if "--journal" in values:
        sealed.pin(Packet(values["--packet"]), values["--journal"])
    return values
