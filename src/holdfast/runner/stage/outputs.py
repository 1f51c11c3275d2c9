"""What a stage of a packet leaves for people and for the next stage: `outputs/<stage>.<tool>.*`, redacted.

All of it is derived from the attempt's directory, and written again after a kill. The report of a failed attempt is kept as
`.failed`: nobody may take it for a result.
"""

from __future__ import annotations

import os

from holdfast import clock
from holdfast.agents import registry, replay
from holdfast.failpoints import failpoint
from holdfast.model.attempt import Attempt
from holdfast.model.execution import dirname
from holdfast.pipeline.results import stage_files
from holdfast.runner.ledger import Ledger
from holdfast.store import atomic
from holdfast.store.digest import sha256

#: Of a longer log only the end is read again for the report.
_READ_BYTES = 64 * 1024 * 1024
_TEXT_BYTES = 4 * 1024 * 1024


def write(ledger: Ledger, attempt: Attempt) -> None:
    """The files of one attempt that has ended."""
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
    meta = stage_files.meta(
        attempt.stage,
        attempt.agent,
        exit_code=ended.exit_code,
        start=started_at,
        end=clock.iso(clock.parse_iso(started_at) + ended.lived_s),
        prompt_sha256=sha256(prompt) if prompt is not None else None,
        role=spec.role if spec is not None else "",
        model=spec.model if spec is not None else None,
        attempt=attempt.number,
        outcome=ended.outcome,
    )
    atomic.write_json(packet.output(attempt.stage, attempt.agent, "meta.json"), meta, durable=False)


def _last_report(ledger: Ledger, attempt: Attempt) -> str:
    """The attempt's report. One that found everything done says nothing; then what its session said before stands: the
    report of an agent whose end nobody saw is there, and it does not give it twice."""
    packet, number = ledger.packet, attempt.number
    said = report(attempt, packet.attempt(attempt.dirname).stdout)
    while attempt.mode == "resume" and not said.strip() and number > 1:
        number -= 1
        said = report(attempt, packet.attempt(dirname(number, attempt.stage, attempt.kind)).stdout)
    return said


def report(attempt: Attempt, stdout: str) -> str:
    """The agent's last word in full. (The journal has only its beginning.)"""
    adapter = registry.adapter(attempt.agent)
    if not adapter.capabilities.has_events:
        return _text(stdout)
    try:
        with open(stdout, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > _READ_BYTES:
                return attempt.last_text
            folded = replay.fold(adapter, file.read())
    except FileNotFoundError:
        return ""
    result = folded.result.text if folded.result is not None else ""
    # A program may end with a short word behind its report.
    return max(result, folded.last_text, key=len) or attempt.last_text


def _text(path: str) -> str:
    """A log as text; of a long one its end, and a word about the rest."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _TEXT_BYTES))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    left_out = size - _TEXT_BYTES
    return f"[{left_out} bytes left out]\n{text}" if left_out > 0 else text


def _log(attempt: Attempt, argv: str) -> str:
    started, ended = attempt.started, attempt.ended
    lines = [
        f"attempt {attempt.number} ({attempt.attempt_id}) of {attempt.stage} by {attempt.agent}, {attempt.mode}",
        f"argv: {(atomic.read_json(argv) or {}).get('argv')}",
        f"started: {started.started_at if started else '-'}, pid {started.pid if started else '-'}",
    ]
    if attempt.intent is not None:
        lines.append(f"stopped: {attempt.intent.intent}: {attempt.intent.reason}")
    if ended is not None:
        lines.append(f"ended: {ended.outcome} {ended.detail}".rstrip())
        lines.append(f"exit code {ended.exit_code}, signal {ended.exit_signal}, {ended.lived_s} s")
    return "\n".join(lines) + "\n"
