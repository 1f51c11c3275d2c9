"""A task from a written packet (`--packet DIR`): everything is checked, and nothing is written."""

from __future__ import annotations

import os
from shlex import quote

from holdfast import ids, paths
from holdfast.agents import program, registry
from holdfast.errors import CommandNotFound, InvalidManifest, UnreadableFile, UsageError
from holdfast.model.permissions import DEFAULT
from holdfast.packet import environment, inputs
from holdfast.pipeline.define import written_packet
from holdfast.store import foreign
from holdfast.store.layout import Home, Packet
from holdfast.store.trust import TrustCheck
from holdfast.views import option_values
from holdfast.views.create import (
    agent_options,
    budget_notes,
    check_agent,
    check_ci,
    check_git,
    check_sandbox,
    permissions,
)
from holdfast.views.create.new_task import NewTask, check_packet_id, environment_of, settings_with_trust
from holdfast.views.create.options import LIMIT_OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.model.spec import TaskSpec
    from holdfast.pipeline.define.written_packet import WrittenPacket
    from holdfast.views.create.new_task import Talk

_MAX_REQUEST_BYTES = 8 * 1024**2
#: Options that do not go with --packet, because the packet has them: value → flag.
_IN_THE_PACKET = {
    "prompt": "a prompt",
    "file": "--file",
    "command": "a command",
    "agent": "--agent",
    "model": "--model",
    "session": "--session",
    "option": "--option",
    "accept": "--accept",
    "bootstrap": "--bootstrap",
    "var": "--var",
}


def read(path: str, *, values: dict[str, Any], talk: Talk, is_new: bool = False) -> NewTask:
    """The task that a packet describes. Options of the command line win. Raises UsageError.

    With `is_new`, it is created next: DuplicateTask is raised before anything is said about it.
    """
    for name, flag in _IN_THE_PACKET.items():
        if values.get(name):
            field = " (acceptance.commands)" if name == "accept" else ""
            raise UsageError(
                f"{flag} and --packet exclude each other",
                hint=f"edit the packet's manifest.yaml{field} and inputs/ instead",
            )
    by_flag = bool(values.get("trust_project"))
    # `new` and `review` have the manifest of the packet that they wrote.
    text: bytes | None = values.get("manifest")
    written = written_packet.read(path, project=values.get("project"), trust_project=by_flag, text=text)
    foreign.refuse_way_out(written.project_dir)
    settings, trust = settings_with_trust(written.judge, talk=talk)
    prompt = _request(written)
    env_file, added = environment_of(values, settings, project=written.project_dir)
    flags = {name: values[name] for name in LIMIT_OPTIONS if values.get(name) is not None}
    spec = written_packet.spec(
        written,
        limits=written_packet.resolve_limits(
            written, os.environ, flags=flags, settings=settings.get("limits", {})
        ),
        permissions=permissions.asked(values),
        default_permissions=settings.get("permissions", DEFAULT),
        env=(*settings.get("env", ()), *values.get("env", ()), *added),
        env_file=env_file,
        env_file_sha256=environment.digest_of(added),
        leftovers=values.get("leftovers") or settings.get("leftovers", "report"),
        interrupt_off=tuple(settings.get("interrupt_off", ())),
        sandbox=check_sandbox.read(
            values,
            settings,
            project=written.project_dir,
            packet=(written.manifest.get("sandbox"), written.manifest.get("network")),
        ),
        **_chosen(values, written),
    )
    check_agents(spec, path)
    permissions.check_stages(
        spec, by_flag=permissions.asked(values), manifest=written.manifest, settings=settings, talk=talk
    )
    check_git.check(spec)
    check_sandbox.check_link(spec)
    check_sandbox.check_brief(spec)
    spec = check_ci.recorded(spec)
    _check_variables(spec, path, added)
    # Checked last: a mistake in the packet itself is the more useful error.
    spec = spec.evolve(trust={**trust, **_check_trust(written, by_flag=by_flag, is_typed=text is not None)})
    spec, files = written_packet.frozen(written, spec, Home(paths.home()).packet(spec.task_id))
    if is_new:
        check_packet_id(Home(paths.home()), spec.task_id)
    permissions.warn(spec, talk=talk)
    spec = check_git.noted(budget_notes.noted(spec, talk=talk), talk=talk)
    captured = environment.capture(dict(os.environ), (*_variables(spec), *spec.env))
    captured["env"].update(added)
    return NewTask(
        spec=written_packet.redacted(spec, captured["env"]),
        prompt=prompt,
        env=captured,
        settings=settings,
        inputs=written.inputs,
        manifest_yaml=written.text,
        files=files,
    )


def _check_trust(written: WrittenPacket, *, by_flag: bool, is_typed: bool) -> dict[str, object]:
    """A packet that the user did not make with `new`, or that is inside a project, may be another's or an
    agent's, and so may the plan that it was made from: what it runs needs trust.

    Without its commands it would be another task, so it is refused as a whole. Returns what was granted.
    """
    if not written.needs_trust:
        return {}
    judge = TrustCheck(written.folder, by_flag=by_flag)
    part = written_packet.part_of(written)
    if judge(part):
        record = judge.record()
        return {"packet": record} if record else {}
    is_of_plan = written.manifest.get("needs_trust")
    if is_typed and not is_of_plan:
        return {}  # its folder may be temporary
    names = ", ".join(dict.fromkeys(need.name for need in part.needs))
    # `new` trusts what the user typed.
    changed = "changed since you trusted it or wrote it with 'new'; it has"
    why = changed if judge.was_trusted else "was not trusted yet:"
    where = "has commands of a plan inside a project and " if is_of_plan else ""
    raise UsageError(
        f"the packet {written.folder} {where}{why} {names}",
        details=(
            foreign.reason(written.folder, written.project_dir) or "it was not made with 'holdfast new'",
        ),
        hint=f"'holdfast trust {quote(written.folder)}' shows and allows it; for scripts: --trust-project",
    )


def _chosen(values: dict[str, Any], written: WrittenPacket) -> dict[str, Any]:
    """The fields of the spec that the command line sets."""
    fields: dict[str, Any] = {}
    if values.get("id") is not None:
        fields["task_id"] = ids.check_task_id(values["id"])
    if values.get("name"):
        fields["task_name"] = values["name"]
    if values.get("label"):
        fields["labels"] = option_values.labels([*written.manifest.get("labels"), *values["label"]])
    if values.get("worktree"):
        fields["workspace"] = "worktree"
    if values.get("failover"):
        fields["failover"] = tuple(adapter.name for adapter in check_agent.failover("", values["failover"]))
    return fields


def _request(written: WrittenPacket) -> bytes:
    """The content of inputs/user_request.md, or the goal if that is missing or empty."""
    path = Packet(written.folder).user_request
    try:
        data = inputs.contents(path, _MAX_REQUEST_BYTES, inside=written.folder)
    except FileNotFoundError:
        data = b""
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}", hint="check its mode") from error
    if len(data) > _MAX_REQUEST_BYTES:
        raise UsageError(
            f"{path} is larger than {_MAX_REQUEST_BYTES // 1024**2} MiB", hint="attach it instead"
        )
    return data if data.strip() else (written.manifest.get("goal").strip() + "\n").encode()


def check_agents(spec: TaskSpec, packet: str) -> None:
    """Every agent is installed and has its options. Raises with all problems at once."""
    missing: list[str] = []
    path = os.environ.get("PATH", os.defpath)
    for name in dict.fromkeys((*(stage.agent for stage in spec.stages), *spec.failover)):
        capabilities = registry.adapter(name).capabilities
        if capabilities.program and program.find(capabilities, path) is None:
            missing.append(f"{name}: no {capabilities.program} in PATH")
    if missing:
        agents = "an agent" if len(missing) == 1 else "agents"
        raise CommandNotFound(
            f"{packet} needs {agents} that {'is' if len(missing) == 1 else 'are'} not installed",
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
        f"{stage.name}: {need}: no such file: {stage.options[need]}"
        for stage in spec.stages
        for need in registry.adapter(stage.agent).capabilities.needs
        if need in stage.options and not os.path.isfile(str(stage.options[need]))
    ]
    failover = [registry.adapter(name) for name in spec.failover]
    unknown = [
        message
        for stage in spec.stages
        for message in agent_options.unknown(stage, [registry.adapter(stage.agent), *failover])
    ]
    if unknown:
        raise InvalidManifest(
            f"{packet} sets options that no agent knows",
            details=tuple(unknown),
            hint="fix them in routing.options, or in the file that 'holdfast pipeline show' names",
        )
    if lacking:
        raise InvalidManifest(
            f"{packet} lacks options that agents need",
            details=tuple(lacking),
            hint="set them in routing.options.<agent or stage>",
        )


def _check_variables(spec: TaskSpec, packet: str, added: dict[str, str]) -> None:
    """Every variable to pass on is set. Raises UsageError."""
    missing = [name for name in spec.env if name not in os.environ and name not in added]
    if missing:
        raise UsageError(
            f"{packet} passes on variables that are not set: {', '.join(missing)}",
            hint="set them, or put them into a file for --env-file",
        )


def _variables(spec: TaskSpec) -> list[str]:
    agents = dict.fromkeys((*(stage.agent for stage in spec.stages), *spec.failover))
    return [name for agent in agents for name in registry.adapter(agent).capabilities.env]
