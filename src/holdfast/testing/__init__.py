"""Public helpers for testing holdfast and programs built on it.

The scripted agent (`python -m holdfast.testing.agent`) plays a scenario file in place of a coding-agent CLI.
From Python, `Scenario` writes such files, `agent_command` returns the command line, and `SessionMemory` reads
what the processes of one session did.

The model servers (`holdfast.testing.models`) give scripted answers to a real coding-agent CLI; `ModelServer`
is one of them.

Names are imported on first use, so that starting the scripted agent does not load them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.testing.builder import Scenario, agent_command, scenario
    from holdfast.testing.memory import SessionMemory
    from holdfast.testing.models import ModelServer

__all__ = ["ModelServer", "Scenario", "SessionMemory", "agent_command", "scenario"]

_HOMES = {
    "Scenario": "holdfast.testing.builder",
    "agent_command": "holdfast.testing.builder",
    "scenario": "holdfast.testing.builder",
    "SessionMemory": "holdfast.testing.memory",
    "ModelServer": "holdfast.testing.models",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
