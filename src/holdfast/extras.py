"""How to install a package that is missing: into the environment of this interpreter.

Never holdfast by its name: the package index may have another project that is called so.
"""

from __future__ import annotations

import sys


def how_to_install(extra: str) -> str:
    """The command that installs what an extra of holdfast needs (`tui`, `web`), in the versions that our
    metadata names."""
    from importlib import metadata

    try:
        listed = metadata.requires("holdfast") or []
    except metadata.PackageNotFoundError:
        return f"pipx install --force '.[{extra}]'"  # a clone that was not installed
    found = (each.partition(";") for each in listed)
    needed = [
        name.strip() for name, _, when in found if when.replace('"', "'").strip() == f"extra == '{extra}'"
    ]
    return command(*needed)


def command(*requirements: str) -> str:
    """The command that installs packages for this interpreter. An environment of uv has no pip.

    With `-P`: it may be typed in a project that has a `pip.py`.
    """
    from importlib.util import find_spec
    from shlex import join

    if find_spec("pip") is None:
        return join(["uv", "pip", "install", "--python", sys.executable, *requirements])
    return join([sys.executable, "-P", "-m", "pip", "install", *requirements])
