"""The marks of a timeline in words."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.views.text import timeline_words


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (
            {"kind": "crash", "attempt": 5, "detail": "killed by signal 9", "noticed_s": 0.02},
            "crash, noticed after 0.0s: killed by signal 9",
        ),
        (
            {"kind": "hang", "attempt": 1, "silent_s": 120.1, "detail": "no sign of work"},
            "hang, silent for 2m00s: no sign of work",
        ),
        ({"kind": "resume", "attempt": 6, "after_s": 5.119, "healed_s": 5.141}, "resumed, after 5.1s"),
        ({"kind": "resume", "attempt": 6, "after_s": 5.119, "healed_s": None}, "resumed, after 5.1s"),
        ({"kind": "adopt", "attempts": [1], "gap_s": None}, "taken over by a new runner"),
        ({"kind": "sweep", "attempt": 1, "killed": 3, "after_s": 0.1}, "swept, 3 processes ended"),
        (
            {"kind": "gate", "stage": "codex_impl", "passed": True, "took_s": 1.5},
            "gate, codex_impl passed, after 1.5s",
        ),
        (
            {"kind": "gate", "stage": "codex_impl", "passed": False, "failed": "scope"},
            "gate, codex_impl refused by scope",
        ),
        (
            {"kind": "question", "detail": "Which one?", "answered_s": None},
            "question, open: Which one?",
        ),
        ({"kind": "question", "detail": "", "answered_s": 61}, "question, answered after 1m01s"),
        ({"kind": "request", "verb": "stop", "by": "ann", "refused": True}, "request, stop by ann, refused"),
        ({"kind": "limit", "limit": "rate", "detail": ""}, "limit, rate"),
        (
            {"kind": "takeover", "how": "handed_back", "by": "ann", "files": 2},
            "takeover, handed back by ann, 2 files changed",
        ),
        ({"kind": "of a newer version"}, "of a newer version"),
    ],
)
def test_a_mark_has_its_measured_time(mark: dict[str, Any], words: str) -> None:
    assert timeline_words.of_mark({**mark, "at": "2026-01-01T00:00:00Z"}) == words
