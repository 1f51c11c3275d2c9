"""Preparing a workspace, as a process that the runner starts before a stage.

    python -m holdfast.workspace prepare --packet P --stage S --out FILE

FILE is written completely or not at all. Errors go to stderr.
"""

from __future__ import annotations

import os
import sys

from holdfast.errors import UsageError
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.workspace import chore
from holdfast.workspace.prepare import prepare

_USAGE = "python -m holdfast.workspace prepare --packet P --stage S --out FILE"


def main(argv: list[str]) -> int:
    """Prepare the workspace of a stage."""
    return chore.exit_status(lambda: _prepare(argv))


def _prepare(argv: list[str]) -> bool:
    if argv[:1] != ["prepare"]:
        raise UsageError("unexpected arguments", hint=_USAGE)
    values = chore.options(argv[1:], required=("--packet", "--stage", "--out"), usage=_USAGE)
    packet = Packet(os.path.realpath(values["--packet"]))
    atomic.write_json(values["--out"], prepare(packet, values["--stage"]), durable=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
