"""Commands that cannot start: whether the work lacks something, or the machine.

A shell ends with 127 if it does not find a program, and with 126 if it cannot execute one. That is no fault
of the agent if the command could not start before the work either, and if what is missing is not a file that
the agent has to write. What a shell prints decides nothing: the work may print the same.

In a clean room, the work is the tree that the agent hands over. Where the agent worked, it is every file of
the project: the agent may have to install what git ignores.
"""

from __future__ import annotations

import os
from itertools import pairwise
from shlex import quote

from holdfast import program_search
from holdfast.gates import screen, script, shell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.gates.room_commands import Setting

    #: Runs a line of shell where the command ran, with its argument as `$1`: whether it succeeded.
    Probe = Callable[[str, str], bool]
    #: Whether what a command misses is no part of the work.
    Excuse = Callable[[str, Probe], bool]

#: Exit statuses of a shell: not executable, not found.
STATUSES = (126, 127)
_PROBE_S = 10.0
_REDIRECTIONS = "<>"
_FIND = 'command -v -- "$1"'
#: Agents of other tasks can write in the room meanwhile: whatever its settings say, git fetches nothing
#: (which can run a command), and runs nothing.
_IS_IGNORED = (
    "GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 {git} --no-pager -c core.fsmonitor=false "
    '-c core.hooksPath=/dev/null check-ignore -q -- "$1"'
)


def probe_in(setting: Setting) -> Probe:
    """Ask the shell there. In a room, the project's paths lead to the room's files."""

    def probe(line: str, argument: str) -> bool:
        argv = [*setting.before, script.shell_path(), "-c", line, "-", argument]
        done = shell.run(argv, cwd=setting.cwd, env=setting.env, limit_s=_PROBE_S)
        return not done.is_timeout and done.exit_code == 0

    return probe


def misses_work(command: str, probe: Probe, *, links: tuple[str, ...], project_dir: str) -> bool:
    """Whether a command that cannot start names a file that is missing in the room, and that could be a part
    of the work: one of the project that git does not ignore. In doubt it is.
    """
    try:
        simple = _simple(command)
    except ValueError:
        return True

    # By its path: PATH may have a directory of the project.
    is_ignored = _IS_IGNORED.format(git=quote(program_search.find("git") or "false"))

    def is_missing(path: str, test: str) -> bool:
        if not _is_in_project(path, project_dir) or _is_linked(path, links):
            return False
        return not probe(f'test {test} "$1"', path) and not probe(is_ignored, path)

    programs = [words[0] for words in simple]
    if any("/" in each and is_missing(each, "-x") for each in programs):
        return True
    # A name without a slash is looked up in PATH: the tree has no part in that.
    if any("/" not in each and not probe(_FIND, each) for each in programs):
        return False
    return any(is_missing(each, "-e") for words in simple for each in _files(words))


def misses_program(command: str, probe: Probe, *, directory: str) -> bool:
    """Whether a command that ran where the agent worked names a program that is not on this machine, and no
    program of the project in `directory` that is missing. In doubt it does not.
    """
    try:
        programs = [words[0] for words in _simple(command)]
    except ValueError:
        return False
    paths = [each for each in programs if "/" in each and not probe('test -x "$1"', each)]
    if any(_is_in_project(each, directory) for each in paths):
        return False
    return bool(paths) or any("/" not in each and not probe(_FIND, each) for each in programs)


def _simple(command: str) -> list[list[str]]:
    """The simple commands of a line, also those of `sh -c`. Raises ValueError."""
    found: list[list[str]] = []
    for words in screen.simple_commands(command):
        inner = words[words.index("-c") + 1 :][:1] if _is_shell(words) and "-c" in words else []
        found += screen.simple_commands(inner[0]) if inner else [words]
    return found


def _is_shell(words: list[str]) -> bool:
    return os.path.basename(words[0]) in screen.SHELLS


def _files(words: list[str]) -> list[str]:
    """The arguments of a command that look like paths; of a shell, all of them."""
    is_shell = _is_shell(words)
    named = [
        word for before, word in pairwise(words) if before.strip(_REDIRECTIONS) and word.strip(_REDIRECTIONS)
    ]
    return [
        word for word in named if not word.startswith("-") and (is_shell or "/" in word or "." in word[1:-1])
    ]


def _is_in_project(path: str, project_dir: str) -> bool:
    if path.startswith(("/", "~")):
        return os.path.normpath(path).startswith(project_dir.rstrip("/") + "/")
    return True


def _is_linked(path: str, links: tuple[str, ...]) -> bool:
    """Whether a path is in a directory of dependencies, which is never a part of the work."""
    path = os.path.normpath(path)
    return any(path == name or path.startswith(f"{name}/") for name in map(os.path.normpath, links))
