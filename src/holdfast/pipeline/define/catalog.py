"""The split configuration: agents and pipelines of the package, over them the user's, over them the project's.

A file that gives a profile its `stages` defines the profile anew; one without them changes the keys that it names. Elsewhere
maps are merged and lists replaced. Every value remembers where it came from.
"""

from __future__ import annotations

import os

import holdfast.config
from holdfast import paths
from holdfast.errors import InvalidConfig
from holdfast.model.record import Record
from holdfast.model.roles import ROLES, split, stage_names
from holdfast.pipeline.define import yaml_file
from holdfast.pipeline.define.catalog_file import FileReader, Leaf, Wave
from holdfast.pipeline.define.intents import OPTIONS
from holdfast.pipeline.define.problem import Problem, join_hints, listed, near, sorted_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Leaves(Record):
    """Merged values by path, with typed access."""

    leaves: dict[str, Leaf]

    def get(self, path: str) -> Any:
        """The value at a path, or None."""
        leaf = self.leaves.get(path)
        return None if leaf is None else leaf.value

    def below(self, path: str) -> dict[str, Leaf]:
        """Leaves of `path.*`, by the rest of their path."""
        start = path + "."
        return {
            name.removeprefix(start): leaf for name, leaf in self.leaves.items() if name.startswith(start)
        }


class Agent(Leaves):
    """What the configuration says of an agent."""

    name: str

    @property
    def allowed_models(self) -> tuple[str, ...] | None:
        """None: any."""
        found = self.get("allowed_models")
        return None if found in (None, "any") else found

    @property
    def efforts(self) -> tuple[str, ...]:
        """How hard it can be told to think; empty where it cannot."""
        return self.get("efforts") or ()

    def allows(self, model: str) -> bool:
        """Whether a model may be used."""
        return self.allowed_models is None or model in self.allowed_models


class Profile(Leaves):
    """One way through a group's stages. Paths are without the head `profiles.<name>.`."""

    name: str
    group: str

    @property
    def waves(self) -> tuple[Wave, ...]:
        """Its stages, in order; those of one wave begin together."""
        return self.get("stages") or ()

    @property
    def stages(self) -> tuple[str, ...]:
        """Names of all its stages."""
        return tuple(stage for wave in self.waves for stage in wave.stages)

    def writes(self, stage: str, role: str) -> bool:
        """Whether a stage may change the workspace."""
        return ROLES[role].writes or stage in (self.get("writes") or ())


class Group(Leaves):
    """Pipelines of one kind."""

    name: str
    profiles: dict[str, Profile]

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """Flag → roles or stages that it turns off."""
        return {name: leaf.value for name, leaf in self.below("flags").items()}


class Config(Record):
    """All of it."""

    agents: dict[str, Agent]
    groups: dict[str, Group]


def load(project: str | None) -> Config:
    """The configuration that holds in a project. Raises InvalidConfig with every problem, UnreadableFile."""
    problems: list[Problem] = []
    found = read(folders(project), problems)
    if problems:
        listed_ = sorted_problems(problems)
        raise InvalidConfig(
            f"the configuration of agents and pipelines has {_count(len(listed_))}",
            details=tuple(str(each) for each in listed_),
        )
    return found


def _count(number: int) -> str:
    return "a problem" if number == 1 else f"{number} problems"


def folders(project: str | None) -> dict[str, str]:
    """Where files are looked for, weakest first."""
    found = {"package": os.path.dirname(holdfast.config.__file__), "user": paths.config_dir()}
    if project is not None:
        found["project"] = paths.project_config_dir(project)
    return found


def read(places: Mapping[str, str], problems: list[Problem]) -> Config:
    """What the files in these folders say; problems are noted, and what is sound is kept."""
    agents: dict[str, dict[str, Leaf]] = {}
    groups: dict[str, dict[str, Leaf]] = {}
    for layer, folder in places.items():
        for kind, target in (("agents", agents), ("pipelines", groups)):
            for name in _files(os.path.join(folder, kind)):
                path = os.path.join(folder, kind, name)
                label = f"package {kind}/{name}" if layer == "package" else path
                of, leaves = _read_file(path, kind, label, problems)
                if of is not None:
                    _merge(target.setdefault(of, {}), leaves)
    config = Config(
        agents={name: Agent(name=name, leaves=leaves) for name, leaves in sorted(agents.items())},
        groups={name: _group(name, leaves) for name, leaves in groups.items()},
    )
    if not problems:
        _cross_check(config, problems)
    return config


def _read_file(path: str, kind: str, label: str, problems: list[Problem]) -> tuple[str | None, list[Leaf]]:
    """Which agent or group a file is about, and what it says; None where it cannot be used."""
    node = yaml_file.read(path, problems)
    if node is None:
        return None, []
    reader = FileReader(path, label, problems)
    return (reader.agent(node) if kind == "agents" else reader.pipeline(node)), reader.leaves


def _files(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith((".yaml", ".yml")))
    except OSError:
        return []


def _merge(old: dict[str, Leaf], new: list[Leaf]) -> None:
    for leaf in new:
        if leaf.path.startswith("profiles.") and leaf.path.endswith(".stages"):
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


# ── what files say of each other ────────────────────────────────────────────


def _cross_check(config: Config, problems: list[Problem]) -> None:
    for agent in config.agents.values():
        _check_agent(agent, problems)
    for group in config.groups.values():
        chosen = group.leaves.get("default_profile")
        if chosen is not None and chosen.value not in group.profiles:
            problems.append(_unknown(chosen, "profile", chosen.value, group.profiles))
        for leaf in group.below("flags").values():
            for each in leaf.value:
                if each not in ROLES and split(each, config.agents) is None:
                    problems.append(
                        _unknown(leaf, "role or stage", each, [*ROLES, *stage_names(config.agents)])
                    )
        for profile in group.profiles.values():
            _check_profile(config, group, profile, problems)


def _check_agent(agent: Agent, problems: list[Problem]) -> None:
    for path, leaf in agent.leaves.items():
        is_model = path == "default_model" or path.startswith("purpose_models.")
        if is_model and not agent.allows(leaf.value):
            problems.append(not_allowed(leaf, agent))
        if path == "defaults.effort" or path.startswith("purpose_efforts."):
            _check_effort(leaf, agent, problems)


def not_allowed(leaf: Leaf, agent: Agent) -> Problem:
    """A model that is not on the list."""
    known = agent.allowed_models or ()
    return leaf.problem(
        f"the model {leaf.value!r} is not allowed for {agent.name}",
        join_hints(near(leaf.value, known), listed(known)),
    )


def _check_effort(leaf: Leaf, agent: Agent, problems: list[Problem]) -> None:
    if leaf.value not in agent.efforts:
        hint = join_hints(near(leaf.value, agent.efforts), listed(agent.efforts))
        problems.append(leaf.problem(f"{agent.name} knows no effort {leaf.value!r}", hint))


def _check_profile(config: Config, group: Group, profile: Profile, problems: list[Problem]) -> None:
    stages = profile.leaves.get("stages")
    if stages is None:
        leaf = next(iter(profile.leaves.values()))
        problems.append(leaf.problem(f"the profile {profile.name} has no stages", "give it stages: […]"))
        return
    for stage in profile.stages:
        if split(stage, config.agents) is None:
            problems.append(unknown_stage(stages, stage, config))
    for stage in sorted({stage for stage in profile.stages if profile.stages.count(stage) > 1}):
        problems.append(stages.problem(f"the stage {stage} is here twice"))
    if len({wave.timeout_s for wave in profile.waves if wave.is_parallel}) > 1:
        problems.append(
            stages.problem("the parallel groups of a profile have one timeout_sec, the same in each")
        )
    for name, leaf in profile.below("flags").items():
        if name not in group.flags:
            problems.append(_unknown(leaf, "flag", name, group.flags))
    for name, leaf in profile.below("options").items():
        if group.name not in OPTIONS[name].groups:
            problems.append(leaf.problem(f"the group {group.name} has no option {name}"))
    _check_stages_named(config, profile, problems)
    _check_writers(config, profile, problems)


def _check_stages_named(config: Config, profile: Profile, problems: list[Problem]) -> None:
    for key in ("stage_models", "stage_efforts", "stage_options"):
        for stage, leaf in profile.below(key).items():
            found = split(stage, config.agents)
            if stage not in profile.stages or found is None:
                problems.append(_unknown(leaf, f"stage of {profile.name}", stage, profile.stages))
                continue
            agent = config.agents[found[0]]
            if key == "stage_models" and not agent.allows(leaf.value):
                problems.append(not_allowed(leaf, agent))
            if key == "stage_efforts":
                _check_effort(leaf, agent, problems)
    for key in ("writes", "approval"):
        leaf = profile.leaves.get(key)
        for stage in leaf.value if leaf is not None else ():
            if stage not in profile.stages:
                assert leaf is not None
                problems.append(_unknown(leaf, f"stage of {profile.name}", stage, profile.stages))


def _check_writers(config: Config, profile: Profile, problems: list[Problem]) -> None:
    for wave in profile.waves:
        for stage in wave.stages:
            found = split(stage, config.agents)
            if found is None:
                continue
            leaf = profile.leaves.get("writes")
            if leaf is not None and stage in leaf.value and not ROLES[found[1]].may_write:
                able = [name for name, role in ROLES.items() if role.may_write]
                problems.append(
                    leaf.problem(
                        f"{stage}: the role {found[1]} never writes", f"roles that may: {', '.join(able)}"
                    )
                )
            if len(wave.stages) > 1 and profile.writes(stage, found[1]):
                problems.append(
                    profile.leaves["stages"].problem(
                        f"{stage} writes, so nothing can run beside it", "give it a place of its own"
                    )
                )


def unknown_stage(leaf: Leaf, stage: str, config: Config) -> Problem:
    """A name that no agent and no role make up."""
    hint = join_hints(
        near(stage, stage_names(config.agents)),
        f"a stage is <agent>_<role>; agents: {', '.join(config.agents)}; roles: {', '.join(ROLES)}",
    )
    return leaf.problem(f"there is no stage {stage!r}", hint)


def _unknown(
    leaf: Leaf, what: str, name: str, known: Mapping[str, object] | list[str] | tuple[str, ...]
) -> Problem:
    hint = near(name, known)
    return leaf.problem(f"there is no {what} {name!r}", hint or listed(list(known)[:40]))
