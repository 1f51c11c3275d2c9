"""holdfast status: how this home is doing."""

from __future__ import annotations

import os

from holdfast import clock, paths, spawn
from holdfast.errors import HoldfastError
from holdfast.model.status import ENDS
from holdfast.notify import outbox
from holdfast.packet import inbox, load, runner_lost
from holdfast.store import atomic
from holdfast.store import lock as locks
from holdfast.store.layout import Home
from holdfast.views import full_disk, versions
from holdfast.views.cli.parse.command_spec import JSON, Command
from holdfast.views.cli.show import describe, fit_text, out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND = Command(
    name="status",
    summary="Show keeper, counts of tasks, and what needs attention.",
    examples=("holdfast status", "holdfast status --json"),
    options=(JSON,),
)

_REASON_BYTES = 2000
#: A request that nobody has answered for this long.
_DEAF_S = 2.0
#: What a keeper needs at most from its start to its lock.
_STARTING_S = 2.0


def run(values: dict[str, Any]) -> int:
    """Print it."""
    home = Home(paths.home())
    facts = look(home)
    if values["json"]:
        out.data(facts)
        return 0
    keeper, seed = facts["keeper"], facts["seed"]
    down = " (down)" if facts["down"] else ""
    _say("home", home.path)
    missing = "starting" if _is_starting(home) else f"not running{down}"
    _say("keeper", f"process {keeper['pid']}" if keeper else missing)
    _say("seed", f"process {seed['pid']}" if seed else "not running")
    counts = ", ".join(f"{count} {state}" for state, count in sorted(facts["counts"].items())) or "none"
    _say("tasks", counts)
    if facts["queue"] is not None:
        _say("queue", _queue_line(facts["queue"]))
    if facts["outbox"]["pending"] or facts["outbox"]["given_up"]:
        _say("notices", f"{facts['outbox']['pending']} to deliver, {facts['outbox']['given_up']} given up")
    for line in facts["attention"]:
        _say("!", line)
    return 0


def _say(name: str, text: str) -> None:
    out.fact(name, text, at=9)


def look(home: Home) -> dict[str, Any]:
    """The facts, as JSON shows them."""
    counts: dict[str, int] = {}
    states_of: dict[str, str] = {}
    attention: list[str] = []
    runners_gone: list[str] = []
    if os.path.isdir(home.tasks):
        live, counts = _tasks(home)
        for row in live:
            states_of[row["task_id"]] = row["status"]
            row["runner_gone"] = runner_lost.is_gone(home.packet(row["task_id"]), row["status"])
            counts[row["status"]] = counts.get(row["status"], 0) + 1
            attention += _trouble(home, row)
            if row["runner_gone"]:
                runners_gone.append(row["task_id"])
    starts = [at for at in spawn.keeper_starts(home) if clock.now() - at < spawn.STARTS_WINDOW_S]
    keeper = _owner(home.keeper_lock)
    if keeper is None and len(starts) >= spawn.STARTS_LIMIT:
        attention.append(
            f"the keeper was started {len(starts)} times in ten minutes and does not live: see {home.keeper_log}"
        )
    elif keeper is None and counts.get("queued") and not os.path.exists(home.down) and not _is_starting(home):
        attention.append(
            f"{'1 task waits' if counts['queued'] == 1 else str(counts['queued']) + ' tasks wait'} in the queue and no keeper"
            " runs: 'holdfast up' starts it"
        )
    disk = full_disk.trouble(home)
    if disk:
        attention.append(
            f"the disk of {home.path} is {disk}; 'holdfast rm' of tasks that have ended makes some"
        )
    difference = versions.difference(home)
    if difference:
        attention.append(f"{difference}: {versions.CURE}")
    notices = outbox.look(home)
    attention += [
        f"notices by {rule} fail: {failure.get('error')}"
        for rule, failure in sorted(notices["failing"].items())
    ]
    attention += _settings(home, has_keeper=keeper is not None) + _sources(home)
    queue = _queue(home, states_of)
    attention += queue.pop("attention") if queue is not None else []
    return {
        "schema": "holdfast.status/1",
        "home": home.path,
        "keeper": keeper,
        "seed": _owner(home.seed_lock),
        "down": os.path.exists(home.down),
        "counts": counts,
        "runners_gone": runners_gone,
        "keeper_starts": [clock.iso(at) for at in starts],
        "outbox": notices,
        "queue": queue,
        "attention": attention,
    }


def _is_starting(home: Home) -> bool:
    """Whether a keeper was started just now: it has no lock yet."""
    starts = spawn.keeper_starts(home)
    return bool(starts) and 0 <= clock.now() - starts[-1] < _STARTING_S and not os.path.exists(home.down)


def _tasks(home: Home) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Those that have not ended, newest first, and how many have."""
    from holdfast.store.index import Index

    index = Index(home)
    try:
        return index.overview()
    finally:
        index.close()


def _settings(home: Home, *, has_keeper: bool) -> list[str]:
    """What is wrong with the settings: those in the files, those in the keeper's environment, and those in ours."""
    found: list[str] = []
    if paths.settings_files("/"):
        from holdfast.config import settings

        try:
            settings.load("/")
        except HoldfastError as error:
            found.append(f"the settings are left aside, those before hold: {error}")
    if not found and has_keeper:
        try:
            wrong = str((atomic.read_json(home.settings) or {}).get("wrong"))
        except HoldfastError:
            wrong = ""
        # Of a file we know better: it may have been mended since the keeper looked.
        if wrong.startswith(paths.KEEPER_VARIABLES):
            found.append(f"the keeper leaves its settings aside, those before hold: {wrong}")
    if paths.has_keeper_variables():
        from holdfast.config import variables

        try:
            variables.check_keeper(os.environ)
        except HoldfastError as error:
            found.append(f"in this shell, {error}: 'up', 'run' and 'submit' refuse it")
    return found


def _sources(home: Home) -> list[str]:
    """The sources of the loop that fail."""
    try:
        failing: dict[str, Any] = (atomic.read_json(home.loop) or {}).get("failing") or {}
    except HoldfastError:
        return []
    return [f"the source {source} fails: {error}" for source, error in sorted(failing.items())]


def _queue(home: Home, states_of: dict[str, str]) -> dict[str, Any] | None:
    """What waits and how far the loop is; None where there is no queue. The packets are the truth: a row of a task that has
    ended does not count, and a task that waits does, whether a keeper has come to its row or not."""
    if not os.path.exists(home.queue):
        return None
    from holdfast.queue.local import LocalQueue

    states: dict[str, int] = {}
    attention: list[str] = []
    try:
        with LocalQueue(home, reads_only=True) as queue:
            items, paused = queue.items(), queue.paused()
        loop: dict[str, Any] = atomic.read_json(home.loop) or {}
    except HoldfastError as error:
        return {"states": {}, "paused": [], "loop": {}, "attention": [f"the queue cannot be read: {error}"]}
    waiting = {task_id for task_id, state in states_of.items() if state == "queued"}
    for item in items:
        if states_of.get(item.task_id) in (None, *ENDS):
            continue
        waiting.discard(item.task_id)
        states[item.state] = states.get(item.state, 0) + 1
        if item.state in ("held", "poison"):
            attention.append(
                f"{item.task_id} is {item.state}: {item.reason}; 'holdfast queue retry {item.task_id}' lets it go"
            )
    if waiting:
        states["queued"] = states.get("queued", 0) + len(waiting)
    if loop.get("short_of") and "queued" in states:
        attention.append(str(loop["short_of"]))
    asked = atomic.read_small(home.interrupt_request, _REASON_BYTES)
    if asked is not None:
        attention.append(
            f"the queue waits for a person: {fit_text.one_line(asked)} (remove {home.interrupt_request})"
        )
    return {"states": states, "paused": paused, "loop": loop, "attention": attention}


def _queue_line(queue: dict[str, Any]) -> str:
    states = ", ".join(f"{count} {state}" for state, count in sorted(queue["states"].items())) or "empty"
    done = queue["loop"].get("iteration", 0)
    paused = f"; paused: {', '.join(queue['paused'])}" if queue["paused"] else ""
    failures = queue["loop"].get("failures", 0)
    failed = f"; {failures} failed in a row" if failures else ""
    return f"{states}; {done} started so far{failed}{paused}"


def _owner(lock: str) -> dict[str, Any] | None:
    if not locks.is_held(lock):
        return None
    owner = locks.owner(lock)
    return {"pid": owner.pid if owner is not None else 0, "version": locks.version(lock)}


def _trouble(home: Home, row: dict[str, Any]) -> list[str]:
    packet = home.packet(row["task_id"])
    names = inbox.names(packet) if row["finished_at"] is None else []
    found: list[str] = []
    if row["status"] == "interrupted":
        found.append(describe.interruption(row, "waits for a person"))
    for name in names[:1]:
        try:
            age_s = clock.now() - os.stat(os.path.join(packet.inbox, name)).st_mtime
        except FileNotFoundError:
            continue
        if age_s > _DEAF_S:
            found.append(
                f"the runner of {row['task_id']} has not answered a request for {clock.words(age_s)}"
            )
    if row["runner_gone"]:
        found.append(f"{row['task_id']} is {row['status']} and has no runner: 'holdfast up' brings one")
    elif row["status"] == "running" and not names and load.is_unresponsive(packet):
        found.append(f"the runner of {row['task_id']} gives no sign of life")
    return found
