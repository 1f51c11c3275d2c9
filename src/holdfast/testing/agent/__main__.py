"""`python -m holdfast.testing.agent SCENARIO.json [options] [PROMPT]`: see `command_line.USAGE`."""

from __future__ import annotations

import os
import select
import signal
import sys

from holdfast.ids import is_safe_name
from holdfast.testing.agent import loop
from holdfast.testing.agent import scenario as scenario_file
from holdfast.testing.agent.command_line import USAGE, CommandLine, UsageError
from holdfast.testing.agent.dialect import DIALECTS, dialect_class
from holdfast.testing.agent.output import Output
from holdfast.testing.agent.play import Play
from holdfast.testing.agent.session import (
    Session,
    default_state_dir,
    is_uuid,
    new_session_id,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.testing.agent.dialect import Dialect

#: How long to wait for data on an open stdin; the same as Claude Code.
STDIN_LIMIT_S = 3.0
DEFAULT_MODEL = "scripted-model"


class Refused(Exception):
    """Raised if the session cannot be started or resumed; the program exits with 1."""


def main(argv: list[str]) -> NoReturn:
    """Play a scenario in place of a coding-agent CLI."""
    # Until the scenario's handlers are installed: no traceback after an early signal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    out = Output()
    if "--help" in argv:
        out.write(USAGE.encode())
        os._exit(0)
    try:
        line = CommandLine(argv)
        if line.dialect not in DIALECTS:
            raise UsageError(f"unknown dialect {line.dialect} (known: {', '.join(DIALECTS)})")
        scenario = scenario_file.load(line.scenario)
    except (UsageError, scenario_file.ScenarioError) as error:
        _end(out, f"error: {error}", 2)
    speaker = dialect_class(line.dialect)
    state_dir = line.state_dir or default_state_dir()
    try:
        session, is_resume = _find(line, speaker, state_dir)
    except Refused as refusal:
        _end(out, str(refusal), 1)
    except OSError as error:
        _end(out, f"error: cannot read the sessions in {state_dir}: {error.strerror}", 1)
    voice_id = scenario.resume_as if is_resume and scenario.resume_as else session.id
    dialect = speaker(
        out,
        session_id=voice_id,
        model=line.model or scenario.model or DEFAULT_MODEL,
        process_number=session.process_number + 1,
    )
    if is_resume and not _can_resume(session, speaker):
        message = f"No conversation found with session ID: {session.id}"
        out.line(message, 2)
        dialect.result(subtype="error_during_execution", errors=[message])
        os._exit(1)
    if line.interactive:
        from holdfast.testing.agent import person  # tests of `holdfast takeover`

        person.talk(session)
    prompt = line.prompt if line.prompt is not None else _read_stdin(out)
    try:
        session.begin_process(argv=argv, prompt=prompt, is_resume=is_resume)
    except OSError as error:
        _end(out, f"error: cannot save the session in {session.directory}: {error.strerror}", 1)
    loop.run(Play(scenario, session, dialect, out, is_resume=is_resume))


def _find(line: CommandLine, speaker: type[Dialect], state_dir: str) -> tuple[Session, bool]:
    """The session, and whether this process resumes it.

    1. --resume: resumes.
    2. --session-id that is unknown, or no id: starts.
    3. --session-id that is known: Claude Code refuses. A plain command is resumed by running it
       again, so in the text dialect, or if the starter says that it resumes, this resumes.
    """
    name = line.resume or line.session_id or new_session_id()
    if speaker.is_strict_about_sessions and not is_uuid(name):
        if line.resume:
            raise Refused(f"Error: {name} is not a UUID and does not match any session title.")
        raise Refused("Error: Invalid session ID. Must be a valid UUID.")
    if not is_safe_name(name):
        raise Refused(f"Error: {name!r} cannot be a session ID: use letters, digits, '.', '_', '-'.")
    session = Session(state_dir, name)
    if line.resume:
        return session, True
    if not session.is_known:
        return session, False
    is_rerun = os.environ.get("HOLDFAST_RESUME_COUNT", "0") not in ("", "0")
    if speaker.is_strict_about_sessions and not is_rerun:
        raise Refused(f"Error: Session ID {name} is already in use.")
    return session, True


def _can_resume(session: Session, speaker: type[Dialect]) -> bool:
    if not session.is_known:
        return False
    # Claude Code stores its transcripts by working directory and looks nowhere else.
    return not speaker.is_strict_about_sessions or session.directory_of_work == os.getcwd()


def _read_stdin(out: Output) -> str:
    """The prompt from stdin; empty if there is none."""
    chunks: list[bytes] = []
    try:
        if os.isatty(0):
            return ""
        if not select.select([0], [], [], STDIN_LIMIT_S)[0]:
            out.line("Warning: no stdin data received in 3s, proceeding without it...", 2)
            return ""
        while chunk := os.read(0, 1 << 16):
            chunks.append(chunk)
    except (OSError, ValueError):
        return ""  # started with stdin closed
    return b"".join(chunks).decode("utf-8", "replace")


def _end(out: Output, message: str, code: int) -> NoReturn:
    out.line(message, 2)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
