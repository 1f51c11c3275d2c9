"""`--packet DIR`: a written packet as a task. Everything is checked before anything is made."""

from __future__ import annotations

import os

from holdfast import ids, paths
from holdfast.agents import program, registry
from holdfast.errors import CommandNotFound, InvalidManifest, UnreadableFile, UsageError
from holdfast.packet import environment, inputs
from holdfast.pipeline.define import written_packet
from holdfast.store.layout import Packet
from holdfast.views.cli.create import agent_options, check_git
from holdfast.views.cli.create.new_task import NewTask
from holdfast.views.cli.create.task_options import LIMIT_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.pipeline.define.written_packet import WrittenPacket

_MOST_REQUEST_BYTES = 8 * 1024**2
#: What a packet says itself, and a command line cannot say for it: value → flag.
_OF_THE_PACKET = {
    "prompt": "a prompt",
    "file": "--file",
    "command": "a command",
    "agent": "--agent",
    "model": "--model",
    "session": "--session",
    "option": "--option",
    "bootstrap": "--bootstrap",
    "var": "--var",
}


def read(path: str, *, values: dict[str, Any]) -> NewTask:
    """The task that a written packet describes; limits, variables and the id of the command line beat it."""
    for name, flag in _OF_THE_PACKET.items():
        if values.get(name):
            raise UsageError(
                f"{flag} was given beside --packet", hint="a packet says it in its manifest.yaml and inputs/"
            )
    written = written_packet.read(path, project=values.get("project"))
    settings = _settings(written.project_dir)
    prompt = _request(written)
    env_file = os.path.abspath(values["env_file"]) if values.get("env_file") else settings.get("env_file")
    added = environment.read_file(env_file) if env_file else {}
    flags = {name: values[name] for name in LIMIT_FLAGS if values.get(name) is not None}
    spec = written_packet.spec(
        written,
        limits=written_packet.resolve_limits(
            written, os.environ, flags=flags, settings=settings.get("limits", {})
        ),
        env=(*settings.get("env", ()), *values.get("env", ()), *added),
        env_file=env_file,
        leftovers=values.get("leftovers") or settings.get("leftovers", "report"),
        interrupt_off=tuple(settings.get("interrupt_off", ())),
        **_chosen(values),
    )
    check_agents(spec, path)
    check_git.check(spec)
    _check_variables(spec, path, added)
    captured = environment.capture(dict(os.environ), (*_variables(spec), *spec.env))
    captured["env"].update(added)
    return NewTask(
        spec=written_packet.redacted(spec, captured["env"]),
        prompt=prompt,
        env=captured,
        settings=settings,
        inputs=written.inputs,
        manifest_yaml=written.text,
    )


def _chosen(values: dict[str, Any]) -> dict[str, Any]:
    """What the command line says of the task itself."""
    found: dict[str, Any] = {}
    if values.get("id") is not None:
        found["task_id"] = ids.check_task_id(values["id"])
    if values.get("name"):
        found["task_name"] = values["name"]
    if values.get("worktree"):
        found["workspace"] = "worktree"
    if values.get("failover"):
        found["failover"] = tuple(values["failover"])
    if values.get("yolo"):
        found["options"] = {"yolo": True}
    return found


def _settings(project: str) -> dict[str, Any]:
    if not paths.settings_files(project):
        return {}
    from holdfast.config import settings

    return settings.values(project)


def _request(written: WrittenPacket) -> bytes:
    """inputs/user_request.md; without one, the goal is the request."""
    path = Packet(written.folder).user_request
    try:
        data = inputs.contents(path, _MOST_REQUEST_BYTES)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}", hint="check its mode") from error
    if len(data) > _MOST_REQUEST_BYTES:
        raise UsageError(
            f"{path} is larger than {_MOST_REQUEST_BYTES // 1024**2} MiB", hint="attach it instead"
        )
    return data if data.strip() else (written.manifest.get("goal").strip() + "\n").encode()


def check_agents(spec: TaskSpec, packet: str) -> None:
    """Every agent is installed and has what it needs: what is certain to fail is told now, all of it."""
    missing: list[str] = []
    path = os.environ.get("PATH", os.defpath)
    for name in dict.fromkeys((*(stage.agent for stage in spec.stages), *spec.failover)):
        able = registry.adapter(name).capabilities
        if able.program and program.find(able, path) is None:
            missing.append(f"{name}: no {able.program} in PATH")
    if missing:
        count = "an agent that is" if len(missing) == 1 else "agents that are"
        raise CommandNotFound(
            f"{packet} needs {count} not installed",
            details=tuple(missing),
            hint="install them, or choose a profile with other agents: 'holdfast pipeline list'",
        )
    lacking = [
        f"{stage.name}: {stage.agent} needs the option {need}"
        for stage in spec.stages
        for need in registry.adapter(stage.agent).capabilities.needs
        if need not in stage.options
    ]
    lacking += [
        f"{stage.name}: {need}: there is no file {stage.options[need]}"
        for stage in spec.stages
        for need in registry.adapter(stage.agent).capabilities.needs
        if need in stage.options and not os.path.isfile(str(stage.options[need]))
    ]
    spare = [registry.adapter(name) for name in spec.failover]
    unheard = [
        said
        for stage in spec.stages
        for said in agent_options.unknown(stage, [registry.adapter(stage.agent), *spare])
    ]
    if unheard:
        raise InvalidManifest(
            f"{packet} sets options that no agent knows",
            details=tuple(unheard),
            hint="correct them in routing.options, or in the file that sets them: 'holdfast pipeline show'",
        )
    if lacking:
        raise InvalidManifest(
            f"{packet} lacks options of agents",
            details=tuple(lacking),
            hint="set them in routing.options.<agent or stage>",
        )


def _check_variables(spec: TaskSpec, packet: str, added: dict[str, str]) -> None:
    """What was asked for by name is there: an agent that lacks it would find out when it is paid for."""
    missing = [name for name in spec.env if name not in os.environ and name not in added]
    if missing:
        raise UsageError(
            f"{packet} passes on variables that are not set: {', '.join(missing)}",
            hint="set them, or write them into a file for --env-file",
        )


def _variables(spec: TaskSpec) -> list[str]:
    agents = dict.fromkeys((*(stage.agent for stage in spec.stages), *spec.failover))
    return [name for agent in agents for name in registry.adapter(agent).capabilities.env]
