"""The signature of a failure: a short hash that is the same when the same failure occurs again.

Text that differs between attempts without a meaning (times, ids, paths of packets, tokens, amounts) is
removed first. Text that distinguishes failures (file names, line numbers, exit statuses, names of checks)
stays.
"""

from __future__ import annotations

import re

from holdfast.store.digest import sha256

#: How much of a text counts, before and after it is normalised.
LINES = 100
CHARS = 500
LENGTH = 16
#: A line of raw output can be megabytes long, and names its failure at the start. Both limits keep the text
#: small enough for patterns with look-around.
_LINE_CHARS, _ALL_CHARS = 1000, 20_000

_UNIT = (
    r"(?:ms|msec|millis(?:econds)?|µs|us|ns|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?"
    r"|[kmgt]i?b|b|bytes?|tokens?|chars?|characters?|%|usd)"
)
#: What ends a path in prose.
_ENDS = r"\s:'\"`()<>,="
#: In this order: what is long and particular goes before what is short and general.
NORMALISED: tuple[tuple[str, str], ...] = (
    ("escape sequences", r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])"),
    (
        "times of day",
        r"\b\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?"
        r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:\d{1,2} [A-Z][a-z]{2} \d{4} [\d:]{5,8}(?: GMT| UTC)?"
        r"|[A-Z][a-z]{2} +\d{1,2} [\d:]{5,8}(?: [A-Z]{3,4})?(?: \d{4})?)"
        r"|\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?: ?[AP]M)?",
    ),
    ("UUIDs", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    # By an id of ours, or by what only a packet has below: a project may have a directory `tasks` too.
    (
        "packet paths",
        rf"(?<![^{_ENDS}])/[^{_ENDS}]*/(?:tasks|worktrees|archive)/(?:\d{{8}}-[^/{_ENDS}]+"
        rf"|[^/{_ENDS}]+(?=/(?:inputs|outputs|attempts|state|done|inbox|runs)/))|\battempts/\d{{3,}}-",
    ),
    ("temporary paths", rf"/(?:tmp|var/folders|private/tmp|dev/shm|proc/\d+)/[^/{_ENDS}]+"),
    ("task ids", r"\b\d{8}-[A-Za-z0-9-]{1,40}-[a-z2-7]{4}\b"),
    ("masked secrets", r"\*{3,}"),
    # With a digit in them: `request_too_large` is a word that tells.
    (
        "ids with a prefix",
        r"\bses_[0-9a-f]{8}\b"
        r"|\b(?:ses|req|request|msg|toolu|call|resp|run|sess|thread|trace|sk|pk|gh[pousr]|key)[_-]"
        r"(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{6,}",
    ),
    # Long, and of letters and digits together: tokens, ULIDs, base64. A long word of letters only is a word.
    ("tokens", r"(?<![\w/.-])(?=[A-Za-z_=+-]*\d)(?=[\d_=+-]*[A-Za-z])[A-Za-z0-9_=+-]{20,}"),
    ("hex numbers", r"\b0x[0-9a-fA-F]+\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b"),
    ("addresses", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b(localhost|\[::1?\]):\d+\b"),
    ("process ids", r"\b(?:pid|PID|process|port)[ =:#]*\d+"),
    (
        "amounts",
        rf"(?<![\w.,])[$€£]?\d[\d,_]*+(?:\.\d+)?(?:[eE][+-]?\d+)? ?(?i:{_UNIT})(?![A-Za-z0-9])"
        r"|[$€£]\d[\d,.]*",
    ),
    ("epochs", r"(?<![\w.])1\d{9}(?:\d{3})?(?:\.\d+)?\b"),
)
_PATTERNS: list[re.Pattern[str]] = []


def normalise(text: str, *, task_id: str = "") -> str:
    """`text` without what changes between attempts: one line, at most CHARS long.

    `task_id` is removed too: a person may have chosen one that no pattern matches.
    """
    if not _PATTERNS:  # compiled for the first failure, not for every start
        _PATTERNS.extend(re.compile(pattern) for _, pattern in NORMALISED)
    lines = [line[:_LINE_CHARS] for line in text.splitlines()[:LINES]]
    kept = "\n".join(lines)[:_ALL_CHARS]
    for pattern in _PATTERNS:
        kept = pattern.sub(" ", kept)
    if task_id:
        kept = re.sub(rf"(?<![\w-]){re.escape(task_id)}(?![\w-])", " ", kept)
    return " ".join(kept.split())[:CHARS]


def signature(text: str, *, kind: str = "", task_id: str = "") -> str:
    """Sixteen hex digits.

    `kind` (an outcome, the check that failed) distinguishes failures that have no text.
    """
    return sha256(f"{kind}\n{normalise(text, task_id=task_id)}".encode("utf-8", "replace"))[:LENGTH]
