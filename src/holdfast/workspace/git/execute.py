"""Starting the git program. Only this module does.

The environment is built from nothing: no variable of the caller reaches git that redirects it, chooses a
program, or loads a library. The program is not searched in directories in which an agent writes.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from contextvars import ContextVar

from holdfast import clock, program_search
from holdfast.errors import GitFailed, GitMissing
from holdfast.workspace.git import confined, pipes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from typing import IO

#: Time limit of one call. A first snapshot of a large repository takes minutes.
LIMIT_S = 900.0
#: Time limit of all calls for a view of one task (`within`): a rule in a `.gitignore` can take for ever.
VIEW_S = 20.0
#: What git gets of the caller's environment: who commits, the time zone, and our markers, by which the
#: processes of an attempt are found.
_KEPT = frozenset(
    {
        "USER", "LOGNAME", "TMPDIR", "TZ",
        "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
    }
)  # fmt: skip
_FIXED = {
    "LC_ALL": "C",
    # No settings but those of the git directory that we name.
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    # No repository is searched for: a call names it.
    "GIT_CEILING_DIRECTORIES": "/",
    # Nothing is fetched, whatever a repository says. No protocol has this name.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    # git asks no questions and shows nothing.
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
#: They are in the configuration that we write, too. These also hold where git starts another git.
_OPTIONS = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "safe.bareRepository=explicit",
    "-c", "protocol.allow=never",
    "-c", "submodule.recurse=false",
)  # fmt: skip
#: What a program that runs git itself (`gh`, `bd`) gets of these: it finds its repository and reads the
#: user's settings. Keys of a repository's settings by which git runs commands are overridden as far as they
#: have fixed names; those of filters and drivers have not.
_FOR_OTHERS = (
    "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER", "GIT_NO_LAZY_FETCH", "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_SSH_COMMAND", "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR", "GIT_PAGER",
)  # fmt: skip
_OVERRIDDEN = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.alternateRefsCommand": "false",
    "core.gitProxy": "",
    "diff.external": "",
    "gpg.program": "false",
    "safe.bareRepository": "explicit",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "credential.helper": "",
}
#: Variables of the user that only say where settings are.
_SETTINGS_OF_USER = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
#: A file in memory; None where there are none (macOS).
_MEMORY, _CLOEXEC = getattr(os, "memfd_create", None), getattr(os, "MFD_CLOEXEC", 0)
#: The end of all calls in this thread, on the monotonic clock, and how long they may take together.
_limit: ContextVar[tuple[float, float] | None] = ContextVar("_limit", default=None)
#: After this time, and then less and less often, we look for what blocks git.
_LOOK_S = 1.0
#: How often to ask the kernel whether git waits for the other end of a pipe.
_ASK_S = 0.1
#: How much of git's stderr goes into an error.
_STDERR_CHARS = 600


@contextmanager
def within(limit_s: float) -> Generator[None]:
    """Calls of git in this block together take at most so long: somebody waits for the answer."""
    outer, end_mono = _limit.get(), clock.mono() + limit_s
    token = _limit.set((end_mono, limit_s) if outer is None or end_mono < outer[0] else outer)
    try:
        yield
    finally:
        _limit.reset(token)


def is_late() -> bool:
    """Whether the time of `within` is over."""
    limit = _limit.get()
    return limit is not None and clock.mono() >= limit[0]


def execute(
    arguments: Iterable[str],
    *,
    cwd: str,
    env: dict[str, str],
    stdin: bytes = b"",
    allowed: tuple[int, ...] = (0,),
    limit_s: float = LIMIT_S,
    without: Iterable[str] = (),
    writable: Iterable[str] | None = (),
) -> subprocess.CompletedProcess[bytes]:
    """Run git with exactly this environment besides the fixed one.

    `without` are variables of the fixed environment that are left out. git can write in the directories
    `writable` (None: everywhere). Raises GitMissing, or GitFailed for an exit status that is not `allowed`.
    """
    args, limit = list(arguments), _limit.get()
    left_s = limit_s if limit is None else limit[0] - clock.mono()
    if limit is not None and left_s <= limit_s:
        limit_s = limit[1]
    program_search.distrust(cwd)
    path = program()
    if not os.path.isdir(cwd):
        raise GitFailed(f"cannot run git in {cwd}: there is no such directory")
    fixed = {name: value for name, value in _FIXED.items() if name not in without}
    try:
        with _file_of(stdin) as input_file:
            process = confined.start(
                lambda: subprocess.Popen(
                    # Not started in a project: a program of a version manager would obey files there.
                    [path, "-C", cwd, *_OPTIONS, *args],
                    cwd="/",
                    env={**_kept(), **fixed, "PATH": program_search.search_path(), **env},
                    stdin=input_file,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                ),
                writable,
            )
        # Without a working tree, git reads no file of the current directory, which may be "/".
        places = [env.get(name) for name in ("GIT_WORK_TREE", "GIT_DIR", "GIT_COMMON_DIR")]
        done = _wait_for(process, min(limit_s, left_s), places)
    except FileNotFoundError as error:
        raise GitMissing("git is not in PATH") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(
            f"git {args[0]} in {cwd} exceeded its limit of {limit_s:.0f} s",
            hint="see whether 'git status' there takes long, too: a rule in a .gitignore may be slow",
        ) from error
    except OSError as error:
        raise GitFailed(f"cannot run git in {cwd}: {error.strerror}") from error
    if done.returncode not in allowed:
        stderr = " ".join(done.stderr.decode("utf-8", "replace").split())[:_STDERR_CHARS]
        raise GitFailed(
            f"git {args[0]} in {cwd}: {stderr or f'exit status {done.returncode}'}", hint=_hint(stderr)
        )
    return done


def _file_of(data: bytes) -> IO[bytes]:
    """A file with this data to read. Not a pipe: `communicate` must be called again after a time limit."""
    if _MEMORY is not None:
        file = os.fdopen(_MEMORY("git", _CLOEXEC), "w+b")
    else:
        from tempfile import TemporaryFile

        file = TemporaryFile()
    file.write(data)
    file.seek(0)
    return file


def _wait_for(
    process: subprocess.Popen[bytes], limit_s: float, places: list[str | None]
) -> subprocess.CompletedProcess[bytes]:
    """Wait for git; if it takes long, look whether it waits for a pipe. Raises GitFailed, TimeoutExpired."""
    began_mono, look_s = clock.mono(), _LOOK_S
    with process:
        try:
            while True:
                left_s = began_mono + limit_s - clock.mono()
                try:
                    stdout, stderr = process.communicate(timeout=max(0.0, min(_ASK_S, left_s)))
                    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
                except subprocess.TimeoutExpired:
                    waited_s = clock.mono() - began_mono
                    # Looking takes time in a large tree. Where the kernel does not tell, it is done seldom.
                    if (is_waiting := pipes.is_waiting(process.pid)) or waited_s >= look_s:
                        look_s = 5 * max(look_s, waited_s)
                        if (pipe := pipes.find(*places)) is not None:
                            raise GitFailed(
                                f"{pipe} is a pipe, for which git would wait for ever", hint="remove it"
                            ) from None
                        if is_waiting and waited_s >= _LOOK_S:
                            raise GitFailed(
                                "git waits for a pipe, outside the directories of the repository",
                                hint="does objects/info/alternates of the repository name another one?",
                            ) from None
                    if waited_s >= limit_s:
                        raise
        except BaseException:
            process.kill()
            raise


def environment_for_others(cwd: str) -> dict[str, str]:
    """The caller's environment for another program that runs git in `cwd`, where an agent may write."""
    program_search.distrust(cwd)
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _SETTINGS_OF_USER
    }
    env |= {name: _FIXED[name] for name in _FOR_OTHERS}
    env |= {"PATH": program_search.search_path(), "GIT_CONFIG_COUNT": str(len(_OVERRIDDEN))}
    for at, (name, value) in enumerate(_OVERRIDDEN.items()):
        env |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
    return env


def _kept() -> dict[str, str]:
    return {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("HOLDFAST_")
    }


def program() -> str:
    """The path of git. Raises GitMissing."""
    path = program_search.find("git")
    if path is None:
        raise GitMissing("git is not in PATH")
    return path


def _hint(stderr: str) -> str:
    if "cannot lock ref" in stderr and " exists; cannot create " in stderr:
        return "a branch with a conflicting name exists; rename it with 'git branch -m OLD NEW'"
    if "index.lock" in stderr or "cannot lock ref" in stderr:
        return "another git process is running there, or was killed; check the lock file"
    if "lazy fetching disabled" in stderr or "unable to read" in stderr or "promisor" in stderr:
        return "objects are missing; in a partial clone, 'git fetch --refetch --no-filter' gets all of them"
    return ""
