"""The title and the text of a pull request: what was asked, who did it, what was checked, what it cost."""

from __future__ import annotations

import os

from holdfast import clock, units
from holdfast.model import acceptance
from holdfast.model.usage import Usage
from holdfast.packet import load, metrics
from holdfast.redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.stage_usage import StageUsage
    from holdfast.store.layout import Packet

_MAX_FILES = 50
_MAX_CHARS = 60_000
_TITLE_CHARS = 120


def title(packet: Packet, manifest: dict[str, Any]) -> str:
    """The goal in one line, without secrets."""
    goal = Redactor(dict(os.environ))(str(manifest.get("goal") or ""))
    return " ".join(goal.split())[:_TITLE_CHARS] or packet.task_id


def body(
    packet: Packet,
    manifest: dict[str, Any],
    *,
    paths: tuple[str, ...],
    left_out: tuple[str, ...],
    unjudged: tuple[str, ...] = (),
    is_accepted: bool = False,
) -> str:
    """Markdown. Others read it, so it is redacted, and has no path of this machine.

    `is_accepted`: its stages are done, and only the checks of this pull request are left.
    """
    used = metrics.analyse(packet).stages.stages
    parts = [
        str(manifest.get("goal") or "").strip(),
        _checks(packet, manifest, used, is_accepted=is_accepted or manifest["status"] == "completed"),
        _findings(manifest),
        _files(paths, left_out, unjudged),
        f"By holdfast, task `{packet.task_id}`{'' if is_accepted else ', ' + manifest['status']}.",
    ]
    return Redactor(dict(os.environ))("\n\n".join(part for part in parts if part))[:_MAX_CHARS] + "\n"


def _checks(
    packet: Packet, manifest: dict[str, Any], used: dict[str, StageUsage], *, is_accepted: bool
) -> str:
    rows = ["| stage | agent | gate | time | calls | tokens | cost |", "|---|---|---|---|---|---|---|"]
    total = Usage()
    for stage in manifest.get("stages") or ():
        usage = used.get(stage["name"])
        total = total if usage is None else total.plus(usage.used)
        gate = stage.get("gate") or stage["state"]
        cells = ("-", "-", "-", "-") if usage is None else _figures(usage.seconds, usage.calls, usage.used)
        rows.append(f"| {' | '.join((stage['name'], stage['agent'], gate, *cells))} |")
    seconds, calls = sum(each.seconds for each in used.values()), sum(each.calls for each in used.values())
    rows.append(f"| **total** | | | {' | '.join(_figures(seconds, calls, total))} |")
    accepted = "passed" if is_accepted else "did not pass, or did not run"
    lines = [f"- `{command}`" for command in acceptance.commands_of(load.fold(packet).spec)]
    listed = "\n".join([f"Acceptance commands ({accepted}):", "", *lines]) if lines else ""
    return "\n\n".join(part for part in ("## Checks", "\n".join(rows), listed) if part)


def _figures(seconds: float, calls: int, used: Usage) -> tuple[str, ...]:
    counts = [count for count in (used.input_tokens, used.output_tokens) if count is not None]
    return (
        clock.duration_text(seconds),
        str(calls),
        units.short(sum(counts)) if counts else "unknown",
        f"${used.cost_usd:.2f}" if used.cost_usd is not None else "unknown",
    )


def _findings(manifest: dict[str, Any]) -> str:
    found = [f"- {each['stage']}: {each['text']}" for each in manifest.get("concerns") or ()]
    return "\n".join(["## Findings", "", *found]) if found else ""


def _files(paths: tuple[str, ...], left_out: tuple[str, ...], unjudged: tuple[str, ...]) -> str:
    lines = [f"- `{path}`" for path in paths[:_MAX_FILES]]
    if paths[_MAX_FILES:]:
        lines.append(f"- and {len(paths) - _MAX_FILES} more")
    if left_out:
        lines.append(f"- left out, as it is outside the scope: {len(left_out)} files")
    if unjudged:
        lines.append(
            f"- changed after the last gate passed, and not checked: {units.plural(len(unjudged), 'file')}"
        )
    return "\n".join(["## Changed files", "", *lines])
