"""What is there of an agent on this machine: its program, its version, and whether somebody logged in.

A login is looked for by name only: that a variable is set, that a file exists. What they hold is never read, and the absence
of all of them proves nothing (a keychain, a provider in a config file), so it is told and never refused.
"""

from __future__ import annotations

import json
import os

from holdfast.agents import program
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.agents.base import Adapter, Capabilities

#: How far above the program its package.json is looked for.
_LEVELS = 4
#: How long a program may take to say its version.
_VERSION_S = 20.0
_VERSION_CHARS = 200
#: Where programs are put beside the usual places.
_BELOW_HOME = (".local/bin", ".npm-global/bin", ".volta/bin", ".bun/bin")
_OF_ALL = ("/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/usr/local/bin")


class Probe(Record):
    """One agent, as this machine has it."""

    agent: str
    #: What PATH leads to; null where it leads nowhere, and where the task names its own program.
    found: str | None = None
    #: What is executed: the native binary behind `found`, or `found` itself.
    path: str | None = None
    is_native: bool = False
    version: str | None = None
    #: Names of variables and files that a login leaves.
    login_seen: tuple[str, ...] = ()
    #: What keeps it from starting, in words; empty where nothing does.
    problems: tuple[str, ...] = ()


def probe(adapter: Adapter, env: Mapping[str, str], *, asks: bool = False) -> Probe:
    """Look, with the PATH, HOME and variables of `env`. With `asks`, a program whose package does not say its version is
    run with --version."""
    able = adapter.capabilities
    if not able.program:
        return Probe(agent=adapter.name)
    path = env.get("PATH", os.defpath)
    found = program.which(able.program, path)
    seen = login_seen(able, env)
    if found is None:
        why = f"{adapter.name} is not installed: no {able.program} in PATH"
        if (beside := elsewhere(able.program, env)) is not None:
            why = f"{adapter.name} lies at {beside}, which is not in PATH"
        return Probe(agent=adapter.name, login_seen=seen, problems=(why,))
    executed = program.find(able, path) or found
    version = package_version(found, able.package) or (_told_version(executed) if asks else None)
    return Probe(
        agent=adapter.name,
        found=found,
        path=executed,
        is_native=executed != found,
        version=version,
        login_seen=seen,
    )


def elsewhere(name: str, env: Mapping[str, str]) -> str | None:
    """Where version managers and package managers put a program, which only an interactive shell has in its PATH."""
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
    """Which of the signs of a login are there, by name."""
    seen = [name for name in able.login_env if env.get(name)]
    for sign in able.login_files:
        root, _, rest = sign.partition("/")
        folder = env.get("HOME") if root == "~" else env.get(root.removeprefix("$"))
        if folder and os.path.exists(os.path.join(folder, rest)):
            seen.append(sign)
    return tuple(seen)


def package_version(found: str, package: str) -> str | None:
    """The version in the package.json above a program that npm installed; null where there is none of this name."""
    folder = os.path.dirname(os.path.realpath(found))
    for _ in range(_LEVELS if package else 0):
        try:
            with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
                told = json.load(file)
            if told["name"] == package:
                return str(told["version"])[:_VERSION_CHARS]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            pass
        folder = os.path.dirname(folder)
    return None


def _told_version(path: str) -> str | None:
    import subprocess

    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:_VERSION_CHARS] if lines and done.returncode == 0 else None
