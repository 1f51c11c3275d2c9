"""The watches on runners: the kernel reports a death on a descriptor, one per runner. Runners for which no
descriptor is left are polled."""

from __future__ import annotations

from holdfast.keeper import descriptors
from holdfast.watch.death import PollWatch, watch_death

TYPE_CHECKING = False
if TYPE_CHECKING:
    import selectors

    from holdfast.model.process import ProcessIdentity
    from holdfast.watch.death import DeathWatch

#: How often runners without a descriptor are polled: at least this pause, and more if there are many.
_POLL_S, _POLL_EACH_S = 1.0, 0.002


class RunnerWatches:
    """Opens watches, and knows which tasks have one, and of which kind."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._with_descriptor: set[str] = set()
        self._polled: set[str] = set()
        self._polled_mono = float("-inf")

    def open(self, runner: ProcessIdentity) -> DeathWatch:
        """A watch: by a descriptor if one can be spared, else by polling. It must be added or closed."""
        return watch_death(runner) if self.room > 0 else PollWatch(runner)

    @property
    def room(self) -> int:
        """How many more runners can have a descriptor."""
        return descriptors.for_runners() - len(self._with_descriptor)

    def add(self, task_id: str, watch: DeathWatch) -> None:
        """The watch is on the runner of a task: its death wakes the keeper."""
        if watch.descriptor < 0:
            self._polled.add(task_id)
        else:
            self._with_descriptor.add(task_id)
            self._selector.register(watch.descriptor, 1, ("runner", task_id))

    def close(self, task_id: str, watch: DeathWatch) -> None:
        """Stop watching the runner of a task."""
        if watch.descriptor >= 0:
            self._selector.unregister(watch.descriptor)
        self._with_descriptor.discard(task_id)
        self._polled.discard(task_id)
        watch.close()

    def is_polled(self, task_id: str) -> bool:
        """Whether the runner of a task is watched by polling."""
        return task_id in self._polled

    @property
    def poll_due_mono(self) -> float:
        """When runners have to be polled; never, if all have a descriptor."""
        if not self._polled:
            return float("inf")
        return self._polled_mono + max(_POLL_S, _POLL_EACH_S * len(self._polled))

    def take_due(self, now_mono: float) -> list[str]:
        """The tasks whose runners have to be polled now."""
        if now_mono < self.poll_due_mono:
            return []
        self._polled_mono = now_mono
        return list(self._polled)
