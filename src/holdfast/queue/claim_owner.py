"""The owner of a claim: one of holdfast's processes, or an external worker whose liveness is not tracked."""

from __future__ import annotations

import os

from holdfast.model.process import ProcessIdentity
from holdfast.store import process

#: Prefix of an external worker in `claimed_by`.
EXTERNAL = "outside:"


def this_process() -> str:
    """This process, as the owner of a claim."""
    identity = process.identify(os.getpid())
    assert identity is not None, "the current process exists"
    return f"{identity.boot_id}:{identity.pid}:{identity.start_time}"


def external(name: str) -> str:
    """An external worker: it keeps its claim until it releases it."""
    return f"{EXTERNAL}{name}"


def is_external(owner: str | None) -> bool:
    """Whether the owner is an external worker."""
    # An agent can write anything into a row.
    return isinstance(owner, str) and owner.startswith(EXTERNAL)


def is_alive(owner: str | None) -> bool:
    """Whether the owner may still be working on its claim."""
    if is_external(owner):
        return True
    try:
        boot_id, pid, ticks = (owner or "").split(":")
        return process.is_alive(ProcessIdentity(boot_id=boot_id, pid=int(pid), start_time=int(ticks)))
    except (ValueError, TypeError):
        return False
