"""Work on a workspace, as a process that the runner starts.

    python -m holdfast.workspace prepare --packet P --stage S --out FILE     before a stage
    python -m holdfast.workspace adopt --packet P --stage S --out FILE       the chosen candidate's tree
    python -m holdfast.workspace bring --packet P --project D --candidate N  after a sandbox: its commits

FILE is written completely or not at all. Errors go to stderr.
"""

from __future__ import annotations

import os
import sys

from holdfast.errors import UsageError
from holdfast.packet import load
from holdfast.store import atomic
from holdfast.store.layout import AttemptDir, Packet
from holdfast.workspace import candidates, chore, sandbox_commits, task_worktree
from holdfast.workspace.prepare import prepare

_USAGE = "python -m holdfast.workspace prepare|adopt --packet P --stage S --out FILE"
_BRING = ("--packet", "--project", "--candidate")


def main(argv: list[str]) -> int:
    """Do what the first word says."""
    return chore.exit_status(lambda: _work(argv))


def _work(argv: list[str]) -> bool:
    if argv[:1] == ["bring"]:
        values = chore.options(argv[1:], required=_BRING, usage=_USAGE)
        packet = Packet(values["--packet"])
        number = int(values["--candidate"])
        own = packet.candidate(number) if number else packet
        if (tree := task_worktree.of(own, project=values["--project"])) is not None:
            note = sandbox_commits.bring(own, tree)
            if note:
                print(f"holdfast: {note}", file=sys.stderr)
        return True
    if argv[:1] not in (["prepare"], ["adopt"]):
        raise UsageError("unexpected arguments", hint=_USAGE)
    values = chore.options(argv[1:], required=("--packet", "--stage", "--out"), usage=_USAGE)
    packet = Packet(values["--packet"])
    stage, out = values["--stage"], values["--out"]
    if argv[0] == "adopt":
        result = candidates.adopt(packet, AttemptDir(os.path.dirname(os.path.abspath(out))).changes)
    elif (task := load.fold(packet)).has_own_worktree(stage):
        result = candidates.prepare(packet, task, stage)
    else:
        result = prepare(packet, stage)
    atomic.write_json(out, result, durable=True)
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
