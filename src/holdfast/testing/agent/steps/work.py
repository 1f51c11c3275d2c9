"""Steps that change something, or check it."""

from __future__ import annotations

import os
import time

from holdfast.testing.agent.play import ScriptFailure
from holdfast.testing.agent.steps.offspring import replace_file, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.testing.agent.play import Play

#: Longer output of a tool is cut off.
OUTPUT_LIMIT_BYTES = 30_000


def tool(
    play: Play,
    *,
    name: str = "Bash",
    run_s: float = 0,
    busy_s: float = 0,
    command: str | None = None,
    arguments: dict[str, Any] | None = None,
    output: str | None = None,
    fails: bool = False,
    stays_open: bool = False,
) -> None:
    """A tool call: started, then sleep, computation and command as given, then finished.

    With `stays_open` it is never finished: the next steps happen during the call.
    """
    if arguments is None:
        arguments = {"command": command or name, "description": name}
    play.dialect.tool_started(name, arguments)
    time.sleep(run_s)
    spin(busy_s)
    code, printed = 0, ""
    if command is not None:
        code, printed = _run(play, ["/bin/sh", "-c", command])
        play.session.record("effect", effect="command", command=command, exit=code)
    if stays_open:
        return
    if fails:
        code = code or 1
    play.dialect.tool_finished(printed if output is None else output, exit_code=code)


def write(play: Play, *, path: str, content: str = "", append: bool = False) -> None:
    """Write or append to a file under the working directory, and count it as an effect."""
    if parent := os.path.dirname(path):
        os.makedirs(parent, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC)
    fd = os.open(path, flags, 0o666)
    data = content.encode()
    while data:
        data = data[os.write(fd, data) :]
    os.close(fd)
    play.session.record("effect", effect="write", path=path, append=append, bytes=len(content.encode()))


def holdfast(play: Play, *, argv: list[str], wait: bool = True, pid_file: str | None = None) -> None:
    """Run holdfast with this process's environment, as an agent's shell tool would."""
    from holdfast import own_python  # few scenarios need it

    command = own_python.command("holdfast", *argv)
    play.dialect.tool_started("Bash", {"command": " ".join(["holdfast", *argv])})
    if wait:
        code, printed = _run(play, command, pid_file)
    else:
        spawn(command, pid_file=pid_file)
        code, printed = 0, ""
    play.session.record("effect", effect="holdfast", argv=argv, exit=code if wait else None)
    play.dialect.tool_finished(printed, exit_code=code)


def sleep(play: Play, *, s: float) -> None:
    play.pause(s)


def wait_file(play: Play, *, path: str, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not os.path.exists(path):
        if time.monotonic() >= end:
            raise ScriptFailure(f"{path} did not appear within {limit_s:g} s")
        time.sleep(0.02)


def expect_env(play: Play, *, variables: dict[str, Any]) -> None:
    """Check that each variable has the given value; null means absent, true means present."""
    for name, expected in variables.items():
        actual = os.environ.get(name)
        is_right = actual is not None if expected is True else actual == expected
        if not is_right:
            # The value is not in the message: it may be a secret.
            found = "is not set" if actual is None else "is set"
            wanted = "absent" if expected is None else "set" if expected is True else repr(expected)
            raise ScriptFailure(f"environment variable {name} {found}; expected: {wanted}")


def interrupt_request(play: Play, *, text: str) -> None:
    """Request a person through $INTERRUPT_FILE, as agents are instructed to."""
    path = os.environ.get("INTERRUPT_FILE")
    if not path:
        raise ScriptFailure("INTERRUPT_FILE is not set")
    replace_file(path, text)
    play.session.record("effect", effect="interrupt_request", path=path)


def spin(seconds: float) -> None:
    """Use the CPU for this long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


def _run(play: Play, command: list[str], pid_file: str | None = None) -> tuple[int, str]:
    """Run a command in its own session, as agents run tools. Returns exit status and output.

    The output goes to a file: a pipe would be held open by processes that the command leaves behind.
    """
    import subprocess

    path = os.path.join(play.session.directory, f"tool-{os.getpid()}.out")
    with open(path, "w+b") as file:
        play.is_starting_tool = True
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            play.tool_pid = process.pid
        finally:
            play.is_starting_tool = False
        if pid_file:
            replace_file(pid_file, f"{process.pid}\n")
        code = process.wait()
        play.tool_pid = None
        file.seek(0)
        printed = file.read(OUTPUT_LIMIT_BYTES).decode("utf-8", "replace").rstrip("\n")
    os.unlink(path)
    return (code if code >= 0 else 128 - code), printed
