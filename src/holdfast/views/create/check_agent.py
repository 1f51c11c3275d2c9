"""Checks of an agent before a task is created: an error now is better than one after ten retries."""

from __future__ import annotations

import os

from holdfast.agents import program, registry
from holdfast.errors import CommandNotFound, UnreadableFile, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter
    from holdfast.views.create.new_task import Talk


def check(adapter: Adapter, prompt: bytes | None, options: dict[str, object], *, verb: str) -> None:
    """The agent has a prompt, is installed, and has the options that it needs. Raises UsageError."""
    if prompt is None or not prompt.strip():
        raise UsageError(
            f"no prompt for {adapter.name}",
            hint=f"'holdfast {verb} --agent {adapter.name} PROMPT', or --file FILE (- is stdin)",
        )
    check_installed(adapter)
    for name in adapter.capabilities.needs:
        if name not in options:
            raise _missing_option(adapter.name, name, verb=verb)
        path = str(options[name])
        if not os.path.isfile(path) or not os.access(path, os.R_OK):
            raise UnreadableFile(f"cannot read the file of -o {name}={path}", hint="check its path and mode")
        _check_file(adapter, name, path)


def _check_file(adapter: Adapter, option: str, path: str) -> None:
    """The file of an option is what its agent expects, if the adapter names a module that reads it."""
    files: dict[str, str] = getattr(adapter, "option_files", {})
    if option not in files:
        return
    try:
        # Like the adapters themselves, by name: the scripted agent is not part of holdfast's own code.
        __import__(files[option], fromlist=("load",)).load(path)
    except ValueError as error:
        raise UsageError(
            f"-o {option}: {error}", hint="fix the file; docs/guides/scripted-agent.md has examples"
        ) from error


def check_installed(adapter: Adapter) -> None:
    """The agent's program is in PATH. Raises CommandNotFound."""
    capabilities = adapter.capabilities
    if capabilities.program and program.find(capabilities, os.environ.get("PATH", os.defpath)) is None:
        raise CommandNotFound(
            f"{adapter.name} is not installed: no {capabilities.program} in PATH",
            hint=f"{how_to_install(adapter)}; 'holdfast agent probe {adapter.name}' checks it",
        )


def how_to_install(adapter: Adapter) -> str:
    """The command that installs an agent's program."""
    package = adapter.capabilities.package
    return f"npm install -g {package}" if package else f"install {adapter.capabilities.program}"


def default(settings: dict[str, Any], *, verb: str, talk: Talk) -> str:
    """The agent if none was named: that of the settings, or the only one installed. Raises UsageError."""
    if settings.get("agent"):
        return settings["agent"]
    path = os.environ.get("PATH", os.defpath)
    adapters = [registry.adapter(name) for name in registry.BUILT_IN]
    known = [adapter for adapter in adapters if adapter.capabilities.program]
    installed = [each.name for each in known if program.which(each.capabilities.program, path)]
    if len(installed) == 1:
        talk(f"agent: {installed[0]}, the only one installed")
        return installed[0]
    if installed:
        raise UsageError(
            f"no agent was chosen, and {len(installed)} are installed: {', '.join(installed)}",
            hint=f"'holdfast {verb} --agent {installed[0]} PROMPT', or 'agent = \"{installed[0]}\"' in the "
            "file that 'holdfast config path' prints",
        )
    raise UsageError(
        "no agent was chosen, and none is installed",
        hint=f"install one, or run a command: 'holdfast {verb} -- COMMAND ARGUMENTS…'",
        details=tuple(f"{adapter.name}: {how_to_install(adapter)}" for adapter in known),
    )


def check_session(adapter: Adapter, session: str | None) -> None:
    """`--session` can be resumed by this agent. Raises UsageError."""
    if session is None:
        return
    if not adapter.capabilities.can_resume:
        raise UsageError(
            f"--session {session}: {adapter.name} cannot resume sessions",
            hint="leave it out, or choose an agent that can: 'holdfast agent list'",
        )
    if not session or session.startswith("-") or not session.isprintable() or " " in session:
        raise UsageError(
            f"--session {session!r}: not a session id",
            hint="'holdfast show TASK' shows the session of a task; the agent's own program lists all",
        )


def failover(agent: str, names: list[str]) -> list[Adapter]:
    """The agents that may take over, all installed: a missing one would be noticed when it is needed most."""
    if names and "command" in (agent, *names):
        raise UsageError(
            "--failover does not apply to a command", hint="it names agents that take over from an agent"
        )
    adapters: list[Adapter] = []
    for name in dict.fromkeys(names):
        if name == agent:
            raise UsageError(f"--failover {name}: already the agent of the task")
        adapter = registry.adapter(name)
        check_installed(adapter)
        adapters.append(adapter)
    return adapters


def _missing_option(agent: str, option: str, *, verb: str) -> UsageError:
    if verb == "queue add":  # options are part of the work item
        return UsageError(
            f"{agent} needs the option {option}",
            hint=f'for example \'{{"title": "TITLE", "options": {{"{option}": "FILE"}}}}\'',
        )
    return UsageError(f"{agent} needs -o {option}=…", hint=f"for example -o {option}=FILE")


def check_model(name: str) -> None:
    """The name of a model becomes an argument, and must not be read as an option. Raises UsageError."""
    if name.startswith("-") or not name.isprintable() or name != name.strip():
        raise UsageError(f"{name!r} is not the name of a model")
