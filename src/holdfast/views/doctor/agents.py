"""Checks of the agents: installed, version, login, abilities.

No agent is run. Of a login, only the names of variables and files are read.
"""

from __future__ import annotations

import os

from holdfast.agents import probe, program, registry
from holdfast.views.doctor.finding import Finding, ok, warn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Capabilities


def installed() -> list[str]:
    """Built-in agents whose program is in PATH."""
    path = os.environ.get("PATH", os.defpath)
    return [
        name
        for name in _known()
        if program.which(registry.adapter(name).capabilities.program, path) is not None
    ]


def summary() -> Finding:
    """Which agents are installed."""
    here = installed()
    missing = [name for name in _known() if name not in here]
    if not here:
        return warn(
            "agents",
            f"none of {', '.join(missing)} is in PATH",
            "install one; plain commands work without: 'holdfast run -- COMMAND'",
        )
    return ok("agents", ", ".join(here) + (f"; not in PATH: {', '.join(missing)}" if missing else ""))


def one(name: str) -> Finding:
    """An agent that is in PATH."""
    adapter = registry.adapter(name)
    probed = probe.probe(adapter, os.environ)
    message = f"{probed.version or 'unknown version'} at {probed.found}"
    if probed.is_native:
        message += f", runs {probed.path}"
    message = f"{message}; {_abilities(adapter.capabilities)}"
    if probed.login_seen:
        return ok(name, f"{message}; login by {', '.join(probed.login_seen)}")
    # It may still be logged in, through a keychain or a provider in its settings.
    return warn(name, f"{message}; no sign of a login", f"unless logged in: {adapter.capabilities.login}")


def _known() -> list[str]:
    """Built-in agents that need a program."""
    return [name for name in sorted(registry.BUILT_IN) if registry.adapter(name).capabilities.program]


def _abilities(capabilities: Capabilities) -> str:
    return ", ".join(
        [
            "resumes sessions" if capabilities.can_resume else "cannot resume",
            "reports tokens" if capabilities.usage_scope != "none" else "does not report tokens",
            "reports cost" if capabilities.reports_cost else "does not report cost",
        ]
    )
