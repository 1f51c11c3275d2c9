"""Running one command of a check: why it failed, and its entry in the artifact."""

from __future__ import annotations

import re

from holdfast import clock
from holdfast.gates import script, shell
from holdfast.model import readable
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.gates.room_commands import Setting


#: How many lines of a failing command's output are shown, and how much of each. The last ones say how it
#: ended: most test runners print their failures there.
_FIRST_LINES, _LAST_LINES, _LINE_CHARS = 10, 20, 300
#: What test runners draw around a line: `===== 1 failed =====`.
_RULE = re.compile(r"^([=_*#~-])\1{2,}\s*|\s*([=_*#~-])\2{2,}$")


class CommandResult(Record):
    """What a command did. Both texts are redacted."""

    #: Why it failed; empty if it did not.
    failure: str
    #: Its section of the artifact: status, duration, output.
    entry: str
    #: `exit code 1`, or that it timed out.
    status: str = ""
    #: Null if it timed out.
    exit_code: int | None = None
    #: The command, and the first and last lines of its output.
    evidence: str = ""


def run(
    command: str,
    *,
    setting: Setting,
    limit_s: float,
    redact: Callable[[str], str],
    expect_empty: bool = False,
) -> CommandResult:
    """Run a command in a shell. With `expect_empty`, any output is a failure too."""
    done = shell.run(
        [*setting.before, script.shell_path(), "-c", command],
        cwd=setting.cwd,
        env=setting.env,
        limit_s=limit_s,
    )
    # Redact before anything is cut: half a secret would not be recognized.
    output = redact(_plain(done.output))
    command = redact(command)
    failure = ""
    if done.is_timeout:
        failure = f"`{shortened(command)}` timed out after {clock.duration_text(done.lasted_s)}"
    elif done.exit_code:
        failure = f"`{shortened(command)}` failed with exit status {done.exit_code}{_last_line(output)}"
    elif expect_empty and output.strip():
        failure = f"`{shortened(command)}` must print nothing, but did{_last_line(output)}"
    return CommandResult(
        failure=failure,
        entry=_entry(command, done, output),
        status="timed out" if done.is_timeout else f"exit code {done.exit_code}",
        exit_code=None if done.is_timeout else done.exit_code,
        evidence=_evidence(command, output),
    )


def shortened(command: str) -> str:
    """A command in one line of at most 120 characters."""
    line = " ".join(command.split())
    return line if len(line) <= 120 else line[:119] + "…"


def _evidence(command: str, output: str) -> str:
    """The command, and the first and last lines of its output."""
    lines = [line[:_LINE_CHARS] for line in output.rstrip("\n").split("\n")]
    left_out = len(lines) - _FIRST_LINES - _LAST_LINES
    if left_out > 0:
        lines[_FIRST_LINES:-_LAST_LINES] = [f"[… {left_out} lines left out …]"]
    return "\n".join([f"$ {shortened(command)}", *lines])


def _last_line(output: str) -> str:
    lines = [text for line in output.splitlines() if (text := _RULE.sub("", line.strip()))]
    return f": {lines[-1][:200]}" if lines else ""


def _plain(output: bytes) -> str:
    return "\n".join(map(readable.plain, output.decode("utf-8", "replace").split("\n")))


def _entry(command: str, done: shell.Done, output: str) -> str:
    output = output.rstrip("\n")
    longest_fence = max((len(ticks) for ticks in re.findall(r"`{3,}", output)), default=2)
    fence = "`" * (longest_fence + 1)
    status = f"timed out after {done.lasted_s:.1f} s" if done.is_timeout else f"exit code: {done.exit_code}"
    facts = f"- {status}\n- duration: {done.lasted_s:.1f} s\n"
    cut = f"- output: {done.total_bytes} bytes, the middle is left out\n" if done.is_cut else ""
    return f"## $ {command}\n\n{facts}{cut}\n{fence}\n{output}\n{fence}\n"
