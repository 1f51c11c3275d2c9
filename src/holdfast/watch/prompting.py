"""What an agent last showed: does it ask somebody something, did it break down, or is it only advertising a new version?

Pure, and advice at most (SUP-19): a text that a program prints can say anything. So the question is asked only of one that is
silent without excuse, only the last lines count, a question counts only where a cursor would stand behind it, and
`is_waiting` believes it when it was seen twice in a row.
"""

from __future__ import annotations

import re
from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Lines that count, from the end; blank ones do not.
LINES = 5
#: How often in a row a question must be seen before it is believed.
LOOKS = 2
#: A longer line is no prompt, and its head is enough for all else.
_LINE_CHARS = 400


class Showing(StrEnum):
    """What the last lines are."""

    WAITING_FOR_INPUT = "waiting_for_input"
    CRASH_TEXT = "crash_text"
    UPGRADE_NAG = "upgrade_nag"
    UNKNOWN = "unknown"


_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()*+][0-9A-Za-z]|[\r\b\x07]"
)

#: The last line of all is one of these: nothing comes behind what a program waits for.
_ASKS = re.compile(
    r"""
      [\[(] \s* y(?:es)? \s* / \s* n(?:o)? (?: \s*/\s* \w+ )* \s* [\])] \s* [:?]? \s* $      # Overwrite? [y/N]
    | ^ (?: \[sudo\]\s )? (?: password | passphrase | username )
        (?: \s for \s .{1,200} )? : \s* $                                                       # [sudo] password for ann:
    | ^ \W{0,3} (?: please \s )? (?: enter | type | paste | provide ) \b (?: (?!\.\s) . ){0,200} [:>?] \s* $  # Enter passphrase for key '…':
    | \b press \s+ (?: enter | return | any \s key | y ) \b (?: \s+ [\w/-]+ ){0,6} [\s.…]* $ # Press Enter to continue…
    | ^ \W{0,3} waiting \s for \s (?: authentication | login | authorization | your \s (?: input | approval | answer ) ) \b .* $
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: A question with a menu below it, of which one line has the cursor.
_QUESTION = re.compile(
    r"\b(?:do you (?:want|wish|trust)|would you like|are you sure|allow|approve|select|choose|how would you like)\b.*[?:]\s*$",
    re.IGNORECASE,
)
_MENU = re.compile(r"^\W{0,4}[❯›>●▶*]\s*(?:\d[.)]\s*)?\w")
#: Somebody is sent to a browser.
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
    r"|\bnewer version\b.{0,60}\bavailable\b|\bnpm notice\b|^\W*run `?(?:npm|brew|pip) \S+ .*\bto (?:update|upgrade)\b",
    re.IGNORECASE,
)


def showing(text: str) -> Showing:
    """What the end of `text` is: the last lines of a log, or of a screen."""
    # The last lines only, before any work is done on them: a log can be one long line.
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


def is_waiting(seen: Sequence[Showing]) -> bool:
    """Whether the last looks, oldest first, all saw a question."""
    return len(seen) >= LOOKS and all(each == Showing.WAITING_FOR_INPUT for each in seen[-LOOKS:])


def _is_asking(lines: list[str]) -> bool:
    if _looks_like_data(lines[-1]):
        return False
    if _ASKS.search(lines[-1]) or _LOGIN.search(lines[-1]):
        return True
    # A menu stands below its question, and its hint ("Esc to cancel") below the menu.
    for at, line in enumerate(lines[:-1]):
        if _QUESTION.search(line) and any(_MENU.match(below) for below in lines[at + 1 :]):
            return True
    return False


def _looks_like_data(line: str) -> bool:
    """An event of a JSON stream quotes all kinds of text."""
    return line.lstrip().startswith(("{", "[{")) and line.endswith(("}", "]"))


def _has_crashed(lines: list[str]) -> bool:
    if any(_CRASH.search(line) for line in lines):
        return True
    has_stack = any(_STACK_LINE.match(line) for line in lines)
    return has_stack and any(_ERROR_LINE.match(line) for line in lines)
