"""How a gate's process ends: 0 passed, 1 not passed, 3 nobody could judge, 70 a bug of ours. For 3 and 70 stderr says why."""

from __future__ import annotations

import sys
import traceback

from holdfast.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_COULD_NOT_JUDGE, _OUR_BUG = 3, 70


def exit_status(judge: Callable[[], bool]) -> int:
    """The exit status of a process that judges; `judge` writes its result and says whether it passed."""
    try:
        return 0 if judge() else 1
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return _COULD_NOT_JUDGE
    except (
        Exception
    ):  # a bug of ours must not look like a verdict; whoever reads the attempt's stderr sees it
        traceback.print_exc()
        return _OUR_BUG
