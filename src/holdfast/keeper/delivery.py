"""Deliver the notices in the outbox, at least once.

Each delivery is a separate process (`python -m holdfast.notify FILE`), so that a notifier that hangs or
crashes affects nothing else. Before it starts, the number of the try and the time of the next one are written
to the notice. If the keeper is killed, the delivery ends by itself, and the next keeper waits for that. The
process unlinks the notice once it is delivered; a notice that is still there afterwards has failed.
"""

from __future__ import annotations

import json
import os
import signal

from holdfast import clock
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.keeper import settings
from holdfast.keeper.log import log
from holdfast.notify import outbox, rules
from holdfast.spawn import execute
from holdfast.store import atomic, process
from holdfast.store.layout import Home
from holdfast.watch.death import watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from holdfast.model.process import ProcessIdentity
    from holdfast.watch.death import DeathWatch

    T = TypeVar("T")

#: Tries per notice; then it is moved to `failed/`.
TRIES = 8
#: Pauses grow fivefold: 5 s, 25 s, 2 min, 10 min, 52 min, 4 h, 22 h; a little more than a day in total.
FIRST_PAUSE_S, GROWTH = 5.0, 5.0
#: Concurrent deliveries per rule. A notifier that hangs delays only its own notices.
AT_ONCE = 2
#: A delivery has a time limit (`notify.__main__`); this much later, its process is killed.
LIMIT_S, _EXTRA_S = 30.0, 5.0
#: How often to check a running delivery, and a notice that waits for a file.
_LOOK_S, _HELD_S, _HELD_LONG_S = 0.1, 0.1, 5.0
_NOTHING_S = 60.0


def pause_s(tries: int, first_pause_s: float = FIRST_PAUSE_S) -> float:
    """The pause after a failed try, counted from 1."""
    return first_pause_s * GROWTH ** (tries - 1)


class Delivery:
    """One delivery process."""

    def __init__(self, identity: ProcessIdentity | None, watch: DeathWatch | None, limit_mono: float) -> None:
        self.identity = identity
        self.watch = watch
        self.limit_mono = limit_mono

    def is_over(self) -> bool:
        """Whether the process is gone."""
        return self.watch is None or self.watch.has_died()

    def kill(self) -> None:
        """Kill the process and its session."""
        if self.identity is not None and process.send(self.identity, signal.SIGKILL):
            try:
                os.killpg(self.identity.pid, signal.SIGKILL)
            except OSError:
                return

    def close(self) -> None:
        """Stop watching."""
        if self.watch is not None:
            self.watch.close()


class Deliveries:
    """Delivers the notices of a home."""

    def __init__(self, home: Home, *, first_pause_s: float = FIRST_PAUSE_S) -> None:
        self.home = home
        self._first_pause_s = first_pause_s
        self._running: dict[str, Delivery] = {}
        #: The rule of each running delivery: afterwards the notice is gone.
        self._labels: dict[str, str] = {}
        #: The rule of each notice as text: rules have no id, and two may have the same name.
        self._rules: dict[str, str] = {}
        self._waiting = 0
        #: When each waiting notice is due: there may be hundreds of failed ones.
        self._due: dict[str, float] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to deliver."""
        return not self._running and not self._waiting

    def step(self) -> float:
        """Check running deliveries and start due ones.

        Returns the seconds until the next step; never blocks.
        """
        try:
            return self._step()
        except (OSError, HoldfastError) as error:  # logged; tasks matter more than notices
            log(f"cannot deliver notices: {error!r}")
            return _NOTHING_S

    def _step(self) -> float:
        for name, delivery in list(self._running.items()):
            if delivery.is_over():
                self._give_up_if_it_fails(name, lambda name=name, each=delivery: self._settle(name, each))
            elif clock.mono() > delivery.limit_mono:
                delivery.kill()
        wait_s = _NOTHING_S
        waiting = [name for name in outbox.names(self.home) if name not in self._running]
        self._waiting = len(waiting)
        now_mono = clock.mono()
        self._due = {name: self._due.get(name, now_mono) for name in waiting}
        self._rules = {
            name: rule for name, rule in self._rules.items() if name in self._due or name in self._running
        }
        for name in waiting:
            if self._due[name] <= now_mono and self._is_full(name):
                continue
            if self._due[name] <= now_mono:
                left_s = self._give_up_if_it_fails(name, lambda name=name: self._attend(name))
                self._due[name] = now_mono + (_NOTHING_S if left_s is None else left_s)
            wait_s = min(wait_s, self._due[name] - now_mono)
        return min(wait_s, _LOOK_S) if self._running else wait_s

    def _give_up_if_it_fails(self, name: str, act: Callable[[], T]) -> T | None:
        """One notice must not keep the others: after an error that nobody expects, it is given up."""
        try:
            return act()
        except (OSError, HoldfastError):
            raise
        except Exception as error:
            log(f"notice {name}: {error!r}")
            self._give_up(name)
            return None

    def _is_full(self, name: str) -> bool:
        """Whether the rule of this notice has its maximum of concurrent deliveries."""
        if name not in self._rules:
            notice = self._read(name)
            self._rules[name] = json.dumps(notice["rule"], sort_keys=True) if notice is not None else ""
        running = [self._rules.get(each) for each in self._running]
        return running.count(self._rules[name]) >= AT_ONCE

    def _attend(self, name: str) -> float:
        """Start the delivery of a notice if it is due.

        Returns the seconds until it should be checked again.
        """
        notice = self._read(name)
        if notice is None:
            return _NOTHING_S
        if notice["rule"] is None:
            return self._address(notice)
        after = notice.get("after")
        # If the packet was removed in the meantime, the marker will never come: deliver the notice anyway.
        if after and not os.path.exists(after) and os.path.isdir(os.path.dirname(after)):
            return _HELD_S if _is_new(notice) else _HELD_LONG_S
        tries = notice["tries"]
        longest_s = max(pause_s(max(tries, 1), self._first_pause_s), LIMIT_S + _EXTRA_S)
        left_s = time_left_s(notice.get("next_at"), longest_s)
        if left_s > 0:
            return left_s
        if tries >= TRIES:
            self._give_up(name)
            return _NOTHING_S
        self._start(name, notice, tries + 1)
        return _LOOK_S

    def _address(self, notice: dict[str, Any]) -> float:
        """Give rules to a notice whose runner could not read them; it waits if the keeper cannot read them
        either."""
        rules = settings.read(self.home).notify
        if rules is None:
            return _HELD_LONG_S
        outbox.address(self.home, notice, rules)
        return 0.0

    def _start(self, name: str, notice: dict[str, Any], tries: int) -> None:
        # Until this time, the next keeper leaves the delivery process alone.
        next_at = clock.iso(clock.now() + LIMIT_S + _EXTRA_S)
        path = self._path(name)
        self._labels[name] = rules.label(notice["rule"])
        atomic.write_json(path, {**notice, "tries": tries, "next_at": next_at, "error": None}, durable=False)
        pid = execute("holdfast.notify", [path], self.home, role="notifier", log=self.home.keeper_log)
        identity = process.identify(pid)
        watch = watch_death(identity) if identity is not None else None
        self._running[name] = Delivery(identity, watch, clock.mono() + LIMIT_S + _EXTRA_S)

    def _settle(self, name: str, delivery: Delivery) -> None:
        delivery.close()
        del self._running[name]
        notice = self._read(name)
        if notice is None:
            self._report(name, None)
            return
        error = notice.get("error") or "its process ended without an error message"
        self._report(name, {**notice, "error": error})
        log(f"notice {name} via {rules.label(notice['rule'])}: {error}")
        tries = notice["tries"]
        if tries >= TRIES:
            self._give_up(name)
            return
        next_at = clock.iso(clock.now() + pause_s(tries, self._first_pause_s))
        atomic.write_json(self._path(name), {**notice, "next_at": next_at}, durable=False)

    def _give_up(self, name: str) -> None:
        folder = self.home.outbox_failed
        atomic.make_directory(folder)
        os.rename(self._path(name), os.path.join(folder, name))
        log(f"gave up on notice {name}: it is in {folder}")

    def _report(self, name: str, notice: dict[str, Any] | None) -> None:
        """Update status.json: the last failure of each rule; a successful delivery clears it."""
        failing = outbox.failing(self.home)
        if notice is None:
            rule = self._labels.pop(name, "")
            if rule not in failing:
                return
            del failing[rule]
        else:
            rule = self._labels.pop(name, "") or rules.label(notice["rule"])
            failing[rule] = {
                "at": clock.iso_now(),
                "event": notice.get("event"),
                "task_id": notice.get("task_id"),
                "tries": notice.get("tries"),
                "error": notice["error"],
            }
        record = {"schema": "holdfast.outbox/1", "failing": failing}
        atomic.write_json(self.home.outbox_status, record, durable=False)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            notice = atomic.read_json(self._path(name))
        except CorruptFile:
            notice = {}
        if notice is None or _is_notice(notice):
            return notice and outbox.placed(self._path(name), notice)
        self._give_up(name)  # not a valid notice
        return None

    def _path(self, name: str) -> str:
        return os.path.join(self.home.outbox, name)


def _is_notice(notice: dict[str, Any]) -> bool:
    """Whether the fields that a delivery uses have the right types: an agent can write such a file."""
    rule, tries = notice.get("rule", ""), notice.get("tries")
    texts = (notice.get("after"), notice.get("next_at"), notice.get("project_dir"))
    return (
        (rule is None or isinstance(rule, dict))
        and isinstance(notice.get("event"), str)
        and type(tries) is int
        and 0 <= tries <= TRIES
        and all(text is None or (isinstance(text, str) and "\0" not in text) for text in texts)
    )


def _is_new(notice: dict[str, Any]) -> bool:
    """Whether the file that the notice waits for may come at any moment."""
    try:
        return abs(clock.now() - clock.parse_iso(str(notice.get("at")))) < 60
    except ValueError:
        return False


def time_left_s(next_at: object, longest_s: float) -> float:
    """Seconds until `next_at`, at most `longest_s`: the clock may have been set back."""
    try:
        return min(clock.parse_iso(str(next_at)) - clock.now(), longest_s) if next_at else 0.0
    except ValueError:
        return 0.0
