"""Run another program, with a time limit and clear errors."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import tempfile

from holdfast import clock, program_search, units
from holdfast.errors import CommandNotFound, NotPossible, UnreadableFile
from holdfast.packet import inputs

LIMIT_S = 60.0
#: How to install the programs that sources need.
INSTALL = {
    "gh": "install the GitHub CLI (https://cli.github.com), then 'gh auth login'",
    "bd": "install beads (https://github.com/steveyegge/beads), then 'bd init' in the project",
    "gt": "install Gas Town (https://github.com/steveyegge/gastown)",
}
_MAX_BYTES = 64 * 1024**2
_COMPLAINT_BYTES = 64 * 1024


def output(
    argv: list[str],
    *,
    cwd: str,
    env: dict[str, str] | None = None,
    stdin: bytes = b"",
    limit_s: float = LIMIT_S,
    allowed: tuple[int, ...] = (0,),
) -> bytes:
    """The output of a program, at most 64 MiB. Raises CommandNotFound, NotPossible.

    `env` is its environment (default: ours). A program without a path is searched where no agent writes.
    `allowed` are the exit statuses that are no failure.
    """
    program = argv[0] if os.sep in argv[0] else program_search.find(argv[0])
    # A new session, so that its children are killed at the time limit, too. Its input is a file, not a pipe:
    # nothing has to be written while it runs.
    try:
        if program is None:
            raise FileNotFoundError(argv[0])
        with tempfile.TemporaryFile() as input_file:
            input_file.write(stdin)
            input_file.seek(0)
            process = subprocess.Popen(
                argv,
                executable=program,
                cwd=cwd,
                env=env,
                stdin=input_file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
    except FileNotFoundError as error:
        raise CommandNotFound(
            f"{argv[0]} is not installed", hint=INSTALL.get(argv[0], "check the spelling and PATH")
        ) from error
    except OSError as error:
        raise NotPossible(f"cannot run {argv[0]}: {error.strerror}") from error
    try:
        stdout, stderr = _listen(process, argv[0], limit_s)
    except BaseException:
        _end(process)
        raise
    if process.returncode not in allowed:
        why = stderr.decode("utf-8", "replace").strip().splitlines()
        raise NotPossible(
            f"'{' '.join(argv[:3])}' failed with exit status {process.returncode}"
            + (f": {why[0][:200]}" if why else ""),
            hint=INSTALL.get(argv[0], "run it by hand to see the error"),
        )
    return stdout


def _listen(process: subprocess.Popen[bytes], name: str, limit_s: float) -> tuple[bytes, bytes]:
    """Read stdout, and the beginning of stderr, until the process exits. Raises NotPossible."""
    ends_mono = clock.mono() + limit_s
    output: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        selector.register(process.stdout, selectors.EVENT_READ, "out")
        selector.register(process.stderr, selectors.EVENT_READ, "err")
        while selector.get_map():
            left_s = ends_mono - clock.mono()
            if left_s <= 0:
                raise NotPossible(f"{name} did not finish in {limit_s:g} s")
            for key, _ in selector.select(left_s):
                piece = os.read(key.fd, 65536)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.data == "out" or len(output["err"]) < _COMPLAINT_BYTES:
                    output[key.data] += piece
            if len(output["out"]) > _MAX_BYTES:
                raise NotPossible(
                    f"{name} prints more than {units.size_text(_MAX_BYTES)}",
                    hint="make it print only the items",
                )
    try:
        process.wait(max(0.0, ends_mono - clock.mono()))
    except subprocess.TimeoutExpired as error:
        raise NotPossible(f"{name} did not finish in {limit_s:g} s") from error
    return bytes(output["out"]), bytes(output["err"])


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def contents(path: str, *, inside: str | None = None) -> bytes:
    """The content of a file, or of stdin for `-`.

    `inside`: a directory that a link must not leave. Raises UnreadableFile.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            data = inputs.contents(path, _MAX_BYTES, inside=inside)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}", hint="check its path and mode"
        ) from error
    if len(data) > _MAX_BYTES:
        raise UnreadableFile(
            f"{path} has more than {units.size_text(_MAX_BYTES)}",
            hint="a file of items should be much smaller",
        )
    return data
