"""docs/agents.md, generated from the adapters: `python -m tests.docs.agents_page` writes it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from holdfast.agents import registry
from holdfast.agents.base import LaunchSpec
from holdfast.model.spec import Limits, TaskSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.agents.base import Adapter, Capabilities

PATH = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "agents.md")

_HEAD = """\
# Agents

What each agent supports; holdfast compensates for what is missing. This page is generated from the adapters
by `python -m tests.docs.agents_page`. `holdfast agent probe NAME` checks an agent on your machine,
[conformance.md](conformance.md) has test results with the real programs, and
[add-an-agent.md](guides/add-an-agent.md) shows how to add one.
"""
_TABLE = (
    ("resumes its session", lambda able: _yes(able.can_resume)),
    ("session id", lambda able: _SESSION_ID[able.session_id_from] if able.can_resume else "none"),
    ("resumes only in the same directory", lambda able: _yes(able.resume_needs_same_cwd)),
    ("refuses a second writer itself", lambda able: _yes(able.locks_session)),
    ("prompt", lambda able: _prompt(able)),  # noqa: PLW0108 - defined below
    ("system prompt", lambda able: "appended" if able.appends_system_prompt else "in front of the prompt"),
    ("effort", lambda able: _yes(able.takes_effort)),
    ("events on stdout", lambda able: _yes(able.has_events)),
    ("silent while working", lambda able: _listed(able.silent_during)),
    ("tokens", lambda able: _USAGE[able.usage_scope]),
    ("dollars", lambda able: "reported" if able.reports_cost else "unknown"),
    ("built-in limits", lambda able: _listed(able.own_limits)),
    ("may hang after", lambda able: f"{able.stale_s:g} s" if able.stale_s is not None else "never"),
    ("stopped by", lambda able: ", ".join(f"{step.signal} {step.pause_s:g} s" for step in able.stop)),
    ("memory", lambda able: f"{able.memory_mb} MB"),
)
_SESSION_ID = {
    "chosen": "chosen by holdfast",
    "event": "from an event",
    "result": "from the result",
    "title": "looked up",
}
_USAGE = {"process": "per process", "session": "per session", "none": "unknown"}


def page() -> str:
    """The whole page."""
    adapters = [registry.adapter(name) for name in sorted(registry.BUILT_IN)]
    parts = [_HEAD, _table(adapters), _LEGEND, _permissions(adapters)]
    parts += [_section(adapter) for adapter in adapters]
    return "\n".join(parts)


_LEGEND = """\
- *silent while working*: during a tool call, while a text is generated, during its own retries, or at its
  start. This is not taken for a hang while something else shows activity.
- *may hang after*: seconds of silence; the setting `stale`.
- *stopped by*: signals in this order, each with the pause before the next. Leftover processes are swept
  afterwards.
- *built-in limits*: holdfast enforces limits of turns, tokens and dollars for agents without their own.
- A value that an agent does not report is unknown, never 0.
- Short model names are replaced by the full name at every start and resume.
"""


def _table(adapters: list[Adapter]) -> str:
    rows = ["| | " + " | ".join(f"`{adapter.name}`" for adapter in adapters) + " |"]
    rows.append("|---" * (len(adapters) + 1) + "|")
    for title, cell in _TABLE:
        rows.append(f"| {title} | " + " | ".join(cell(adapter.capabilities) for adapter in adapters) + " |")
    return "\n".join(rows) + "\n"


_PERMISSIONS = """\
## Permission profiles

`--permissions` of `run` and `submit`, `permissions` in a manifest or the settings. `edit` is the default for
work; roles that only read get `read`; `--yolo` means `full`. What a profile means is up to the program: this
is how holdfast asks it, and [conformance.md](conformance.md) shows what each program then refused. Options of
the agent (`-o permission_mode=…`, `sandbox`, `approval_mode`, `allowed_tools`) override the profile. Only a
sandbox keeps a command from writing elsewhere with every program.
"""


def _permissions(adapters: list[Adapter]) -> str:
    rows = ["| agent | profile | means | how |", "|---|---|---|---|"]
    for adapter in adapters:
        for each in adapter.capabilities.permissions:
            how = [*each.argv, *each.tools, *(f"{name}={value}" for name, value in each.env.items())]
            flags = f"`{' '.join(how)}`" if how else "–"
            flags += f"; with `--sandbox`: `{' '.join(each.in_sandbox)}`" if each.in_sandbox else ""
            rows.append(f"| `{adapter.name}` | `{each.profile}` | {each.means} | {flags} |")
    return _PERMISSIONS + "\n" + "\n".join(rows) + "\n"


def _section(adapter: Adapter) -> str:
    able = adapter.capabilities
    about = (sys.modules[type(adapter).__module__].__doc__ or "").strip().removeprefix(f"{adapter.name}: ")
    about = about[:1].upper() + about[1:]
    lines = [f"## {adapter.name}\n", about + "\n"]
    facts = (
        ("Program", f"`{able.program}`" if able.program else ""),
        ("Package", f"`{able.package}`" if able.package else ""),
        ("Needs", _code(f"-o {name}=…" for name in able.needs)),
        ("For a person (`holdfast takeover`)", _takeover(adapter)),
        ("Log in", able.login),
        ("Signs of a login", _code((*able.login_env, *able.login_files))),
        ("Short model names", ", ".join(f"`{a}` = `{b}`" for a, b in able.aliases.items())),
        ("Variables passed on", _code(able.env)),
    )
    lines += [f"- {title}: {text}" for title, text in facts if text]
    return "\n".join(lines).rstrip() + "\n"


def _takeover(adapter: Adapter) -> str:
    """The command line, without what depends on the task."""
    opens = getattr(adapter, "takeover", None)
    if opens is None or not adapter.capabilities.program:
        return ""
    task = TaskSpec(
        task_id="task", task_name="", goal="", project_dir="", agent=adapter.name, stages=(), limits=Limits()
    )
    spec = LaunchSpec(
        task=task, program=adapter.capabilities.program, prompt_path="", session_id="ID", resume_count=1
    )
    return f"`{' '.join(opens(spec).argv)}`"


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
