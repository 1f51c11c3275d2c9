"""Figures of a home for views: those of `holdfast metrics`, by day and by agent."""

from __future__ import annotations

from holdfast import clock
from holdfast.model.status import ENDS
from holdfast.packet import metrics
from holdfast.store.layout import Home
from holdfast.views.facts import queue_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_DAY_S = 86400.0
#: Tools that are listed.
_TOOLS = 20


def gather(home: Home, *, days: int) -> dict[str, Any]:
    """The figures of now, and of the last `days` days one by one."""
    everything = metrics.refresh(home, held=queue_places.held(home))
    tasks: list[dict[str, Any]] = list(everything["tasks"].values())
    for part in ("home", "last_24h"):
        tools: dict[str, Any] = everything[part]["tool_usage"]
        tools["breakdown"] = dict(list(tools["breakdown"].items())[:_TOOLS])
    return {
        "at": everything["at"],
        "home": everything["home"],
        "last_24h": everything["last_24h"],
        "days": by_day(tasks, clock.now(), days=days),
        "agents": by_agent(tasks),
    }


def by_day(tasks: Iterable[dict[str, Any]], now: float, *, days: int) -> list[dict[str, Any]]:
    """What ended on each of the last days (UTC), oldest first; days without tasks are there too. Pure."""
    names = [clock.iso(now - number * _DAY_S)[:10] for number in reversed(range(days))]
    found: dict[str, dict[str, Any]] = {
        name: {"day": name, "completed": 0, "failed": 0, "tokens": 0, "cost_usd": 0.0, "active_s": 0.0}
        for name in names
    }
    for task in tasks:
        day = found.get(str(task["finished_at"])[:10])
        if day is None or task["status"] not in ENDS:
            continue
        usage: dict[str, Any] = task["api_usage"]
        day["completed" if task["status"] == "completed" else "failed"] += 1
        day["tokens"] += (usage["input_tokens"] or 0) + (usage["output_tokens"] or 0)
        day["cost_usd"] += usage["cost_usd"] or 0.0
        day["active_s"] += task["active_s"]
    return list(found.values())


def by_agent(tasks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The figures of each agent, that with most tasks first. A cost that no task has is null. Pure."""
    members: dict[str, list[dict[str, Any]]] = {}
    for task in tasks:
        members.setdefault(str(task["agent"] or ""), []).append(task)
    return sorted((_agent(name, its) for name, its in members.items()), key=lambda each: -each["tasks"])


def _agent(name: str, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    ended = [task for task in tasks if task["status"] in ENDS]
    took = sorted(task["duration_s"] for task in ended if task["duration_s"] is not None)
    usages: list[dict[str, Any]] = [task["api_usage"] for task in tasks]
    costs = [usage["cost_usd"] for usage in usages if usage["cost_usd"] is not None]
    return {
        "agent": name,
        "tasks": len(tasks),
        "ended": len(ended),
        "completed": sum(task["status"] == "completed" for task in ended),
        "retries": sum(task["retries"] for task in tasks),
        "interrupts": sum(task["interrupts"] for task in tasks),
        "median_s": took[len(took) // 2] if took else None,
        "input_tokens": sum(usage["input_tokens"] or 0 for usage in usages),
        "output_tokens": sum(usage["output_tokens"] or 0 for usage in usages),
        "cost_usd": round(sum(costs), 6) if costs else None,
        "unpriced_calls": sum(usage.get("unpriced_calls") or 0 for usage in usages),
        "uncounted_takeovers": sum(usage.get("uncounted_takeovers") or 0 for usage in usages),
    }
