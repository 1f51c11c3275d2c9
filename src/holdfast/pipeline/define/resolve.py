"""A checked manifest and the configuration → the stages to run, and where each value came from. Pure.

Model: manifest, stage_models, purpose_models, default_model. Effort: stage_efforts, purpose_efforts, default. The intent (or the
profile that the manifest names) decides on the stages; an option acts only where the manifest sets it, and never against
the intent. Problems are gathered, not raised.
"""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.roles import purpose, split
from holdfast.model.spec import StageSpec
from holdfast.pipeline.define import security_lens
from holdfast.pipeline.define.catalog import Agent, Config, Group, Profile
from holdfast.pipeline.define.catalog_file import Wave
from holdfast.pipeline.define.intents import INTENTS, OPTIONS, PROFILE_OF
from holdfast.pipeline.define.manifest import Manifest
from holdfast.pipeline.define.problem import Problem, join_hints, listed, near

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PROFILE = "routing.pipeline.profile"
_FLAGS = "routing.pipeline.flags"
_OPTIONS = "routing.pipeline.options"


class Resolved(Record):
    """What a packet runs."""

    intent: str
    group: str
    profile: str
    stages: tuple[StageSpec, ...]
    #: The options that hold, by name.
    options: dict[str, str]
    flags: dict[str, bool]
    join_timeout_s: float | None
    #: Path of a resolved value → where it came from.
    sources: dict[str, str]


def resolve(
    manifest: Manifest, config: Config, problems: list[Problem], *, request: Callable[[], str] = str
) -> Resolved | None:
    """The stages; None, with problems, where there is no telling. `request` gives the words of the packet beside the manifest,
    where they decide."""
    _check_agents(manifest, config, problems)
    intent = manifest.get("routing.intent")
    found = None if intent is None else _profile(manifest, config, intent, problems)
    if intent is None or found is None:
        _check_names(manifest, config, problems)
        return None
    return _Resolver(manifest, config, found, problems).resolve(intent, request)


def _check_agents(manifest: Manifest, config: Config, problems: list[Problem]) -> None:
    for name, model in manifest.below("routing.model").items():
        path = f"routing.model.{name}"
        agent = config.agents.get(name)
        if agent is None:
            problems.append(manifest.unknown(path, "agent", name, config.agents))
        elif not agent.allows(model):
            known = agent.allowed_models or ()
            message = f"the model {model!r} is not allowed for {name}"
            problems.append(manifest.problem(path, message, join_hints(near(model, known), listed(known))))
    for at, name in enumerate(manifest.get("routing.failover") or ()):
        if name not in config.agents:
            path = f"routing.failover[{at}]"
            problems.append(manifest.unknown(path, "agent", name, config.agents))


def _check_names(manifest: Manifest, config: Config, problems: list[Problem]) -> None:
    """What is wrong whatever the profile is."""
    known = list(dict.fromkeys(name for group in config.groups.values() for name in group.flags))
    for name in manifest.below(_FLAGS):
        if name not in known:
            problems.append(manifest.unknown(f"{_FLAGS}.{name}", "flag", name, known))
    for name, value in manifest.below(_OPTIONS).items():
        path = f"{_OPTIONS}.{name}"
        if name not in OPTIONS:
            problems.append(manifest.unknown(path, "option", name, OPTIONS))
        elif value not in OPTIONS[name].values:
            problems.append(manifest.unknown(path, f"value of {name}:", value, OPTIONS[name].values))


def _profile(manifest: Manifest, config: Config, intent: str, problems: list[Problem]) -> Profile | None:
    """The manifest's, else what its option asks for, else that of the intent's name, else the group's default."""
    kind = INTENTS[intent]
    groups = [config.groups[name] for name in (kind.group, *kind.also) if name in config.groups]
    chosen = manifest.get(_PROFILE)
    if chosen is not None:
        for group in groups:
            if chosen in group.profiles:
                return group.profiles[chosen]
        known = [name for group in groups for name in group.profiles]
        problems.append(manifest.unknown(_PROFILE, f"profile for {intent}", chosen, known))
        return None
    options = manifest.below(_OPTIONS)
    by_option = [
        name for (of, key, value), name in PROFILE_OF.items() if of == intent and options.get(key) == value
    ]
    for name in (*by_option, intent, groups[0].get("default_profile") if groups else None):
        if groups and name in groups[0].profiles:
            return groups[0].profiles[name]
    problems.append(manifest.problem("routing.intent", f"the configuration has no profile for {intent}"))
    return None


class _Resolver:
    """One manifest, one profile."""

    def __init__(self, manifest: Manifest, config: Config, profile: Profile, problems: list[Problem]) -> None:
        self.manifest = manifest
        self.config = config
        self.profile = profile
        self.group: Group = config.groups[profile.group]
        self.problems = problems
        self.sources: dict[str, str] = {}

    def resolve(self, intent: str, request: Callable[[], str]) -> Resolved | None:
        self.sources["profile"] = self._said(_PROFILE if self.manifest.get(_PROFILE) else "routing.intent")
        self.sources["stages"] = self.profile.leaves["stages"].source
        flags, options = self._flags(), self._options()
        off = {each for name, on in flags.items() if not on for each in self.group.flags[name]}
        stages: list[StageSpec] = []
        number = 0
        for wave in self._waves(options, request):
            number += wave.is_parallel
            for name in wave.stages:
                found = split(name, self.config.agents)
                if found is None or name in off or found[1] in off:
                    continue
                group = f"parallel-{number}" if wave.is_parallel else None
                stages.append(self._stage(name, *found, group=group, options=options))
        self._check(intent, stages)
        timeouts = [wave.timeout_s for wave in self.profile.waves if wave.timeout_s is not None]
        return Resolved(
            intent=intent,
            group=self.group.name,
            profile=self.profile.name,
            stages=tuple(stages),
            options=options,
            flags=flags,
            join_timeout_s=timeouts[0] if timeouts else None,
            sources=self.sources,
        )

    def _waves(self, options: dict[str, str], request: Callable[[], str]) -> tuple[Wave, ...]:
        """The profile's, and the security lens where the option asks for it. Without a word, the profile is taken as it is."""
        mode, waves = options.get("security_lens"), self.profile.waves
        if mode is None:
            return waves
        path = f"{_OPTIONS}.security_lens"
        if mode != "off" and self.manifest.get(path) and not self._has(("review", security_lens.ROLE)):
            message = f"the profile {self.profile.name} has no review beside which it could run"
            self.problems.append(self.manifest.problem(path, message, "leave it out"))
        touched: tuple[str, ...] = ()
        if mode == "auto":
            written = [self.manifest.get(path) or () for path in ("scope.allow", "acceptance.criteria")]
            said = [self.manifest.get("goal") or "", *(each for part in written for each in part), request()]
            touched = security_lens.touched("\n".join(said))
        arranged = security_lens.arranged(waves, self.config.agents, wanted=mode == "always" or bool(touched))
        if touched:
            self.sources["security_lens"] = f"auto: {', '.join(touched[:5])}"
        return arranged

    def _said(self, path: str) -> str:
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
                        path, f"flag in the group {self.group.name}", name, self.group.flags
                    )
                )
                continue
            flags[name] = value
            self.sources[f"flags.{name}"] = self._said(path)
            if value and not self._has(self.group.flags[name]):
                message = f"the profile {self.profile.name} has no stage that it could turn on"
                hint = f"its stages: {', '.join(self.profile.stages)}"
                self.problems.append(self.manifest.problem(path, message, hint))
        return flags

    def _has(self, wanted: tuple[str, ...]) -> bool:
        pairs = [(stage, split(stage, self.config.agents)) for stage in self.profile.stages]
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
                what = f"option in the group {self.group.name}"
                self.problems.append(self.manifest.unknown(path, what, name, known))
            elif value not in OPTIONS[name].values:
                what = f"value of {name}:"
                self.problems.append(self.manifest.unknown(path, what, value, OPTIONS[name].values))
            elif OPTIONS[name].is_shape and options.get(name) != value:
                self._contradicts(path, name, value, options.get(name))
            else:
                options[name] = value
                self.sources[f"options.{name}"] = self._said(path)
        return options

    def _contradicts(self, path: str, name: str, value: str, own: str | None) -> None:
        intent = self.manifest.get("routing.intent")
        is_own = self.manifest.get(_PROFILE) is None
        of = f"the intent {intent}" if is_own else f"the profile {self.profile.name}"
        said = f"{of} is {name}: {own}" if own else f"{of} has no {name}"
        fitting = [
            profile.name
            for profile in self.group.profiles.values()
            if (leaf := profile.leaves.get(f"options.{name}")) is not None and leaf.value == value
        ]
        hint = f"leave it out, or choose what does so: {', '.join(fitting)}" if fitting else "leave it out"
        self.problems.append(self.manifest.problem(path, f"{value!r} contradicts: {said}", hint))

    def _stage(
        self, name: str, agent_name: str, role: str, *, group: str | None, options: dict[str, str]
    ) -> StageSpec:
        agent = self.config.agents[agent_name]
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
            writes=self.profile.writes(name, role),
            options=self._adapter_options(name, agent),
        )

    def _first(self, stage: str, key: str, *places: tuple[Any, str]) -> Any:
        """The first value that is there, and its source noted."""
        for value, source in places:
            if value is not None:
                self.sources[f"stages.{stage}.{key}"] = source
                return value
        self.sources[f"stages.{stage}.{key}"] = "the agent's own default"
        return None

    def _model(self, stage: str, agent: Agent, for_: str) -> str | None:
        path = f"routing.model.{agent.name}"
        model = self.manifest.get(path)
        # One that is not allowed was blamed already.
        return self._first(
            stage, "model",
            (model, self._said(path)),
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

    def _timeout_s(self, stage: str, agent: Agent, options: dict[str, str]) -> float | None:
        """The softer limit; the packet's own is beside it and always holds."""
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
        by_profile = leaf is not None and stage in leaf.value
        by_manifest = stage in (self.manifest.get("approval") or ())
        if by_manifest or by_profile:
            source = self._said("approval") if by_manifest or leaf is None else leaf.source
            self.sources[f"stages.{stage}.approval"] = source
        return by_manifest or by_profile

    def _adapter_options(self, stage: str, agent: Agent) -> dict[str, object]:
        options: dict[str, object] = {}
        places: tuple[tuple[dict[str, Any] | None, str], ...] = (
            _leaf(agent, "options"),
            _leaf(self.profile, f"stage_options.{stage}"),
            *(
                (self.manifest.get(path), self._said(path))
                for path in (f"routing.options.{agent.name}", f"routing.options.{stage}")
            ),
        )
        for given, source in places:
            if given is None:
                continue
            for key, value in given.items():
                options[key] = value
                self.sources[f"stages.{stage}.options.{key}"] = source
        return options

    def _check(self, intent: str, stages: list[StageSpec]) -> None:
        """What can be said only of the whole."""
        say, names = self.manifest.problem, [stage.name for stage in stages]
        if not stages:
            message = "no stage is left to run"
            hint = f"stages of {self.profile.name}: {', '.join(self.profile.stages)}"
            self.problems.append(say(_FLAGS if self.manifest.below(_FLAGS) else _PROFILE, message, hint))
            return
        writers = [stage.name for stage in stages if stage.writes]
        path = _PROFILE if self.manifest.get(_PROFILE) else "routing.intent"
        if writers and not INTENTS[intent].changes:
            message = f"{intent} changes nothing, but the profile {self.profile.name} writes in {', '.join(writers)}"
            self.problems.append(say(path, message, "choose another profile, or an intent that implements"))
        if not writers and INTENTS[intent].changes:
            message = (
                f"{intent} changes the code, but the profile {self.profile.name} has no stage that writes"
            )
            self.problems.append(say(path, message, "choose another profile, or another intent"))
        for at, name in enumerate(self.manifest.get("approval") or ()):
            if name not in names:
                self.problems.append(
                    self.manifest.unknown(f"approval[{at}]", "stage to approve:", name, names)
                )
        for name in self.manifest.below("routing.options"):
            if name not in names and name not in self.config.agents:
                known = [*dict.fromkeys(stage.agent for stage in stages), *names]
                path = f"routing.options.{name}"
                self.problems.append(self.manifest.unknown(path, "agent or stage", name, known))


def _leaf(of: Agent | Profile, path: str) -> tuple[Any, str]:
    leaf = of.leaves.get(path)
    return (None, "") if leaf is None else (leaf.value, leaf.source)
