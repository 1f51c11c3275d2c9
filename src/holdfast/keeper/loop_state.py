"""Configuration and state of the queue's loop (`up` starts it, dispatch.py runs it).

Pure, except for reading and writing two files.
"""

from __future__ import annotations

from holdfast import clock, files, ids, quick_json
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.keeper import settings
from holdfast.keeper.log import log
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: What the file of `up` may set.
_OF_UP = ("slots", "max_iterations", "iteration_delay_s", "inhibit_sleep", "sources", "project")
#: After n failures in a row, the next task waits 2^n seconds, at most this long.
LONGEST_BACKOFF_S = 300.0


class LoopSpec(Record):
    """Configuration of the loop: flags of `up` > settings."""

    slots: int = 1
    #: 0 means no limit.
    max_iterations: int = 0
    iteration_delay_s: float = 5.0
    max_failures: int = 5
    agents: dict[str, int] = {}
    pools: dict[str, int] = {}
    #: Pool → `22:00-06:00`, the times of day in which its tasks start.
    windows: dict[str, str] = {}
    #: Dollars per day: of all queue tasks, and by pool.
    budget_usd: float | None = None
    pool_budgets: dict[str, float] = {}
    min_free_memory_bytes: int = 512 * 1024**2
    min_free_disk_bytes: int = 1024**3
    sources: tuple[str, ...] = ()
    #: The directory where `up` was run; imported tasks work there.
    project: str = ""
    refresh_s: float = 60.0
    archive_after_s: float | None = None
    #: Keep the machine awake while tasks run.
    inhibit_sleep: bool = True


class LoopState(Record):
    """State of the loop. It survives the keeper."""

    schema: str = "holdfast.loop/1"
    #: Dispatched tasks, in total and since `up`.
    iteration: int = 0
    since_up: int = 0
    #: Consecutive failures; only a completed task resets them.
    failures: int = 0
    #: No task is dispatched before this time.
    not_before: str | None = None
    #: Ended tasks by status. Each is counted once, even if a keeper is killed between this count and the
    #: queue (see `counted`). (A start is counted after its request; if the keeper is killed in between, it is
    #: not counted.)
    ended: dict[str, int] = {}
    #: An interrupt file stopped the queue. Once a person removed it, the failures are forgotten.
    asked: bool = False
    #: The hold reason: why nothing is started (a shortage, failures, --max-iterations); empty if nothing
    #: prevents it. The name is that in the file.
    short_of: str = ""
    #: Agents and pools of which nothing is started, each with the reason.
    held_agents: dict[str, str] = {}
    held_pools: dict[str, str] = {}
    #: Agents and pools at their limits, and the slots if all are used, each in words; they need no log line.
    full_agents: dict[str, str] = {}
    full_pools: dict[str, str] = {}
    full_slots: str = ""
    #: Sources whose last import failed, and why.
    failing: dict[str, str] = {}
    #: The last end that was counted: a keeper killed after this must not count it twice.
    counted: str = ""
    #: What queue tasks cost on a day, by pool; `*` is the sum.
    spent_day: str = ""
    spent: dict[str, float] = {}
    #: Pools, and `*`, in which the cost of a task is not known, or not all of it → the last day of that.
    unpriced: dict[str, str] = {}
    #: Started tasks that have not ended → what of their cost is counted (charges.py).
    charged: dict[str, float] = {}
    #: The same tasks → how many of their calls without a price are noted in `unpriced`.
    unpriced_calls: dict[str, int] = {}
    #: Budgets about which a notice was posted: pool or `*` → the day and the limit.
    budgets_told: dict[str, str] = {}
    #: Chores of the keeper that failed with an error that they do not expect (faults.py).
    faults: dict[str, str] = {}


def read_spec(home: Home) -> LoopSpec:
    """The effective configuration: flags of `up` over the last readable settings.

    Sources can run commands. So they count only if they are in the user's settings now, or `up` was run with
    them: an agent can write what is kept in the home. What `up` has no flag for, such as a budget, is not
    taken from there.
    """
    known = settings.read(home)
    configured: dict[str, Any] = known.loop
    if known.wrong:
        configured = {name: value for name, value in configured.items() if name != "sources"}
    try:
        # Read once: it may be replaced between a look at the digest and a look at the sources.
        options = files.read(home.up)
        written: Any = quick_json.loads(options).get("loop") or {}
        flags: dict[str, Any] = {name: value for name, value in written.items() if name in _OF_UP}
        if (flags.get("sources") or configured.get("sources")) and not _are_of_user(home, options):
            flags = {name: value for name, value in flags.items() if name not in ("sources", "project")}
        return LoopSpec.from_json(_valid({**configured, **flags}))
    except (OSError, ValueError, RecursionError, TypeError, AttributeError):
        return LoopSpec.from_json(_valid(configured))


def _valid(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that have the right type: an agent can write the files that they come from."""
    return {name: value for name, value in fields.items() if name not in _VALID or _VALID[name](value)}


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < _MAX_VALUE


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_VALUE


def _is_table(value: Any, kind: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) and kind(each) for key, each in value.items())  # pyright: ignore


#: More than any setting of the loop.
_MAX_VALUE = 1e15
_VALID: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("slots", "max_iterations", "max_failures", "min_free_memory_bytes", "min_free_disk_bytes"), _is_count
    ),
    **dict.fromkeys(("iteration_delay_s", "refresh_s"), _is_number),
    **dict.fromkeys(("budget_usd", "archive_after_s"), lambda value: value is None or _is_number(value)),
    **dict.fromkeys(("agents", "pools"), lambda value: _is_table(value, _is_count)),
    "windows": lambda value: _is_table(value, lambda each: isinstance(each, str)),
    "pool_budgets": lambda value: _is_table(value, _is_number),
    "sources": lambda value: (
        isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value)  # pyright: ignore
    ),
    "project": lambda value: isinstance(value, str),
    "inhibit_sleep": lambda value: isinstance(value, bool),
}


def _are_of_user(home: Home, options: bytes) -> bool:
    from holdfast.store import up_options  # few queues have sources

    return up_options.are_noted(home.path, options)


def read_state(home: Home) -> LoopState:
    """The state; the default if the file is missing or torn, also for each invalid field."""
    try:
        data = atomic.read_json(home.loop) or {}
    except CorruptFile:
        return LoopState()
    return LoopState(
        **{name: data[name] for name in LoopState.fields if name in data and _fits(name, data[name])}
    )


_TEXT_TABLES = (
    "held_agents", "held_pools", "full_agents", "full_pools", "budgets_told", "unpriced", "failing", "faults",
)  # fmt: skip


def _fits(name: str, value: Any) -> bool:
    """Whether a value from the file has the right type and range."""
    if name == "not_before":
        try:
            return value is None or clock.parse_iso(value) >= 0
        except (TypeError, ValueError, IndexError, AttributeError):
            return False
    if name in ("charged", "unpriced_calls"):
        return _is_table(value, _is_number) and all(ids.is_safe_name(task_id, 64) for task_id in value)
    if name == "ended":
        return _is_table(value, _is_count)
    if name in _TEXT_TABLES:
        return _is_table(value, lambda each: isinstance(each, str))
    if name == "spent":
        return _is_table(value, _is_number)
    if name in ("iteration", "since_up", "failures"):
        return _is_count(value)
    return type(value) is type(LoopState.all_fields[name])


def write_state(home: Home, state: LoopState) -> None:
    """Write the state. On a full disk the old one stays, and a failure may be lost."""
    try:
        atomic.write_json(home.loop, state.to_json(), durable=False)
    except HoldfastError as error:
        log(f"cannot save the state of the loop: {error}")


def after_end(state: LoopState, status: str, *, now: float) -> LoopState:
    """The state after a task ended.

    A completed task resets the failures; a task stopped by a person is not a failure.
    """
    ended = {**state.ended, status: state.ended.get(status, 0) + 1}
    if status == "completed":
        return state.evolve(failures=0, not_before=None, ended=ended)
    if status == "killed":
        return state.evolve(ended=ended)
    failures = state.failures + 1
    return state.evolve(failures=failures, not_before=clock.iso(now + _pause_s(failures)), ended=ended)


def after_answer(state: LoopState) -> LoopState:
    """The state after a person has looked at the failures: nothing waits, and counting starts again."""
    return state.evolve(failures=0, not_before=None, asked=False)


def left_s(state: LoopState, *, now: float) -> float:
    """Seconds until the next start after failures. Not longer if the clock was set back."""
    if state.not_before is None:
        return 0.0
    left_s = clock.parse_iso(state.not_before) - now
    return left_s if 0 < left_s <= _pause_s(state.failures) else 0.0


def _pause_s(failures: int) -> float:
    return min(2.0 ** min(failures, 30), LONGEST_BACKOFF_S)
