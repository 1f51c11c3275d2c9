"""STOP_AND_CONFIRM in a report: a remark, never a failure."""

from __future__ import annotations

import pytest

from holdfast.gates import confirm
from holdfast.gates.base import Case
from tests.unit.gates.test_report import judged, written


class Report(Case):
    """A case of which only the report counts."""

    must_have = frozenset({"report"})


@pytest.mark.req("PIP-13")
@pytest.mark.parametrize("role", ["review", "security_review", "review_consolidate"])
def test_a_reviewer_asks_for_a_person(home: str, role: str) -> None:
    text = written(role) + "STOP_AND_CONFIRM: the key is out\n"
    assert judged(home, role, text) == ("", ["STOP_AND_CONFIRM: the key is out"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("STOP_AND_CONFIRM", ["STOP_AND_CONFIRM"]),
        ("**STOP_AND_CONFIRM: look\r**", ["STOP_AND_CONFIRM: look"]),
        ("- `STOP_AND_CONFIRM`: look", ["STOP_AND_CONFIRM: look"]),
        ("I did not write STOP_AND_CONFIRM.", []),
        ("STOP_AND_CONFIRM is not needed", []),
        ("stop_and_confirm", []),
    ],
)
def test_the_line_is_that_word_and_perhaps_a_reason(home: str, line: str, said: list[str]) -> None:
    assert judged(home, "review", f"{written('review')}{line}\n") == ("", said)


@pytest.mark.parametrize(
    ("report", "requests"),
    [
        ("STOP_AND_CONFIRM: the key is out", ("the key is out",)),
        ("STOP_AND_CONFIRM", ("",)),
        # The same request twice is one, and its own text may be anything.
        (
            "STOP_AND_CONFIRM: STOP_AND_CONFIRM: x\nSTOP_AND_CONFIRM: STOP_AND_CONFIRM: x",
            ("STOP_AND_CONFIRM: x",),
        ),
        ("nothing", ()),
    ],
)
def test_a_request_is_a_field_of_the_result(report: str, requests: tuple[str, ...]) -> None:
    assert confirm.check(Report(report=report)).confirm == requests  # pyright: ignore[reportCallIssue]


def test_of_others_it_is_not_asked(home: str) -> None:
    assert judged(home, "runbook", written("runbook") + "STOP_AND_CONFIRM\n") == ("", [])
