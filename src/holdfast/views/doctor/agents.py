"""Questions about the agents: is the program there, which version, is somebody logged in, what can be done with it.

No agent is run for it, and of a login only the names of variables and files are looked at.
"""

from __future__ import annotations

import os

from holdfast.agents import probe, program, registry
from holdfast.views.doctor.finding import Finding, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Capabilities


def known() -> list[str]:
    """Agents of ours that are a program of their own."""
    return [name for name in sorted(registry.BUILT_IN) if registry.adapter(name).capabilities.program]


def installed() -> list[str]:
    """Those that are in PATH."""
    path = os.environ.get("PATH", os.defpath)
    return [
        name
        for name in known()
        if program.which(registry.adapter(name).capabilities.program, path) is not None
    ]


def summary() -> Finding:
    """Which are there and which are not."""
    here = installed()
    missing = [name for name in known() if name not in here]
    if not here:
        return warn(
            "agents",
            f"none of {', '.join(missing)} is in PATH",
            "any command runs without them: 'holdfast run -- COMMAND'",
        )
    return ok("agents", ", ".join(here) + (f"; not in PATH: {', '.join(missing)}" if missing else ""))


def one(name: str) -> Finding:
    """One that is in PATH."""
    adapter = registry.adapter(name)
    found = probe.probe(adapter, os.environ)
    said = f"{found.version or 'of unknown version'} at {found.found}"
    if found.is_native:
        said += f", runs {found.path}"
    said = f"{said}; {_abilities(adapter.capabilities)}"
    if found.login_seen:
        return ok(name, f"{said}; login by {', '.join(found.login_seen)}")
    # It may be logged in all the same: by a keychain, or a provider in its settings.
    return warn(
        name, f"{said}; no sign of a login", f"unless you are logged in: {adapter.capabilities.login}"
    )


def _abilities(able: Capabilities) -> str:
    return ", ".join(
        [
            "resumes its session" if able.can_resume else "starts again from nothing",
            "tells its tokens" if able.usage_scope != "none" else "does not tell its tokens",
            "tells its cost" if able.reports_cost else "does not tell its cost",
        ]
    )
