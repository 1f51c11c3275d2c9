"""What is installed of an agent: its program, its version, and whether there is a login.

Only the existence of variables and files is checked, never their content. If none exists, there may still be
a login (a keychain, a provider in a config file), so that is reported but not refused.
"""

from __future__ import annotations

import json
import os

from holdfast import program_search
from holdfast.agents import program
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.agents.base import Adapter, Capabilities

#: How many directories above the program to search for its package.json.
_LEVELS = 4
#: Time limit for `--version`.
_VERSION_S = 20.0
_VERSION_CHARS = 200
#: Other directories in which programs are installed.
_BELOW_HOME = (".local/bin", ".npm-global/bin", ".volta/bin", ".bun/bin")
_OF_ALL = ("/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/usr/local/bin")


class Probe(Record):
    """One agent on this machine."""

    agent: str
    #: The program in PATH; null if it is not there, or if the task names its program.
    found: str | None = None
    #: The program to execute: the native binary behind `found`, or `found` itself.
    path: str | None = None
    is_native: bool = False
    version: str | None = None
    #: Names of existing variables and files of a login.
    login_seen: tuple[str, ...] = ()
    #: What prevents it from starting; empty if nothing does.
    problems: tuple[str, ...] = ()
    #: The program, if it is not installed anywhere.
    missing: str | None = None


def probe(adapter: Adapter, env: Mapping[str, str], *, asks: bool = False) -> Probe:
    """Check with the PATH, HOME and variables of `env`.

    With `asks`, run `--version` if the package does not have the version.
    """
    able = adapter.capabilities
    if not able.program:
        return Probe(agent=adapter.name)
    path = env.get("PATH", os.defpath)
    found = program.which(able.program, path)
    login = login_seen(able, env)
    if found is None:
        beside = elsewhere(able.program, env)
        why = f"{adapter.name} is installed at {beside}, which is not in PATH"
        if beside is None:
            why = f"{adapter.name} is not installed: no {able.program} in PATH"
        missing = able.program if beside is None else None
        return Probe(agent=adapter.name, login_seen=login, problems=(why,), missing=missing)
    executed = program.find(able, path) or found
    version = package_version(found, able.package) or (
        _told_version(executed) if asks and _is_safe(found, executed) else None
    )
    return Probe(
        agent=adapter.name,
        found=found,
        path=executed,
        is_native=executed != found,
        version=version,
        login_seen=login,
    )


def elsewhere(name: str, env: Mapping[str, str]) -> str | None:
    """Directories of version managers and package managers, which only interactive shells have in PATH."""
    home = env.get("HOME", "")
    nvm = os.path.join(env.get("NVM_DIR") or os.path.join(home, ".nvm"), "versions", "node")
    try:
        versions = sorted(os.listdir(nvm), key=_numbers, reverse=True)
    except OSError:
        versions = []
    folders = [os.path.join(nvm, version, "bin") for version in versions]
    folders += [os.path.join(home, folder) for folder in _BELOW_HOME] if home else []
    return program.which(name, os.pathsep.join([*folders, *_OF_ALL]))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.lstrip("v").split(".") if part.isdigit())


def login_seen(able: Capabilities, env: Mapping[str, str]) -> tuple[str, ...]:
    """Which signs of a login exist, by name."""
    signs = [name for name in able.login_env if env.get(name)]
    for sign in able.login_files:
        root, _, rest = sign.partition("/")
        folder = env.get("HOME") if root == "~" else env.get(root.removeprefix("$"))
        if folder and os.path.exists(os.path.join(folder, rest)):
            signs.append(sign)
    return tuple(signs)


def package_version(found: str, package: str) -> str | None:
    """The version in the package.json above an npm program; null if there is none with this name."""
    folder = os.path.dirname(os.path.realpath(found))
    for _ in range(_LEVELS if package else 0):
        try:
            with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
                package_json = json.load(file)
            if package_json["name"] == package:
                return str(package_json["version"])[:_VERSION_CHARS]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass
        folder = os.path.dirname(folder)
    return None


def _is_safe(found: str, executed: str) -> bool:
    """Whether no agent could write it. A task may run it in a sandbox; a probe would run it outside."""
    if os.path.dirname(found) not in program_search.search_path().split(os.pathsep):
        return False
    return not any(map(program_search.leads_to_project, (found, executed)))


def _told_version(path: str) -> str | None:
    import subprocess

    try:
        done = subprocess.run(
            [path, "--version"],
            # Not in a project: some runtimes read files of their directory before the program begins.
            cwd="/",
            env=program_search.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_VERSION_CHARS] if lines and done.returncode == 0 else None
