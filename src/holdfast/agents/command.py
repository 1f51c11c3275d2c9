"""Any command. It has no session, so a resume runs it again with HOLDFAST_RESUME_COUNT set."""

from __future__ import annotations

from holdfast.agents.base import Capabilities, End, Launch, LaunchSpec, Silent
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt
    from holdfast.model.process import Exit


class Command:
    """Runs the task's `command` unchanged."""

    name = "command"
    capabilities = Capabilities(stdin_prompt=True, options=())

    def launch(self, spec: LaunchSpec) -> Launch:
        """The command line as given; a prompt, if there is one, on stdin."""
        return Launch(argv=list(spec.task.command or ()), stdin=spec.prompt_path or None)

    def resume(self, spec: LaunchSpec) -> Launch:
        """Run it again; a command can check HOLDFAST_RESUME_COUNT."""
        return self.launch(spec)

    def reader(self) -> Reader:
        """Output has no meaning for holdfast."""
        return Silent()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """The exit status decides. Death by a signal is a crash, unless we sent it (the runner knows)."""
        return by_exit_status(end.exit)


def by_exit_status(exit: Exit) -> Outcome:
    """The outcome of a program that reports only its exit status."""
    if exit.exit_signal is not None:
        return Outcome(kind="crashed", detail=f"killed by signal {exit.exit_signal}")
    if exit.exit_code == 0:
        return Outcome(kind="success")
    return Outcome(kind="failed", detail=f"exit status {exit.exit_code}")


ADAPTER: Adapter = Command()
