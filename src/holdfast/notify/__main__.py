"""`python -m holdfast.notify FILE`: deliver one notice and unlink it, or write the error into it.

`python -m holdfast.notify --replies SERVER [TOKEN_ENV]`: read replies to notices until none is awaited.

Both are run by the keeper.
"""

from __future__ import annotations

import os
import signal
import sys

from holdfast import recorder
from holdfast.errors import HoldfastError
from holdfast.notify import outbox, own_rules, registry
from holdfast.store import atomic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

#: Time limit for the whole delivery; then everything is killed, including this process.
LIMIT_S = 30


def main(argv: list[str]) -> int:
    """Returns 0 if delivered; 1 if not, and then the error is in the notice."""
    if argv[:1] == ["--replies"] and 2 <= len(argv) <= 3:
        from holdfast.notify import reply_listener

        recorder.set_name("holdfast-reply")
        return reply_listener.main(*argv[1:])
    if len(argv) != 1:
        print("usage: python -m holdfast.notify FILE", file=sys.stderr)
        return 2
    path = os.path.abspath(argv[0])
    recorder.set_name("holdfast-notify")
    notice = atomic.read_json(path)
    if notice is None:
        return 0  # already delivered
    _limit(path, notice)
    rule: dict[str, Any] = notice.get("rule") or {}
    try:
        own_rules.check(rule)
        registry.notifier(str(rule.get("to")))(_shown(outbox.placed(path, notice)), rule)
    except Exception as error:  # third-party code; the error is in the notice, and `status` shows it
        signal.alarm(0)
        _say(
            path,
            notice,
            str(error) if isinstance(error, HoldfastError) else f"{type(error).__name__}: {error}",
        )
        return 1
    signal.alarm(0)
    atomic.remove(path)
    return 0


def _shown(notice: dict[str, Any]) -> dict[str, Any]:
    """The notice for a notifier: without the rule and the delivery state."""
    hidden = ("rule", "tries", "next_at", "after", "error")
    return {name: value for name, value in notice.items() if name not in hidden}


def _limit(path: str, notice: dict[str, Any]) -> None:
    def on_alarm(number: int, frame: FrameType | None) -> None:
        _say(path, notice, f"exceeded the limit of {LIMIT_S} s")
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(LIMIT_S)


def _say(path: str, notice: dict[str, Any], error: str) -> None:
    try:
        if os.path.exists(path):
            atomic.write_json(path, {**notice, "error": error[:500]}, durable=False)
    except HoldfastError:
        return  # disk full: it is retried anyway


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
