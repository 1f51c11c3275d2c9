"""The sandbox of a new task: whether it gets one, and that this machine can make it."""

from __future__ import annotations

import os

from holdfast.errors import SandboxMissing, UsageError
from holdfast.model.spec import SandboxSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec


def read(
    values: dict[str, Any],
    settings: dict[str, Any],
    *,
    project: str,
    packet: tuple[str | None, str | None] = (None, None),
) -> SandboxSpec | None:
    """The sandbox, from flags, settings and a packet's `sandbox` and `network`; None without one.

    The stricter of settings and packet holds, and of two lists of hosts what both have; only a flag loosens
    it. Raises UsageError, SandboxMissing.
    """
    wanted, unwanted, network = values.get("sandbox"), values.get("no_sandbox"), values.get("network")
    if wanted and unwanted:
        raise UsageError("--sandbox and --no-sandbox exclude each other", hint="give one of them")
    is_on = not unwanted and bool(wanted or "on" in (settings.get("sandbox"), packet[0]))
    asked = [network] if network is not None else [settings.get("network"), packet[1]]
    lists = [_hosts(each) for each in asked if each not in (None, "on", "off")]
    if not is_on:
        if network is not None:
            raise UsageError(f"--network {network} needs a sandbox", hint=f"--sandbox --network {network}")
        return None
    hosts = () if "off" in asked else _common(lists)
    is_offline = "off" in asked or bool(lists)
    _check_project(project)
    from holdfast.sandbox import machine

    machine.require(network=not is_offline)
    return SandboxSpec(network=not is_offline, hosts=hosts)


def check_link(spec: TaskSpec) -> None:
    """Refuse an agent in place where `.git` is a link, which no sandbox protects. Raises UsageError."""
    link = os.path.join(os.path.realpath(spec.project_dir), ".git")
    if spec.sandbox is None or spec.workspace != "in_place" or not os.path.islink(link):
        return
    from holdfast.sandbox.builder import LINK_HINT

    raise UsageError(f"--sandbox: {link} is a symbolic link, which an agent could replace", hint=LINK_HINT)


def check_brief(spec: TaskSpec) -> None:
    """Refuse a packet whose acceptance commands could not run here. Raises SandboxMissing."""
    if spec.pipeline is None:
        return
    from holdfast.sandbox import machine

    problem = machine.find_problem_of_brief(spec, spec.stages)
    if problem is not None:
        raise SandboxMissing(problem.message, hint=problem.fix)


def _hosts(text: object) -> tuple[str, ...]:
    """A list of hosts. Raises UsageError."""
    from holdfast.sandbox import proxy

    found = tuple(dict.fromkeys(part.strip().lower() for part in str(text).split(",") if part.strip()))
    try:
        for host in found:
            proxy.parse(host)
    except ValueError as error:
        raise UsageError(
            f"--network {text}: {error}",
            hint="on, off, or a list such as api.anthropic.com,*.pypi.org,localhost:8080",
        ) from error
    if not found:
        raise UsageError("--network: the list of hosts is empty", hint="off is no network at all")
    return found


def _common(lists: list[tuple[str, ...]]) -> tuple[str, ...]:
    """What all lists have."""
    first = lists[0] if lists else ()
    return tuple(host for host in first if all(host in each for each in lists))


def _check_project(project: str) -> None:
    """A workspace that contains the user's home would make all of it writable. Raises UsageError."""
    home, place = os.path.realpath(os.path.expanduser("~")), os.path.realpath(project)
    if home == place or home.startswith(place.rstrip("/") + "/"):
        raise UsageError(
            f"--sandbox: the project {project} contains your home directory, so all of it could be written",
            hint="choose the project's own directory with --project",
        )
