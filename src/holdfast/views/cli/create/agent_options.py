"""Options of agents, as they are typed: what the agent does not know is refused, not dropped in silence."""

from __future__ import annotations

import os

from holdfast.agents.base import COMMON_OPTIONS
from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter
    from holdfast.model.spec import StageSpec

#: Options of a task that only an agent hears: the flag, by its name among the values.
_OF_AGENTS = {
    "option": "-o",
    "model": "--model",
    "yolo": "--yolo",
    "bootstrap": "--bootstrap",
    "var": "--var",
    "budget_usd": "--budget-usd",
    "budget_tokens": "--budget-tokens",
    "max_turns": "--max-turns",
}
_SWITCH = {"true": True, "false": False}


def refuse_for_command(values: dict[str, Any]) -> None:
    """Raises UsageError for what means nothing to a plain command: whoever sets a budget believes that it holds."""
    for name, flag in _OF_AGENTS.items():
        if values.get(name):
            raise UsageError(
                f"{flag} is for an agent, and this is a plain command",
                hint="leave it out, or name the agent that does the work: --agent NAME",
            )


def read(pairs: list[str], adapters: list[Adapter]) -> dict[str, object]:
    """What `-o KEY=VALUE` sets for an agent, or for one that may take over. Raises UsageError."""
    found: dict[str, object] = {}
    for text in pairs:
        key, value = pair("--option", text)
        _check(key, adapters)
        if any(key in adapter.capabilities.switches for adapter in adapters):
            if value not in _SWITCH:
                raise UsageError(f"-o {text}: it is either true or false", hint=f"-o {key}=true")
            found[key] = _SWITCH[value]
        else:
            # A file is meant from here, not from where the runner will be.
            found[key] = os.path.abspath(value) if os.path.isfile(value) else value
    return found


def _check(key: str, adapters: list[Adapter]) -> None:
    if key == "yolo":
        raise UsageError("-o yolo: it has a flag of its own", hint="--yolo")
    known = _known(adapters)
    if known is not None and key not in known:
        raise UsageError(f"-o {key}: {adapters[0].name} has no such option", hint=_instead(key, known))


def unknown(stage: StageSpec, adapters: list[Adapter]) -> list[str]:
    """The options of a stage that none of its agents knows, each with what may be meant."""
    known = _known(adapters)
    if known is None:
        return []
    return [
        f"{stage.name}: {stage.agent} has no option {key} ({_instead(key, known)})"
        for key in stage.options
        if key not in (*known, "yolo")
    ]


def _known(adapters: list[Adapter]) -> tuple[str, ...] | None:
    """What one of them knows; None where one does not say."""
    lists = [adapter.capabilities.options for adapter in adapters]
    if None in lists:
        return None
    return tuple(dict.fromkeys([*(name for names in lists for name in names or ()), *COMMON_OPTIONS]))


def _instead(key: str, known: tuple[str, ...]) -> str:
    from holdfast.views.cli.parse import suggest

    return suggest.did_you_mean(key, known) or f"it has {', '.join(known)}"


def pair(flag: str, text: str) -> tuple[str, str]:
    """KEY and VALUE. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(
            f"{flag} {text}: not KEY=VALUE", hint=f"give it a value: {flag} {key or 'KEY'}=VALUE"
        )
    return key, value
