"""Loading the catalog: files of the project override those of the user, which override those of the package.

A file with `stages` for a profile replaces the whole profile; without `stages` it changes only the keys that
it has. Otherwise maps are merged and lists are replaced. Every value remembers where it came from.
"""

from __future__ import annotations

import os

import holdfast.config
from holdfast import paths
from holdfast.config import classes, needs
from holdfast.config import project as project_files
from holdfast.errors import InvalidConfig
from holdfast.model.record import Record
from holdfast.model.roles import ROLES, split, stage_names
from holdfast.pipeline.define import yaml_file
from holdfast.pipeline.define.catalog import Agent, Catalog, Group, Profile
from holdfast.pipeline.define.catalog_file import Batch, FileReader, Leaf
from holdfast.pipeline.define.intents import OPTIONS
from holdfast.pipeline.define.problem import (
    Problem,
    counted,
    join_hints,
    listed,
    near,
    sorted_problems,
    unknown_hint,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.config.needs import Judge

#: How many known names a hint lists.
_MAX_LISTED = 40


def load(project: str | None, judge: Judge = needs.nothing) -> Catalog:
    """The catalog of a project. Raises InvalidConfig with all problems, UnreadableFile."""
    problems: list[Problem] = []
    catalog = read(folders(project), problems, judge)
    if problems:
        in_order = sorted_problems(problems)
        raise InvalidConfig(
            f"the configuration of agents and pipelines has {counted(in_order)}",
            details=tuple(str(each) for each in in_order),
        )
    return catalog


def folders(project: str | None) -> dict[str, str]:
    """The folders with files, weakest first."""
    by_layer = {"package": os.path.dirname(holdfast.config.__file__), "user": paths.config_dir()}
    if project is not None:
        by_layer["project"] = paths.project_config_dir(project)
    return by_layer


def read(places: Mapping[str, str], problems: list[Problem], judge: Judge = needs.nothing) -> Catalog:
    """The catalog of these folders. Problems are collected, and valid values are kept.

    What the project may not set without trust is left out, unless `judge` allows it.
    """
    agents: dict[str, dict[str, Leaf]] = {}
    groups: dict[str, dict[str, Leaf]] = {}
    files: dict[str, bytes] = {}
    for layer, folder in places.items():
        for kind, target in (("agents", agents), ("pipelines", groups)):
            for file_name, data in _files(layer, folder, kind):
                path = os.path.join(folder, kind, file_name)
                label = f"package {kind}/{file_name}" if layer == "package" else path
                name, leaves = _read_file(path, data, kind, label=label, problems=problems)
                if layer == "project":
                    named = _option_files(leaves, os.path.dirname(folder))
                    if judge(part_of(f"{kind}/{file_name}", name, leaves, named)):
                        files |= named
                    else:
                        leaves = _harmless(kind, leaves)
                if name is not None:
                    _merge(target.setdefault(name, {}), leaves)
    catalog = Catalog(
        agents={name: Agent(name=name, leaves=leaves) for name, leaves in sorted(agents.items())},
        groups={name: _group(name, leaves) for name, leaves in groups.items()},
        files=files,
    )
    if not problems:
        _cross_check(catalog, problems)
    return catalog


def part_of(name: str, of: str | None, leaves: Iterable[Leaf], files: Mapping[str, bytes]) -> needs.Part:
    """What a file of a project asks for. `of` is the agent or group that it is about, `files` are the
    contents of the files that its options name."""
    found: list[needs.Need] = []
    for leaf in leaves:
        if not (kind := classes.of_catalog(name.partition("/")[0], leaf.path)):
            continue
        options = _options(leaf)
        if options is None:
            found.append(needs.Need(kind, leaf.path, needs.text(_plain(leaf.value))))
            continue
        for key, value in sorted(options.items()):
            data = files.get(value) if isinstance(value, str) else None
            found.append(needs.Need(kind, f"{leaf.path}.{key}", needs.text(value), data))
    if found and of is not None:
        # What is trusted for one agent is not for another one.
        found.append(
            needs.Need(
                classes.PROGRAMS, "agent" if name.startswith("agents/") else "pipeline", needs.text(of)
            )
        )
    return needs.Part(name, found)


def _option_files(leaves: Iterable[Leaf], project: str) -> dict[str, bytes]:
    """The files that options name, as an agent in the project would find them: value → content."""
    found: dict[str, bytes] = {}
    for leaf in leaves:
        for value in (_options(leaf) or {}).values():
            path = (
                os.path.join(project, os.path.expanduser(value)) if isinstance(value, str) and value else ""
            )
            if os.path.isfile(path) and (data := project_files.named_file(path)) is not None:
                found[str(value)] = data
    return found


def _options(leaf: Leaf) -> dict[str, object] | None:
    """The options of an agent; None for another kind of value."""
    return leaf.value if isinstance(leaf.value, dict) else None  # pyright: ignore


def _plain(value: object) -> object:
    """A value as it is written in a file."""
    if isinstance(value, Batch):
        if not value.is_parallel:
            return value.stages[0]
        group = {"parallel": value.stages}
        return group if value.timeout_s is None else {**group, "timeout_sec": value.timeout_s}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value.to_json() if isinstance(value, Record) else value


def _harmless(kind: str, leaves: list[Leaf]) -> list[Leaf]:
    """The values that need no trust. A profile without its own stages would be another one: none of it."""
    kept = [leaf for leaf in leaves if not classes.of_catalog(kind, leaf.path)]
    own = {leaf.path.split(".")[1] for leaf in leaves if _is_stages(leaf)}
    return [leaf for leaf in kept if kind == "agents" or leaf.path.split(".")[1] not in own]


def _is_stages(leaf: Leaf) -> bool:
    return leaf.path.startswith("profiles.") and leaf.path.endswith(".stages")


def _read_file(
    path: str, data: bytes, kind: str, *, label: str, problems: list[Problem]
) -> tuple[str | None, list[Leaf]]:
    """The agent or group of a file, and its values; None if the file cannot be used."""
    node = yaml_file.parse(data, path, problems)
    if node is None:
        return None, []
    reader = FileReader(path, label, problems)
    return (reader.agent(node) if kind == "agents" else reader.pipeline(node)), reader.leaves


def _files(layer: str, folder: str, kind: str) -> Iterator[tuple[str, bytes]]:
    """The files of a folder and their contents. Those of a project are read with more care."""
    ends = (".yaml", ".yml")
    if layer == "project":
        project = os.path.dirname(folder)
        for name in project_files.listing(project, kind):
            if name.endswith(ends) and (data := project_files.read(project, kind, name)) is not None:
                yield name, data
        return
    try:
        names = sorted(name for name in os.listdir(os.path.join(folder, kind)) if name.endswith(ends))
    except OSError:
        return
    for name in names:
        yield name, yaml_file.contents(os.path.join(folder, kind, name))


def _merge(old: dict[str, Leaf], new: list[Leaf]) -> None:
    for leaf in new:
        if _is_stages(leaf):
            head = leaf.path.removesuffix("stages")
            for path in [path for path in old if path.startswith(head)]:
                del old[path]
    for leaf in new:
        if leaf.path == "options" and "options" in old:
            leaf = leaf.evolve(value={**old["options"].value, **leaf.value})
        old[leaf.path] = leaf


def _group(name: str, leaves: dict[str, Leaf]) -> Group:
    profiles: dict[str, Profile] = {}
    for profile in dict.fromkeys(path.split(".")[1] for path in leaves if path.startswith("profiles.")):
        start = f"profiles.{profile}."
        own = {path.removeprefix(start): leaf for path, leaf in leaves.items() if path.startswith(start)}
        profiles[profile] = Profile(name=profile, group=name, leaves=own)
    return Group(name=name, leaves=leaves, profiles=profiles)


# ── checks across files ─────────────────────────────────────────────────────


def _cross_check(catalog: Catalog, problems: list[Problem]) -> None:
    for agent in catalog.agents.values():
        _check_agent(agent, problems)
    for group in catalog.groups.values():
        default = group.leaves.get("default_profile")
        if default is not None and default.value not in group.profiles:
            problems.append(_unknown(default, "profile", default.value, group.profiles))
        for leaf in group.below("flags").values():
            for name in leaf.value:
                if name not in ROLES and split(name, catalog.agents) is None:
                    known = [*ROLES, *stage_names(catalog.agents)]
                    problems.append(_unknown(leaf, "role or stage", name, known))
        for profile in group.profiles.values():
            _check_profile(catalog, group, profile, problems)


def _check_agent(agent: Agent, problems: list[Problem]) -> None:
    for path, leaf in agent.leaves.items():
        is_model = path == "default_model" or path.startswith("purpose_models.")
        if is_model and not agent.allows(leaf.value):
            problems.append(_model_not_allowed(leaf, agent))
        if path == "defaults.effort" or path.startswith("purpose_efforts."):
            _check_effort(leaf, agent, problems)


def _model_not_allowed(leaf: Leaf, agent: Agent) -> Problem:
    message = f"the model {leaf.value!r} is not allowed for {agent.name}"
    return leaf.problem(message, unknown_hint(leaf.value, agent.allowed_models or ()))


def _check_effort(leaf: Leaf, agent: Agent, problems: list[Problem]) -> None:
    if leaf.value not in agent.efforts:
        hint = unknown_hint(leaf.value, agent.efforts)
        problems.append(leaf.problem(f"{agent.name} has no effort {leaf.value!r}", hint))


def _check_profile(catalog: Catalog, group: Group, profile: Profile, problems: list[Problem]) -> None:
    stages = profile.leaves.get("stages")
    if stages is None:
        leaf = next(iter(profile.leaves.values()))
        problems.append(leaf.problem(f"the profile {profile.name} has no stages", "add stages: […]"))
        return
    for stage in profile.stages:
        if split(stage, catalog.agents) is None:
            problems.append(_unknown_stage(stages, stage, catalog))
    for stage in sorted({stage for stage in profile.stages if profile.stages.count(stage) > 1}):
        problems.append(stages.problem(f"duplicate stage {stage}"))
    if len({batch.timeout_s for batch in profile.batches if batch.is_parallel}) > 1:
        problems.append(stages.problem("all parallel groups of a profile must have the same timeout_sec"))
    for name, leaf in profile.below("flags").items():
        if name not in group.flags:
            problems.append(_unknown(leaf, "flag", name, group.flags))
    for name, leaf in profile.below("options").items():
        if group.name not in OPTIONS[name].groups:
            problems.append(leaf.problem(f"the group {group.name} has no option {name}"))
    _check_stage_keys(catalog, profile, problems)
    _check_writers(catalog, profile, problems)


def _check_stage_keys(catalog: Catalog, profile: Profile, problems: list[Problem]) -> None:
    """Check the keys of a profile that name stages."""
    where = f" in the profile {profile.name}"
    for key in ("stage_models", "stage_efforts", "stage_options"):
        for stage, leaf in profile.below(key).items():
            parts = split(stage, catalog.agents)
            if stage not in profile.stages or parts is None:
                problems.append(_unknown(leaf, "stage", stage, profile.stages, where=where))
                continue
            agent = catalog.agents[parts[0]]
            if key == "stage_models" and not agent.allows(leaf.value):
                problems.append(_model_not_allowed(leaf, agent))
            if key == "stage_efforts":
                _check_effort(leaf, agent, problems)
    for stage, leaf in profile.below("attempts").items():
        if stage not in profile.stages:
            problems.append(_unknown(leaf, "stage", stage, profile.stages, where=where))
    for key in ("attempt_agents", "judge"):
        leaf = profile.leaves.get(key)
        names = () if leaf is None else (leaf.value,) if key == "judge" else leaf.value
        for name in names:
            if leaf is not None and name not in catalog.agents:
                problems.append(_unknown(leaf, "agent", name, catalog.agents))
    leaf = profile.leaves.get("on_fail.back_to")
    if leaf is not None and leaf.value not in profile.stages:
        problems.append(_unknown(leaf, "stage", leaf.value, profile.stages, where=where))
    for key in ("writes", "approval"):
        leaf = profile.leaves.get(key)
        for stage in leaf.value if leaf is not None else ():
            if stage not in profile.stages:
                assert leaf is not None
                problems.append(_unknown(leaf, "stage", stage, profile.stages, where=where))


def _check_writers(catalog: Catalog, profile: Profile, problems: list[Problem]) -> None:
    for batch in profile.batches:
        for stage in batch.stages:
            parts = split(stage, catalog.agents)
            if parts is None:
                continue
            role = parts[1]
            leaf = profile.leaves.get("writes")
            if leaf is not None and stage in leaf.value and not ROLES[role].may_write:
                able = ", ".join(name for name, row in ROLES.items() if row.may_write)
                problems.append(
                    leaf.problem(f"{stage}: the role {role} cannot write", f"roles that can: {able}")
                )
            if len(batch.stages) > 1 and profile.writes(stage, role):
                problems.append(
                    profile.leaves["stages"].problem(
                        f"{stage} writes, so it cannot be in a parallel group", "list it on its own"
                    )
                )


def _unknown_stage(leaf: Leaf, stage: str, catalog: Catalog) -> Problem:
    hint = join_hints(
        near(stage, stage_names(catalog.agents)),
        f"a stage is <agent>_<role>; agents: {', '.join(catalog.agents)}; roles: {', '.join(ROLES)}",
    )
    return leaf.problem(f"unknown stage {stage!r}", hint)


def _unknown(leaf: Leaf, what: str, name: str, known: Iterable[str], *, where: str = "") -> Problem:
    names = list(known)
    hint = near(name, names) or listed(names[:_MAX_LISTED])
    return leaf.problem(f"unknown {what} {name!r}{where}", hint)
