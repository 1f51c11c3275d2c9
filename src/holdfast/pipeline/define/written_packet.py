"""Reading a written packet: check it completely, report all problems together, and make a task of it."""

from __future__ import annotations

import os

from holdfast import paths, plugins
from holdfast.agents import registry
from holdfast.config import classes, needs
from holdfast.config import project as project_files
from holdfast.errors import HoldfastError, InvalidManifest, NoSuchDirectory, UnreadableFile
from holdfast.model import labels
from holdfast.model.permissions import DEFAULT, READ
from holdfast.model.record import Record
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec, short_name
from holdfast.packet import inputs, limits
from holdfast.pipeline.define import load_catalog, manifest, security_lens, yaml_file
from holdfast.pipeline.define.manifest import Manifest
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.pipeline.define.problem import Problem, counted, sorted_problems
from holdfast.pipeline.define.resolve import Resolved, resolve
from holdfast.pipeline.prompt import attachments, template
from holdfast.pipeline.prompt.forbidden import Forbidden
from holdfast.redact import Redactor
from holdfast.store.digest import sha256
from holdfast.store.foreign import is_foreign
from holdfast.store.layout import MANIFEST_YAML, Packet
from holdfast.store.trust import TrustCheck, is_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = MANIFEST_YAML


class WrittenPacket(Record):
    """A packet as its author wrote it, checked."""

    folder: str
    #: The content of manifest.yaml.
    text: bytes
    manifest: Manifest
    resolved: Resolved
    project_dir: str
    #: What was asked of the user's trust in the project, and granted or not.
    judge: TrustCheck
    #: Others may have written it, or its commands.
    needs_trust: bool
    #: Files that options name, by the option's value, as they were judged: of the project, and of the packet.
    project_files: dict[str, bytes]
    packet_files: dict[str, bytes]
    #: Templates of the project that the user trusts: role → text.
    templates: dict[str, str]

    @property
    def inputs(self) -> str:
        """The folder of its inputs, which may be missing."""
        return Packet(self.folder).inputs


def read(
    folder: str, *, project: str | None = None, trust_project: bool = False, text: bytes | None = None
) -> WrittenPacket:
    """The packet in a folder. `project` overrides the manifest's. `text` is the manifest, if it is known: an
    agent may have changed the file. Raises InvalidManifest, UnreadableFile."""
    path = os.path.join(folder, NAME)
    if text is None:
        text, path = text_of(folder)
    written, problems = examine(text, path, project=project, trust_project=trust_project)
    if written is None:
        raise invalid(path, problems)
    return written


def examine(
    text: bytes, path: str, *, project: str | None = None, trust_project: bool = False
) -> tuple[WrittenPacket | None, tuple[Problem, ...]]:
    """The packet with this manifest, which is (or will be) at `path`; or None and all problems.

    `trust_project`: use everything that the project brings, trusted or not.
    """
    problems: list[Problem] = []
    node = yaml_file.parse(text, path, problems)
    if node is None:
        return None, sorted_problems(problems)
    checked = manifest.check(node, path, problems)
    folder = os.path.dirname(os.path.abspath(path))
    project_dir = project_of(checked, folder, project)
    if not os.path.isdir(project_dir):
        problems.append(checked.problem("project", f"the directory {project_dir} does not exist"))
    judge = TrustCheck(project_dir, by_flag=trust_project)
    catalog = load_catalog.read(load_catalog.folders(project_dir), problems, judge)
    resolved = resolve(checked, catalog, problems, request=lambda: _request(folder, project_dir))
    if checked.get("scope.revert") and checked.get("workspace") != "worktree":
        hint = "in place, changes by an agent and by a person cannot be told apart"
        problems.append(checked.problem("scope.revert", "needs workspace: worktree", hint))
    problems += _unknown_checks(checked)
    templates: dict[str, str] = {}
    if not problems and resolved is not None:
        templates = _check_inputs(checked, resolved, problems, folder=folder, judge=judge)
    if problems or resolved is None:
        # What is ignored is often the reason.
        problems += [Problem(file=path, line=0, path="", message=line) for line in judge.notices()]
        return None, sorted_problems(problems)
    written = WrittenPacket(
        folder=folder,
        text=text,
        manifest=checked,
        resolved=resolved,
        project_dir=project_dir,
        judge=judge,
        # Its own `project` can only add to what it is judged by.
        needs_trust=checked.get("needs_trust") or is_foreign(folder, project_dir) or not is_made(folder),
        project_files=catalog.files,
        packet_files=_option_files(checked, folder),
        templates=templates,
    )
    return written, ()


def part_of(written: WrittenPacket) -> needs.Part:
    """What a packet asks for that needs trust if others may have written it."""
    found: list[needs.Need] = []
    for field in FIELDS:
        kind, path = classes.of_packet(field.path), field.path.removesuffix(".*")
        value = written.manifest.get(path) if kind and field.path == path else None
        if (value or value is False) and value != field.default:
            found.append(needs.Need(kind, path, needs.text(value)))
        for name, values in (
            sorted(written.manifest.below(path).items()) if kind and field.path != path else ()
        ):
            if isinstance(values, str):
                found.append(needs.Need(kind, f"{path}.{name}", needs.text(values)))
                continue
            for key, value in sorted(values.items()):
                data = written.packet_files.get(value) if isinstance(value, str) else None
                found.append(needs.Need(kind, f"{path}.{name}.{key}", needs.text(value), data))
    return needs.Part(NAME, found)


def _option_files(checked: Manifest, folder: str) -> dict[str, bytes]:
    """The files in the packet that its options name: value → content."""
    found: dict[str, bytes] = {}
    for values in checked.below("routing.options").values():
        for value in values.values():
            path = os.path.join(folder, value) if isinstance(value, str) and value else ""
            if os.path.isfile(path) and (data := project_files.named_file(path)) is not None:
                found[value] = data
    return found


def _request(folder: str, project_dir: str) -> str:
    """The request, and the file names in attached diffs. _check_inputs reports unreadable files."""
    packet = Packet(folder)
    try:
        request = attachments.read_input(packet, packet.user_request) or ""
        attached = attachments.read(packet, Forbidden((), project_dir=project_dir))
    except HoldfastError:
        return ""
    return "\n".join([request, *(security_lens.file_lines(each.text or "") for each in attached)])


def _check_inputs(
    checked: Manifest, resolved: Resolved, problems: list[Problem], *, folder: str, judge: TrustCheck
) -> dict[str, str]:
    """Report now what would stop a stage later: a role without a template, a forbidden input.

    Returns the templates of the project that are used: role → text.
    """
    packet, project_dir = Packet(folder), judge.project
    templates, missing = template.needed(
        resolved.stages, project_dir=project_dir, profile=resolved.profile, packet=packet, judge=judge
    )
    problems += [checked.problem("routing.intent", message) for message in missing]
    patterns = checked.get("security.forbidden_paths")
    try:
        attachments.read(packet, Forbidden(patterns, project_dir=project_dir))
    except HoldfastError as error:
        problems.append(checked.problem("security.forbidden_paths", str(error), error.hint))
    return {each.role: each.text for each in templates if each.place == "project"}


def _unknown_checks(checked: Manifest) -> list[Problem]:
    """Checks of other packages that are not installed, or not allowed by HOLDFAST_PLUGINS."""
    wanted: tuple[str, ...] = checked.get("gate.checks") or ()
    unknown = [name for name in wanted if not plugins.find(plugins.CHECKS, name)]
    if not unknown:
        return []
    known = ", ".join(sorted({entry.name for entry in plugins.find(plugins.CHECKS)})) or "none"
    hint = f"installed: {known}; holdfast's own checks need not be named"
    return [checked.problem("gate.checks", f"no package has a check {name!r}", hint) for name in unknown]


def invalid(path: str, problems: tuple[Problem, ...]) -> InvalidManifest:
    """The error that lists all problems."""
    return InvalidManifest(
        f"{path} has {counted(problems)}", details=tuple(str(problem) for problem in problems)
    )


def project_of(checked: Manifest, folder: str, override: str | None) -> str:
    """The project: the override, that of the manifest (relative to the packet), or the current directory."""
    in_manifest = checked.get("project")
    if override is not None or in_manifest is None:
        return paths.project(override)
    return os.path.normpath(os.path.join(folder, os.path.expanduser(in_manifest)))


def text_of(folder: str) -> tuple[bytes, str]:
    """The content and the path of a manifest, given its folder or file.

    Raises NoSuchDirectory, UnreadableFile.
    """
    path = folder if os.path.isfile(folder) else os.path.join(folder, NAME)
    try:
        return inputs.contents(path, yaml_file.MAX_BYTES), path
    except OSError as error:
        if not os.path.isdir(folder):
            raise NoSuchDirectory(
                f"there is no packet {folder}", hint="'holdfast new' creates one"
            ) from error
        raise UnreadableFile(
            f"cannot read {path}: {error.strerror}",
            hint="a packet has a manifest.yaml; 'holdfast new' creates one",
        ) from error


def spec(
    written: WrittenPacket,
    *,
    limits: Limits,
    env: tuple[str, ...] = (),
    permissions: str | None = None,
    default_permissions: str = DEFAULT,
    **more: Any,
) -> TaskSpec:
    """The spec of the packet's task. `permissions` overrides the manifest's; `more` are further fields of
    TaskSpec."""
    checked, resolved = written.manifest, written.resolved
    stages = tuple(
        _absolute(stage, written).evolve(
            permissions=(permissions or stage.permissions or default_permissions)
            if stage.writes
            # What is asked of the task is about its work; a reviewer only reads.
            else stage.permissions or READ
        )
        for stage in resolved.stages
    )
    values: dict[str, Any] = {
        "task_id": checked.get("task_id"),
        "task_name": short_name(checked.get("goal").strip()),
        "goal": checked.get("goal").strip(),
        "agent": stages[0].agent,
        "model": stages[0].model,
        "project_dir": written.project_dir,
        "project_real": os.path.realpath(written.project_dir),
        "stages": stages,
        "limits": limits,
        "env": tuple(dict.fromkeys((*env, *(checked.get("env") or ())))),
        "failover": tuple(checked.get("routing.failover") or ()),
        "labels": labels.parse(checked.get("labels")),
        "workspace": checked.get("workspace"),
        "pipeline": pipeline_spec(written),
    }
    return TaskSpec(**{**values, **more})


def pipeline_spec(written: WrittenPacket) -> PipelineSpec:
    """The pipeline of the task, with the sources of its values."""
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
        acceptance_setup=get("acceptance.setup"),
        acceptance_links=get("acceptance.links"),
        acceptance_clean=get("acceptance.clean_room"),
        max_severity=get("gate.max_severity") or "",
        checks=get("gate.checks"),
        retry_budget=get("budgets.retry_budget"),
        paid_call_budget=get("budgets.paid_call_budget"),
        max_wallclock_s=float(get("budgets.max_wallclock_sec")),
        digest_policy=get("context.digest_policy"),
        redaction_patterns=get("security.redaction_patterns"),
        forbidden_paths=get("security.forbidden_paths"),
        revert_out_of_scope=get("scope.revert"),
        join_timeout_s=resolved.join_timeout_s,
        repair_times=resolved.repair_times,
        repair_to=resolved.repair_to,
        ci=resolved.ci.pull_request,
        ci_timeout_s=resolved.ci.timeout_s,
        ci_remote=resolved.ci.remote,
        ci_base=resolved.ci.base,
        sources=resolved.sources,
    )


def redacted(spec: TaskSpec, env: Mapping[str, str]) -> TaskSpec:
    """The spec without secrets in its texts: journal and manifest.json show them as they are here."""
    pipeline = spec.pipeline
    assert pipeline is not None
    redact = Redactor(dict(env), spec.env, pipeline.redaction_patterns)
    criteria = tuple(redact(line) for line in pipeline.acceptance_criteria)
    goal = redact(spec.goal)
    # Shorten the redacted goal: half a secret would not be recognized.
    name = short_name(goal) if spec.task_name == short_name(spec.goal) else redact(spec.task_name)
    return spec.evolve(
        task_name=name,
        goal=goal,
        labels={key: redact(value) for key, value in spec.labels.items()},
        pipeline=pipeline.evolve(acceptance_criteria=criteria),
    )


#: Manifest field → field of Limits.
_LIMITS = {
    "budgets.deadline_sec": "deadline_s",
    "budgets.budget_usd": "budget_usd",
    "budgets.budget_tokens": "budget_tokens",
    "budgets.max_turns": "max_turns",
    "budgets.on_limit": "on_limit",
}


def resolve_limits(
    written: WrittenPacket,
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, str] | None = None,
    settings: Mapping[str, tuple[str, str]] | None = None,
) -> Limits:
    """The limits of the task: flag > manifest > environment > settings > agent."""
    adapters = [registry.adapter(stage.agent) for stage in written.resolved.stages]
    silences = [adapter.capabilities.stale_s for adapter in adapters]
    # The longest silence of all agents holds for the whole task.
    stale_s = None if None in silences else max(silence for silence in silences if silence is not None)
    settled = limits.resolve(environ, flags or {}, stale_s=stale_s, settings=settings)
    in_manifest = {
        field: written.manifest.get(path)
        for path, field in _LIMITS.items()
        if path in written.manifest.lines and field not in (flags or {})
    }
    if "deadline_s" in in_manifest:
        in_manifest["deadline_s"] = float(in_manifest["deadline_s"])
    return settled.evolve(**in_manifest)


def _absolute(stage: StageSpec, written: WrittenPacket) -> StageSpec:
    """Make paths of files in the packet absolute: the runner works in another directory."""
    options: dict[str, object] = {}
    for key, value in stage.options.items():
        path = os.path.join(written.folder, value) if isinstance(value, str) else ""
        is_own = not _is_of_project(written, stage.name, key) and bool(path) and os.path.isfile(path)
        options[key] = os.path.abspath(path) if is_own else value
    return stage.evolve(options=options)


def _is_of_project(written: WrittenPacket, stage: str, key: str) -> bool:
    """Whether the project set an option of a stage."""
    source = written.resolved.sources.get(f"stages.{stage}.options.{key}", "")
    return source.startswith(paths.project_config_dir(written.project_dir) + os.sep)


def frozen(written: WrittenPacket, spec: TaskSpec, target: Packet) -> tuple[TaskSpec, dict[str, bytes]]:
    """The spec with copies of the files that an agent could change, and these: path in the packet → content.

    A runner reads such a file at every attempt; what it reads must be what the user trusted.
    """
    files = {
        os.path.relpath(os.path.join(target.templates, f"{role}.md"), target.path): text.encode()
        for role, text in written.templates.items()
    }
    stages: list[StageSpec] = []
    for stage in spec.stages:
        options = dict(stage.options)
        for key, value in _values_of(written, stage.name).items():
            is_projects = _is_of_project(written, stage.name, key)
            data = (written.project_files if is_projects else written.packet_files).get(value)
            # A file of the user's own is read where it is: edits count.
            if data is not None and (is_projects or written.needs_trust):
                name = f"{sha256(data)[:16]}-{os.path.basename(value)}"
                files[os.path.join(os.path.basename(target.inputs), "frozen", name)] = data
                options[key] = os.path.join(target.inputs, "frozen", name)
        stages.append(stage.evolve(options=options))
    return spec.evolve(stages=tuple(stages)), files


def _values_of(written: WrittenPacket, name: str) -> dict[str, str]:
    """The options of a stage that may name files, as they were written."""
    options = next(stage.options for stage in written.resolved.stages if stage.name == name)
    return {key: value for key, value in options.items() if isinstance(value, str)}
