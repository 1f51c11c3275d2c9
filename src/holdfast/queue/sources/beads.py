"""`bd:` and `gt:[RIG,…]`: ready beads, as printed by `bd ready --json` (one project) and `gt ready --json`
(a town)."""

from __future__ import annotations

import json

from holdfast.errors import UsageError
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.work_item import CollectErrors, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.queue.work_item import WorkItem


def argv(kind: str, *, most: int) -> list[str]:
    """The command that lists the ready beads."""
    return ["bd", "ready", "--json", "--limit", str(most)] if kind == "bd" else ["gt", "ready", "--json"]


def parse(
    raw: bytes,
    kind: str,
    *,
    rigs: str = "",
    weights: Mapping[str, int] = WEIGHTS,
    wrong: list[str] | None = None,
) -> list[WorkItem]:
    """Parse beads; errors go to `wrong`.

    The task id is the bead's id. Epics are skipped: their children are the work.

    If rigs are named, only their beads are used; equally urgent ones in this order.
    """
    try:
        data: Any = json.loads(raw.decode("utf-8", "replace") or "[]")
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{kind}: not JSON: {error}", hint=f"what does '{kind} ready --json' print?"
        ) from error
    items: list[WorkItem] = []
    for number, issue in enumerate(_issues(data, [rig for rig in rigs.split(",") if rig]), 1):
        with CollectErrors(wrong):
            work = _bead(issue, kind, where=f"{kind}: item {number}", weights=weights)
            items += [work] if work is not None else []
    return items


def _bead(issue: Any, kind: str, *, where: str, weights: Mapping[str, int]) -> WorkItem | None:
    if not isinstance(issue, dict):
        raise UsageError(f"{where} is not an object")
    bead: dict[str, Any] = issue  # pyright: ignore[reportUnknownVariableType]
    if bead.get("issue_type") == "epic":
        return None
    item = {
        "id": bead.get("id"),
        "title": bead.get("title"),
        "prompt": _prompt(bead),
        "priority": _priority(bead.get("priority"), weights),
        "rig": bead.get("rig"),
        "status": bead.get("status"),
    }
    return from_json(item, source=f"{kind}:", where=where, weights=weights)


def _issues(data: Any, rigs: list[str]) -> list[Any]:
    """A list (`bd`), or the lists of every source of a town (`gt`)."""
    if data is None or isinstance(data, list):
        return data or []  # pyright: ignore[reportUnknownVariableType]
    sources: Any = data.get("sources") if isinstance(data, dict) else None  # pyright: ignore
    if not isinstance(sources, list):
        raise UsageError("not a list of beads", hint="is the program up to date?")
    named: list[dict[str, Any]] = [each for each in sources if isinstance(each, dict)]  # pyright: ignore
    if rigs:
        named = sorted(
            (each for each in named if each.get("name") in rigs), key=lambda each: rigs.index(each["name"])
        )
    beads: list[Any] = []
    for each in named:
        issues: list[Any] = each.get("issues") or []
        beads += [{"rig": each.get("name"), **bead} if isinstance(bead, dict) else bead for bead in issues]
    return beads


def _priority(value: Any, weights: Mapping[str, int]) -> int:
    """Beads have priorities from 0, the most urgent, to 4, the backlog."""
    counted = (weights["high"] * 2, weights["high"], weights["medium"], weights["low"], 0)
    return counted[int(value)] if value in range(len(counted)) else weights["medium"]


def _prompt(bead: dict[str, Any]) -> str:
    parts = [str(bead.get("title") or ""), str(bead.get("description") or "")]
    for name, heading in (
        ("design", "Design"),
        ("acceptance_criteria", "Acceptance criteria"),
        ("notes", "Notes"),
    ):
        if bead.get(name):
            parts.append(f"## {heading}\n\n{bead[name]}")
    return "\n\n".join(part.strip() for part in parts if part.strip())
