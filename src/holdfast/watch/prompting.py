"""Classify the last lines of an agent's output: a prompt for input, a crash, or an upgrade notice. Pure.

The result is only a hint (SUP-19), because a program can print anything. So it is used only for an agent that
is silent with no sign of work, only the last lines count, a prompt must be at the very end, and `is_waiting`
needs two prompts in a row.
"""

from __future__ import annotations

import re

from holdfast.model.names import Names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Number of last lines that count, blank lines excluded.
LINES = 5
#: Checks in a row that must show a prompt.
LOOKS = 2
#: Only this many characters at the end of a line are examined.
_LINE_CHARS = 400


class Showing(Names):
    """Kind of the last lines."""

    WAITING_FOR_INPUT = "waiting_for_input"
    CRASH_TEXT = "crash_text"
    UPGRADE_NAG = "upgrade_nag"
    UNKNOWN = "unknown"


_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Za-z]|[\r\b\x07]"
)

#: Prompts. Only the very last line is matched: a program that waits prints nothing after its prompt.
_ASKS = re.compile(
    r"""
    # Overwrite? [y/N]
      [\[(] \s* y(?:es)? \s* / \s* n(?:o)? (?: \s*/\s* \w+ )* \s* [\])] \s* [:?]? \s* $
    # [sudo] password for ann:
    | ^ (?: \[sudo\]\s )? (?: password | passphrase | username ) (?: \s for \s .{1,200} )? : \s* $
    # Enter passphrase for key '…':
    | ^ \W{0,3} (?: please \s )? (?: enter | type | paste | provide ) \b
        (?: (?!\.\s) . ){0,200} [:>?] \s* $
    # Press Enter to continue…
    | \b press \s+ (?: enter | return | any \s key | y ) \b (?: \s+ [\w/-]+ ){0,6} [\s.…]* $
    # Waiting for your approval
    | ^ \W{0,3} waiting \s for \s
        (?: authentication | login | authorization | your \s (?: input | approval | answer ) ) \b .* $
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: A question above a menu; one line of the menu has the cursor.
_QUESTION = re.compile(
    r"\b(?:do you (?:want|wish|trust)|would you like|are you sure|allow|approve|select|choose"
    r"|how would you like)\b.*[?:]\s*$",
    re.IGNORECASE,
)
_MENU = re.compile(r"^\W{0,4}[❯›>●▶*]\s*(?:\d[.)]\s*)?\w")
#: A request to log in with a browser.
_LOGIN = re.compile(
    r"\b(?:open|visit|go to|enter)\b.{0,120}https?://\S*(?:login|auth|device|oauth|activate)\S*"
    r"|\bselect (?:a )?login method\b|\brun /login\b",
    re.IGNORECASE,
)
_CRASH = re.compile(
    r"^Traceback \(most recent call last\):$"
    r"|^(?:thread '.*' )?panicked at |^fatal runtime error: |^(?:FATAL|fatal) ERROR: |^FATAL ERROR: "
    r"|^Segmentation fault\b|^Aborted \(core dumped\)|\(core dumped\)$|^Bus error\b|^Illegal instruction\b"
    r"|^\s+at .*\(node:internal/|^Node\.js v\d+\.\d+\.\d+$|heap out of memory$|^\[?UnhandledPromiseRejection"
)
_ERROR_LINE = re.compile(r"^[\w.]*(?:Error|Exception)\b(?: \[\w+\])?: ")
_STACK_LINE = re.compile(r"^\s+(?:at \S|File \")")
_NAG = re.compile(
    r"\b(?:update|upgrade) available\b|\bnew (?:\w+ )?version (?:of .{1,60} )?(?:is )?(?:now )?available\b"
    r"|\bnewer version\b.{0,60}\bavailable\b|\bnpm notice\b"
    r"|^\W*run `?(?:npm|brew|pip) \S+ .*\bto (?:update|upgrade)\b",
    re.IGNORECASE,
)


def showing(text: str) -> Showing:
    """Classify the end of `text`, a log or a screen."""
    # Cut first: a log can be one long line.
    lines = [line[-_LINE_CHARS:] for line in text[-LINES * 2000 :].split("\n")]
    lines = [clean for line in lines if (clean := _ESCAPES.sub("", line).rstrip()).strip()][-LINES:]
    if not lines:
        return Showing.UNKNOWN
    if _is_asking(lines):
        return Showing.WAITING_FOR_INPUT
    if _has_crashed(lines):
        return Showing.CRASH_TEXT
    if any(_NAG.search(line) for line in lines):
        return Showing.UPGRADE_NAG
    return Showing.UNKNOWN


def is_waiting(showings: Sequence[Showing]) -> bool:
    """Whether the last checks all showed a prompt. `showings` has one result per check, oldest first."""
    return len(showings) >= LOOKS and all(each == Showing.WAITING_FOR_INPUT for each in showings[-LOOKS:])


def _is_asking(lines: list[str]) -> bool:
    if _looks_like_data(lines[-1]):
        return False
    if _ASKS.search(lines[-1]) or _LOGIN.search(lines[-1]):
        return True
    # A menu follows its question and may be followed by a hint ("Esc to cancel").
    for at, line in enumerate(lines[:-1]):
        if _QUESTION.search(line) and any(_MENU.match(below) for below in lines[at + 1 :]):
            return True
    return False


def _looks_like_data(line: str) -> bool:
    """Whether it is JSON: an event in a JSON stream can quote any text."""
    return line.lstrip().startswith(("{", "[{")) and line.endswith(("}", "]"))


def _has_crashed(lines: list[str]) -> bool:
    if any(_CRASH.search(line) for line in lines):
        return True
    has_stack = any(_STACK_LINE.match(line) for line in lines)
    return has_stack and any(_ERROR_LINE.match(line) for line in lines)
