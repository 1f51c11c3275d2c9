"""Everything about one task: what `show` prints and a page about a task needs.

    task = detail(home, "20260131-fix")
    task.manifest["status"], task.stages, task.attempts, …

Each value is read when it is first asked for, and then kept: a view that shows only stages reads no journal.
A value that a packet of another version does not have, or that cannot be read, is None or empty.
"""

from __future__ import annotations

import os
from functools import cached_property

from holdfast import clock
from holdfast.errors import CorruptFile, HoldfastError
from holdfast.model.next_action import Suggestion
from holdfast.model.status import ENDS, Status
from holdfast.packet import load, runner_gone, takeover
from holdfast.store import atomic, lock_owner
from holdfast.store import lock as locks
from holdfast.views.facts.detail_records import Advice, Budget, Leftover, QueuePosition, Stage, Worktree
from holdfast.views.text import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.history import ExecutionEntry, GateEntry, History, InterruptEntry
    from holdfast.model.spec import StageSpec
    from holdfast.model.stage_usage import StageUsage
    from holdfast.model.task import Task
    from holdfast.packet.fan_out import ItemFacts
    from holdfast.store.layout import Home, Packet
    from holdfast.views.facts.packet_files import PacketFile

SCHEMA = "holdfast.detail/1"


def detail(home: Home, task: str) -> Detail:
    """The details of a task, by its id or a unique prefix. Raises NotFound, AmbiguousId, InvalidId."""
    return Detail(load.find(home, task, archived=True))


class Detail:
    """One task. Its values are those of the moment when they were first asked for."""

    def __init__(self, packet: Packet, manifest: dict[str, Any] | None = None) -> None:
        self.packet = packet
        self.task_id = packet.task_id
        self.manifest: dict[str, Any] = manifest if manifest is not None else load.read_true(packet)
        describe.mark_waiting_for_person(self.manifest, packet)
        describe.mark_left_out(self.manifest, packet)

    @cached_property
    def runner_gone(self) -> bool | None:
        """Whether it should have a runner and has none; None if the lock cannot be checked."""
        return runner_gone.for_display(self.packet, self.manifest["status"])

    @cached_property
    def is_taken_over(self) -> bool:
        """Whether a person has its session now."""
        return takeover.is_held(self.packet, self.manifest)

    @property
    def shown(self) -> dict[str, Any]:
        """The manifest with `runner_gone`, as `show --json` prints it."""
        return {**self.manifest, "runner_gone": self.runner_gone}

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.manifest["status"] in ENDS

    @property
    def is_archived(self) -> bool:
        """Whether its packet is in the archive."""
        return os.path.dirname(self.packet.path) == self.packet.home.archive

    # ── from the journal ──

    @cached_property
    def task(self) -> Task | None:
        """The task, folded from its journal; None if that cannot be read."""
        try:
            return load.fold(self.packet)
        except HoldfastError:
            return None

    @cached_property
    def _history_and_offset(self) -> tuple[History, int]:
        from holdfast.model import history
        from holdfast.views.facts.events import EventReader

        reader = EventReader(self.packet)
        try:
            return history.of(reader.new()), reader.offset
        except HoldfastError:
            return history.History(), 0

    @property
    def _history(self) -> History:
        return self._history_and_offset[0]

    @property
    def journal_bytes(self) -> int:
        """The byte of the journal after the last event in `attempts`, `gates` and `interrupts`."""
        return self._history_and_offset[1]

    @cached_property
    def attempts(self) -> tuple[ExecutionEntry, ...]:
        """Attempts of agents, and chores, in order."""
        return self._history.executions

    @cached_property
    def gates(self) -> tuple[GateEntry, ...]:
        """All gate results, the last one last; with the checks where their evidence is still there."""
        latest = {gate.stage: gate.attempt for gate in self._history.gates}
        return tuple(
            self._with_checks(gate) if latest[gate.stage] == gate.attempt else gate
            for gate in self._history.gates
        )

    def _with_checks(self, gate: GateEntry) -> GateEntry:
        from holdfast.model.history import CheckEntry

        path = self.packet.gate_result(gate.stage)
        try:
            record = atomic.read_json(path) or {}
            if record.get("attempt") != gate.attempt:
                return gate
            checks = tuple(CheckEntry.from_json(each) for each in record.get("checks") or ())
        except (HoldfastError, ValueError, TypeError, AttributeError):
            return gate
        return gate.evolve(checks=checks, path=os.path.relpath(path, self.packet.path))

    @cached_property
    def interrupts(self) -> tuple[InterruptEntry, ...]:
        """Every time it stopped to ask a person."""
        return self._history.interrupts

    @property
    def question(self) -> InterruptEntry | None:
        """The question that it waits with; None if it waits for no person."""
        if self.manifest["status"] != Status.INTERRUPTED or not self.interrupts:
            return None
        last = self.interrupts[-1]
        return last if last.answered_at is None else None

    # ── stages, budgets, usage ──

    @cached_property
    def usage_by_stage(self) -> dict[str, StageUsage]:
        """What each stage took. Reads the journal."""
        from holdfast.packet import metrics

        try:
            return metrics.analyse(self.packet).stages.stages
        except HoldfastError:
            return {}

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages in order."""
        specs = {stage.name: stage for stage in self.task.spec.stages} if self.task is not None else {}
        rows: list[dict[str, Any]] = self.manifest.get("stages") or []
        return tuple(self._stage(row, specs.get(row["name"])) for row in rows)

    @cached_property
    def items(self) -> tuple[ItemFacts, ...]:
        """Of a fan-out: its items, in the order of the plan."""
        spec = self.task.spec.fan_out if "items" in self.manifest and self.task is not None else None
        if spec is None:
            return ()
        from holdfast.packet import fan_out

        return tuple(fan_out.items(self.packet, spec))

    @cached_property
    def items_usage(self) -> dict[str, Any] | None:
        """Of a fan-out: what its tasks used together."""
        spec = self.task.spec.fan_out if "items" in self.manifest and self.task is not None else None
        if spec is None:
            return None
        from holdfast.packet import fan_out

        return fan_out.used(self.packet, spec)

    def _stage(self, row: dict[str, Any], spec: StageSpec | None) -> Stage:
        facts: dict[str, Any] = {}
        if spec is not None:
            facts = {
                "model": spec.model,
                "role": spec.role,
                "effort": spec.effort,
                "group": spec.group,
                "candidate": spec.candidate,
                "writes": spec.writes,
                "permissions": spec.permissions or None,
                "needs_approval": spec.approval,
            }
        if (used := self.usage_by_stage.get(row["name"])) is not None:
            facts |= {"calls": used.calls, "seconds": round(used.seconds, 3), "since": used.since}
            facts |= used.used.to_json()
        return Stage(
            name=row["name"],
            state=row["state"],
            agent=row.get("agent"),
            is_chosen=bool(row.get("is_chosen")),
            attempt=row.get("attempt"),
            outcome=row.get("outcome"),
            gate=row.get("gate"),
            decision=row.get("decision") or "",
            findings=row.get("findings") or {},
            session_id=row.get("session_id"),
            **facts,
        )

    @cached_property
    def budgets(self) -> tuple[Budget, ...]:
        """Its budgets and limits; empty if its journal cannot be read."""
        task = self.task
        if task is None:
            return ()
        limits, used = task.spec.limits, task.run_usage
        tokens = [count for count in (used.input_tokens, used.output_tokens) if count is not None]
        return (
            Budget(
                name="cost_usd",
                used=used.cost_usd,
                limit=limits.budget_usd,
                is_at_least=used.cost_usd is not None and bool(task.spending.unpriced),
            ),
            Budget(
                name="tokens",
                used=sum(tokens) if tokens else None,
                limit=limits.budget_tokens,
                is_at_least=bool(tokens and task.spending.uncounted),
            ),
            Budget(name="turns", used=task.run_turns, limit=limits.max_turns),
            Budget(name="paid_calls", used=task.paid_calls, limit=task.paid_limit),
            Budget(name="retries", used=task.total_retries, limit=limits.max_retries),
            Budget(name="active_s", used=round(_active_s(task), 3), limit=task.deadline_s),
        )

    @property
    def counts_again(self) -> bool:
        """Whether its budgets of money and tokens are counted from a resume or a retry."""
        if self.task is None:
            return False
        from holdfast.model.usage import Usage  # the journal was read, so this is loaded

        return self.task.spending.usage_before_run != Usage()

    # ── where it is ──

    @cached_property
    def queue(self) -> QueuePosition | None:
        """Its position in the queue; None if it is not queued."""
        if self.manifest["status"] != Status.QUEUED:
            return None
        from holdfast.views.text import queue_reason  # loads a database

        item, paused = queue_reason.find_item(self.packet.home, self.task_id)
        if item is None:
            why = queue_reason.unknown(self.packet.home, self.task_id)
            return QueuePosition(state="queued", reason=why) if why else None
        reason = queue_reason.of_item(self.packet.home, item, paused)
        held_by = queue_reason.held_by(self.packet.home, item)
        return QueuePosition(state=item.state, reason=reason, held_by=held_by)

    @cached_property
    def worktree(self) -> Worktree | None:
        """Its worktree, if that exists."""
        try:
            record = atomic.read_json(self.packet.worktree)
        except CorruptFile:
            return None
        path = os.path.join(self.packet.home.worktrees, self.task_id)
        if record is None or not os.path.isdir(path):
            return None
        # An agent can write the record: the path and the branch follow from the task.
        return Worktree(path=path, branch=f"holdfast/{self.task_id}")

    @cached_property
    def changed(self) -> str:
        """Where a completed task left changes to look at: `worktree`, `in_place`, or empty for nowhere.

        Runs git, for a task with a worktree.
        """
        if self.manifest["status"] != Status.COMPLETED:
            return ""
        if self.worktree is not None:
            from holdfast.views.text import next_steps

            return next_steps.unapplied(self.packet)
        if not os.path.exists(self.packet.workspace_base) or self.task is None:
            return ""
        spec = self.task.spec
        is_changed = spec.workspace == "in_place" and any(stage.writes for stage in spec.stages)
        return "in_place" if is_changed else ""

    @cached_property
    def progress_at(self) -> str | None:
        """When the agent last did or printed something.

        The raw logs are checked too: the manifest is not rewritten for every line of output.
        """
        reported = self.manifest.get("last_progress_at")
        latest = clock.parse_iso(reported) if reported else 0.0
        for name in load.attempt_names(self.packet)[-1:]:
            for path in (self.packet.attempt(name).stdout, self.packet.attempt(name).stderr):
                try:
                    state = os.stat(path)
                except OSError:
                    continue
                latest = max(latest, state.st_mtime if state.st_size else 0.0)
        return clock.iso(latest) if latest else None

    @cached_property
    def lost_runner_message(self) -> str:
        """A message if it should have a runner but has none; empty otherwise."""
        if self.has_ended or not self.runner_gone:
            return ""
        home = self.packet.home
        is_new = lock_owner.owner(self.packet.runner_lock) is None
        state = "none yet" if is_new else "gone; the agent's output is still recorded"
        if locks.is_held(home.keeper_lock):
            return f"{state}. The keeper starts {'one' if is_new else 'another'} in a moment"
        why = "This home is down" if os.path.exists(home.down) else "No keeper is running"
        return f"{state}. {why}: 'holdfast up' starts a keeper, which starts a new runner"

    @cached_property
    def leftovers(self) -> tuple[Leftover, ...]:
        """Processes that a successful agent left, and that still run."""
        from holdfast.views.text import leftovers

        running = leftovers.still_running(self.packet)
        return tuple(Leftover(pid=pid, command=command) for pid, command in running.items())

    @cached_property
    def next(self) -> Advice:
        """What to do next, with the commands to type."""
        from holdfast.views.text import next_steps

        action = next_steps.read(
            self.packet,
            self.manifest,
            queue_state=self.queue.state if self.queue is not None else "",
            held_by=self.queue.held_by if self.queue is not None else "",
            is_runner_lost=bool(self.lost_runner_message) and os.path.exists(self.packet.home.down),
            workspace=self.changed,
        )
        steps = list(action.choices)
        if self.leftovers:
            pids = " ".join(str(each.pid) for each in self.leftovers)
            steps.append(Suggestion(command=f"kill {pids}", does="kill what it left running"))
        return Advice(name=action.name, why=action.why, steps=tuple(steps))

    @cached_property
    def files(self) -> tuple[PacketFile, ...]:
        """The files that a view may show (`packet_files.read` reads one)."""
        return self._files[0]

    @cached_property
    def _files(self) -> tuple[tuple[PacketFile, ...], int]:
        from holdfast.views.facts import packet_files

        return packet_files.listing(self.packet)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        now = clock.now()
        return {
            "schema": SCHEMA,
            "task_id": self.task_id,
            "path": self.packet.path,
            "is_archived": self.is_archived,
            "journal_bytes": self.journal_bytes,
            "state": describe.state(self.manifest),
            "group": describe.group(self.manifest, now, is_archived=self.is_archived),
            "elapsed_s": round(describe.elapsed_s(self.manifest, now), 3),
            "progress_at": self.progress_at,
            "manifest": self.shown,
            "stages": [each.to_json() for each in self.stages],
            "attempts": [each.to_json() for each in self.attempts],
            "items": [each.to_json() for each in self.items],
            "gates": [each.to_json() for each in self.gates],
            "budgets": [each.to_json() for each in self.budgets],
            "interrupts": [each.to_json() for each in self.interrupts],
            "question": self.question.to_json() if self.question is not None else None,
            "queue": self.queue.to_json() if self.queue is not None else None,
            "worktree": self.worktree.to_json() if self.worktree is not None else None,
            "changed": self.changed,
            "runner": self.lost_runner_message,
            "leftovers": [each.to_json() for each in self.leftovers],
            "next": self.next.to_json(),
            "files": [each.to_json() for each in self.files],
            "files_left_out": self._files[1],
        }


def _active_s(task: Task) -> float:
    """The time that agents have worked up to now: the journal has that of attempts that ended."""
    now, open_s = clock.now(), 0.0
    for attempt in task.current:
        if attempt.is_open and attempt.started is not None:
            lived_s = max(0.0, now - clock.parse_iso(attempt.started.started_at))
            open_s = max(open_s, task.uncounted_s(attempt, lived_s))
    return task.active_s + open_s
