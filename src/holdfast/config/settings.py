"""Settings: `config.toml` of the user and `.holdfast/config.toml` of the project.

A flag beats the environment, that beats the project, that beats the user, that beats the default. A TOML reader is loaded
only when there is a file, so that whoever sets nothing pays nothing.
"""

from __future__ import annotations

import os

from holdfast import clock, paths
from holdfast.errors import UnreadableFile, UsageError
from holdfast.units import parse_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Key:
    """One setting. `default` is as people write it, None where there is none."""

    def __init__(
        self,
        *,
        kind: str,
        about: str,
        default: Any = None,
        choices: tuple[str, ...] = (),
        may_be_none: bool = False,
        least: int = 0,
        variable: str = "",
    ) -> None:
        #: duration, count, bytes, text, choice, choices, flag, names, commands, pairs, rules or file.
        self.kind = kind
        self.about = about
        self.default = default
        self.choices = choices
        #: Whether `none` is a value.
        self.may_be_none = may_be_none
        #: Of a count.
        self.least = least
        #: The environment variable that beats the files.
        self.variable = variable


class Setting:
    """A value and where it came from: default, user, project or environment, with the file or the variable."""

    def __init__(self, value: Any, source: str, where: str = "") -> None:
        self.value = value
        self.source = source
        self.where = where


KEYS: dict[str, Key] = {
    "base_interval": Key(
        kind="duration",
        default="30s",
        variable="MONITOR_BASE_INTERVAL",
        about="Check interval, base of backoff.",
    ),
    "max_interval": Key(
        kind="duration",
        default="5m",
        variable="MONITOR_MAX_INTERVAL",
        about="Longest pause between attempts.",
    ),
    "grace": Key(
        kind="duration",
        default="30s",
        variable="MONITOR_GRACE_PERIOD",
        about="Grace before silence is called a hang.",
    ),
    "deadline": Key(
        kind="duration",
        default="5h",
        may_be_none=True,
        variable="MONITOR_DEADLINE",
        about="Active time that a task may take.",
    ),
    "timeout": Key(
        kind="duration",
        may_be_none=True,
        variable="SESSION_TIMEOUT",
        about="Time that one attempt may take.",
    ),
    "on_limit": Key(
        kind="choice",
        default="ask",
        choices=("ask", "end"),
        about="At a budget or a time limit of an attempt: ask a person, or end the task.",
    ),
    "interrupt_off": Key(
        kind="choices",
        default=[],
        choices=("request", "error", "blocked", "input", "output", "budget", "timeout", "quality"),
        about="Conditions at which no person is asked; the task goes on, or ends.",
    ),
    "max_retries": Key(
        kind="count", default=10, variable="MONITOR_MAX_RETRIES", about="Retries over a task's whole life."
    ),
    "stale": Key(
        kind="duration",
        may_be_none=True,
        variable="STALL_THRESHOLD",
        about="Silence after which an agent may be stuck; the agent's own where not set.",
    ),
    "output_limit": Key(kind="bytes", default="10GiB", about="Raw output of one task; 0 is no limit."),
    "memory_limit": Key(
        kind="bytes",
        may_be_none=True,
        about="Address space of each process of an agent; no limit where not set.",
    ),
    "agent": Key(kind="text", about="The agent of a 'run' that names none."),
    "tmux": Key(
        kind="choice",
        default="auto",
        choices=("always", "never", "auto"),
        about="Windows: 'always' opens one at the start, 'auto' when you attach.",
    ),
    "env": Key(kind="names", default=[], about="Variables that are passed on, beside the usual ones."),
    "env_file": Key(
        kind="file", about="A file of NAME=VALUE lines that are added to every task's environment."
    ),
    "leftovers": Key(
        kind="choice",
        default="report",
        choices=("report", "kill", "keep"),
        about="What happens to processes that outlive a successful agent.",
    ),
    "slots": Key(kind="count", default=1, least=1, about="Tasks of the queue that run at the same time."),
    "max_iterations": Key(
        kind="count",
        default=0,
        variable="MAX_ITERATIONS",
        about="Tasks of the queue after which no more are started; 0 is no limit.",
    ),
    "iteration_delay": Key(
        kind="duration",
        default="5s",
        variable="ITERATION_DELAY",
        about="Pause of a slot between two tasks of the queue.",
    ),
    "max_failures": Key(
        kind="count",
        default=5,
        variable="MAX_CONSECUTIVE_FAILURES",
        about="Tasks of the queue that may fail in a row before a person is asked.",
    ),
    "agent_limits": Key(
        kind="pairs", default=[], about="Tasks of the queue at the same time for an agent: claude=2."
    ),
    "pool_limits": Key(
        kind="pairs", default=[], about="Tasks of the queue at the same time for a pool: nightly=1."
    ),
    "min_free_memory": Key(
        kind="bytes", default="512MiB", about="Memory that must be free beside what the next agent needs."
    ),
    "min_free_disk": Key(kind="bytes", default="1GiB", about="Disk space without which nothing is started."),
    "sources": Key(
        kind="names", default=[], about="Where the queue is filled from: gh:label=agent, bd:, cmd:…."
    ),
    "refresh": Key(kind="duration", default="60s", about="How often the sources are asked."),
    "import_most": Key(
        kind="count", default=100, about="Items that one look at a source takes in; 100 at most."
    ),
    "priorities": Key(
        kind="pairs",
        default=[],
        about="What words for a priority weigh: high=10, medium=5, low=1, and your own.",
    ),
    "project_order": Key(
        kind="names", default=[], about="Projects or rigs whose items go first among equally urgent ones."
    ),
    "notify": Key(
        kind="rules", default=[], about="Who is told of what: [[notify]] tables, in your own settings."
    ),
    "archive_after": Key(
        kind="duration",
        may_be_none=True,
        about="How long after its end the keeper archives a task; never where not set.",
    ),
    "keep_for": Key(
        kind="duration",
        default="30d",
        about="How long ended tasks are kept; 'holdfast prune' removes older ones.",
    ),
    "knowledge": Key(
        kind="text", about="A folder of the project that keeps a page about each task that is archived."
    ),
    "pre_work": Key(
        kind="commands",
        default=[],
        about="Run before a task; what fails is told to the agent, and stops nothing.",
    ),
    "post_work": Key(kind="commands", default=[], about="Run after a task's work; each must exit with 0."),
    "expect_empty": Key(
        kind="commands", default=[], about="Run after a task's work; each must exit with 0 and print nothing."
    ),
    "clean_git": Key(
        kind="flag",
        default=False,
        about="Whether nothing may be uncommitted after the work but what was before.",
    ),
    "on_quality": Key(
        kind="choice",
        default="interrupt",
        choices=("interrupt", "warn", "file_issue"),
        about="What follows where the checks after the work do not pass.",
    ),
    "issue_command": Key(
        kind="text", about="With on_quality = file_issue: the command that gets the reasons on its stdin."
    ),
    "quality_timeout": Key(
        kind="duration", default="10m", about="Time that each of these commands may take."
    ),
}

#: Setting → field of Limits.
LIMITS = {
    "base_interval": "base_interval_s",
    "max_interval": "max_interval_s",
    "grace": "grace_s",
    "deadline": "deadline_s",
    "timeout": "timeout_s",
    "on_limit": "on_limit",
    "max_retries": "max_retries",
    "stale": "stale_s",
    "output_limit": "output_bytes",
    "memory_limit": "memory_bytes",
}


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
    """Every setting, with the environment and the defaults, for people who ask."""
    found = load(project)
    settled: dict[str, Setting] = {}
    for name, key in KEYS.items():
        if key.variable and environ.get(key.variable):
            settled[name] = Setting(environ[key.variable], "environment", key.variable)
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
    return {name: _check(path, name, value) for name, value in data.items()}


def _check(path: str, name: str, value: Any) -> Any:
    key = KEYS.get(name)
    if key is None:
        from difflib import get_close_matches

        near = get_close_matches(name, KEYS, n=1)
        hint = f"did you mean {near[0]!r}? Settings" if near else "settings"
        raise UsageError(
            f"{path}: there is no setting {name!r}", hint=f"{hint} are {', '.join(sorted(KEYS))}"
        )
    try:
        return _CHECKS[key.kind](key, value, path)
    except ValueError as error:
        raise UsageError(f"{path}: {name}: {error}", hint=f"for example: {_example(name, key)}") from error


def _duration(key: Key, value: Any, path: str) -> str:
    if value == "none" and key.may_be_none:
        return "none"
    text = _plain_number(value)
    if text is None:
        if not isinstance(value, str):
            raise ValueError(f"a duration is a text or a number of seconds, not {_type(value)}")
        text = value
    clock.parse_duration(text)
    return text


def _count(key: Key, value: Any, path: str) -> int:
    if type(value) is not int or value < key.least:
        raise ValueError(f"a count is a whole number from {key.least} on, not {value!r}")
    return value


def _bytes(key: Key, value: Any, path: str) -> int | str:
    if value == "none" and key.may_be_none:
        return "none"
    if type(value) is int and value >= 0:
        return value
    if not isinstance(value, str):
        raise ValueError(f"a size is a number of bytes or a text such as 500MiB, not {_type(value)}")
    parse_bytes(value)
    return value


def _text(key: Key, value: Any, path: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"it is a text, not {_type(value)}")
    return value


def _choice(key: Key, value: Any, path: str) -> str:
    if value not in key.choices:
        raise ValueError(f"it is one of {', '.join(key.choices)}, not {value!r}")
    return value


def _several(key: Key, value: Any, path: str) -> list[str]:
    return [_choice(key, name, path) for name in dict.fromkeys(_names(key, value, path))]


def _flag(key: Key, value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"it is true or false, not {_type(value)}")
    return value


def _names(key: Key, value: Any, path: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):  # pyright: ignore
        raise ValueError("it is a list of texts")
    return [str(name) for name in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _pairs(key: Key, value: Any, path: str) -> list[str]:
    pairs = _names(key, value, path)
    for pair in pairs:
        name, equals, count = pair.partition("=")
        if not name or not equals or not count.isdigit():
            raise ValueError(f"it is a list of NAME=COUNT, not {pair!r}")
    return pairs


def _rules(key: Key, value: Any, path: str) -> list[dict[str, Any]]:
    # Loaded late: few set it.
    from holdfast.config import notices

    return notices.check(value, path)


def _file(key: Key, value: Any, path: str) -> str:
    """A relative path is meant from beside the settings, whoever reads them."""
    text = os.path.expanduser(_text(key, value, path))
    return os.path.join(os.path.dirname(path), text)


_CHECKS = {
    "duration": _duration,
    "count": _count,
    "bytes": _bytes,
    "text": _text,
    "choice": _choice,
    "choices": _several,
    "flag": _flag,
    "names": _names,
    "commands": _names,
    "pairs": _pairs,
    "file": _file,
    "rules": _rules,
}


def _plain_number(value: Any) -> str | None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:g}" if is_number and 0 <= value < 1e12 else None


def _type(value: object) -> str:
    for kind, words in ((bool, "true or false"), (list, "a list"), (dict, "a table"), (str, "a text")):
        if isinstance(value, kind):
            return words
    return repr(value)


def _example(name: str, key: Key) -> str:
    examples = {
        "duration": '"90s"',
        "count": "10",
        "bytes": '"500MiB"',
        "text": '"scripted"',
        "choice": f'"{key.choices[0]}"' if key.choices else "",
        "choices": f'["{key.choices[0]}"]' if key.choices else "",
        "flag": "true",
        "names": '["DATABASE_URL"]',
        "commands": '["make test"]',
        "pairs": '["claude=2"]',
        "file": '"~/.config/holdfast/env"',
        "rules": '[[notify]] on = ["failed"], to = "desktop"',
    }
    example = examples[key.kind]
    return example if key.kind == "rules" else f"{name} = {example}"
