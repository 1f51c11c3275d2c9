"""Counts, sizes, tokens and costs as short text."""

from __future__ import annotations

from holdfast import clock
from holdfast.units import plural as plural
from holdfast.units import short as short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def size(count_bytes: int) -> str:
    """`12 bytes`, `3.4 kB`."""
    return (
        f"{count_bytes} bytes"
        if count_bytes < 1000
        else f"{short(count_bytes).replace('k', ' k').replace('M', ' M')}B"
    )


def minute(at: str) -> str:
    """`2026-01-31 13:00 CET`, from an ISO time: in the local time zone."""
    return clock.local(at, "%Y-%m-%d %H:%M %Z")


def hour(at: str) -> str:
    """`13:00`, from an ISO time that is less than a day away; else as `minute`."""
    try:
        is_near = abs(clock.parse_iso(at) - clock.now()) < _NEAR_S
    except ValueError:
        return at
    return clock.local(at, "%H:%M") if is_near else minute(at)


#: A time that is not further away needs no date: its hour comes once.
_NEAR_S = 20 * 3600.0


def second(at: str) -> str:
    """`2026-01-31 13:00:07 CET`, from an ISO time: in the local time zone."""
    return clock.local(at, "%Y-%m-%d %H:%M:%S %Z")


def tokens(manifest: dict[str, Any]) -> str:
    """`12.3k`, or `at least 12.3k` if a takeover is not in it; empty if the agent reported none."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    count = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
    return f"{_at_least(usage)}{short(count)}" if count else ""


def _at_least(usage: dict[str, Any]) -> str:
    return "at least " if usage.get("uncounted_takeovers") else ""


def cost(manifest: dict[str, Any]) -> str:
    """`$1.20`, or `at least $1.20` if the cost of some calls is unknown; empty if all of it is."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    return dollars(usage.get("cost_usd"), is_partial=bool(usage.get("unpriced_calls")))


def in_runs(manifest: dict[str, Any]) -> str:
    """` in 2 runs`, after what all runs of a task used; empty if it was never retried."""
    runs = manifest.get("runs") or manifest.get("run") or 1
    return f" in {runs} runs" if runs > 1 else ""


def dollars(usd: float | None, *, is_partial: bool) -> str:
    """`$1.20`, `at least $1.20`; empty if unknown."""
    if usd is None or (is_partial and not usd):
        return ""  # at least nothing is no information
    return f"at least ${usd:.2f}" if is_partial else f"${usd:.2f}"


def usage(reported: dict[str, Any] | None, *, paid_calls: int | None = None) -> str:
    """`12.3k tokens in, 950 out, cost $1.20`. What no agent reported is unknown, not zero.

    With `paid_calls`, tasks that had none, such as plain commands, say so.
    """
    reported = reported or {}
    count_in, count_out = reported.get("input_tokens") or 0, reported.get("output_tokens") or 0
    is_known = bool(count_in or count_out)
    if paid_calls == 0 and not is_known and not reported.get("cost_usd"):
        return "no paid calls"
    known_tokens = f"{_at_least(reported)}{short(count_in)} tokens in, {short(count_out)} out"
    count = known_tokens if is_known else "tokens unknown"
    # A sum over many tasks is not their cost if some reported nothing, or not everything.
    silent = reported.get("cost_unknown_of")
    is_partial = bool(silent or reported.get("unpriced_calls"))
    known = dollars(reported.get("cost_usd"), is_partial=is_partial)
    partly = f" (unknown for {plural(silent, 'task')})" if known and silent else ""
    return f"{count}, cost {known or 'unknown'}{partly}"


def without_removed(removed_usd: float | None) -> str:
    """`; removed tasks (at least $0.42 today) are not included`, after a cost; empty if no cost is known to
    be missing."""
    if removed_usd is None:
        return ""
    return f"; removed tasks ({dollars(removed_usd, is_partial=True)} today) are not included"


def by_state(counts: Mapping[str, int]) -> str:
    """`1 held, 2 queued`."""
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
