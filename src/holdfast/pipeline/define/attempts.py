"""Best of N in a packet: which stage has candidates, how many, who plays them, and who chooses. Pure."""

from __future__ import annotations

from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.model.spec import StageSpec
    from holdfast.pipeline.define.catalog import Profile
    from holdfast.pipeline.define.manifest import Manifest
    from holdfast.pipeline.define.problem import Problem

_PIPELINE = "routing.pipeline"
_ATTEMPTS = f"{_PIPELINE}.attempts"


class Candidates(Record):
    """The candidates of a stage (`attempts` in a manifest)."""

    #: The place of the stage.
    at: int
    number: int
    #: They play the candidates in turn.
    agents: tuple[str, ...]
    judge: str
    #: Where the number came from.
    source: str


def read(
    manifest: Manifest,
    profile: Profile,
    stages: Sequence[StageSpec],
    *,
    agents: Collection[str],
    origins: Mapping[str, tuple[str, ...]],
    problems: list[Problem],
) -> Candidates | None:
    """The candidates that a manifest or its profile asks for; None for none, and if they are not possible.

    `origins`: if one agent plays all roles, the stages of the profile that each stage stands for.
    """
    names = [stage.name for stage in stages]
    # A flag may have turned a stage of the profile off.
    of_profile = profile.below("attempts")
    found = {
        name: (of_profile[origin].value, of_profile[origin].source)
        for name in names
        for origin in origins.get(name, (name,))
        if origin in of_profile
    }
    for name, number in manifest.below(_ATTEMPTS).items():
        path = f"{_ATTEMPTS}.{name}"
        if name in names:
            found[name] = (number, f"manifest.yaml: {path}")
        else:
            problems.append(manifest.unknown(path, "stage", name, names))
    wanted = [name for name, (number, _) in found.items() if number > 1]
    playing = _agents(manifest, agents, problems) or (None if origins else profile.get("attempt_agents"))
    judge = _judge(manifest, agents, problems) or (None if origins else profile.get("judge"))
    if not wanted:
        return None
    name = wanted[0]
    at = names.index(name)
    objection = _objection(manifest, stages[at], wanted)
    if objection:
        is_own = manifest.get(f"{_ATTEMPTS}.{name}") is not None
        path = f"{_ATTEMPTS}.{name}" if is_own else f"{_PIPELINE}.profile"
        problems.append(manifest.problem(path, objection[0], objection[1]))
        return None
    own = stages[at].agent
    return Candidates(
        at=at, number=found[name][0], agents=playing or (own,), judge=judge or own, source=found[name][1]
    )


def _objection(manifest: Manifest, stage: StageSpec, wanted: list[str]) -> tuple[str, str] | None:
    if len(wanted) > 1:
        return f"only one stage can have attempts, not {' and '.join(wanted)}", "remove one"
    if not stage.writes:
        return f"{stage.name} does not write, so it cannot have attempts", "name a stage that writes"
    if manifest.get("workspace") != "worktree":
        return f"the attempts of {stage.name} need a worktree each", "add 'workspace: worktree'"
    return None


def _agents(manifest: Manifest, known: Collection[str], problems: list[Problem]) -> tuple[str, ...]:
    path = f"{_PIPELINE}.attempt_agents"
    named: tuple[str, ...] = manifest.get(path) or ()
    for at, name in enumerate(named):
        if name not in known:
            problems.append(manifest.unknown(f"{path}[{at}]", "agent", name, known))
    return tuple(name for name in named if name in known)


def _judge(manifest: Manifest, known: Collection[str], problems: list[Problem]) -> str | None:
    path = f"{_PIPELINE}.judge"
    name: str | None = manifest.get(path)
    if name is not None and name not in known:
        problems.append(manifest.unknown(path, "agent", name, known))
        return None
    return name
