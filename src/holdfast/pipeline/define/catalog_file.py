"""Reading one file of the catalog, `agents/*.yaml` or `pipelines/*.yaml`, as a list of checked values."""

from __future__ import annotations

from holdfast.agents import registry
from holdfast.errors import HoldfastError
from holdfast.model.permissions import BYPASSES
from holdfast.model.record import Record
from holdfast.model.roles import PURPOSES
from holdfast.pipeline.define.checker import Checker, described, dotted
from holdfast.pipeline.define.intents import CI, GROUPS, OPTIONS, TIMEOUT_MODES
from holdfast.pipeline.define.problem import Problem, unknown_hint
from holdfast.pipeline.define.yaml_file import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The most that `on_fail.times` and `attempts` may be.
MAX_REPAIRS, MAX_ATTEMPTS = 100, 9
#: The gate after the last stage.
CI_KEYS = ("pull_request", "timeout_sec", "remote", "base")
_WEEK_S = 7 * 86_400
_AGENT_KEYS = (
    "version", "agent", "default_model", "allowed_models", "efforts", "defaults", "purpose_models",
    "purpose_efforts", "options",
)  # fmt: skip
_PIPELINE_KEYS = ("version", "pipeline", "default_profile", "flags", "profiles")
_PROFILE_KEYS = (
    "about", "stages", "flags", "options", "stage_models", "stage_efforts", "stage_options", "writes",
    "approval", "on_fail", "ci", "attempts", "attempt_agents", "judge",
)  # fmt: skip
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")


class Leaf(Record):
    """One value of the catalog and its place."""

    path: str
    value: Any
    file: str
    line: int
    #: The file as users see it: `package agents/codex.yaml`, or its path.
    label: str

    @property
    def source(self) -> str:
        """Where the value came from, as shown to users."""
        return f"{self.label}: {self.path}"

    def problem(self, message: str, hint: str = "") -> Problem:
        """A problem with this value."""
        return Problem(file=self.file, line=self.line, path=self.path, message=message, hint=hint)


class Batch(Record):
    """Stages that start together: a single stage, or a parallel group."""

    stages: tuple[str, ...]
    is_parallel: bool = False
    timeout_s: float | None = None


class FileReader(Checker):
    """Collects the values of one file."""

    def __init__(self, file: str, label: str, problems: list[Problem]) -> None:
        super().__init__(file, problems)
        self.label = label
        self.leaves: list[Leaf] = []

    def keep(self, node: Node, path: str, value: Any) -> None:
        """Add a value that passed its check."""
        if value is not None:
            leaf = Leaf(path=path, value=value, file=self.file, line=node.line, label=self.label)
            self.leaves.append(leaf)

    def agent(self, node: Node) -> str | None:
        """Read the file of an agent; return the agent's name."""
        entries = self.mapping(node, "", _AGENT_KEYS)
        name = self._head(node, entries, "agent")
        known = sorted(set(registry.BUILT_IN) - {"command"})
        if name is not None and name not in known and (name == "command" or not _is_plugin(name)):
            self.blame(entries["agent"], "agent", f"unknown agent {name!r}", unknown_hint(name, known))
            name = None
        if inner := entries.get("default_model"):
            self.keep(inner, "default_model", self._model(inner, "default_model"))
        if inner := entries.get("allowed_models"):
            is_any = inner.value == "any"
            self.keep(
                inner, "allowed_models", "any" if is_any else self.items(inner, "allowed_models", self.text)
            )
        if inner := entries.get("efforts"):
            self.keep(inner, "efforts", self.items(inner, "efforts", self.text))
        self._defaults(entries.get("defaults"))
        for key in ("purpose_models", "purpose_efforts"):
            if inner := entries.get(key):
                for purpose, value in self.mapping(inner, key, PURPOSES).items():
                    self.keep(value, f"{key}.{purpose}", self._model(value, f"{key}.{purpose}"))
        if inner := entries.get("options"):
            self._adapter_options(inner, "options")
        return name

    def pipeline(self, node: Node) -> str | None:
        """Read the file of a pipeline group; return the group's name."""
        entries = self.mapping(node, "", _PIPELINE_KEYS)
        name = self._head(node, entries, "pipeline")
        if name is not None and name not in GROUPS:
            hint = unknown_hint(name, GROUPS)
            self.blame(entries["pipeline"], "pipeline", f"unknown group {name!r}", hint)
            name = None
        if inner := entries.get("default_profile"):
            self.keep(inner, "default_profile", self.text(inner, "default_profile"))
        if inner := entries.get("flags"):
            for flag, value in self.mapping(inner, "flags").items():
                if self._is_name(value, dotted("flags", flag), flag):
                    self.keep(value, f"flags.{flag}", self.items(value, f"flags.{flag}", self.text))
        if inner := entries.get("profiles"):
            for profile, value in self.mapping(inner, "profiles").items():
                if self._is_name(value, dotted("profiles", profile), profile):
                    self._profile(value, f"profiles.{profile}")
        return name

    def _head(self, node: Node, entries: dict[str, Node], key: str) -> str | None:
        if not isinstance(node.value, dict):
            return None
        for required in ("version", key):
            if required not in entries:
                self.blame(node, required, "missing", "version: 1" if required == "version" else "")
        if "version" in entries:
            self.whole(entries["version"], "version", 1, 1)
        return self.text(entries[key], key) if key in entries else None

    def _is_name(self, node: Node, path: str, name: str) -> bool:
        if name and len(name) <= 40 and _NAME.issuperset(name):
            return True
        self.blame(node, path, "a name has at most 40 lower-case letters, digits, '_' and '-'")
        return False

    def _defaults(self, node: Node | None) -> None:
        if node is None:
            return
        for key, inner in self.mapping(node, "defaults", ("effort", "timeout_sec", "timeout_mode")).items():
            path = f"defaults.{key}"
            if key == "effort":
                self.keep(inner, path, self.text(inner, path))
            elif key == "timeout_sec":
                self.keep(inner, path, self.whole(inner, path, 0, _WEEK_S))
            else:
                self.keep(inner, path, self.one_of(inner, path, TIMEOUT_MODES))

    def _model(self, node: Node, path: str) -> str | None:
        """The name of a model or an effort. It becomes an argument, and must not be read as an option."""
        name = self.text(node, path)
        if name is not None and (name.startswith("-") or not name.isprintable()):
            self.blame(node, path, f"{name!r} is not a name")
            return None
        return name

    def _adapter_options(self, node: Node, path: str) -> None:
        for name, inner in node.value.items() if isinstance(node.value, dict) else ():
            if name == "yolo" or inner.value == BYPASSES.get(name):
                hint = "use --permissions full for a task, or permissions in its manifest"
                self.blame(inner, f"{path}.{name}", "cannot be set in a configuration file", hint)
        self.keep(node, path, self.scalars(node, path))

    def _profile(self, node: Node, path: str) -> None:
        entries = self.mapping(node, path, _PROFILE_KEYS)
        # An empty profile exists too, and is reported for its missing stages.
        self.keep(node, f"{path}.is_there", True)
        if inner := entries.get("about"):
            self.keep(inner, f"{path}.about", self.text(inner, f"{path}.about"))
        if inner := entries.get("stages"):
            self.keep(inner, f"{path}.stages", self.items(inner, f"{path}.stages", self._batch))
        if inner := entries.get("flags"):
            for flag, value in self.mapping(inner, f"{path}.flags").items():
                place = dotted(f"{path}.flags", flag)
                self.keep(value, place, self.boolean(value, place))
        if inner := entries.get("options"):
            for option, value in self.mapping(inner, f"{path}.options", OPTIONS).items():
                place = f"{path}.options.{option}"
                self.keep(value, place, self.one_of(value, place, OPTIONS[option].values))
        for key in ("stage_models", "stage_efforts"):
            if inner := entries.get(key):
                for stage, value in self.mapping(inner, f"{path}.{key}").items():
                    place = dotted(f"{path}.{key}", stage)
                    self.keep(value, place, self._model(value, place))
        if inner := entries.get("stage_options"):
            for stage, value in self.mapping(inner, f"{path}.stage_options").items():
                self._adapter_options(value, dotted(f"{path}.stage_options", stage))
        for key in ("writes", "approval"):
            if inner := entries.get(key):
                self.keep(inner, f"{path}.{key}", self.items(inner, f"{path}.{key}", self.text))
        if inner := entries.get("on_fail"):
            for key, value in self.mapping(inner, f"{path}.on_fail", ("back_to", "times")).items():
                place = f"{path}.on_fail.{key}"
                is_number = key == "times"
                read = self.whole(value, place, 0, MAX_REPAIRS) if is_number else self.text(value, place)
                self.keep(value, place, read)
        if inner := entries.get("ci"):
            for key, value in self.mapping(inner, f"{path}.ci", CI_KEYS).items():
                self.keep(value, f"{path}.ci.{key}", self._ci(key, value, f"{path}.ci.{key}"))
        if inner := entries.get("attempts"):
            for stage, value in self.mapping(inner, f"{path}.attempts").items():
                place = dotted(f"{path}.attempts", stage)
                self.keep(value, place, self.whole(value, place, 1, MAX_ATTEMPTS))
        if inner := entries.get("attempt_agents"):
            self.keep(inner, f"{path}.attempt_agents", self.items(inner, f"{path}.attempt_agents", self.text))
        if inner := entries.get("judge"):
            self.keep(inner, f"{path}.judge", self.text(inner, f"{path}.judge"))

    def _ci(self, key: str, node: Node, path: str) -> str | int | None:
        if key == "pull_request":
            return self.one_of(node, path, CI)
        return self.whole(node, path, 1, _WEEK_S) if key == "timeout_sec" else self.text(node, path)

    def _batch(self, node: Node, path: str) -> Batch | None:
        """A stage, or `{parallel: […], timeout_sec: N}`."""
        if isinstance(node.value, str):
            return Batch(stages=(node.value,))
        if not isinstance(node.value, dict):
            self.blame(node, path, f"must be a stage or a parallel group, not {described(node)}")
            return None
        entries = self.mapping(node, path, ("parallel", "timeout_sec"))
        if "parallel" not in entries:
            self.blame(node, f"{path}.parallel", "missing")
            return None
        stages = self.items(entries["parallel"], f"{path}.parallel", self.text) or ()
        timeout = entries.get("timeout_sec")
        timeout_s = None if timeout is None else self.whole(timeout, f"{path}.timeout_sec", 1, _WEEK_S)
        if not stages:
            self.blame(entries["parallel"], f"{path}.parallel", "must not be empty")
            return None
        return Batch(stages=stages, is_parallel=True, timeout_s=timeout_s)


def _is_plugin(name: str) -> bool:
    try:
        registry.adapter(name)
    except HoldfastError:
        return False
    return True
