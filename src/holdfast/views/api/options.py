"""The options of a new task, as a Python program gives them."""

from __future__ import annotations

import os
from typing import TypedDict

from holdfast.views.create.options import TaskOptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal


class Options(TypedDict, total=False):
    """What `run` and `submit` take besides the work. Seconds, bytes and dollars are numbers."""

    agent: str
    #: Agents that take over when one is out of quota.
    failover: Sequence[str]
    model: str
    #: A session of the agent to continue.
    session: str
    #: Options of the agent (docs/agents.md).
    options: Mapping[str, str | bool]
    permissions: Literal["read", "edit", "full"]
    #: The directory to work in (default: the current one).
    project: str | os.PathLike[str]
    #: Work in a separate git worktree.
    worktree: bool
    #: True or False; default: the setting.
    sandbox: bool
    network: bool | Sequence[str]
    #: Names of variables to pass on, and a file of `NAME=VALUE` lines.
    env: Sequence[str]
    env_file: str | os.PathLike[str]
    trust_project: bool
    #: Commands that must succeed at the end; otherwise the work goes back to the agent.
    accept: Sequence[str]
    name: str
    #: The task's id. A second task with the same id is refused (DuplicateTask).
    id: str
    #: To find the task by.
    labels: Mapping[str, str]
    deadline_s: float
    timeout_s: float
    stale_s: float
    stop_pause_s: float
    max_retries: int
    max_turns: int
    budget_usd: float
    budget_tokens: int
    memory_bytes: int
    output_bytes: int
    on_limit: Literal["ask", "end"]


def read(
    prompt: str | None,
    command: Sequence[str] | None,
    packet: str | os.PathLike[str] | None,
    given: Mapping[str, Any],
) -> TaskOptions:
    """As the command line has them. Raises TypeError for an unknown name."""
    if unknown := sorted(given.keys() - Options.__optional_keys__):
        raise TypeError(f"unknown option: {', '.join(unknown)}")
    values: dict[str, Any] = {name: _text(name, value) for name, value in given.items() if value is not None}
    if "sandbox" in values:
        values["no_sandbox" if not values["sandbox"] else "sandbox"] = True
        values["sandbox"] = bool(given["sandbox"])
    if "network" in values:
        network = given["network"]
        values["network"] = ("on" if network else "off") if isinstance(network, bool) else ",".join(network)
    values["option"] = _pairs(values.pop("options", {}))
    values["label"] = _pairs(values.pop("labels", {}))
    return TaskOptions(
        prompt=prompt,
        command=None if command is None else tuple(command),
        packet=None if packet is None else os.fspath(packet),
        **values,
    )


def _text(name: str, value: Any) -> Any:
    if name in ("failover", "env", "accept"):
        if isinstance(value, str):
            raise TypeError(f"{name} is a list of texts, not one text")
        return tuple(str(each) for each in value)
    if name in ("project", "env_file"):
        return os.fspath(value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return f"{value:f}s" if name.endswith("_s") else str(value)


def _pairs(values: Mapping[str, Any]) -> tuple[str, ...]:
    words = {True: "true", False: "false"}
    return tuple(
        f"{key}={words[value] if isinstance(value, bool) else value}" for key, value in values.items()
    )
