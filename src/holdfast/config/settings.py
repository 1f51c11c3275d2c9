"""Settings: `config.toml` of the user and `.holdfast/config.toml` of the project.

A flag beats the environment, that beats the project, that beats the user, that beats the default. A TOML reader is loaded
only when there is a file, so that whoever sets nothing pays nothing.
"""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.config.check import check, check_variable
from holdfast.config.keys import KEYS, LIMITS
from holdfast.errors import UnreadableFile, UsageError
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Setting:
    """A value and where it came from: default, user, project or environment, with the file or the variable."""

    def __init__(self, value: Any, source: str, where: str = "") -> None:
        self.value = value
        self.source = source
        self.where = where


def load(project: str) -> dict[str, Setting]:
    """What the two files set; the project beats the user, `env` adds up. Raises UsageError, UnreadableFile."""
    found: dict[str, Setting] = {}
    for source, path in paths.settings_files(project).items():
        for name, value in read(path).items():
            if name == "env" and name in found:
                value = list(dict.fromkeys([*found[name].value, *value]))
            found[name] = Setting(value, source, path)
    return found


def values(project: str) -> dict[str, Any]:
    """What the files set, as `run` takes it: `limits` are texts by field, each with its place."""
    found = load(project)
    given = {name: setting.value for name, setting in found.items() if name not in LIMITS}
    limits = {
        LIMITS[name]: (_as_text(name, setting.value), f"{setting.where}: {name}")
        for name, setting in found.items()
        if name in LIMITS
    }
    return {**given, "limits": limits}


def _as_text(name: str, value: Any) -> str:
    is_size = KEYS[name].kind == "bytes" and value != "none"
    return str(parse_bytes(str(value))) if is_size else str(value)


def settle(project: str, environ: Mapping[str, str]) -> dict[str, Setting]:
    """Every setting, with the environment and the defaults. Raises UsageError, UnreadableFile."""
    found = load(project)
    settled: dict[str, Setting] = {}
    for name, key in KEYS.items():
        if key.variable and environ.get(key.variable):
            text = environ[key.variable]
            # What bounds a task is checked where a task is made, by its own rules.
            value = text if name in LIMITS else check_variable(key, text)
            settled[name] = Setting(value, "environment", key.variable)
        else:
            settled[name] = found.get(name) or Setting(key.default, "default")
    return settled


def read(path: str) -> dict[str, Any]:
    """The checked contents of one file."""
    import tomllib

    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the settings {path}: {error.strerror}", hint="check its mode"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not TOML: {error}", hint='write one setting a line: deadline = "2h"'
        ) from error
    return {name: check(path, name, value) for name, value in data.items()}


def notify_rules() -> list[dict[str, Any]]:
    """The user's `[[notify]]` rules as they are now. Raises UsageError, UnreadableFile."""
    path = paths.user_settings()
    if not os.path.exists(path):
        return []
    found: list[dict[str, Any]] = read(path).get("notify", [])
    return found
