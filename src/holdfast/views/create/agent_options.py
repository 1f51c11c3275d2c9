"""Options of agents (`-o KEY=VALUE`): one that the agent does not know is an error."""

from __future__ import annotations

import os

from holdfast.agents.base import COMMON_OPTIONS
from holdfast.errors import UsageError
from holdfast.store import foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter
    from holdfast.model.spec import StageSpec

#: Options that only apply to an agent: value → flag.
_FOR_AGENTS = {
    "option": "-o",
    "model": "--model",
    "permissions": "--permissions",
    "yolo": "--yolo",
    "bootstrap": "--bootstrap",
    "var": "--var",
    "budget_usd": "--budget-usd",
    "budget_tokens": "--budget-tokens",
    "max_turns": "--max-turns",
}
_SWITCH = {"true": True, "false": False}


def refuse_for_command(values: dict[str, Any]) -> None:
    """Raise UsageError for options that a plain command would ignore, such as a budget."""
    for name, flag in _FOR_AGENTS.items():
        if values.get(name):
            raise UsageError(
                f"{flag} applies to agents, and this is a plain command",
                hint="leave it out, or choose an agent with --agent NAME",
            )


def read(pairs: list[str], adapters: list[Adapter], *, project: str) -> dict[str, object]:
    """The options of an agent, or of one that may take over. Raises UsageError."""
    options: dict[str, object] = {}
    for text in pairs:
        key, value = pair("--option", text)
        _check(key, adapters)
        if any(key in adapter.capabilities.switches for adapter in adapters):
            if value not in _SWITCH:
                raise UsageError(f"-o {text}: must be true or false", hint=f"-o {key}=true")
            options[key] = _SWITCH[value]
        else:
            options[key] = _named_file(value, project) if os.path.isfile(value) else value
    return options


def _named_file(name: str, project: str) -> str:
    """The absolute path: a name is relative to here, and the runner has another directory. It is resolved,
    because a link may later be an agent's. Raises NotPossible if it is another's now."""
    foreign.refuse_way_out(name, project)
    return os.path.realpath(name)


def _check(key: str, adapters: list[Adapter]) -> None:
    if key == "yolo":
        raise UsageError("-o yolo: this option has its own flag", hint="--permissions full")
    known = _known(adapters)
    if known is not None and key not in known:
        raise UsageError(f"-o {key}: {adapters[0].name} has no such option", hint=_suggestion(key, known))


def unknown(stage: StageSpec, adapters: list[Adapter]) -> list[str]:
    """Messages about options of a stage that none of its agents knows."""
    known = _known(adapters)
    if known is None:
        return []
    return [
        f"{stage.name}: {stage.agent} has no option {key} ({_suggestion(key, known)})"
        for key in stage.options
        if key not in (*known, "yolo")
    ]


def _known(adapters: list[Adapter]) -> tuple[str, ...] | None:
    """The options that one of them knows; None if one accepts any."""
    lists = [adapter.capabilities.options for adapter in adapters]
    if None in lists:
        return None
    return tuple(dict.fromkeys([*(name for names in lists for name in names or ()), *COMMON_OPTIONS]))


def _suggestion(key: str, known: tuple[str, ...]) -> str:
    from holdfast.views.text import suggest

    return suggest.did_you_mean(key, known) or f"its options: {', '.join(known)}"


def pair(flag: str, text: str) -> tuple[str, str]:
    """KEY and VALUE. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(
            f"{flag} {text}: not KEY=VALUE", hint=f"give it a value: {flag} {key or 'KEY'}=VALUE"
        )
    return key, value
