"""Thresholds of a new task: flag before environment before adapter."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.packet import limits


@pytest.mark.req("SUP-4", "SUP-5", "BUD-1")
def test_defaults_environment_and_flags() -> None:
    plain = limits.resolve({}, {}, stale_s=90.0)
    assert (plain.base_interval_s, plain.max_interval_s, plain.grace_s) == (30.0, 300.0, 30.0)
    assert (plain.deadline_s, plain.max_retries, plain.stale_s) == (5 * 3600.0, 10, 90.0)
    environ = {"MONITOR_BASE_INTERVAL": "10", "MONITOR_MAX_INTERVAL": "1m", "MONITOR_GRACE_PERIOD": "5s"}
    environ |= {"MONITOR_DEADLINE": "1h30m", "MONITOR_MAX_RETRIES": "2"}
    chosen = limits.resolve(environ, {"grace_s": "7s", "stop_pause_s": "0.5s"}, stale_s=90.0)
    assert (chosen.base_interval_s, chosen.max_interval_s, chosen.grace_s) == (10.0, 60.0, 7.0)
    assert (chosen.deadline_s, chosen.max_retries, chosen.stop_pause_s) == (5400.0, 2, 0.5)
    assert chosen.stale_s == 30.0  # three base intervals, if one is set


@pytest.mark.req("SUP-2")
def test_silence_of_a_command_means_nothing_unless_the_interval_is_set() -> None:
    assert limits.resolve({}, {}, stale_s=None).stale_s is None
    assert limits.resolve({"MONITOR_BASE_INTERVAL": "2"}, {}, stale_s=None).stale_s == 6.0
    assert limits.resolve({"MONITOR_BASE_INTERVAL": "2"}, {"stale_s": "none"}, stale_s=9.0).stale_s is None


@pytest.mark.req("QUE-3", "SUP-15")
def test_the_variables_of_a_harness() -> None:
    environ = {"SESSION_TIMEOUT": "3600", "STALL_THRESHOLD": "300", "INTERRUPT_CHECK_INTERVAL": "10"}
    found = limits.resolve(environ, {}, stale_s=None)
    assert (found.timeout_s, found.stale_s, found.base_interval_s) == (3600.0, 300.0, 10.0)
    # How often marks are looked for says nothing about silence.
    assert limits.resolve({"INTERRUPT_CHECK_INTERVAL": "10"}, {}, stale_s=None).stale_s is None
    both = {"INTERRUPT_CHECK_INTERVAL": "10", "MONITOR_BASE_INTERVAL": "20"}
    assert limits.resolve(both, {}, stale_s=None).base_interval_s == 20.0


@pytest.mark.req("SUP-7")
@pytest.mark.parametrize("text", ["", "x", "-1", "1y", "1..2", "h", "nan", "inf", "1e9", "1h -5m", "²"])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--grace"):
        limits.resolve({}, {"grace_s": text}, stale_s=None)


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("memory_bytes", "1", "--memory-limit must be at least 4 MiB, not 1: no program starts with less"),
        ("base_interval_s", "0.0001s", "--base-interval must be at least 0.01s"),
        ("timeout_s", "0.0000001s", "--timeout must be at least 0.01s"),
        ("deadline_s", "0.001s", "--deadline must be at least 0.01s"),
        ("stale_s", "0.001s", "--stale must be at least 0.01s"),
        ("max_retries", "9" * 40, "--max-retries: number too large"),
        ("max_retries", "9" * 5000, "--max-retries: not an integer"),
        ("budget_usd", "inf", "--budget-usd: not an amount"),
        ("output_bytes", "1e400", "--output-limit: not a size"),
        ("output_bytes", "9" * 40, "--output-limit: size too large"),
        ("output_bytes", "-1", "--output-limit: size must not be negative"),
    ],
)
def test_what_cannot_work_is_refused(field: str, text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        limits.resolve({}, {field: text}, stale_s=None)
    assert said in str(raised.value)
