"""The state of one stage."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt


class StageState:
    """The state of one stage: its attempts, session, workspace and gate."""

    def __init__(self, stage: str, agent: str) -> None:
        self.stage = stage
        #: The current agent; a failover changes it.
        self.agent = agent
        #: Unavailable agents, and until when; null if only a person can help.
        self.unavailable: dict[str, str | None] = {}
        self.attempt: Attempt | None = None
        #: The last attempt whose exec succeeded, and how many there were. (Exec can fail after the start.)
        self.ran: Attempt | None = None
        self.times_ran = 0
        #: How long its agents ran, and holdfast's steps around them, such as its gate: in all runs.
        self.worked_s = 0.0
        self.session_id: str | None = None
        #: The first attempt in that session.
        self.session_from = 0
        self.needs_fresh_session = False
        #: Attempts that exceeded the model's context.
        self.overflows = 0
        #: Attempts in a row, without success or a sign of health, whose exit status is unknown.
        self.lost_in_a_row = 0
        self.workspace: ev.WorkspacePrepared | None = None
        #: Result of the repository's checks before the work.
        self.pre_work: ev.PreWorkChecked | None = None
        #: Number of the successful attempt that the gate judges; 0 if there is none.
        self.gate_attempt = 0
        self.gate: ev.GateJudged | None = None
        #: How many gates were started after the last attempt: more than one if they were killed.
        self.gates_started = 0
        #: The repair that its next attempt is for; until its gate passes.
        self.repair: ev.RepairPlanned | None = None
        #: What its attempts of this run left running.
        self.leftovers: tuple[ev.LeftoversFound, ...] = ()
        #: Chores that failed in a row.
        self.failed_chores_in_a_row = 0
        self.is_approved = False

    @property
    def gate_result(self) -> ev.GateJudged | None:
        """The gate's result for the last attempt; None if there is none yet."""
        if self.gate is None or self.attempt is None or self.gate.attempt != self.attempt.number:
            return None
        return self.gate

    @property
    def awaits_gate(self) -> bool:
        """Whether the gate has yet to judge the last attempt."""
        return (
            self.attempt is not None and self.gate_attempt == self.attempt.number and self.gate_result is None
        )

    def begin_again(self, *, afresh: bool, was_done: bool) -> None:
        """Reset the stage for a retry.

        `was_done`: its gate had passed, so the gate judges only the new changes; otherwise earlier changes
        count, too. `afresh`: start a new session, which needs a new approval.
        """
        if afresh:
            self.ran = self.session_id = None
            self.is_approved = False
        if was_done:
            self.workspace = None
        self.pre_work = None
        self.gate_attempt = self.failed_chores_in_a_row = 0
        self.gate = self.repair = None
        self.overflows = self.lost_in_a_row = 0
