"""Chores: holdfast's own processes before and after a stage's agent, run and watched like an agent.

So a chore can take long, is stopped with the task, leaves no processes behind, and is adopted by the next
runner. It writes its result into its attempt directory; `chore_results.py` adds it to the task.
"""

from __future__ import annotations

from holdfast import ids, own_python
from holdfast.agents.base import Launch
from holdfast.model import events as ev
from holdfast.runner.attempt.open import Opened, next_number, start
from holdfast.runner.ledger import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import AttemptDir


def open_chore(
    ledger: Ledger, env: dict[str, Any], *, stage: str, kind: str, judged: int = 0, keep: tuple[int, ...] = ()
) -> Opened:
    """Start a chore of a stage: `prepare`, `pre_work`, `adopt`; `gate` or `ci` for the attempt `judged`."""
    opened = ev.AttemptOpened(
        attempt=next_number(ledger),
        attempt_id=ids.new_attempt_id(),
        stage=stage,
        agent="command",
        mode="fresh",
        kind=kind,
    )
    return start(
        ledger,
        opened,
        env,
        prepare=lambda directory: Launch(
            argv=command_line(ledger, directory, kind, stage=stage, judged=judged)
        ),
        keep=keep,
    )


def command_line(
    ledger: Ledger, directory: AttemptDir, kind: str, *, stage: str, judged: int = 0
) -> list[str]:
    """The command line of a chore."""
    # What we believe of the journal: while the chore runs, others can write to the file.
    about = ["--packet", ledger.packet.path, "--stage", stage, "--out", directory.result]
    about += ["--journal", ledger.journal_pin] if ledger.journal_pin else []
    if kind in ("prepare", "adopt"):
        return own_python.command("holdfast.workspace", kind, *about)
    artifact = directory.artifact
    about += ["--attempt", str(judged), "--artifact", artifact]
    if kind == "ci":
        return own_python.command("holdfast.forge", *about)
    if ledger.task.spec.pipeline is None:
        which = "before" if kind == "pre_work" else "after"
        return own_python.command("holdfast.gates.quality", which, *about)
    return own_python.command("holdfast.gates", *about)
