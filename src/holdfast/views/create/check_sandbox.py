"""The sandbox of a new task: whether it gets one, and that this machine can make it."""

from __future__ import annotations

import os

from holdfast.errors import UsageError
from holdfast.model.spec import SandboxSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read(
    values: dict[str, Any],
    settings: dict[str, Any],
    *,
    project: str,
    packet: tuple[str | None, str | None] = (None, None),
) -> SandboxSpec | None:
    """The sandbox, from flags, settings and a packet's `sandbox` and `network`; None without one.

    The stricter of settings and packet holds; only a flag loosens it. Raises UsageError, SandboxMissing.
    """
    wanted, unwanted, network = values.get("sandbox"), values.get("no_sandbox"), values.get("network")
    if wanted and unwanted:
        raise UsageError("--sandbox and --no-sandbox exclude each other", hint="give one of them")
    is_on = not unwanted and bool(wanted or "on" in (settings.get("sandbox"), packet[0]))
    if network is not None and network not in ("on", "off"):
        raise UsageError(
            f"--network {network}: must be on or off",
            hint="a list of hosts is not supported: choose --network off, or on",
        )
    if not is_on:
        if network is not None:
            raise UsageError(f"--network {network} needs a sandbox", hint=f"--sandbox --network {network}")
        return None
    is_offline = network == "off" or (network is None and "off" in (settings.get("network"), packet[1]))
    _check_project(project)
    from holdfast.sandbox import machine

    machine.require(network=not is_offline)
    return SandboxSpec(network=not is_offline)


def _check_project(project: str) -> None:
    """A workspace that contains the user's home would make all of it writable. Raises UsageError."""
    home, place = os.path.realpath(os.path.expanduser("~")), os.path.realpath(project)
    if home == place or home.startswith(place.rstrip("/") + "/"):
        raise UsageError(
            f"--sandbox: the project {project} contains your home directory, so all of it could be written",
            hint="choose the project's own directory with --project",
        )
