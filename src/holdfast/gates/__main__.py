"""`python -m holdfast.gates --packet P --stage S --attempt N --out FILE [--artifact FILE2]`: run by a runner after a stage.

Exit status 0: passed. 1: not passed, FILE says why. 3: nobody could judge, stderr says why, and FILE is not written. What is
taken back goes into `reverted.patch` beside FILE.
"""

from __future__ import annotations

import os
import sys

from holdfast import clock
from holdfast.errors import UsageError
from holdfast.gates.judge import case_of, judge, result_of
from holdfast.gates.process import exit_status
from holdfast.store import atomic
from holdfast.store.layout import Packet

_NEEDED = {"--packet", "--stage", "--attempt", "--out"}


def main(argv: list[str]) -> int:
    """Judge, and write down the result."""
    return exit_status(lambda: _judge(argv))


def _judge(argv: list[str]) -> bool:
    values = _asked(argv)
    out = values["--out"]
    case = case_of(
        Packet(os.path.realpath(values["--packet"])),
        values["--stage"],
        artifact_at=values.get("--artifact"),
        reverted_at=os.path.join(os.path.dirname(os.path.abspath(out)), "reverted.patch"),
    )
    result = result_of(case, int(values["--attempt"]), judge(case), at=clock.iso_now())
    atomic.write_json(out, result, durable=True)
    return bool(result["passed"])


def _asked(argv: list[str]) -> dict[str, str]:
    values = dict(zip(argv[::2], argv[1::2], strict=False))
    is_known = _NEEDED <= values.keys() <= {*_NEEDED, "--artifact"} and len(argv) == 2 * len(values)
    if not is_known or not values["--attempt"].isdigit():
        raise UsageError(
            "the gate was asked for something else than to judge a stage",
            hint="python -m holdfast.gates --packet P --stage S --attempt N --out FILE [--artifact FILE2]",
        )
    return values


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
