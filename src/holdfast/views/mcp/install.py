"""`holdfast mcp install` and `remove`: through the agent's own command, which knows its settings.

Nothing is trusted on the user's behalf: the agent still asks before it uses a tool.
"""

from __future__ import annotations

import os
import sys

from holdfast import own_python, paths, program_search
from holdfast.errors import CommandNotFound, NotPossible
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

NAME = "holdfast"
#: Some programs take seconds to start.
_LIMIT_S = 120.0


class _Program(Record):
    """The commands of an agent's program. `add` is followed by our own command line."""

    add: tuple[str, ...]
    #: None: it has no such command.
    remove: tuple[str, ...] | None
    #: Whether there is a server of our name, and with which command. Only asked if `add` or `remove` fails.
    get: tuple[str, ...] | None = None
    #: Where a person removes it.
    file: str = ""


#: The agents whose programs can use MCP servers.
PROGRAMS = {
    "claude": _Program(
        add=("mcp", "add", "-s", "user", NAME, "--"),
        remove=("mcp", "remove", "-s", "user", NAME),
        get=("mcp", "get", NAME),
    ),
    "codex": _Program(add=("mcp", "add", NAME, "--"), remove=("mcp", "remove", NAME)),
    "gemini": _Program(add=("mcp", "add", "-s", "user", NAME), remove=("mcp", "remove", "-s", "user", NAME)),
    "copilot": _Program(
        add=("mcp", "add", NAME, "--"), remove=("mcp", "remove", NAME), get=("mcp", "get", NAME)
    ),
    "opencode": _Program(
        add=("mcp", "add", NAME, "--"), remove=None, file="~/.config/opencode/opencode.jsonc"
    ),
}


class Done(Record):
    """What was done to the settings of an agent."""

    agent: str
    #: `added`, `there` (it was there already), `removed` or `none` (there was none).
    result: str
    command: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """For people."""
        return {
            "added": f"the server {NAME} is added: {' '.join(self.command)}",
            "there": f"the server {NAME} is already there",
            "removed": f"the server {NAME} is removed",
            "none": f"there is no server {NAME}",
        }[self.result]


def own_command() -> tuple[str, ...]:
    """The command line of this server, with absolute paths: an agent has another PATH and directory, and may
    pass on no variables."""
    named = {"HOLDFAST_HOME": os.environ.get("HOLDFAST_HOME"), "XDG_CONFIG_HOME": paths.chosen_config()}
    variables = [f"{name}={value}" for name, value in named.items() if value]
    home = ("/usr/bin/env", *variables) if variables else ()
    script = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "holdfast")
    if os.access(script, os.X_OK):
        return *home, script, "mcp"
    return *home, *own_python.command("holdfast", "mcp", python=os.path.abspath(sys.executable))


def add(agent: str) -> Done:
    """Add our server to the agent's settings; once is enough. Raises CommandNotFound, NotPossible."""
    program, commands, own = _path(agent), PROGRAMS[agent], own_command()
    added = _run(program, *commands.add, *own)
    if added.returncode == 0:
        return Done(agent=agent, result="added", command=own)
    if commands.get is not None and commands.remove is not None:
        found = _run(program, *commands.get)
        if found.returncode == 0 and all(word in found.stdout for word in own):
            return Done(agent=agent, result="there", command=own)
        if found.returncode == 0:
            # It has another command, such as that of an installation that was moved.
            _run(program, *commands.remove)
            added = _run(program, *commands.add, *own)
            if added.returncode == 0:
                return Done(agent=agent, result="added", command=own)
    raise _failed(agent, (*commands.add, *own), added)


def remove(agent: str) -> Done:
    """Remove our server from the agent's settings. Raises CommandNotFound, NotPossible."""
    program, commands = _path(agent), PROGRAMS[agent]
    if commands.remove is None:
        raise NotPossible(
            f"{agent} has no command that removes a server",
            hint=f'remove "{NAME}" from "mcp" in {commands.file}',
        )
    removed = _run(program, *commands.remove)
    if removed.returncode == 0:
        return Done(agent=agent, result="removed", command=own_command())
    if commands.get is not None and _run(program, *commands.get).returncode != 0:
        return Done(agent=agent, result="none", command=own_command())
    raise _failed(agent, commands.remove, removed)


def _path(agent: str) -> str:
    from holdfast.agents import registry

    name = registry.adapter(agent).capabilities.program
    path = program_search.find(name)
    if path is None:
        raise CommandNotFound(
            f"{agent} is not installed: no {name} in PATH, or only in a directory of a project",
            hint=f"install it, or check PATH; 'holdfast agent probe {agent}' checks it",
        )
    return path


def _run(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    import subprocess

    try:
        return subprocess.run(
            [program, *words],
            # The settings are the user's, not those of a project.
            cwd=paths.user_home(),
            env=program_search.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return subprocess.CompletedProcess([program, *words], 1, "", str(error))


def _failed(agent: str, words: tuple[str, ...], done: subprocess.CompletedProcess[str]) -> NotPossible:
    said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return NotPossible(
        f"'{agent} {' '.join(words)}' failed",
        details=tuple(said[-5:]),
        hint=f"run it yourself: {agent} mcp --help",
    )
