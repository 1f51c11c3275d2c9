"""One look at the checks of a task's pull request, as a process that the runner starts after the last stage.

    python -m holdfast.forge --packet P --stage S --attempt N --out FILE --artifact FILE2

Exit status 0: passed. 1: a check failed. 2: pending. 3: could not push or look; stderr has the error, and
FILE is not written.
"""

from __future__ import annotations

import sys

from holdfast import program_search
from holdfast.forge import ci
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.workspace import chore

_USAGE = "python -m holdfast.forge --packet P --stage S --attempt N --out FILE --artifact FILE2"
_STATUS = {"passed": 0, "failed": 1, "pending": 2}


def main(argv: list[str]) -> int:
    """Look, and write what was found."""
    found: list[str] = []

    def work() -> bool:
        found.append(_look(argv))
        return True

    status = chore.exit_status(work, on_error=chore.COULD_NOT_JUDGE)
    return status or _STATUS[found[0]]


def _look(argv: list[str]) -> str:
    required = ("--packet", "--stage", "--attempt", "--out", "--artifact")
    values = chore.options(argv, required=required, usage=_USAGE)
    packet = Packet(values["--packet"])
    program_search.distrust(load.fold(packet).spec.project_dir)
    found, artifact = ci.look(packet)
    if artifact:
        atomic.write(values["--artifact"], artifact.encode("utf-8", "backslashreplace"), durable=True)
    atomic.write_json(values["--out"], found.to_json(), durable=True)
    return found.state


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
