"""`python -m holdfast.gates --packet P --stage S --attempt N --out FILE [--artifact FILE2]`: run by a runner after a stage.

Exit status 0: passed. 1: not passed, FILE says why. 3: nobody could judge, stderr says why, and FILE is not written. What is
taken back goes into `reverted.patch` beside FILE.
"""

from __future__ import annotations

import os
import sys
import traceback

from holdfast import clock
from holdfast.errors import HoldfastError, UsageError
from holdfast.gates.judge import case_of, judge, result_of
from holdfast.store import atomic
from holdfast.store.layout import Packet

_NEEDED = {"--packet", "--stage", "--attempt", "--out"}
_COULD_NOT_JUDGE, _OUR_BUG = 3, 70


def main(argv: list[str]) -> int:
    """Judge, and write down the result."""
    try:
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
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return _COULD_NOT_JUDGE
    except (
        Exception
    ):  # a bug of ours must not look like a verdict; whoever reads the attempt's stderr sees it
        traceback.print_exc()
        return _OUR_BUG
    return 0 if result["passed"] else 1


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
