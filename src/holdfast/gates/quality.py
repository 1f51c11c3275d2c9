"""The gate of a repository: what its settings ask of work that is done in it, before and after.

    python -m holdfast.gates.quality before|after --packet P --stage S --attempt N --out FILE --artifact FILE2

`before` stops nothing: it says what failed, and notes what was uncommitted already. `after` judges: 0 passed, 1 not passed, and with
the action `warn` or `file_issue` a failure passes with its reasons. What is printed here is read in the task's output.
"""

from __future__ import annotations

import os
import sys

from holdfast import clock
from holdfast.errors import NotFound, UsageError
from holdfast.gates import issue
from holdfast.gates.acceptance import try_one
from holdfast.gates.base import Check
from holdfast.gates.process import exit_status
from holdfast.model.record import Record
from holdfast.packet import load
from holdfast.redact import Redactor
from holdfast.store import atomic
from holdfast.store.layout import Packet
from holdfast.workspace import base as bases
from holdfast.workspace import git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.model.spec import QualitySpec

_NEEDED = ("--packet", "--stage", "--attempt", "--out", "--artifact")
#: Files that are named in a reason.
_NAMED = 10


class Work(Record):
    """The work that is looked at."""

    packet: Packet
    stage: str
    quality: QualitySpec
    directory: str
    run: int
    redact: Callable[[str], str]


def main(argv: list[str]) -> int:
    """Look, and write down what was found."""
    return exit_status(lambda: _judge(argv))


def _judge(argv: list[str]) -> bool:
    when, values = _asked(argv)
    work = work_of(Packet(os.path.realpath(values["--packet"])), values["--stage"])
    artifact: list[str] = []
    checks = before(work, artifact) if when == "before" else after(work, artifact)
    if artifact:
        text = work.redact("\n".join(artifact))
        atomic.write(values["--artifact"], text.encode("utf-8", "backslashreplace"), durable=True)
    result = _result(work, checks, when=when, attempt=int(values["--attempt"]))
    atomic.write_json(values["--out"], result, durable=True)
    return bool(result["passed"])


def _asked(argv: list[str]) -> tuple[str, dict[str, str]]:
    values = dict(zip(argv[1::2], argv[2::2], strict=False))
    is_known = argv[:1] in (["before"], ["after"]) and values.keys() == set(_NEEDED)
    if not is_known or len(argv) != 1 + 2 * len(_NEEDED) or not values["--attempt"].isdigit():
        raise UsageError(
            "the gate was asked for something else than to look at a stage",
            hint="python -m holdfast.gates.quality before|after " + " ".join(f"{flag} …" for flag in _NEEDED),
        )
    return argv[0], values


def work_of(packet: Packet, stage: str) -> Work:
    """What there is to look at. Raises NotFound."""
    task = load.fold(packet)
    if task.spec.quality is None or all(spec.name != stage for spec in task.spec.stages):
        raise NotFound(f"{packet.task_id} has no stage {stage} of which its repository asks something")
    base = bases.read(packet)
    data: dict[str, Any] = atomic.read_json(packet.env) or {}
    return Work(
        packet=packet,
        stage=stage,
        quality=task.spec.quality,
        directory=base.place.directory if base is not None else task.spec.project_dir,
        run=task.run,
        redact=Redactor({**data.get("env", {})}, task.spec.env, ()),
    )


def before(work: Work, artifact: list[str]) -> list[Check]:
    """The commands of `pre_work`."""
    return [_commands(work, "pre_work", work.quality.pre_work, artifact)] if work.quality.pre_work else []


def after(work: Work, artifact: list[str]) -> list[Check]:
    """Whether everything is committed, and the commands. All is asked, whatever failed before: the agent is told all of it.
    The commands come last, so that what they leave lying about is not laid at the agent's door."""
    quality = work.quality
    checks = [_clean_git(work)] if quality.clean_git else []
    if quality.post_work:
        checks.append(_commands(work, "post_work", quality.post_work, artifact))
    if quality.expect_empty:
        checks.append(_commands(work, "expect_empty", quality.expect_empty, artifact, in_silence=True))
    return checks


def _commands(
    work: Work, name: str, lines: tuple[str, ...], artifact: list[str], *, in_silence: bool = False
) -> Check:
    reasons: list[str] = []
    artifact.append(f"# {name} of {work.stage}\n\nDirectory: {work.directory}\n")
    for command in lines:
        failed, told = try_one(
            command,
            cwd=work.directory,
            limit_s=work.quality.timeout_s,
            redact=work.redact,
            in_silence=in_silence,
        )
        artifact.append(told)
        reasons += [failed] if failed else []
    return Check(name=name, passed=not reasons, reasons=tuple(reasons))


def _clean_git(work: Work) -> Check:
    now = uncommitted(work)
    if now is None:
        return Check(
            name="clean_git",
            passed=True,
            reasons=(f"{work.directory} is in no git repository, so nothing can be uncommitted",),
        )
    noted = atomic.read_json(work.packet.pre_work(work.stage)) or {}
    new = sorted(set(now) - set(noted.get("uncommitted") or ()))
    if not new:
        return Check(name="clean_git", passed=True)
    named = ", ".join(new[:_NAMED]) + (f" and {len(new) - _NAMED} more" if len(new) > _NAMED else "")
    return Check(name="clean_git", passed=False, reasons=(work.redact(f"not committed: {named}"),))


def uncommitted(work: Work) -> list[str] | None:
    """Paths that are in no commit as they are now, without what git ignores and what is ours; null outside git."""
    repository = git.find(work.directory)
    if repository is None:
        return None
    words = ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]
    home = os.path.realpath(work.packet.home.path) + os.sep
    paths = [entry[3:] for entry in git.names(git.run(words, cwd=repository.top))]
    top = os.path.realpath(repository.top)
    return [path for path in paths if not os.path.join(top, path).startswith(home)]


def _result(work: Work, checks: list[Check], *, when: str, attempt: int) -> dict[str, Any]:
    failed = next((check for check in checks if not check.passed), None)
    told = [check for check in checks if check.passed == (failed is None)]
    reasons = [reason for check in told for reason in check.reasons]
    action = work.quality.action
    if failed is not None and action == "file_issue":
        reasons.append(issue.file(work.packet, f"{work.run}-{when}", _told(work, when, reasons), work=work))
    result: dict[str, Any] = {
        "schema": "holdfast.gate/1" if when == "after" else "holdfast.pre-work/1",
        "stage": work.stage,
        "role": "run",
        "attempt": attempt,
        "passed": failed is None or (when == "after" and action != "interrupt"),
        "failed": failed.name if failed is not None else "",
        "reasons": reasons,
        "checks": [check.to_json() for check in checks],
        "action": action,
        "timestamp": clock.iso_now(),
    }
    if when == "before":
        result["uncommitted"] = uncommitted(work) if work.quality.clean_git else None
    if failed is not None:
        print(_told(work, when, reasons))
    return result


def _told(work: Work, when: str, reasons: list[str]) -> str:
    listed = "\n".join(f"- {reason}" for reason in reasons)
    return f"Checks {when} the work did not pass ({work.packet.task_id}):\n{listed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
