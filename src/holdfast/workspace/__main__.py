"""`python -m holdfast.workspace prepare --packet P --stage S --out FILE`: run by a runner before a stage.

FILE is whole or not there. An error is on stderr; the exit status is its own.
"""

from __future__ import annotations

import os
import sys
import traceback

from holdfast.errors import HoldfastError, UsageError
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.workspace.prepare import prepare


def main(argv: list[str]) -> int:
    """Prepare, and write down what was found."""
    try:
        packet, stage, out = _asked(argv)
        atomic.write_json(out, prepare(packet, stage), durable=True)
    except HoldfastError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        # One of 1 to 3: what is higher means something else to a runner.
        return min(error.exit_status, 3)
    except Exception:  # a bug of ours, told apart from a workspace that cannot be prepared
        traceback.print_exc()
        return 70
    return 0


def _asked(argv: list[str]) -> tuple[Packet, str, str]:
    values = dict(zip(argv[1::2], argv[2::2], strict=False))
    if argv[:1] != ["prepare"] or values.keys() != {"--packet", "--stage", "--out"} or len(argv) != 7:
        raise UsageError(
            "the workspace was asked for something else than to prepare",
            hint="python -m holdfast.workspace prepare --packet P --stage S --out FILE",
        )
    return Packet(os.path.realpath(values["--packet"])), values["--stage"], values["--out"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
