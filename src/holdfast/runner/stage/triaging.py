"""Classify a failure of a pipeline's stage, with the ends of its stderr."""

from __future__ import annotations

import os

from holdfast import files
from holdfast.model import events as ev
from holdfast.model.attempt import Attempt
from holdfast.pipeline import triage as classifying
from holdfast.pipeline.triage import Failure
from holdfast.redact import MARGIN, Redactor, begin_of, end_of
from holdfast.runner.ledger import Ledger
from holdfast.runner.plan.failures import triaged_event

#: How much of each end of a log is read.
_END_BYTES, _END_LINES = 8192, 20
_DETAIL_CHARS, _EXCERPT_CHARS = 1000, 20_000


def triage(ledger: Ledger, attempt: Attempt, failure: Failure) -> ev.FailureTriaged:
    """The event of an attempt's failure."""
    stage = ledger.task.stage_spec(attempt.stage)
    failure = failure.evolve(
        role=stage.role if stage is not None else "",
        agent=attempt.agent,
        exit_code=attempt.ended.exit_code if attempt.ended is not None else None,
        stderr_excerpt=_ends_of(ledger.packet.attempt(attempt.dirname).stderr, ledger.redact),
        task_id=ledger.packet.task_id,
    )
    event = triaged_event(failure, classifying.triage(failure), attempt=attempt.number)
    return event.evolve(
        detail=ledger.redact(event.detail)[:_DETAIL_CHARS], excerpt=event.excerpt[:_EXCERPT_CHARS]
    )


def _ends_of(path: str, redact: Redactor) -> str:
    """The first and last lines of a log, without secrets: what went wrong is usually at one of its ends."""
    read_bytes = _END_BYTES + MARGIN
    try:
        with files.stream(path) as file:
            first = file.read(2 * read_bytes)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - read_bytes))
            last = file.read(read_bytes)
    except FileNotFoundError:
        return ""
    if size <= 2 * read_bytes:
        head, tail = redact(first.decode("utf-8", "replace")).splitlines(), []
    else:
        head = begin_of(first[:read_bytes], redact, _END_BYTES).splitlines()
        tail = end_of(last, redact, _END_BYTES).splitlines()
    if len(head) + len(tail) <= 2 * _END_LINES:
        return "\n".join([*head, *tail])
    return "\n".join([*head[:_END_LINES], "[…]", *(tail or head)[-_END_LINES:]])
