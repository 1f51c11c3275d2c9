"""Who has a claim: a process for ever, or somebody outside whose life is none of our business."""

from __future__ import annotations

import os

from holdfast.model.process import ProcessIdentity
from holdfast.store import process

#: How the owner of somebody else's claim begins.
OUTSIDE = "outside:"


def me() -> str:
    """This process, as the owner of a claim."""
    found = process.identify(os.getpid())
    assert found is not None, "we are alive"
    return f"{found.boot_id}:{found.pid}:{found.start_time}"


def outside(name: str) -> str:
    """A worker that is not ours: it keeps its claim until it gives it back."""
    return f"{OUTSIDE}{name}"


def is_outside(owner: str | None) -> bool:
    """Whether the claim is that of somebody else's worker."""
    return owner is not None and owner.startswith(OUTSIDE)


def is_alive(owner: str | None) -> bool:
    """Whether the owner can still be doing something about its claim."""
    if is_outside(owner):
        return True
    try:
        boot_id, pid, ticks = (owner or "").split(":")
        return process.is_alive(ProcessIdentity(boot_id=boot_id, pid=int(pid), start_time=int(ticks)))
    except ValueError:
        return False
