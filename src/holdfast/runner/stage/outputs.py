"""The outputs of a stage, for users and for later stages: `outputs/<stage>.<tool>.*`, redacted.

All files are derived from the attempt's directory and written again after a kill. The report of a failed
attempt is named `.failed`, so that it is not mistaken for a result.
"""

from __future__ import annotations

import os

from holdfast import clock, files
from holdfast.agents import registry, replay
from holdfast.failpoints import failpoint
from holdfast.model.attempt import Attempt
from holdfast.model.execution import dirname
from holdfast.pipeline.results import stage_files
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic
from holdfast.store.digest import sha256

#: A longer log is not parsed again; the report is then the text in the journal.
_READ_BYTES = 64 * 1024 * 1024
_TEXT_BYTES = 4 * 1024 * 1024


def write(ledger: Ledger, attempt: Attempt) -> None:
    """Write the files of an ended attempt."""
    packet, ended = ledger.packet, attempt.ended
    if ended is None:
        return
    directory = packet.attempt(attempt.dirname)

    def put(kind: str, text: str) -> None:
        path = packet.output(attempt.stage, attempt.agent, kind)
        atomic.write(path, ledger.redact(text).encode("utf-8", "backslashreplace"), durable=False)

    put("out" if attempt.has_succeeded else "failed", _last_report(ledger, attempt))
    put("err", _text(directory.stderr))
    put("wrapper.log", _log(attempt, directory.argv))
    failpoint("outputs.report")
    started_at = attempt.started.started_at if attempt.started is not None else ended.noticed_at
    prompt = atomic.read_small(directory.prompt, _READ_BYTES)
    spec = next((spec for spec in ledger.task.spec.stages if spec.name == attempt.stage), None)
    call = stage_files.Call(
        stage=attempt.stage,
        tool=attempt.agent,
        exit_code=ended.exit_code,
        start=started_at,
        end=clock.iso(clock.parse_iso(started_at) + ended.lived_s),
        prompt_sha256=sha256(prompt) if prompt is not None else None,
        role=spec.role if spec is not None else "",
        model=spec.model if spec is not None else None,
        attempt=attempt.number,
        outcome=ended.outcome,
    )
    atomic.write_json(
        packet.output(attempt.stage, attempt.agent, "meta.json"), stage_files.meta(call), durable=False
    )


def _last_report(ledger: Ledger, attempt: Attempt) -> str:
    """The attempt's report; if a resumed attempt printed none, that of an earlier attempt in its session.

    An agent can finish its report before it is killed, and does not repeat it when it is resumed.
    """
    packet, number = ledger.packet, attempt.number
    first = max(1, ledger.task.stage_state(attempt.stage).session_from)
    text = report(attempt, packet.attempt(attempt.dirname).stdout)
    while attempt.mode == "resume" and not text.strip() and number > first:
        number -= 1
        text = report(attempt, packet.attempt(dirname(number, attempt.stage, attempt.kind)).stdout)
    return text


def report(attempt: Attempt, stdout: str) -> str:
    """The agent's final message in full. (The journal truncates it.)"""
    adapter = registry.adapter(attempt.agent)
    if not adapter.capabilities.has_events:
        return _text(stdout)
    try:
        with files.stream(stdout) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _READ_BYTES:
                return attempt.last_text
            folded = replay.fold(adapter, file.read())
    except OSError:
        return ""
    result = folded.result.text if folded.result is not None else ""
    # Some programs print a short message after the report.
    return max(result, folded.last_text, key=len) or attempt.last_text


def _text(path: str) -> str:
    """A log as text. If it is long, only its end, after a line with the number of bytes left out."""
    try:
        with files.stream(path) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _TEXT_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    left_out = size - _TEXT_BYTES
    return f"[{left_out} bytes left out]\n{text}" if left_out > 0 else text


def _log(attempt: Attempt, argv: str) -> str:
    started, ended = attempt.started, attempt.ended
    lines = [
        f"attempt {attempt.ordinal} ({attempt.attempt_id}) of {attempt.stage} by {attempt.agent}, "
        f"{attempt.mode}",
        f"argv: {(atomic.read_json(argv) or {}).get('argv')}",
        f"started: {started.started_at if started else '-'}, pid {started.pid if started else '-'}",
    ]
    if attempt.intent is not None:
        lines.append(f"stopped: {attempt.intent.intent}: {attempt.intent.reason}")
    if ended is not None:
        lines.append(f"ended: {ended.outcome} {ended.detail}".rstrip())
        lines.append(f"exit code {ended.exit_code}, signal {ended.exit_signal}, {ended.lived_s} s")
    return "\n".join(lines) + "\n"
