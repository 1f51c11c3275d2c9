"""The gate of a stage, as a process that the runner starts after the stage.

    python -m holdfast.gates --packet P --stage S --attempt N --out FILE [--artifact FILE2]

Exit status 0: passed. 1: not passed; FILE has the reasons. 3: the gate could not judge; stderr has the error,
and FILE is not written. Reverted changes are saved in `reverted.patch` beside FILE, what the task changed in
`changes.patch`.
"""

from __future__ import annotations

import os
import sys

from holdfast import clock
from holdfast.gates.gather_case import case_of
from holdfast.gates.run_checks import result_of, run_checks, write_changes
from holdfast.store import atomic
from holdfast.store.layout import AttemptDir, Packet
from holdfast.workspace import chore

_USAGE = "python -m holdfast.gates --packet P --stage S --attempt N --out FILE [--artifact FILE2]"


def main(argv: list[str]) -> int:
    """Judge a stage and write the result."""
    return chore.exit_status(lambda: _judge(argv), on_error=chore.COULD_NOT_JUDGE)


def _judge(argv: list[str]) -> bool:
    required = ("--packet", "--stage", "--attempt", "--out")
    values = chore.options(argv, required=required, optional=("--artifact",), usage=_USAGE)
    out = values["--out"]
    directory = AttemptDir(os.path.dirname(os.path.abspath(out)))
    case = case_of(
        Packet(values["--packet"]),
        values["--stage"],
        artifact_at=values.get("--artifact"),
        reverted_at=directory.reverted_patch,
    )
    checks = run_checks(case)
    changed = write_changes(case, directory.changes)
    result = result_of(case, int(values["--attempt"]), checks, changed=changed, at=clock.iso_now())
    atomic.write_json(out, result, durable=True)
    return bool(result["passed"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
