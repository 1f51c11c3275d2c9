"""The loop over the queue: what was asked of it, and how far it is. Pure but for reading and writing its two files."""

from __future__ import annotations

from holdfast import clock
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.keeper import settings
from holdfast.keeper.log import log
from holdfast.model.record import Record
from holdfast.store import atomic
from holdfast.store.layout import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: After n failures in a row the next task waits 2^n seconds, and never longer than this.
LONGEST_BACKOFF_S = 300.0


class LoopSpec(Record):
    """How the loop goes: `up`'s flags over the settings."""

    slots: int = 1
    #: 0: no limit.
    max_iterations: int = 0
    iteration_delay_s: float = 5.0
    max_failures: int = 5
    agents: dict[str, int] = {}
    pools: dict[str, int] = {}
    min_free_memory_bytes: int = 512 * 1024**2
    min_free_disk_bytes: int = 1024**3
    sources: tuple[str, ...] = ()
    #: Where `up` was typed: what the sources bring is done there.
    project: str = ""
    refresh_s: float = 60.0
    archive_after_s: float | None = None


class LoopState(Record):
    """How far the loop is. It survives the keeper."""

    schema: str = "holdfast.loop/1"
    #: Tasks that were dispatched, in all and since `up`.
    iteration: int = 0
    since_up: int = 0
    #: Tasks that failed in a row; only completed work forgets them.
    failures: int = 0
    #: No task is dispatched before this.
    not_before: str | None = None
    #: Ends by status: each once, though a keeper be killed between this count and the row of the queue (see `counted`). (A start
    #: is counted once it is asked for; killed in between, it is not counted.)
    ended: dict[str, int] = {}
    #: Why nothing, or not everything, is started (a shortage, failures, enough iterations), in words; or empty.
    short_of: str = ""
    #: Sources whose last import went wrong, and why.
    failing: dict[str, str] = {}
    #: The end that was counted last: a keeper that is killed behind it must not count it twice.
    counted: str = ""


def read_spec(home: Home) -> LoopSpec:
    """What holds now: what `up` asked for over the settings, as they could be read last."""
    given = settings.read(home).loop
    try:
        asked: Any = (atomic.read_json(home.up) or {}).get("loop") or {}
        return LoopSpec.from_json({**given, **asked})
    except (CorruptFile, TypeError):
        return LoopSpec.from_json(given)


def read_state(home: Home) -> LoopState:
    """How far it is; from the beginning where the file is missing or torn, and so each field that is not what it should be."""
    try:
        data = atomic.read_json(home.loop) or {}
    except CorruptFile:
        return LoopState()
    return LoopState(
        **{name: data[name] for name in LoopState.fields if name in data and _fits(name, data[name])}
    )


def _fits(name: str, value: Any) -> bool:
    """Whether somebody who edited the file left a value with which the loop can go on."""
    if name == "not_before":
        try:
            return value is None or clock.parse_iso(value) >= 0
        except (TypeError, ValueError, IndexError, AttributeError):
            return False
    if name == "ended":
        return isinstance(value, dict) and all(type(count) is int for count in value.values())  # pyright: ignore
    return type(value) is type(LoopState.all_fields[name])


def write_state(home: Home, state: LoopState) -> None:
    """Keep it. On a full disk the old one stays, and a failure may be forgotten."""
    try:
        atomic.write_json(home.loop, state.to_json(), durable=False)
    except HoldfastError as error:
        log(f"the loop's state was not kept: {error}")


def after_end(state: LoopState, status: str, *, now: float) -> LoopState:
    """A task of the queue has ended. Completed work forgets failures; what a person stopped is none."""
    ended = {**state.ended, status: state.ended.get(status, 0) + 1}
    if status == "completed":
        return state.evolve(failures=0, not_before=None, ended=ended)
    if status == "killed":
        return state.evolve(ended=ended)
    failures = state.failures + 1
    return state.evolve(failures=failures, not_before=clock.iso(now + _pause_s(failures)), ended=ended)


def left_s(state: LoopState, *, now: float) -> float:
    """How long no task is started after failures. A clock that was set back since does not make it longer."""
    if state.not_before is None:
        return 0.0
    left_s = clock.parse_iso(state.not_before) - now
    return left_s if 0 < left_s <= _pause_s(state.failures) else 0.0


def _pause_s(failures: int) -> float:
    return min(2.0 ** min(failures, 30), LONGEST_BACKOFF_S)
