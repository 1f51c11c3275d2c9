"""The catalog: the agents and pipelines that a packet can use. `load_catalog` reads it from files."""

from __future__ import annotations

from holdfast.model.record import Record
from holdfast.model.roles import ROLES
from holdfast.pipeline.define.catalog_file import Batch, Leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Leaves(Record):
    """Merged values by path."""

    leaves: dict[str, Leaf]

    def get(self, path: str) -> Any:
        """The value at a path, or None."""
        leaf = self.leaves.get(path)
        return None if leaf is None else leaf.value

    def below(self, path: str) -> dict[str, Leaf]:
        """The leaves of `path.*` by the rest of their path."""
        start = path + "."
        return {
            name.removeprefix(start): leaf for name, leaf in self.leaves.items() if name.startswith(start)
        }


class Agent(Leaves):
    """The configuration of an agent."""

    name: str

    @property
    def allowed_models(self) -> tuple[str, ...] | None:
        """None: any."""
        models = self.get("allowed_models")
        return None if models in (None, "any") else models

    @property
    def efforts(self) -> tuple[str, ...]:
        """The effort levels that it knows; often none."""
        return self.get("efforts") or ()

    def allows(self, model: str) -> bool:
        """Whether a model may be used."""
        return self.allowed_models is None or model in self.allowed_models


class Profile(Leaves):
    """One sequence of stages in a group. Paths are relative to `profiles.<name>`."""

    name: str
    group: str

    @property
    def batches(self) -> tuple[Batch, ...]:
        """Its stages in order; those of one batch start together."""
        return self.get("stages") or ()

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of all its stages."""
        return tuple(stage for batch in self.batches for stage in batch.stages)

    def writes(self, stage: str, role: str) -> bool:
        """Whether a stage may change the workspace."""
        return ROLES[role].writes or stage in (self.get("writes") or ())


class Group(Leaves):
    """Pipelines of one kind: impl, review or plan."""

    name: str
    profiles: dict[str, Profile]

    @property
    def flags(self) -> dict[str, tuple[str, ...]]:
        """Flag → roles or stages that it turns off."""
        return {name: leaf.value for name, leaf in self.below("flags").items()}


class Catalog(Record):
    """All agents and pipeline groups by name."""

    agents: dict[str, Agent]
    groups: dict[str, Group]
    #: Files that options of the project name, by value, as they were judged.
    files: dict[str, bytes] = {}
