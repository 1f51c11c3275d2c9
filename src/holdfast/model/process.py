"""The identity of a process, and its exit record."""

from __future__ import annotations

from holdfast.model.record import Record


class ProcessIdentity(Record):
    """Identifies a process uniquely. A pid alone does not: it is reused, in this boot or the next."""

    boot_id: str
    pid: int
    #: Clock ticks from boot to the start of the process.
    start_time: int


class Exit(Record):
    """How the agent's process ended, as its parent saw it (`exit.json`)."""

    schema: str = "holdfast.exit/1"
    #: `recorder`; `runner` if the recorder was dead; `kernel` if neither was the agent's parent any more.
    by: str
    #: The status from wait(2); null if the program could not be executed.
    wait_status: int | None
    #: 128+n for signal n.
    exit_code: int | None
    exit_signal: int | None = None
    #: The errno of a failed exec; null if it succeeded.
    exec_errno: int | None = None
    #: CPU seconds and peak memory of the process and the children it waited for.
    rusage: dict[str, float] | None = None
    at: str
    boot_id: str = ""
    mono_s: float = 0.0
