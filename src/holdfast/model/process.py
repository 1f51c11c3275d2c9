"""Who a process is, and how it ended."""

from __future__ import annotations

from holdfast.model.record import Record


class ProcessIdentity(Record):
    """A process for ever: a pid alone is used again, in this boot or the next."""

    boot_id: str
    pid: int
    #: Clock ticks from boot to the start of the process, as the kernel counts them.
    start_time: int


class Exit(Record):
    """How the agent's process ended, as its parent saw it (`exit.json`)."""

    schema: str = "holdfast.exit/1"
    #: `recorder`, or `runner` where the recorder was dead.
    by: str
    #: As wait(2) gave it; null when the program could not be executed.
    wait_status: int | None
    #: 128+n for signal n.
    exit_code: int | None
    exit_signal: int | None = None
    #: Why exec failed; null when it did not.
    exec_errno: int | None = None
    #: CPU seconds and peak memory of the process and the children it waited for.
    rusage: dict[str, float] | None = None
    at: str
    boot_id: str = ""
    mono_s: float = 0.0
