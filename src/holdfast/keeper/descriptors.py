"""The keeper's limit of open files: it has one descriptor per live task."""

from __future__ import annotations

import resource

from holdfast import spawn

#: Descriptors for everything but the runners: locks, the queue's database, the files and programs of a step.
RESERVED = 36


def raise_limit() -> None:
    """Raise the soft limit to the hard one. What the keeper executes gets the old one back."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        return  # some systems allow less than their hard limit
    spawn.executed_with = (soft, hard)


def for_runners() -> int:
    """How many runners can be watched by a descriptor; the others are polled."""
    return max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED)
