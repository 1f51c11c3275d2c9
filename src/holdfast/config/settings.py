"""Settings: `config.toml` of the user and `.holdfast/config.toml` of the project.

Order of precedence: flag > environment > project > user > default. The TOML reader is loaded only if there is
a file.
"""

from __future__ import annotations

import os

from holdfast import files, paths
from holdfast.config import classes, needs, project
from holdfast.config.check import check, check_variable
from holdfast.config.keys import KEYS, LIMIT_OF_SETTING
from holdfast.errors import UnreadableFile, UsageError
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.config.needs import Judge

#: The project's settings file in its folder.
_NAME = "config.toml"
#: The largest file, and the most dots in one of its lines.
_MAX_BYTES, _MAX_DOTS = 256 * 1024, 64


class Setting:
    """A value and its source: default, user, project or environment, with the file or the variable."""

    def __init__(self, value: Any, source: str, where: str = "", data: bytes | None = None) -> None:
        self.value = value
        self.source = source
        self.where = where
        #: Of the project's `env_file`: the content that was judged.
        self.data = data


def load(directory: str | None, judge: Judge = needs.nothing) -> dict[str, Setting]:
    """The settings of the user, and of the project in `directory`; `env` lists are merged.

    What the project may not set without trust is left out, unless `judge` allows it. Raises UsageError,
    UnreadableFile.
    """
    settings: dict[str, Setting] = {}
    path = paths.user_settings()
    if os.path.exists(path):
        settings = {name: Setting(value, "user", path) for name, value in read(path).items()}
    if directory is None:
        return settings
    for name, setting in _of_project(directory, judge).items():
        if name == "env" and name in settings:
            setting.value = list(dict.fromkeys([*settings[name].value, *setting.value]))
        settings[name] = setting
    return settings


def _of_project(directory: str, judge: Judge) -> dict[str, Setting]:
    """The project's settings. They are read once: what is judged is what is used."""
    path = paths.project_settings(directory)
    data = project.read(directory, _NAME)
    checked = _parsed(data, path) if data is not None else {}
    settings = {name: Setting(value, "project", path) for name, value in checked.items()}
    if "env_file" in settings:
        settings["env_file"].data = project.named_file(settings["env_file"].value)
    if judge(part_of(settings)):
        if "env_file" in settings and settings["env_file"].data is None:
            # Refused here: a later reader would use content that was not checked for trust.
            raise UnreadableFile(
                f"cannot read the environment file {settings['env_file'].value}, which {path} names",
                hint=f"create it, or remove env_file from {path}",
            )
        return settings
    return {
        name: setting for name, setting in settings.items() if not classes.of_setting(name, setting.value)
    }


def part_of(settings: Mapping[str, Setting]) -> needs.Part:
    """What a project's settings ask for."""
    return needs.Part(
        _NAME,
        [
            needs.Need(kind, name, _need_text(name, setting), setting.data)
            for name, setting in sorted(settings.items())
            if (kind := classes.of_setting(name, setting.value))
        ],
    )


def _need_text(name: str, setting: Setting) -> str:
    if name != "env_file":
        return needs.text(setting.value)
    # Only names: the values may be secrets, and what is shown here is kept.
    lines = (setting.data or b"").decode("utf-8", "replace").splitlines()
    texts = [line.strip().removeprefix("export ") for line in lines]
    names = [text.partition("=")[0].strip() for text in texts if text and text[0] != "#"]
    return f"{needs.text(setting.value)} sets {', '.join(names) or 'nothing'}"


def values(directory: str, judge: Judge = needs.nothing) -> dict[str, Any]:
    """The values of both files for `run`. `limits`: field → (value as text, its place); `env_file_data`: the
    content of the project's environment file."""
    settings = load(directory, judge)
    others = {name: setting.value for name, setting in settings.items() if name not in LIMIT_OF_SETTING}
    if "env_file" in settings and settings["env_file"].data is not None:
        others["env_file_data"] = settings["env_file"].data
    limits = {
        LIMIT_OF_SETTING[name]: (_as_text(name, setting.value), f"{setting.where}: {name}")
        for name, setting in settings.items()
        if name in LIMIT_OF_SETTING
    }
    return {**others, "limits": limits}


def _as_text(name: str, value: Any) -> str:
    is_size = KEYS[name].kind == "bytes" and value != "none"
    return str(parse_bytes(str(value))) if is_size else str(value)


def effective(
    directory: str | None, environ: Mapping[str, str], judge: Judge = needs.nothing
) -> dict[str, Setting]:
    """All settings, with environment and defaults. Raises UsageError, UnreadableFile."""
    from_files = load(directory, judge)
    by_name: dict[str, Setting] = {}
    for name, key in KEYS.items():
        if key.variable and environ.get(key.variable):
            text = environ[key.variable]
            # Limits of a task are checked when the task is created.
            value = text if name in LIMIT_OF_SETTING else check_variable(key, text)
            by_name[name] = Setting(value, "environment", key.variable)
        else:
            by_name[name] = from_files.get(name) or Setting(key.default, "default")
    return by_name


def read(path: str) -> dict[str, Any]:
    """The checked settings of one file. Raises UsageError, UnreadableFile."""
    try:
        data = files.read(path, follow=True)
    except OSError as error:
        raise UnreadableFile(
            f"cannot read the settings {path}: {error.strerror}", hint="check its permissions"
        ) from error
    return _parsed(data, path)


def _parsed(text: bytes, path: str) -> dict[str, Any]:
    import tomllib

    try:
        data = tomllib.loads(_limited(text).decode("utf-8"))
    # ValueError: TOML, UTF-8, and numbers with too many digits.
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}", hint='write one setting per line: deadline = "2h"'
        ) from error
    return {name: check(path, name, value) for name, value in data.items()}


def _limited(text: bytes) -> bytes:
    """The text, if it can be parsed quickly. Raises ValueError.

    The parser is slow for keys of many parts, and a project's file may be written by anyone.
    """
    if len(text) > _MAX_BYTES:
        raise ValueError(f"it has more than {_MAX_BYTES} bytes")
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.count(b".") > _MAX_DOTS:
            raise ValueError(f"line {number} has more than {_MAX_DOTS} dots")
    return text


def notify_rules() -> list[dict[str, Any]]:
    """The user's `[[notify]]` rules. Raises UsageError, UnreadableFile."""
    path = paths.user_settings()
    if not os.path.exists(path):
        return []
    rules: list[dict[str, Any]] = read(path).get("notify", [])
    return rules
