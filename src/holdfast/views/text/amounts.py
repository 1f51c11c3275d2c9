"""Counts, sizes, tokens and costs as short text."""

from __future__ import annotations

from holdfast import clock
from holdfast.units import plural as plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def short(count: float) -> str:
    """`950`, `12.3k`, `4.5M`."""
    if count < 1000:
        return str(int(count))
    if count < 999_950:
        return f"{count / 1000:.1f}k"
    return f"{count / 1_000_000:.1f}M"


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


def second(at: str) -> str:
    """`2026-01-31 13:00:07 CET`, from an ISO time: in the local time zone."""
    return clock.local(at, "%Y-%m-%d %H:%M:%S %Z")


def tokens(manifest: dict[str, Any]) -> str:
    """`12.3k`; empty if the agent reported none."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    count = (usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0)
    return short(count) if count else ""


def cost(manifest: dict[str, Any]) -> str:
    """`$1.20`, or `at least $1.20` if the cost of some calls is unknown; empty if all of it is."""
    usage: dict[str, Any] = manifest.get("usage") or {}
    return dollars(usage.get("cost_usd"), is_partial=bool(usage.get("unpriced_calls")))


def dollars(usd: float | None, *, is_partial: bool) -> str:
    """`$1.20`, `at least $1.20`; empty if unknown."""
    if usd is None or (is_partial and not usd):
        return ""  # at least nothing is no information
    return f"at least ${usd:.2f}" if is_partial else f"${usd:.2f}"


def usage(reported: dict[str, Any] | None) -> str:
    """`12.3k tokens in, 950 out, cost $1.20`. What no agent reported is unknown, not zero."""
    reported = reported or {}
    count_in, count_out = reported.get("input_tokens") or 0, reported.get("output_tokens") or 0
    is_known = bool(count_in or count_out)
    count = f"{short(count_in)} tokens in, {short(count_out)} out" if is_known else "tokens unknown"
    # A sum over many tasks is not their cost if some reported nothing, or not everything.
    silent = reported.get("cost_unknown_of")
    is_partial = bool(silent or reported.get("unpriced_calls"))
    known = dollars(reported.get("cost_usd"), is_partial=is_partial)
    partly = f" (unknown for {plural(silent, 'task')})" if known and silent else ""
    return f"{count}, cost {known or 'unknown'}{partly}"
