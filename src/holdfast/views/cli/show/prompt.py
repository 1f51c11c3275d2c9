"""Ask on the terminal."""

from __future__ import annotations

import signal
import sys

from holdfast.views.cli.show import out


def line(text: str) -> tuple[str | None, bool]:
    """What the person typed, None if nothing; and whether they gave up (Ctrl-D or Ctrl-C)."""
    out.talk(text)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input("> ").strip() or None, False
    except (EOFError, KeyboardInterrupt):
        out.talk("")
        return None, True
    finally:
        signal.signal(signal.SIGINT, before)


def is_confirmed(question: str) -> bool:
    """Whether a person answers yes."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
