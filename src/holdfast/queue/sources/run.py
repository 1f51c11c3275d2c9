"""Asking another program for its items: with a time limit, and with words when it is not there."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess

from holdfast import clock, units
from holdfast.errors import CommandNotFound, NotPossible, UnreadableFile

LIMIT_S = 60.0
#: How to get a program that a source needs.
INSTALL = {
    "gh": "install the GitHub CLI (https://cli.github.com), then 'gh auth login'",
    "bd": "install beads (https://github.com/steveyegge/beads), then 'bd init' in the project",
    "gt": "install Gas Town (https://github.com/steveyegge/gastown)",
}
_MOST_BYTES = 64 * 1024**2
_COMPLAINT_BYTES = 64 * 1024


def output(argv: list[str], *, cwd: str, limit_s: float = LIMIT_S) -> bytes:
    """What a program prints, 64 MiB at most. Raises CommandNotFound, NotPossible."""
    # A session of its own: what it started goes with it when its time is over.
    try:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
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
        said, complained = _listen(process, argv[0], limit_s)
    except BaseException:
        _end(process)
        raise
    if process.returncode != 0:
        why = complained.decode("utf-8", "replace").strip().splitlines()
        raise NotPossible(
            f"'{' '.join(argv[:3])}' ended with {process.returncode}" + (f": {why[0][:200]}" if why else ""),
            hint=INSTALL.get(argv[0], "run it by hand to see what it says"),
        )
    return said


def _listen(process: subprocess.Popen[bytes], name: str, limit_s: float) -> tuple[bytes, bytes]:
    """(stdout, the begin of stderr) until both are closed and it has ended. Raises NotPossible."""
    ends_mono = clock.mono() + limit_s
    said: dict[str, bytearray] = {"out": bytearray(), "err": bytearray()}
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector, process.stdout, process.stderr:
        selector.register(process.stdout, selectors.EVENT_READ, "out")
        selector.register(process.stderr, selectors.EVENT_READ, "err")
        while selector.get_map():
            left_s = ends_mono - clock.mono()
            if left_s <= 0:
                raise NotPossible(f"{name} gave no answer in {limit_s:g} s")
            for key, _ in selector.select(left_s):
                piece = os.read(key.fd, 65536)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.data == "out" or len(said["err"]) < _COMPLAINT_BYTES:
                    said[key.data] += piece
            if len(said["out"]) > _MOST_BYTES:
                raise NotPossible(
                    f"{name} prints more than {units.words(_MOST_BYTES)}",
                    hint="let it print the items alone",
                )
    try:
        process.wait(max(0.0, ends_mono - clock.mono()))
    except subprocess.TimeoutExpired as error:
        raise NotPossible(f"{name} gave no answer in {limit_s:g} s") from error
    return bytes(said["out"]), bytes(said["err"])


def _end(process: subprocess.Popen[bytes]) -> None:
    """It, and what it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def contents(path: str) -> bytes:
    """A file, or stdin for `-`. Raises UnreadableFile."""
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            found = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}", hint="check its path and mode"
        ) from error
    if len(found) > _MOST_BYTES:
        raise UnreadableFile(
            f"{path} has more than {units.words(_MOST_BYTES)}", hint="what holds items is much smaller"
        )
    return found
