"""holdfast takeover: go on in the agent's own program, in its session, then let the agent go on."""

from __future__ import annotations

import os
import sys

from holdfast import paths
from holdfast.errors import NotPossible
from holdfast.model.status import Status
from holdfast.packet import asker, load
from holdfast.store.layout import Home
from holdfast.views import requests, takeover
from holdfast.views.cli.parse.command_spec import TASK, Command, Option
from holdfast.views.cli.show import out, prompt
from holdfast.views.text import amounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.store.layout import Packet
    from holdfast.views.takeover import ProgramEnd

COMMAND = Command(
    name="takeover",
    summary="Continue a task's session yourself, in the agent's own program.",
    description="Interrupts the task if its agent is working, and opens the agent's own interactive program "
    "in this terminal: the same session, directory, settings and sandbox. When you exit the program, the "
    "agent goes on with your message and the changes since then; processes that the program left running "
    "are ended. Until then, nothing resumes the task. If the terminal is lost, the task stays interrupted.",
    examples=("holdfast takeover 20260131-fix", "holdfast takeover 20260131-fix -m 'now run the tests'"),
    arguments=(TASK,),
    options=(
        Option(
            flags=("-m", "--message"),
            dest="message",
            metavar="TEXT",
            help="Message for the agent when it goes on (default: asked at the end).",
        ),
        Option(flags=("--keep",), dest="keep", kind="flag", help="Leave the task interrupted at the end."),
    ),
)

#: The program could not be executed, or its sandbox could not be made.
_NEVER_RAN = (125, 127)


def run(values: dict[str, Any]) -> int:
    """Interrupt, take over, wait, hand back."""
    packet = load.find(Home(paths.home()), values["task"])
    takeover.check(packet, load.read_manifest(packet))
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise NotPossible(
            "a takeover needs a terminal", hint="over ssh: 'ssh -t HOST holdfast takeover TASK'"
        )
    status = _interrupt(packet)
    if status:
        return status
    held = takeover.Takeover(packet)
    out.talk(f"{held.agent} in {held.cwd}, session {held.session_id}; end it to hand back")
    ended = held.run()
    if ended.is_lost:
        held.give_up()
        _say(f"the takeover was lost; {_stays(packet)}")
        return 1
    if ended.killed:
        out.talk(f"ended {amounts.plural(len(ended.killed), 'process')} that {held.agent} left running")
    message, keep = _message(values, ended, held.agent)
    held.hand_back(ended, message=message, keep=keep)
    changed = f"; {amounts.plural(ended.files, 'file')} changed" if ended.files else ""
    out.talk(f"{_stays(packet)}{changed}" if keep else f"handed back: {packet.task_id} continues{changed}")
    return 0


def _interrupt(packet: Packet) -> int:
    """Stop its agent. Returns an exit status other than 0 if that did not work."""
    if load.read_manifest(packet)["status"] == Status.INTERRUPTED:
        return 0
    requests.send_request(packet, "interrupt", {"reason": f"taken over by {asker.find().by}"})
    from holdfast.views.cli.follow import stopping

    def report(packet: Packet, manifest: dict[str, Any]) -> None:
        takeover.check(packet, manifest)  # it may have ended meanwhile

    return stopping.wait([packet], load.is_settled, report)


def _message(values: dict[str, Any], ended: ProgramEnd, agent: str) -> tuple[str | None, bool]:
    """The message for the agent, and whether the task stays interrupted."""
    if ended.exit_code in _NEVER_RAN:
        out.talk(f"{agent} could not be started")
        return None, True
    if values["keep"] or values["message"] is not None:
        return values["message"], values["keep"]
    return prompt.line("Message for the agent (Enter: none, Ctrl-D: leave the task interrupted):")


def _stays(packet: Packet) -> str:
    return f"{packet.task_id} stays interrupted; 'holdfast resume {packet.task_id}' continues it"


def _say(text: str) -> None:
    """To a terminal that may be gone."""
    try:
        os.write(2, f"{text}\r\n".encode())
    except OSError:
        return
