"""Metrics of a task and of a home. Pure; `packet.metrics` collects the input."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.analysis import Analysis
from holdfast.model.elapsed import began_at, elapsed_s
from holdfast.model.status import ENDS, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    #: Name, type and help text of a metric, and its values with their labels.
    Family = tuple[str, str, str, list[tuple[dict[str, str], Any]]]

SCHEMA = "holdfast.metrics/1"
DAY_S = 86400.0


def of_task(manifest: dict[str, Any], analysis: Analysis) -> dict[str, Any]:
    """The metrics of one task, from its manifest and its journal. Unknown values are null, never zero."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    heartbeat: dict[str, Any] = manifest.get("heartbeat") or {}
    return {
        "task_id": manifest["task_id"],
        "status": manifest["status"],
        "agent": manifest.get("agent"),
        "model": manifest.get("model"),
        "project_dir": manifest.get("project_dir"),
        "started_at": manifest.get("started_at"),
        "finished_at": manifest.get("finished_at"),
        "duration_s": _duration_s(manifest),
        "runs": analysis.runs,
        # The manifest has that of the last run: all that is left of a task without its journal.
        "active_s": max(round(analysis.active.seconds, 3), manifest.get("active_s") or 0.0),
        "attempts": len(analysis.attempts),
        "retries": analysis.retries,
        "interrupts": analysis.interrupts,
        "turns": analysis.turns,
        "messages": heartbeat.get("message_count") or analysis.messages,
        "api_usage": {
            "input_tokens": usage.get("input_tokens"),
            "output_tokens": usage.get("output_tokens"),
            "cost_usd": usage.get("cost_usd"),
            "unpriced_calls": usage.get("unpriced_calls") or 0,
            **_uncounted(usage.get("uncounted_takeovers") or 0),
            "paid_calls": manifest.get("paid_calls") or 0,
        },
        "tool_usage": {
            "total": analysis.tool_usage()["total"],
            "errors": analysis.tool_usage()["errors"],
            "breakdown": {name: tool.calls for name, tool in sorted(analysis.tools.items())},
        },
        "stages": analysis.stages.to_json(),
    }


def of_home(
    tasks: Iterable[dict[str, Any]],
    now: float,
    *,
    since: float | None = None,
    held: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The metrics of all tasks, or of those alive or ended since a time. A rate of no tasks is null.

    `held`: tasks that the queue does not start by itself, and their states in it.
    """
    chosen = [task for task in tasks if since is None or _ended_since(task, since)]
    ended = [task for task in chosen if task["status"] in ENDS]
    completed = [task for task in ended if task["status"] == "completed"]
    durations = sorted(task["duration_s"] for task in ended if task["duration_s"] is not None)
    costs = [cost for task in chosen if (cost := task["api_usage"]["cost_usd"]) is not None]
    statuses: dict[str, int] = {}
    tools: dict[str, int] = {}
    for task in chosen:
        status = task["status"]
        if status == Status.QUEUED and held:
            status = held.get(task["task_id"], status)
        statuses[status] = statuses.get(status, 0) + 1
        for name, calls in task["tool_usage"]["breakdown"].items():
            tools[name] = tools.get(name, 0) + calls
    return {
        "tasks": len(chosen),
        "by_status": dict(sorted(statuses.items())),
        "ended": len(ended),
        "completed": len(completed),
        "success_rate": _share(len(completed), len(ended)),
        "interrupts": sum(task["interrupts"] for task in chosen),
        "interrupt_rate": _share(sum(task["interrupts"] > 0 for task in chosen), len(chosen)),
        "retries": sum(task["retries"] for task in chosen),
        "attempts": sum(task["attempts"] for task in chosen),
        "iterations_per_hour": _per_hour(ended, now, since),
        "average_duration_s": round(sum(durations) / len(durations), 3) if durations else None,
        "median_duration_s": durations[len(durations) // 2] if durations else None,
        "longest_duration_s": durations[-1] if durations else None,
        "active_s": round(sum(task["active_s"] for task in chosen), 3),
        "api_usage": {
            "input_tokens": _total(task["api_usage"]["input_tokens"] for task in chosen),
            "output_tokens": _total(task["api_usage"]["output_tokens"] for task in chosen),
            "cost_usd": round(sum(costs), 6) if costs else None,
            #: Tasks with paid calls of unknown cost; the sum does not include them. Commands have none.
            "cost_unknown_of": sum(_is_cost_unknown(task["api_usage"]) for task in chosen),
            #: Calls with unknown cost, also of tasks whose cost is known in part.
            "unpriced_calls": sum(task["api_usage"].get("unpriced_calls") or 0 for task in chosen),
            "paid_calls": sum(task["api_usage"]["paid_calls"] for task in chosen),
            **_uncounted(sum(task["api_usage"].get("uncounted_takeovers") or 0 for task in chosen)),
        },
        "tool_usage": {
            "total": sum(tools.values()),
            "breakdown": dict(sorted(tools.items(), key=lambda item: (-item[1], item[0]))),
        },
    }


def _is_cost_unknown(usage: dict[str, Any]) -> bool:
    """Whether nothing is known about the cost of its calls: at least $0.00 is no information."""
    is_partial = bool(usage.get("unpriced_calls"))
    return usage["paid_calls"] > 0 and (usage["cost_usd"] is None or (is_partial and not usage["cost_usd"]))


def _uncounted(takeovers: int) -> dict[str, int]:
    """Takeovers whose tokens were not reported; absent if there are none."""
    return {"uncounted_takeovers": takeovers} if takeovers else {}


def _total(counts: Iterable[int | None]) -> int | None:
    """The sum of what is known; None if nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _duration_s(manifest: dict[str, Any]) -> float | None:
    """Time of its last run, from start to end, without waits."""
    try:
        if began_at(manifest) is None:
            return None
        return round(elapsed_s(manifest, clock.parse_iso(manifest["finished_at"])), 3)
    except (KeyError, ValueError, AttributeError, TypeError):
        return None


def _ended_since(task: dict[str, Any], since: float) -> bool:
    """Whether a task ended since then, or is alive."""
    if task["finished_at"] is None:
        return True
    try:
        return clock.parse_iso(task["finished_at"]) >= since
    except ValueError:
        return False


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _per_hour(ended: list[dict[str, Any]], now: float, since: float | None) -> float | None:
    """Ended tasks per hour, from the start of the first one (or `since`, if that is later) to the end of the
    last one; over at least one hour. Hours in which nothing ran do not count."""
    if not ended:
        return None
    begun = [clock.parse_iso(task["started_at"]) for task in ended if task["started_at"]]
    done = [clock.parse_iso(task["finished_at"]) for task in ended if task["finished_at"]]
    start = max(min(begun, default=now), since or 0.0)
    return round(len(ended) / max(1.0, (max(done, default=now) - start) / 3600), 3)


# ── Prometheus ──


def counters(home: dict[str, Any]) -> dict[str, Any]:
    """The sums of `of_home` that only grow, but for tasks that are removed."""
    usage = home["api_usage"]
    return {
        **{name: home[name] for name in ("interrupts", "retries", "attempts", "active_s")},
        "input_tokens": usage["input_tokens"] or 0,
        "output_tokens": usage["output_tokens"] or 0,
        "cost_usd": usage["cost_usd"],
        "tools": home["tool_usage"]["breakdown"],
    }


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The sum of two sets of counters. A cost that neither knows is null."""
    costs = [each["cost_usd"] for each in (one, other) if each["cost_usd"] is not None]
    calls: tuple[dict[str, int], ...] = one["tools"], other["tools"]
    return {
        **{name: round(one[name] + other[name], 3) for name in one if name not in ("cost_usd", "tools")},
        "cost_usd": round(sum(costs), 6) if costs else None,
        "tools": {tool: sum(each.get(tool, 0) for each in calls) for tool in {**calls[0], **calls[1]}},
    }


def prometheus(
    home: dict[str, Any], tasks: Iterable[dict[str, Any]], *, removed: dict[str, Any] | None = None
) -> str:
    """Prometheus text format: metrics of the home, and some of each task that has not ended.

    `removed`: the counters of removed tasks. A counter must not fall: Prometheus would take that for a start
    from zero, and count all that is left once more.
    """
    lines: list[str] = []
    total = counters(home) if removed is None else added(counters(home), removed)
    for name, kind, about, samples in _families(home, total, tasks):
        known = [(labels, value) for labels, value in samples if value is not None]
        if known:
            lines += [f"# HELP holdfast_{name} {about}", f"# TYPE holdfast_{name} {kind}"]
            lines += [f"holdfast_{name}{_labels(labels)} {value}" for labels, value in known]
    return "\n".join(lines) + "\n"


def _families(home: dict[str, Any], total: dict[str, Any], tasks: Iterable[dict[str, Any]]) -> list[Family]:
    return [
        ("tasks", "gauge", "Tasks by state.", [({"status": s}, n) for s, n in home["by_status"].items()]),
        ("success_ratio", "gauge", "Share of ended tasks that completed.", [({}, home["success_rate"])]),
        ("interrupt_ratio", "gauge", "Share of tasks that were interrupted.", [({}, home["interrupt_rate"])]),
        ("interrupts_total", "counter", "Interrupts.", [({}, total["interrupts"])]),
        ("retries_total", "counter", "Retries, without those that cost none.", [({}, total["retries"])]),
        ("attempts_total", "counter", "Attempts.", [({}, total["attempts"])]),
        (
            "iterations_per_hour",
            "gauge",
            "Tasks ended per hour.",
            [({}, home["iterations_per_hour"])],
        ),
        (
            "task_duration_seconds",
            "gauge",
            "Average time from start to end.",
            [({}, home["average_duration_s"])],
        ),
        ("active_seconds_total", "counter", "Time during which agents ran.", [({}, total["active_s"])]),
        (
            "tokens_total",
            "counter",
            "Tokens, as reported by agents.",
            [
                ({"direction": "input"}, total["input_tokens"]),
                ({"direction": "output"}, total["output_tokens"]),
            ],
        ),
        (
            "cost_usd_total",
            "counter",
            "Cost in US dollars, as reported by agents.",
            [({}, total["cost_usd"])],
        ),
        (
            "tool_calls_total",
            "counter",
            "Tool calls.",
            [({"tool": name}, calls) for name, calls in total["tools"].items()],
        ),
        (
            "task_active_seconds",
            "gauge",
            "Time during which agents ran, for each task that has not ended.",
            [
                ({"task": task["task_id"], "status": task["status"]}, task["active_s"])
                for task in tasks
                if task["status"] not in ENDS
            ],
        ),
    ]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    """A name by an agent may hold what a terminal obeys."""
    value = "".join(char if char.isprintable() or char == "\n" else " " for char in value)
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
