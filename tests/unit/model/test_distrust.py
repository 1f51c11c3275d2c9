"""A task whose journal somebody else wrote to: a person is asked, whatever the texts say."""

from __future__ import annotations

import pytest

from holdfast.model import events as ev
from holdfast.model.fold import apply
from holdfast.model.status import Cause
from holdfast.model.task import Task

AT = "2026-01-01T00:00:00Z"


def _after_an_interrupt(*, cause: str, question: str) -> Task:
    task = Task()
    apply(task, ev.JournalForged(reason="12 bytes that no runner wrote", dropped_bytes=12), AT)
    moved = ev.TaskMoved(old="spawning", new="interrupted", reason=question, interrupt=question, cause=cause)
    apply(task, moved, AT)
    return task


@pytest.mark.parametrize("question", ["12 bytes that no runner wrote", "[redacted]"])
def test_a_person_was_asked_about_it(question: str) -> None:
    assert _after_an_interrupt(cause=Cause.DISTRUST, question=question).distrust == ""


def test_another_question_with_the_same_words_is_not_that_question() -> None:
    task = _after_an_interrupt(cause="", question="an agent says: 12 bytes that no runner wrote")
    assert task.distrust
