"""The marks of a timeline as text."""

from __future__ import annotations

from holdfast import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NAMES = {"resume": "resumed", "adopt": "taken over by a new runner", "sweep": "swept"}
_TAKEOVER = {"handed_back": "handed back", "kept": "ended", "lost": "lost", "began": "began"}


def of_mark(mark: dict[str, Any]) -> str:
    """One mark, with its measured time: `crash, noticed after 0.2s: killed by signal 9`."""
    kind = str(mark["kind"])
    parts = [_NAMES.get(kind, kind), *_facts(kind, mark)]
    text = ", ".join(part for part in parts if part)
    return f"{text}: {mark['detail']}" if mark.get("detail") else text


def _facts(kind: str, mark: dict[str, Any]) -> list[str]:
    match kind:
        case "crash":
            return [_time("noticed after", mark.get("noticed_s"))]
        case "hang":
            return [_time("silent for", mark.get("silent_s"))]
        case "resume":
            healed_s = mark.get("healed_s")
            return [_time("after", mark.get("after_s") if healed_s is None else healed_s)]
        case "adopt":
            return [_time("after", mark.get("gap_s"))]
        case "question":
            answered_s = mark.get("answered_s")
            return ["open" if answered_s is None else _time("answered after", answered_s)]
        case "sweep":
            return [f"{mark.get('killed') or 0} processes ended"]
        case "gate" if mark.get("passed"):
            return [f"{mark.get('stage')} passed", _time("after", mark.get("took_s"))]
        case "gate":
            return [f"{mark.get('stage')} refused by {mark.get('failed')}"]
        case "request":
            by = f" by {mark['by']}" if mark.get("by") else ""
            return [f"{mark.get('verb')}{by}", "refused" if mark.get("refused") else ""]
        case "limit":
            return [str(mark.get("limit") or "")]
        case "takeover":
            by = f" by {mark['by']}" if mark.get("by") else ""
            files = mark.get("files")
            return [
                f"{_TAKEOVER.get(str(mark.get('how')), 'ended')}{by}",
                f"{files} files changed" if files else "",
            ]
        case _:
            return []


def _time(words: str, seconds: float | None) -> str:
    return "" if seconds is None else f"{words} {clock.duration_text(seconds)}"
