"""docs/agents.md: what holdfast knows of each agent, written from the adapters.

python -m tests.docs.agents_page          write it
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from holdfast.agents import registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.agents.base import Adapter, Capabilities

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "agents.md")

_HEAD = """\
# Agents

What holdfast knows of each agent: where it can do less, holdfast makes up for it. Written from the adapters by
`python -m tests.docs.agents_page`: not by hand. `holdfast agent probe NAME` says what of it is on your machine,
[conformance.md](conformance.md) what the real programs did, and [add-an-agent.md](guides/add-an-agent.md) how to add one.
"""
_TABLE = (
    ("goes on in its session", lambda able: _yes(able.can_resume)),
    ("session id", lambda able: _SESSION_ID[able.session_id_from] if able.can_resume else "none"),
    ("resumed only where it began", lambda able: _yes(able.resume_needs_same_cwd)),
    ("refuses a second writer itself", lambda able: _yes(able.locks_session)),
    ("prompt", lambda able: _prompt(able)),  # noqa: PLW0108 - it stands below
    ("system prompt", lambda able: "appended" if able.appends_system_prompt else "in front of the prompt"),
    ("effort", lambda able: _yes(able.takes_effort)),
    ("events on stdout", lambda able: _yes(able.has_events)),
    ("silent though it works", lambda able: _listed(able.silent_during)),
    ("tokens", lambda able: _USAGE[able.usage_scope]),
    ("dollars", lambda able: "reported" if able.reports_cost else "unknown"),
    ("limits of its own", lambda able: _listed(able.own_limits)),
    ("may be stuck after", lambda able: f"{able.stale_s:g} s" if able.stale_s is not None else "never"),
    ("is stopped by", lambda able: ", ".join(f"{step.signal} {step.pause_s:g} s" for step in able.stop)),
    ("memory", lambda able: f"{able.memory_mb} MB"),
)
_SESSION_ID = {
    "chosen": "chosen by holdfast",
    "event": "told by an event",
    "result": "told at its end",
    "title": "looked up",
}
_USAGE = {"process": "of each process", "session": "of the whole session", "none": "unknown"}


def page() -> str:
    """The whole page."""
    adapters = [registry.adapter(name) for name in sorted(registry.BUILT_IN)]
    parts = [_HEAD, _table(adapters), _LEGEND]
    parts += [_section(adapter) for adapter in adapters]
    return "\n".join(parts)


_LEGEND = """\
*Silent though it works*: in a tool, while a text is made, in retries of its own, at its start; this is not taken for a hang while
something else shows life. *Is stopped by*: signals in this order, each with the pause before the next; whatever its tools
leave running is swept afterwards. What has no limits of its own is held to turns, tokens and dollars by holdfast.
A figure that nobody reports is unknown, never 0.
"""


def _table(adapters: list[Adapter]) -> str:
    rows = ["| | " + " | ".join(f"`{adapter.name}`" for adapter in adapters) + " |"]
    rows.append("|---" * (len(adapters) + 1) + "|")
    for title, cell in _TABLE:
        rows.append(f"| {title} | " + " | ".join(cell(adapter.capabilities) for adapter in adapters) + " |")
    return "\n".join(rows) + "\n"


def _section(adapter: Adapter) -> str:
    able = adapter.capabilities
    about = (sys.modules[type(adapter).__module__].__doc__ or "").strip().removeprefix(f"{adapter.name}: ")
    about = about[:1].upper() + about[1:]
    lines = [f"## {adapter.name}\n", about + "\n"]
    facts = (
        ("Program", f"`{able.program}`" if able.program else ""),
        ("Package", f"`{able.package}`" if able.package else ""),
        ("Needs", _code(f"-o {name}=…" for name in able.needs)),
        ("Log in", able.login),
        ("A login is seen by", _code((*able.login_env, *able.login_files))),
        ("Models by short name", ", ".join(f"`{a}` = `{b}`" for a, b in able.aliases.items())),
        ("Variables that are passed on", _code(able.env)),
    )
    lines += [f"- {title}: {text}" for title, text in facts if text]
    return "\n".join(lines).rstrip() + "\n"


def _yes(value: object) -> str:
    return "yes" if value else "no"


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(words) or "–"


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _prompt(able: Capabilities) -> str:
    how = "stdin" if able.stdin_prompt else "argument"
    if able.prompt_bytes is None:
        return how
    return f"{how}, up to {able.prompt_bytes / 1_000_000:.1f} MB"


if __name__ == "__main__":
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(page())
