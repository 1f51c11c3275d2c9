"""Steps about how a process ends, or does not."""

from __future__ import annotations

import os
import time

from holdfast.testing.agent import signals
from holdfast.testing.agent.play import ScriptFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.testing.agent.play import Play


def crash(play: Play, *, signal: str = "KILL", exit: int | None = None) -> None:
    """Die without output: by a signal to itself, or with an exit status."""
    if exit is not None:
        os._exit(exit)
    signals.die_of(signal)
    # Reached only if the signal does not kill (CHLD, CONT, STOP that was continued).


def exit(play: Play, *, code: int) -> None:
    """Exit immediately: no result is added or corrected."""
    play.leave(code)


def hang(play: Play, *, cpu: bool = False) -> None:
    """Do nothing forever, or compute forever."""
    if not cpu:
        play.pause("forever")
    while True:
        sum(range(1000))


def linger(play: Play, *, s: float | str = "forever") -> None:
    """Give the result, if there was none yet, and then stay."""
    if not play.dialect.has_result:
        play.dialect.result()
    play.pause(s)


def rate_limit(play: Play, *, text: str = "limit", resets_in_s: float | None = None) -> None:
    """Give up because of a limit of the model's server, as the CLI does: a result, and exit status 1. With
    `resets_in_s`, the message says when the limit ends."""
    resets = "" if resets_in_s is None else f" · resets at {_utc(time.time() + resets_in_s)}"
    play.dialect.rate_limited(_refusal("API Error: Request rejected (429)", text) + resets)
    play.leave(1)


def unauthorized(play: Play, *, text: str = "authentication_error") -> None:
    """Give up because the login is not valid (401): a result, and exit status 1."""
    text = _refusal("Failed to authenticate. API Error: 401", text)
    play.dialect.result(text=text, is_error=True, api_error_status=401)
    play.leave(1)


def _utc(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def _refusal(says: str, text: str) -> str:
    """What the CLI says before its server's text, which tells the kind of the error. A text may have it."""
    return text if "API Error: " in text else f"{says} · {text}"


def kill_group(play: Play, *, signal: str = "KILL") -> None:
    """`kill 0`: a signal to the whole process group, including this process."""
    os.kill(0, signals.number(signal))


def ignore(play: Play, *, signals: list[str]) -> None:
    from holdfast.testing.agent.signals import ignore

    ignore(signals)


def fail_if_running(play: Play) -> None:
    """Hold the session's lock until the process ends; fail if another process holds it."""
    holder = play.session.claim()
    if holder is not None:
        raise ScriptFailure(f"session {play.session.id} is already running in process {holder}")
