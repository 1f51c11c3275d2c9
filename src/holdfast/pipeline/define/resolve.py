"""Resolving a manifest with the catalog: the stages to run, and where each value came from. Pure.

The intent, or the profile that the manifest selects, decides on the stages. Order of precedence for a model:
manifest, stage_models, purpose_models, default_model; for an effort: stage_efforts, purpose_efforts, default.
Problems are collected, not raised.
"""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.roles import purpose, split
from holdfast.model.spec import StageSpec
from holdfast.pipeline.define import attempts, one_agent, security_lens
from holdfast.pipeline.define.catalog import Agent, Catalog, Group, Profile
from holdfast.pipeline.define.catalog_file import CI_KEYS, Batch
from holdfast.pipeline.define.intents import INTENTS, OPTIONS, PROFILE_OF
from holdfast.pipeline.define.manifest import Manifest
from holdfast.pipeline.define.problem import Problem, unknown_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PROFILE = "routing.pipeline.profile"
_AGENT = "routing.agent"
_FLAGS = "routing.pipeline.flags"
_OPTIONS = "routing.pipeline.options"
_PERMISSIONS = "routing.permissions"
_CI = "gate.ci"
_ON_FAIL = "routing.pipeline.on_fail"
#: How often refused work goes back in a pipeline that changes code, unless it says otherwise.
_REPAIRS = 2


class Ci(Record):
    """The gate after the last stage: a pull request whose checks must pass."""

    #: `draft` or `ready`; empty: there is no such gate.
    pull_request: str = ""
    timeout_s: float = 3600.0
    remote: str = ""
    base: str = ""


class Resolved(Record):
    """The pipeline of a packet."""

    intent: str
    group: str
    profile: str
    stages: tuple[StageSpec, ...]
    #: The effective options by name.
    options: dict[str, str]
    flags: dict[str, bool]
    join_timeout_s: float | None
    #: How often refused work goes back, and to which stage; null: to the last one that wrote.
    repair_times: int
    repair_to: str | None
    ci: Ci = Ci()
    #: With one agent for all roles: which stages of the profile were merged or left out.
    merged: tuple[str, ...] = ()
    #: Path of a resolved value → where it came from.
    sources: dict[str, str]


def resolve(
    manifest: Manifest, catalog: Catalog, problems: list[Problem], *, request: Callable[[], str] = str
) -> Resolved | None:
    """The pipeline; None and problems if it cannot be resolved.

    `request` returns the text of the request and of attachments; it is called only if an option needs it.
    """
    _check_agents(manifest, catalog, problems)
    intent = manifest.get("routing.intent")
    profile = None if intent is None else _profile(manifest, catalog, intent, problems)
    if intent is None or profile is None:
        _check_names(manifest, catalog, problems)
        return None
    return _Resolver(manifest, catalog, profile, problems).resolve(intent, request)


def _check_agents(manifest: Manifest, catalog: Catalog, problems: list[Problem]) -> None:
    agent = manifest.get(_AGENT)
    if agent is not None and agent not in catalog.agents:
        problems.append(manifest.unknown(_AGENT, "agent", agent, catalog.agents))
    for name, model in manifest.below("routing.model").items():
        path = f"routing.model.{name}"
        agent = catalog.agents.get(name)
        if agent is None:
            problems.append(manifest.unknown(path, "agent", name, catalog.agents))
        elif model.startswith("-") or not model.isprintable():
            problems.append(manifest.problem(path, f"{model!r} is not the name of a model"))
        elif not agent.allows(model):
            message = f"the model {model!r} is not allowed for {name}"
            hint = unknown_hint(model, agent.allowed_models or ())
            problems.append(manifest.problem(path, message, hint))
    for at, name in enumerate(manifest.get("routing.failover") or ()):
        if name not in catalog.agents:
            path = f"routing.failover[{at}]"
            problems.append(manifest.unknown(path, "agent", name, catalog.agents))


def _check_names(manifest: Manifest, catalog: Catalog, problems: list[Problem]) -> None:
    """Check what does not depend on the profile."""
    known = list(dict.fromkeys(name for group in catalog.groups.values() for name in group.flags))
    for name in manifest.below(_FLAGS):
        if name not in known:
            problems.append(manifest.unknown(f"{_FLAGS}.{name}", "flag", name, known))
    for name, value in manifest.below(_OPTIONS).items():
        path = f"{_OPTIONS}.{name}"
        if name not in OPTIONS:
            problems.append(manifest.unknown(path, "option", name, OPTIONS))
        elif value not in OPTIONS[name].values:
            problems.append(manifest.unknown(path, "value", value, OPTIONS[name].values))


def _profile(manifest: Manifest, catalog: Catalog, intent: str, problems: list[Problem]) -> Profile | None:
    """The profile of the manifest, or of its options, or with the intent's name, or the group's default."""
    kind = INTENTS[intent]
    groups = [catalog.groups[name] for name in (kind.group, *kind.also) if name in catalog.groups]
    chosen = manifest.get(_PROFILE)
    if chosen is not None:
        for group in groups:
            if chosen in group.profiles:
                return group.profiles[chosen]
        known = [name for group in groups for name in group.profiles]
        problems.append(manifest.unknown(_PROFILE, "profile", chosen, known, where=f" for {intent}"))
        return None
    options = manifest.below(_OPTIONS)
    by_option = [
        name
        for (for_intent, option, value), name in PROFILE_OF.items()
        if for_intent == intent and options.get(option) == value
    ]
    for name in (*by_option, intent, groups[0].get("default_profile") if groups else None):
        if groups and name in groups[0].profiles:
            return groups[0].profiles[name]
    problems.append(manifest.problem("routing.intent", f"the configuration has no profile for {intent}"))
    return None


class _Resolver:
    """Resolves one manifest with one profile."""

    def __init__(
        self, manifest: Manifest, catalog: Catalog, profile: Profile, problems: list[Problem]
    ) -> None:
        self.manifest = manifest
        self.catalog = catalog
        self.profile = profile
        self.group: Group = catalog.groups[profile.group]
        self.problems = problems
        self.sources: dict[str, str] = {}
        #: With one agent for all roles: stage → the stages of the profile that it stands for.
        self.origins: one_agent.Origins = {}

    def resolve(self, intent: str, request: Callable[[], str]) -> Resolved | None:
        self.sources["profile"] = self._source(_PROFILE if self.manifest.get(_PROFILE) else "routing.intent")
        self.sources["stages"] = self.profile.leaves["stages"].source
        flags, options = self._flags(), self._options()
        off = {each for name, on in flags.items() if not on for each in self.group.flags[name]}
        stages: list[StageSpec] = []
        number = 0
        for batch in self._cast(self._batches(options, request)):
            number += batch.is_parallel
            for name in batch.stages:
                parts = split(name, self.catalog.agents)
                if parts is None or off.issuperset(self._named(name)) or parts[1] in off:
                    continue
                group = f"parallel-{number}" if batch.is_parallel else None
                stages.append(self._stage(name, *parts, group=group, options=options))
        declared, stages = stages, self._candidates(stages, options)
        self._check(intent, declared, [stage.name for stage in stages])
        timeouts = [batch.timeout_s for batch in self.profile.batches if batch.timeout_s is not None]
        return Resolved(
            intent=intent,
            group=self.group.name,
            profile=self.profile.name,
            stages=tuple(stages),
            options=options,
            flags=flags,
            join_timeout_s=timeouts[0] if timeouts else None,
            repair_times=self._repair_times(),
            repair_to=self._repair_to(declared),
            ci=self._ci(declared),
            merged=tuple(one_agent.merged(self.profile.stages, self.origins)) if self.origins else (),
            sources=self.sources,
        )

    def _cast(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """The batches, played by one agent if the manifest says so."""
        agent = self.manifest.get(_AGENT)
        if agent is None or agent not in self.catalog.agents:
            return batches
        played, self.origins = one_agent.played_by(agent, batches, self.catalog.agents)
        self.sources["agent"] = self._source(_AGENT)
        return played

    def _named(self, stage: str) -> tuple[str, ...]:
        """The names of a stage in the profile."""
        return self.origins.get(stage, (stage,))

    def _batches(self, options: dict[str, str], request: Callable[[], str]) -> tuple[Batch, ...]:
        """The batches of the profile, with or without a security review as the option says."""
        mode, batches = options.get("security_lens"), self.profile.batches
        if mode is None:
            return batches
        path = f"{_OPTIONS}.security_lens"
        if mode != "off" and self.manifest.get(path) and not self._has(("review", security_lens.ROLE)):
            message = f"the profile {self.profile.name} has no review for it to run beside"
            self.problems.append(self.manifest.problem(path, message, "remove the option"))
        words: tuple[str, ...] = ()
        if mode == "auto":
            lists = [self.manifest.get(path) or () for path in ("scope.allow", "acceptance.criteria")]
            texts = [self.manifest.get("goal") or "", *(text for each in lists for text in each), request()]
            words = security_lens.security_words("\n".join(texts))
        arranged = security_lens.arranged(
            batches, self.catalog.agents, wanted=mode == "always" or bool(words)
        )
        if words:
            self.sources["security_lens"] = f"auto: {', '.join(words[:5])}"
        return arranged

    def _candidates(self, stages: list[StageSpec], options: dict[str, str]) -> list[StageSpec]:
        """The stages, with candidates and a judge in the place of the one that has attempts."""
        asked = attempts.read(
            self.manifest,
            self.profile,
            stages,
            agents=self.catalog.agents,
            origins=self.origins,
            problems=self.problems,
        )
        if asked is None:
            return stages
        stage = stages[asked.at]
        self.sources[f"stages.{stage.name}.attempts"] = asked.source
        agents = [asked.agents[index % len(asked.agents)] for index in range(asked.number)]
        found = [
            self._candidate(stage, agent, number, options) for number, agent in enumerate(agents, start=1)
        ]
        judge = self._stage(f"{asked.judge}_judge", asked.judge, "judge", group=None, options=options)
        return [
            *stages[: asked.at], *found, judge.evolve(contest=stage.name), *stages[asked.at + 1 :]
        ]  # fmt: skip

    def _candidate(self, stage: StageSpec, agent: str, number: int, options: dict[str, str]) -> StageSpec:
        """A candidate: as the stage itself, or as that stage played by another agent."""
        name = f"{agent}_{stage.role}"
        spec = stage
        if name != stage.name:
            spec = self._stage(name, agent, stage.role, group=None, options=options)
        own = f"{name}-{number}"
        start = f"stages.{name}."
        for path, source in list(self.sources.items()):
            if path.startswith(start):
                self.sources[f"stages.{own}.{path.removeprefix(start)}"] = source
        more: dict[str, object] = self.manifest.get(f"routing.options.{own}") or {}
        return spec.evolve(
            name=own,
            group=f"attempts-{stage.name}",
            approval=stage.approval,
            writes=True,
            permissions=stage.permissions,
            contest=stage.name,
            candidate=number,
            options={**spec.options, **more},
        )

    def _repair_times(self) -> int:
        in_manifest, leaf = self.manifest.get(f"{_ON_FAIL}.times"), self.profile.leaves.get("on_fail.times")
        if in_manifest is not None:
            self.sources["on_fail.times"] = self._source(f"{_ON_FAIL}.times")
            return in_manifest
        if leaf is not None:
            self.sources["on_fail.times"] = leaf.source
            return leaf.value
        return _REPAIRS if self.group.name == "impl" else 0

    def _repair_to(self, stages: list[StageSpec]) -> str | None:
        path = f"{_ON_FAIL}.back_to"
        name, leaf = self.manifest.get(path), self.profile.leaves.get("on_fail.back_to")
        names = [stage.name for stage in stages if stage.writes]
        if name is not None:
            if name not in names:
                self.problems.append(self.manifest.unknown(path, "stage", name, names, where=" that writes"))
            self.sources["on_fail.back_to"] = self._source(path)
            return name
        # A flag may have turned it off.
        back_to = [name for name in names if leaf is not None and leaf.value in self._named(name)]
        if leaf is None or not back_to:
            return None
        self.sources["on_fail.back_to"] = leaf.source
        return back_to[0]

    def _ci(self, stages: list[StageSpec]) -> Ci:
        values: dict[str, Any] = {}
        for key in CI_KEYS:
            path, leaf = f"{_CI}.{key}", self.profile.leaves.get(f"ci.{key}")
            in_manifest = self.manifest.get(path)
            if in_manifest is not None:
                self.sources[f"ci.{key}"], values[key] = self._source(path), in_manifest
            elif leaf is not None:
                self.sources[f"ci.{key}"], values[key] = leaf.source, leaf.value
        asked = values.get("pull_request", "off")
        if asked == "off":
            return Ci()
        path = f"{_CI}.pull_request"
        if not any(stage.writes for stage in stages):
            self.problems.append(self.manifest.problem(path, "no stage writes, so there is nothing to push"))
        base = values.get("base", "")
        if base.startswith("-") or not base.isprintable():
            self.problems.append(self.manifest.problem(f"{_CI}.base", f"{base!r} is not a branch"))
        return Ci(
            pull_request=asked,
            timeout_s=float(values.get("timeout_sec", Ci.timeout_s)),
            remote=values.get("remote", ""),
            base=base,
        )

    def _source(self, path: str) -> str:
        return f"manifest.yaml: {path}"

    def _flags(self) -> dict[str, bool]:
        flags = dict.fromkeys(self.group.flags, True)
        for name, leaf in self.profile.below("flags").items():
            flags[name] = leaf.value
            self.sources[f"flags.{name}"] = leaf.source
        for name, value in self.manifest.below(_FLAGS).items():
            path = f"{_FLAGS}.{name}"
            if name not in flags:
                self.problems.append(
                    self.manifest.unknown(
                        path, "flag", name, self.group.flags, where=f" in the group {self.group.name}"
                    )
                )
                continue
            flags[name] = value
            self.sources[f"flags.{name}"] = self._source(path)
            if value and not self._has(self.group.flags[name]):
                message = f"the profile {self.profile.name} has no stage that this flag turns on"
                hint = f"its stages: {', '.join(self.profile.stages)}"
                self.problems.append(self.manifest.problem(path, message, hint))
        return flags

    def _has(self, wanted: tuple[str, ...]) -> bool:
        pairs = [(stage, split(stage, self.catalog.agents)) for stage in self.profile.stages]
        return any(stage in wanted or (pair is not None and pair[1] in wanted) for stage, pair in pairs)

    def _options(self) -> dict[str, str]:
        options: dict[str, str] = {}
        for name, leaf in self.profile.below("options").items():
            options[name] = leaf.value
            self.sources[f"options.{name}"] = leaf.source
        known = [name for name, choice in OPTIONS.items() if self.group.name in choice.groups]
        for name, value in self.manifest.below(_OPTIONS).items():
            path = f"{_OPTIONS}.{name}"
            if name not in known:
                where = f" in the group {self.group.name}"
                self.problems.append(self.manifest.unknown(path, "option", name, known, where=where))
            elif value not in OPTIONS[name].values:
                self.problems.append(self.manifest.unknown(path, "value", value, OPTIONS[name].values))
            elif OPTIONS[name].is_shape and options.get(name) != value:
                self._contradicts(path, name, value, options.get(name))
            else:
                options[name] = value
                self.sources[f"options.{name}"] = self._source(path)
        return options

    def _contradicts(self, path: str, name: str, value: str, own: str | None) -> None:
        intent = self.manifest.get("routing.intent")
        has_profile = self.manifest.get(_PROFILE) is not None
        holder = f"the profile {self.profile.name}" if has_profile else f"the intent {intent}"
        actual = f"{name}: {own}" if own else f"no {name}"
        fitting = [
            profile.name
            for profile in self.group.profiles.values()
            if (leaf := profile.leaves.get(f"options.{name}")) is not None and leaf.value == value
        ]
        hint = f"remove it, or use {' or '.join(fitting)}" if fitting else "remove it"
        message = f"{value!r} contradicts {holder}, which has {actual}"
        self.problems.append(self.manifest.problem(path, message, hint))

    def _stage(
        self, name: str, agent_name: str, role: str, *, group: str | None, options: dict[str, str]
    ) -> StageSpec:
        agent = self.catalog.agents[agent_name]
        for_ = purpose(role, options.get("impl_mode"))
        return StageSpec(
            name=name,
            agent=agent_name,
            model=self._model(name, agent, for_),
            role=role,
            effort=self._effort(name, agent, for_),
            group=group,
            timeout_s=self._timeout_s(name, agent, options),
            approval=self._approval(name),
            writes=(writes := any(self.profile.writes(each, role) for each in self._named(name))),
            permissions=self._permissions(name, writes=writes),
            options=self._adapter_options(name, agent),
        )

    def _first(self, stage: str, key: str, *places: tuple[Any, str]) -> Any:
        """The first value that is set; its source is recorded."""
        for value, source in places:
            if value is not None:
                self.sources[f"stages.{stage}.{key}"] = source
                return value
        self.sources[f"stages.{stage}.{key}"] = "the agent's default"
        return None

    def _model(self, stage: str, agent: Agent, for_: str) -> str | None:
        path = f"routing.model.{agent.name}"
        model = self.manifest.get(path)
        # A model that is not allowed was reported by _check_agents.
        return self._first(
            stage, "model",
            (model, self._source(path)),
            _leaf(self.profile, f"stage_models.{stage}"),
            _leaf(agent, f"purpose_models.{for_}"),
            _leaf(agent, "default_model"),
        )  # fmt: skip

    def _effort(self, stage: str, agent: Agent, for_: str) -> str | None:
        return self._first(
            stage, "effort",
            _leaf(self.profile, f"stage_efforts.{stage}"),
            _leaf(agent, f"purpose_efforts.{for_}"),
            _leaf(agent, "defaults.effort"),
        )  # fmt: skip

    def _permissions(self, stage: str, *, writes: bool) -> str:
        """The profile that the manifest asks for; empty if for none. That of the task is about its work."""
        path = f"{_PERMISSIONS}.{stage}"
        places = [(self.manifest.get(path), self._source(path))]
        if writes:
            places.append((self.manifest.get("permissions"), self._source("permissions")))
        for profile, source in places:
            if profile is not None:
                self.sources[f"stages.{stage}.permissions"] = source
                return profile
        return ""

    def _timeout_s(self, stage: str, agent: Agent, options: dict[str, str]) -> float | None:
        """The time limit of the agent file. That of the packet always holds, too."""
        leaf = agent.leaves.get("defaults.timeout_sec")
        mode_leaf = agent.leaves.get("defaults.timeout_mode")
        mode = options.get("timeout_mode") or (mode_leaf.value if mode_leaf is not None else "enforce")
        by = self.sources.get("options.timeout_mode") or (
            mode_leaf.source if mode_leaf is not None else "default"
        )
        where = f"stages.{stage}.timeout_s"
        if mode == "wait_done" or leaf is None or leaf.value == 0:
            self.sources[where] = (
                by if mode == "wait_done" else leaf.source if leaf is not None else "default"
            )
            return None
        self.sources[where] = leaf.source
        return float(leaf.value)

    def _approval(self, stage: str) -> bool:
        leaf = self.profile.leaves.get("approval")
        by_profile = leaf is not None and any(name in leaf.value for name in self._named(stage))
        by_manifest = stage in (self.manifest.get("approval") or ())
        if by_manifest or by_profile:
            source = self._source("approval") if by_manifest or leaf is None else leaf.source
            self.sources[f"stages.{stage}.approval"] = source
        return by_manifest or by_profile

    def _adapter_options(self, stage: str, agent: Agent) -> dict[str, object]:
        options: dict[str, object] = {}
        places: tuple[tuple[dict[str, Any] | None, str], ...] = (
            _leaf(agent, "options"),
            _leaf(self.profile, f"stage_options.{stage}"),
            *(
                (self.manifest.get(path), self._source(path))
                for path in (f"routing.options.{agent.name}", f"routing.options.{stage}")
            ),
        )
        for values, source in places:
            if values is None:
                continue
            for key, value in values.items():
                options[key] = value
                self.sources[f"stages.{stage}.options.{key}"] = source
        return options

    def _check(self, intent: str, stages: list[StageSpec], candidates: list[str]) -> None:
        """Check the stages as a whole. `candidates` are the names of all stages if some have attempts."""
        problem = self.manifest.problem
        names = list(dict.fromkeys((*(stage.name for stage in stages), *candidates)))
        if not stages:
            path = _FLAGS if self.manifest.below(_FLAGS) else _PROFILE
            hint = f"stages of {self.profile.name}: {', '.join(self.profile.stages)}"
            self.problems.append(problem(path, "all stages are turned off", hint))
            return
        writers = [stage.name for stage in stages if stage.writes]
        path = _PROFILE if self.manifest.get(_PROFILE) else "routing.intent"
        if writers and not INTENTS[intent].changes:
            listed = ", ".join(writers)
            message = f"{intent} must not change code, but the profile {self.profile.name} writes in {listed}"
            self.problems.append(problem(path, message, "choose another profile or intent"))
        if not writers and INTENTS[intent].changes:
            message = f"{intent} must change code, but no stage of the profile {self.profile.name} writes"
            self.problems.append(problem(path, message, "choose another profile or intent"))
        for at, name in enumerate(self.manifest.get("approval") or ()):
            if name not in names:
                self.problems.append(self.manifest.unknown(f"approval[{at}]", "stage", name, names))
        for name in self.manifest.below(_PERMISSIONS):
            if name not in names:
                path = f"{_PERMISSIONS}.{name}"
                self.problems.append(self.manifest.unknown(path, "stage", name, names))
        for name in self.manifest.below("routing.options"):
            if name not in names and name not in self.catalog.agents:
                known = [*dict.fromkeys(stage.agent for stage in stages), *names]
                path = f"routing.options.{name}"
                self.problems.append(self.manifest.unknown(path, "agent or stage", name, known))


def _leaf(of: Agent | Profile, path: str) -> tuple[Any, str]:
    leaf = of.leaves.get(path)
    return (None, "") if leaf is None else (leaf.value, leaf.source)
