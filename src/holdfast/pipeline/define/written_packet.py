"""A written packet → a task that can run: read, checked as a whole, resolved. All problems at once, before anything is paid for."""

from __future__ import annotations

import os

from holdfast import paths
from holdfast.agents import registry
from holdfast.errors import HoldfastError, InvalidManifest, NoSuchDirectory, UnreadableFile
from holdfast.model.record import Record
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec, short_name
from holdfast.packet import inputs, limits
from holdfast.pipeline.define import catalog, manifest, security_lens, yaml_file
from holdfast.pipeline.define.manifest import Manifest
from holdfast.pipeline.define.problem import Problem, sorted_problems
from holdfast.pipeline.define.resolve import Resolved, resolve
from holdfast.pipeline.prompt import attachments, template
from holdfast.pipeline.prompt.forbidden import Forbidden
from holdfast.redact import Redactor
from holdfast.store.layout import MANIFEST_YAML, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = MANIFEST_YAML


class Written(Record):
    """A packet as a person wrote it, checked."""

    folder: str
    #: The text of manifest.yaml, as it is.
    text: bytes
    manifest: Manifest
    resolved: Resolved
    project_dir: str

    @property
    def inputs(self) -> str:
        """Its inputs; the folder need not exist."""
        return Packet(self.folder).inputs


def read(folder: str, *, project: str | None = None) -> Written:
    """The packet in a folder. `project` beats the manifest's own. Raises InvalidManifest with all problems, UnreadableFile."""
    text, path = text_of(folder)
    written, problems = examine(text, path, project=project)
    if written is None:
        raise invalid(path, problems)
    return written


def examine(
    text: bytes, path: str, *, project: str | None = None
) -> tuple[Written | None, tuple[Problem, ...]]:
    """The packet whose manifest is this text, which is (or will be) at `path`; or None and all that is wrong."""
    problems: list[Problem] = []
    node = yaml_file.parse(text, path, problems)
    if node is None:
        return None, sorted_problems(problems)
    checked = manifest.check(node, path, problems)
    folder = os.path.dirname(os.path.abspath(path))
    work = project_of(checked, folder, project)
    if not os.path.isdir(work):
        problems.append(checked.problem("project", f"the directory {work} does not exist"))
    layers = catalog.read(catalog.folders(work), problems)
    found = resolve(checked, layers, problems, request=lambda: _words_of(folder, work))
    if checked.get("scope.revert") and checked.get("workspace") != "worktree":
        hint = "in place, what an agent did cannot be told from what a person did"
        problems.append(checked.problem("scope.revert", "it needs workspace: worktree", hint))
    if not problems and found is not None:
        _check_inputs(checked, found, problems, folder=folder, project_dir=work)
    if problems or found is None:
        return None, sorted_problems(problems)
    return Written(folder=folder, text=text, manifest=checked, resolved=found, project_dir=work), ()


def _words_of(folder: str, project_dir: str) -> str:
    """The request, and the names of the files that attached diffs change. What cannot be read is told by another check."""
    packet = Packet(folder)
    try:
        request = attachments.read_input(packet, packet.user_request) or ""
        attached = attachments.read(packet, Forbidden((), project_dir=project_dir))
    except HoldfastError:
        return ""
    return "\n".join([request, *(security_lens.paths_of(each.text or "") for each in attached)])


def _check_inputs(
    checked: Manifest, found: Resolved, problems: list[Problem], *, folder: str, project_dir: str
) -> None:
    """What would stop a stage before its call is told now: a role without a template, an input that no agent may see."""
    packet = Packet(folder)
    for said in template.check(found.stages, project_dir=project_dir, profile=found.profile, packet=packet):
        problems.append(checked.problem("routing.intent", said))
    patterns = checked.get("security.forbidden_paths")
    try:
        attachments.read(packet, Forbidden(patterns, project_dir=project_dir))
    except HoldfastError as error:
        problems.append(checked.problem("security.forbidden_paths", str(error), error.hint))


def invalid(path: str, problems: tuple[Problem, ...]) -> InvalidManifest:
    """The error that tells them all."""
    count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
    return InvalidManifest(f"{path} has {count}", details=tuple(str(each) for each in problems))


def project_of(checked: Manifest, folder: str, given: str | None) -> str:
    """Where it works: the flag's directory, the manifest's (from the packet's folder), or the present one."""
    written = checked.get("project")
    if given is not None or written is None:
        return paths.project(given)
    return os.path.normpath(os.path.join(folder, os.path.expanduser(written)))


def text_of(folder: str) -> tuple[bytes, str]:
    """The manifest of a packet and its path; the path of the file itself will do. Raises NoSuchDirectory, UnreadableFile."""
    path = folder if os.path.isfile(folder) else os.path.join(folder, NAME)
    try:
        return inputs.contents(path, yaml_file.MOST_BYTES), path
    except OSError as error:
        if not os.path.isdir(folder):
            raise NoSuchDirectory(f"there is no packet {folder}", hint="'holdfast new' writes one") from error
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}",
            hint="a packet has a manifest.yaml; 'holdfast new' writes one",
        ) from error


def spec(written: Written, *, limits: Limits, env: tuple[str, ...] = (), **more: Any) -> TaskSpec:
    """The task that a packet asks for. `more` are further fields of TaskSpec."""
    checked, resolved = written.manifest, written.resolved
    stages = tuple(_absolute(stage, written.folder) for stage in resolved.stages)
    values: dict[str, Any] = {
        "task_id": checked.get("task_id"),
        "task_name": short_name(checked.get("goal").strip()),
        "goal": checked.get("goal").strip(),
        "agent": stages[0].agent,
        "model": stages[0].model,
        "project_dir": written.project_dir,
        "stages": stages,
        "limits": limits,
        "env": tuple(dict.fromkeys((*env, *(checked.get("env") or ())))),
        "failover": tuple(checked.get("routing.failover") or ()),
        "workspace": checked.get("workspace"),
        "pipeline": pipeline_spec(written),
    }
    return TaskSpec(**{**values, **more})


def pipeline_spec(written: Written) -> PipelineSpec:
    """What the pipeline is asked for, with the sources of its values."""
    get, resolved = written.manifest.get, written.resolved
    return PipelineSpec(
        intent=resolved.intent,
        group=resolved.group,
        profile=resolved.profile,
        scope_allow=get("scope.allow"),
        scope_deny=get("scope.deny"),
        acceptance_commands=get("acceptance.commands"),
        acceptance_criteria=get("acceptance.criteria"),
        acceptance_timeout_s=float(get("acceptance.timeout_sec")),
        retry_budget=get("budgets.retry_budget"),
        paid_call_budget=get("budgets.paid_call_budget"),
        max_wallclock_s=float(get("budgets.max_wallclock_sec")),
        digest_policy=get("context.digest_policy"),
        redaction_patterns=get("security.redaction_patterns"),
        forbidden_paths=get("security.forbidden_paths"),
        revert_out_of_scope=get("scope.revert"),
        join_timeout_s=resolved.join_timeout_s,
        sources=resolved.sources,
    )


def redacted(spec: TaskSpec, env: Mapping[str, str]) -> TaskSpec:
    """The task without secrets in what is shown of it: journal and manifest.json have these words as they are here."""
    pipeline = spec.pipeline
    assert pipeline is not None
    redact = Redactor(dict(env), spec.env, pipeline.redaction_patterns)
    criteria = tuple(redact(line) for line in pipeline.acceptance_criteria)
    goal = redact(spec.goal)
    # Cut anew: half a secret looks like none.
    name = short_name(goal) if spec.task_name == short_name(spec.goal) else redact(spec.task_name)
    return spec.evolve(
        task_name=name,
        goal=goal,
        pipeline=pipeline.evolve(acceptance_criteria=criteria),
    )


#: Field of the manifest → field of Limits.
_LIMITS = {
    "budgets.deadline_sec": "deadline_s",
    "budgets.budget_usd": "budget_usd",
    "budgets.budget_tokens": "budget_tokens",
    "budgets.max_turns": "max_turns",
    "budgets.on_limit": "on_limit",
}


def settle_limits(
    written: Written,
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, str] | None = None,
    settings: Mapping[str, tuple[str, str]] | None = None,
) -> Limits:
    """The limits of the task: a flag beats the manifest, that beats environment, settings and the agents' own."""
    adapters = [registry.adapter(stage.agent) for stage in written.resolved.stages]
    silences = [adapter.capabilities.stale_s for adapter in adapters]
    # One silence for the whole task: that of the agent which may be silent the longest.
    stale_s = None if None in silences else max(silence for silence in silences if silence is not None)
    found = limits.resolve(environ, flags or {}, stale_s=stale_s, settings=settings)
    own = {
        field: written.manifest.get(path)
        for path, field in _LIMITS.items()
        if path in written.manifest.lines and field not in (flags or {})
    }
    if "deadline_s" in own:
        own["deadline_s"] = float(own["deadline_s"])
    return found.evolve(**own)


def _absolute(stage: StageSpec, folder: str) -> StageSpec:
    """A file of the packet is meant from the packet's folder, not from where the runner will be."""
    options: dict[str, object] = {}
    for key, value in stage.options.items():
        path = os.path.join(folder, value) if isinstance(value, str) else ""
        options[key] = os.path.abspath(path) if path and os.path.isfile(path) else value
    return stage.evolve(options=options)
