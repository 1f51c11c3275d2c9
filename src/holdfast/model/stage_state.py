"""A stage_state: one stage's own history."""

from __future__ import annotations

from holdfast.model import events as ev
from holdfast.model.attempt import Attempt


class StageState:
    """What one stage went through: its sessions, its workspace, its gate."""

    def __init__(self, stage: str, agent: str) -> None:
        self.stage = stage
        #: Who plays it now; a failover changes that.
        self.agent = agent
        #: Agents that were out of quota, and until when; null where only a person can help.
        self.unavailable: dict[str, str | None] = {}
        #: The last attempt of the agent.
        self.attempt: Attempt | None = None
        #: The last one whose program was really executed, and how many there were. (A failed exec is seen after the start.)
        self.ran: Attempt | None = None
        self.times_ran = 0
        self.session_id: str | None = None
        self.needs_fresh_session = False
        #: Attempts that ran out of the model's context.
        self.overflows = 0
        self.workspace: ev.WorkspacePrepared | None = None
        #: What the repository's own checks said before the agent began.
        self.pre_work: ev.PreWorkChecked | None = None
        #: The attempt that succeeded and was handed to the gate.
        self.accepted = 0
        self.gate: ev.GateJudged | None = None
        #: Chores in a row that came to nothing.
        self.chores_in_vain = 0
        self.is_approved = False

    @property
    def gate_result(self) -> ev.GateJudged | None:
        """What the gate said about the last attempt; None while it has not spoken."""
        if self.gate is None or self.attempt is None or self.gate.attempt != self.attempt.number:
            return None
        return self.gate

    @property
    def awaits_gate(self) -> bool:
        """The last attempt was handed to the gate, which has not spoken."""
        return self.attempt is not None and self.accepted == self.attempt.number and self.gate_result is None

    def begin_again(self, *, afresh: bool, was_done: bool) -> None:
        """What it does now is judged from now on, if its gate had let it pass (`was_done`); else what it did before is judged
        with it. `afresh`: in a new session, which knows nothing of what was done; a person agrees to it anew."""
        if afresh:
            self.ran = self.session_id = None
            self.is_approved = False
        if was_done:
            self.workspace = None
        self.pre_work = None
        self.accepted = self.chores_in_vain = 0
        self.gate = None
        self.overflows = 0
