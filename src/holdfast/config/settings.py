"""Settings: `config.toml` of the user and `.holdfast/config.toml` of the project.

Order of precedence: flag > environment > project > user > default. The TOML reader is loaded only if there is
a file.
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
    """A value and its source: default, user, project or environment, with the file or the variable."""

    def __init__(self, value: Any, source: str, where: str = "") -> None:
        self.value = value
        self.source = source
        self.where = where


def load(project: str) -> dict[str, Setting]:
    """The settings of both files; `env` lists are merged. Raises UsageError, UnreadableFile."""
    settings: dict[str, Setting] = {}
    for source, path in paths.settings_files(project).items():
        for name, value in read(path).items():
            if name == "env" and name in settings:
                value = list(dict.fromkeys([*settings[name].value, *value]))
            settings[name] = Setting(value, source, path)
    return settings


def values(project: str) -> dict[str, Any]:
    """The values of both files for `run`. `limits`: field → (value as text, its place)."""
    settings = load(project)
    others = {name: setting.value for name, setting in settings.items() if name not in LIMITS}
    limits = {
        LIMITS[name]: (_as_text(name, setting.value), f"{setting.where}: {name}")
        for name, setting in settings.items()
        if name in LIMITS
    }
    return {**others, "limits": limits}


def _as_text(name: str, value: Any) -> str:
    is_size = KEYS[name].kind == "bytes" and value != "none"
    return str(parse_bytes(str(value))) if is_size else str(value)


def effective(project: str, environ: Mapping[str, str]) -> dict[str, Setting]:
    """All settings, with environment and defaults. Raises UsageError, UnreadableFile."""
    from_files = load(project)
    by_name: dict[str, Setting] = {}
    for name, key in KEYS.items():
        if key.variable and environ.get(key.variable):
            text = environ[key.variable]
            # Limits of a task are checked when the task is created.
            value = text if name in LIMITS else check_variable(key, text)
            by_name[name] = Setting(value, "environment", key.variable)
        else:
            by_name[name] = from_files.get(name) or Setting(key.default, "default")
    return by_name


def read(path: str) -> dict[str, Any]:
    """The checked settings of one file. Raises UsageError, UnreadableFile."""
    import tomllib

    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the settings {path}: {error.strerror}", hint="check its permissions"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}", hint='write one setting per line: deadline = "2h"'
        ) from error
    return {name: check(path, name, value) for name, value in data.items()}


def notify_rules() -> list[dict[str, Any]]:
    """The user's `[[notify]]` rules. Raises UsageError, UnreadableFile."""
    path = paths.user_settings()
    if not os.path.exists(path):
        return []
    rules: list[dict[str, Any]] = read(path).get("notify", [])
    return rules
