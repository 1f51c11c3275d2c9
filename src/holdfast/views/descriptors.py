"""Whether enough files can be opened: an event loop that cannot be made leaves noise behind, and a runner or
keeper that cannot open its files dies where nobody sees it."""

from __future__ import annotations

import os
import resource

from holdfast.errors import NotPossible

#: What a runner and a keeper need: with fewer, they die at their start, or start no agent.
RUNNER_FILES = 32
_HINT = "'ulimit -n 1024' raises the limit of this shell"


def need_for_runner() -> None:
    """Raises NotPossible if a process that inherits the limit of this one cannot drive a task."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit != resource.RLIM_INFINITY and limit < RUNNER_FILES:
        raise NotPossible(
            f"only {limit} files can be opened here, and a task needs {RUNNER_FILES}: it would never start",
            hint=_HINT,
        )


def need(count: int, who: str) -> None:
    """Raises NotPossible if fewer files can be opened."""
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.dup(2))
    except OSError as error:
        raise NotPossible(
            f"'{who}' needs {count} more open files: {error.strerror}",
            hint=_HINT,
        ) from error
    finally:
        for each in opened:
            os.close(each)
