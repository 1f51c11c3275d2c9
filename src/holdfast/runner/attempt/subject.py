"""What is observed: an execution, with everything that its observer needs in every state."""

from __future__ import annotations

from holdfast.model.attempt import Attempt
from holdfast.model.execution import Execution
from holdfast.model.spec import Limits, TaskSpec
from holdfast.redact import MARGIN, end_of
from holdfast.runner.ledger import Ledger
from holdfast.runner.output.ingest import Ingest
from holdfast.runner.output.position import IngestPosition
from holdfast.runner.wake.waiter import Waiter
from holdfast.store import tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.agents.base import Adapter

TAIL_BYTES = 4096


class Subject:
    """One open execution."""

    def __init__(
        self,
        ledger: Ledger,
        adapter: Adapter,
        execution: Execution,
        waiter: Waiter,
        *,
        position: IngestPosition,
    ) -> None:
        self.ledger = ledger
        self.adapter = adapter
        self.execution = execution
        self.waiter = waiter
        self.directory = ledger.packet.attempt(execution.dirname)
        self.limits = limits_of(ledger.task.spec, execution, adapter)
        self.ingest = Ingest(ledger, adapter, execution, self.directory, position=position)
        #: Closes what was opened in any state. Only after the end is recorded: closing inotify takes a while.
        self._closers: list[Callable[[], None]] = []

    def name(self, what: str) -> str:
        """The waiter's name for an event of this execution: several may be open."""
        return f"{what}.{self.execution.number}"

    def close_later(self, close: Callable[[], None]) -> None:
        """Call `close` when the execution is observed no more."""
        self._closers.append(close)

    def close(self) -> None:
        """Stop watching. The agent does not notice."""
        for close in self._closers:
            close()
        self.ingest.close()

    def stderr_tail(self) -> str:
        """The last 4 KB of stderr, without secrets, for the adapter's classification."""
        data = tail.end_bytes(self.directory.stderr, TAIL_BYTES + MARGIN)
        return end_of(data, self.ledger.redact, TAIL_BYTES)


def limits_of(spec: TaskSpec, execution: Execution, adapter: Adapter) -> Limits:
    """The task's limits. Silence means something else for another agent, and nothing for a chore."""
    if not isinstance(execution, Attempt):
        return spec.limits.evolve(stale_s=None)
    if execution.agent != spec.agent:
        return spec.limits.evolve(stale_s=adapter.capabilities.stale_s)
    return spec.limits
