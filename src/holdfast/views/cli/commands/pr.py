"""holdfast pr: push the work of a task as its branch, and open or update a pull request."""

from __future__ import annotations

from holdfast import paths
from holdfast.errors import UsageError
from holdfast.model.status import exit_status
from holdfast.packet import load
from holdfast.store.layout import Home
from holdfast.views import delivery, option_values
from holdfast.views.cli.parse.command_spec import JSON, TASK, Command, Option
from holdfast.views.cli.show import out
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.forge.gh import CiCheck, Forge
    from holdfast.store.layout import Packet
    from holdfast.views.delivery import Published
    from holdfast.workspace.worktrees.push import Pushed

COMMAND = Command(
    name="pr",
    summary="Push the work of a task and open a pull request.",
    description="Commits what is in the task's worktree and in its scope, pushes it as the branch "
    "holdfast/TASK, and opens a pull request with 'gh'; its text has the goal, the gates, the findings and "
    "the cost. Run it again to update both. Without gh it pushes, and prints what to do. Your branches and "
    "files do not change, and no hook runs. With --wait it waits for the checks of the pull request; if one "
    "fails, --retry sends the work back to the agent with the log, and pushes again.",
    examples=(
        "holdfast pr 20260131-fix",
        "holdfast pr 20260131-fix --draft --base develop",
        "holdfast pr 20260131-fix --wait 30m --retry 2",
    ),
    arguments=(TASK,),
    options=(
        Option(flags=("--draft",), dest="draft", kind="flag", help="Open a draft."),
        Option(flags=("--remote",), dest="remote", metavar="NAME", help="Remote (default: origin)."),
        Option(
            flags=("--base",), dest="base", metavar="BRANCH", help="Branch to merge into (default: gh's)."
        ),
        Option(
            flags=("--wait",), dest="wait", metavar="TIME", help="Wait for its checks, at most this long."
        ),
        Option(
            flags=("--retry",),
            dest="retry",
            metavar="N",
            help="If a check fails, send the work back to the agent with its log; at most N times.",
        ),
        Option(
            flags=("-y", "--yes"),
            dest="yes",
            kind="flag",
            help="Push even if the settings of the repository have changed.",
        ),
        JSON,
    ),
)


def run(values: dict[str, Any]) -> int:
    """Push, open or update, and wait if asked to."""
    from holdfast.forge.gh import FAILED

    wait_s = option_values.duration(values["wait"], "--wait", "30m")
    retries = option_values.whole_number(values["retry"], "--retry") or 0
    if values["retry"] and wait_s is None:
        raise UsageError("--retry needs --wait", hint="for example --wait 30m --retry 2")
    packet = load.find(Home(paths.home()), values["task"])
    while True:
        published = delivery.publish(
            packet,
            draft=values["draft"],
            remote=values["remote"],
            base=values["base"],
            is_confirmed=values["yes"],
        )
        pushed, url, is_new = published.pushed, published.url, published.is_new
        _warn_of_unjudged(pushed)
        if url is None:
            if values["json"]:
                _print_json(packet, pushed, None, is_new=False, checks=None)
            else:
                _print_by_hand(published, values["base"])
            return 0
        if not values["json"]:
            _print_opened(pushed, url, is_new=is_new)
        checks = None if wait_s is None else delivery.wait_for_checks(published, wait_s, say=out.talk)
        failed = [check for check in checks or () if check.bucket in FAILED]
        if not failed or not retries:
            if values["json"]:
                _print_json(packet, pushed, url, is_new=is_new, checks=checks)
            return 0 if checks is None else _conclude(packet, checks, failed)
        retries -= 1
        _print_failed(failed)
        if status := _send_back(packet, published.forge, failed):
            return status


def _warn_of_unjudged(pushed: Pushed) -> None:
    from holdfast.workspace.snapshots.changes import few

    if pushed.unjudged:
        out.talk(f"warning: changed after the last gate passed, and not checked: {few(pushed.unjudged)}")


def _print_opened(pushed: Pushed, url: str, *, is_new: bool) -> None:
    out.talk(f"{'pushed' if not pushed.was_there else 'updated'} {pushed.branch} at {pushed.url}")
    if pushed.left_out:
        out.talk(f"left out (outside the scope): {amounts.plural(len(pushed.left_out), 'file')}")
    for path in pushed.unreadable:
        out.talk(f"warning: {path} cannot be read, so what is in it was not pushed; 'chmod u+rx' opens it")
    out.talk("opened a pull request:" if is_new else "updated the pull request:")
    print(url, flush=True)


def _print_by_hand(published: Published, base: str | None) -> None:
    pushed = published.pushed
    out.talk(f"pushed {pushed.branch} to {pushed.url}; {published.problem}")
    owner = pushed.repository
    if owner:
        host, name = ("github.com", owner) if owner.count("/") == 1 else owner.split("/", 1)
        place = f"{base}...{pushed.branch}" if base else pushed.branch
        out.talk(f"open https://{host}/{name}/compare/{place}?expand=1 with this title and text,")
    else:
        into = f" into {base}" if base else ""
        out.talk(f"open a pull request of {pushed.branch}{into} with this title and text,")
    out.talk("or install gh (https://cli.github.com), log in with 'gh auth login', and run this again:")
    print(f"{published.title}\n\n{published.body}", end="", flush=True)


def _print_json(
    packet: Packet, pushed: Pushed, url: str | None, *, is_new: bool, checks: list[CiCheck] | None
) -> None:
    data = {**pushed.to_json(), "pull_request": url, "is_new": is_new}
    if checks is not None:
        data["checks"] = [check.to_json() for check in checks]
    out.data({"schema": "holdfast.pr/1", "task_id": packet.task_id, **data})


# ── checks ──


def _conclude(packet: Packet, checks: list[CiCheck], failed: list[CiCheck]) -> int:
    """Say how the checks ended; the exit status."""
    if not failed:
        out.talk(f"{amounts.plural(len(checks), 'check')} passed" if checks else "there are no checks")
        return 0
    _print_failed(failed)
    out.step(f"holdfast pr {packet.task_id} --wait 30m --retry 2", "send the work back, with the log")
    return 1


def _print_failed(failed: list[CiCheck]) -> None:
    for check in failed:
        out.talk(f"failed: {check.name} {check.link}".rstrip())


def _send_back(packet: Packet, forge: Forge, failed: list[CiCheck]) -> int:
    """Have the last stage that writes continue, with the logs of the checks, and wait for the task's end.

    Returns the exit status that a task has which did not complete, or else 0.
    """
    from holdfast.views.cli.commands import retry as retry_verb
    from holdfast.views.cli.parse import command_spec
    from holdfast.views.settle import SettleCheck, settle

    writers = [stage.name for stage in load.fold(packet).spec.stages if stage.writes]
    text = "\n\n".join(
        f"The check {check.name} of the pull request failed ({check.link or 'no link'}).\n"
        f"{_last(forge.failed_log(check))}".rstrip()
        for check in failed
    )
    values = {**command_spec.defaults(retry_verb.COMMAND), "task": [packet.task_id], "message": text}
    if writers:
        values["from"] = writers[-1]
    retry_verb.run(values)
    for settled in settle(packet.home, [packet], SettleCheck(packet.home, out.talk), say=out.talk):
        out.talk(f"{packet.task_id} {settled.manifest['status']}")
        return exit_status(settled.manifest)
    return 0


def _last(log: str, lines: int = 150) -> str:
    """The end of a log, which says what failed."""
    return "\n".join(log.splitlines()[-lines:])[-20_000:]
