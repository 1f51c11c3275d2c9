"""Read what the scripted agent recorded: which processes ran, and what each of them did."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Start:
    """The start of one process of the session."""

    pid: int
    process: int
    """1 for the first process of the session."""
    started_at: float
    """Seconds since the epoch."""
    start_ticks: int | None
    """The kernel's start time of the process; None where there is no /proc."""
    is_resume: bool
    argv: list[str]
    cwd: Path
    prompt: str
    prompt_sha256: str
    env: dict[str, str]
    """HOLDFAST_RESUME_COUNT, HOLDFAST_TASK and HOLDFAST_ATTEMPT, if they were set."""


class SessionMemory:
    """The records of one session, read again for each call; the agent may still be running."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def all(cls, state_dir: str | Path) -> list[SessionMemory]:
        """Every session in a state directory, oldest first."""
        found = [cls(path.parent) for path in Path(state_dir).glob("*/journal.jsonl")]
        return sorted(found, key=lambda memory: memory.starts()[0].started_at)

    @property
    def session_id(self) -> str:
        """The id of the session."""
        return self.path.name

    def starts(self) -> list[Start]:
        """The processes of the session, in order."""
        return [
            Start(
                pid=record["pid"],
                process=record["process"],
                started_at=record["at"],
                start_ticks=record["start_ticks"],
                is_resume=record["is_resume"],
                argv=record["argv"],
                cwd=Path(record["cwd"]),
                prompt=record["prompt"],
                prompt_sha256=record["prompt_sha256"],
                env=record["env"],
            )
            for record in self.records("start")
        ]

    def begun_steps(self) -> list[str]:
        """Places (`steps[2]`) of all steps that were started, including those that were cut off."""
        return [record["step"] for record in self.records("begin")]

    def completed_steps(self) -> list[str]:
        """Places of all completed steps, in order, with repetitions."""
        return [record["step"] for record in self.records("done")]

    def skipped_steps(self) -> list[str]:
        """Places of steps that were skipped because of `once`, `times` or `tries`."""
        return [record["step"] for record in self.records("skip")]

    def effects(self) -> list[dict[str, Any]]:
        """Effects: files written, commands run."""
        return self.records("effect")

    def failures(self) -> list[str]:
        """Why expectations of the scenario were not met."""
        return [record["message"] for record in self.records("failed")]

    def exits(self) -> list[int]:
        """Exit statuses of processes that exited by themselves; a crash leaves none."""
        return [record["exit"] for record in self.records("left")]

    def overlaps(self) -> list[dict[str, Any]]:
        """Processes that found another live process of the session (`pid`, `holder`, `at`)."""
        return _lines(self.path / "overlap")

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        """The journal's records, all or of one kind."""
        records = _lines(self.path / "journal.jsonl")
        return [record for record in records if kind in (None, record["kind"])]


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    records: list[dict[str, Any]] = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            continue  # torn by a crash: it did not happen
    return records
