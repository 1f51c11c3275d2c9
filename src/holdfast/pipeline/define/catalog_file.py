"""One file of the split configuration: `agents/*.yaml` or `pipelines/*.yaml`, checked by itself, as a list of leaves."""

from __future__ import annotations

from holdfast.agents import registry
from holdfast.errors import HoldfastError
from holdfast.model.record import Record
from holdfast.model.roles import PURPOSES
from holdfast.pipeline.define.checker import Checker, dotted, words
from holdfast.pipeline.define.intents import GROUPS, OPTIONS, TIMEOUT_MODES
from holdfast.pipeline.define.problem import Problem, join_hints, listed, near
from holdfast.pipeline.define.yaml_file import Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DAY_S = 86_400
_AGENT_KEYS = (
    "version", "agent", "default_model", "allowed_models", "efforts", "defaults", "purpose_models", "purpose_efforts", "options",
)  # fmt: skip
_PIPELINE_KEYS = ("version", "pipeline", "default_profile", "flags", "profiles")
_PROFILE_KEYS = (
    "about", "stages", "flags", "options", "stage_models", "stage_efforts", "stage_options", "writes", "approval",
)  # fmt: skip
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
#: Options of adapters with the value that lets a program ask nobody any more: as much as `yolo`, by another name.
_BYPASSES = {
    "sandbox": "danger-full-access",
    "approval_mode": "yolo",
    "permission_mode": "bypassPermissions",
}


class Leaf(Record):
    """One value of the configuration and where it stands."""

    path: str
    value: Any
    file: str
    line: int
    #: The file as people see it: `package agents/codex.yaml`, or its path.
    label: str

    @property
    def source(self) -> str:
        """Where the value came from, for people."""
        return f"{self.label}: {self.path}"

    def problem(self, message: str, hint: str = "") -> Problem:
        """A problem with it."""
        return Problem(file=self.file, line=self.line, path=self.path, message=message, hint=hint)


class Wave(Record):
    """Stages that begin together: one, or a parallel group."""

    stages: tuple[str, ...]
    is_parallel: bool = False
    timeout_s: float | None = None


class FileReader(Checker):
    """Gathers the leaves of one file."""

    def __init__(self, file: str, label: str, problems: list[Problem]) -> None:
        super().__init__(file, problems)
        self.label = label
        self.leaves: list[Leaf] = []

    def keep(self, node: Node, path: str, value: Any) -> None:
        """A value that passed its check."""
        if value is not None:
            leaf = Leaf(path=path, value=value, file=self.file, line=node.line, label=self.label)
            self.leaves.append(leaf)

    def agent(self, node: Node) -> str | None:
        """The agent that the file is about; its values become leaves."""
        found = self.mapping(node, "", _AGENT_KEYS)
        name = self._head(node, found, "agent")
        known = sorted(set(registry.BUILT_IN) - {"command"})
        if name is not None and name not in known and (name == "command" or not _is_plugin(name)):
            self.blame(
                found["agent"],
                "agent",
                f"no agent is called {name!r}",
                join_hints(near(name, known), listed(known)),
            )
            name = None
        if inner := found.get("default_model"):
            self.keep(inner, "default_model", self.text(inner, "default_model"))
        if inner := found.get("allowed_models"):
            is_any = inner.value == "any"
            self.keep(
                inner, "allowed_models", "any" if is_any else self.items(inner, "allowed_models", self.text)
            )
        if inner := found.get("efforts"):
            self.keep(inner, "efforts", self.items(inner, "efforts", self.text))
        self._defaults(found.get("defaults"))
        for key in ("purpose_models", "purpose_efforts"):
            if inner := found.get(key):
                for purpose, value in self.mapping(inner, key, PURPOSES).items():
                    self.keep(value, f"{key}.{purpose}", self.text(value, f"{key}.{purpose}"))
        if inner := found.get("options"):
            self._adapter_options(inner, "options")
        return name

    def pipeline(self, node: Node) -> str | None:
        """The group that the file is about; its values become leaves."""
        found = self.mapping(node, "", _PIPELINE_KEYS)
        name = self._head(node, found, "pipeline")
        if name is not None and name not in GROUPS:
            hint = join_hints(near(name, GROUPS), listed(GROUPS))
            self.blame(found["pipeline"], "pipeline", f"there is no group {name!r}", hint)
            name = None
        if inner := found.get("default_profile"):
            self.keep(inner, "default_profile", self.text(inner, "default_profile"))
        if inner := found.get("flags"):
            for flag, value in self.mapping(inner, "flags").items():
                if self._is_name(value, dotted("flags", flag), flag):
                    self.keep(value, f"flags.{flag}", self.items(value, f"flags.{flag}", self.text))
        if inner := found.get("profiles"):
            for profile, value in self.mapping(inner, "profiles").items():
                if self._is_name(value, dotted("profiles", profile), profile):
                    self._profile(value, f"profiles.{profile}")
        return name

    def _head(self, node: Node, found: dict[str, Node], key: str) -> str | None:
        if not isinstance(node.value, dict):
            return None
        for needed in ("version", key):
            if needed not in found:
                self.blame(node, needed, "it is required", "version: 1" if needed == "version" else "")
        if "version" in found:
            self.whole(found["version"], "version", 1, 1)
        return self.text(found[key], key) if key in found else None

    def _is_name(self, node: Node, path: str, name: str) -> bool:
        if name and len(name) <= 40 and _NAME.issuperset(name):
            return True
        self.blame(node, path, "a name has lower-case letters, digits, '_' and '-', 40 at most")
        return False

    def _defaults(self, node: Node | None) -> None:
        if node is None:
            return
        for key, inner in self.mapping(node, "defaults", ("effort", "timeout_sec", "timeout_mode")).items():
            path = f"defaults.{key}"
            if key == "effort":
                self.keep(inner, path, self.text(inner, path))
            elif key == "timeout_sec":
                self.keep(inner, path, self.whole(inner, path, 0, 7 * DAY_S))
            else:
                self.keep(inner, path, self.one_of(inner, path, TIMEOUT_MODES))

    def _adapter_options(self, node: Node, path: str) -> None:
        for name, inner in node.value.items() if isinstance(node.value, dict) else ():
            if name == "yolo" or inner.value == _BYPASSES.get(name):
                hint = "it is opted into for one task: --yolo, or routing.options in its manifest"
                self.blame(inner, f"{path}.{name}", "a configuration file cannot set it", hint)
        self.keep(node, path, self.scalars(node, path))

    def _profile(self, node: Node, path: str) -> None:
        found = self.mapping(node, path, _PROFILE_KEYS)
        # Also a profile that says nothing is one, and then it lacks stages.
        self.keep(node, f"{path}.is_there", True)
        if inner := found.get("about"):
            self.keep(inner, f"{path}.about", self.text(inner, f"{path}.about"))
        if inner := found.get("stages"):
            self.keep(inner, f"{path}.stages", self.items(inner, f"{path}.stages", self._wave))
        if inner := found.get("flags"):
            for flag, value in self.mapping(inner, f"{path}.flags").items():
                place = dotted(f"{path}.flags", flag)
                self.keep(value, place, self.boolean(value, place))
        if inner := found.get("options"):
            for option, value in self.mapping(inner, f"{path}.options", OPTIONS).items():
                place = f"{path}.options.{option}"
                self.keep(value, place, self.one_of(value, place, OPTIONS[option].values))
        for key in ("stage_models", "stage_efforts"):
            if inner := found.get(key):
                for stage, value in self.mapping(inner, f"{path}.{key}").items():
                    place = dotted(f"{path}.{key}", stage)
                    self.keep(value, place, self.text(value, place))
        if inner := found.get("stage_options"):
            for stage, value in self.mapping(inner, f"{path}.stage_options").items():
                self._adapter_options(value, dotted(f"{path}.stage_options", stage))
        for key in ("writes", "approval"):
            if inner := found.get(key):
                self.keep(inner, f"{path}.{key}", self.items(inner, f"{path}.{key}", self.text))

    def _wave(self, node: Node, path: str) -> Wave | None:
        """A stage, or `{parallel: […], timeout_sec: N}`."""
        if isinstance(node.value, str):
            return Wave(stages=(node.value,))
        if not isinstance(node.value, dict):
            self.blame(node, path, f"it is a stage or a parallel group, not {words(node)}")
            return None
        found = self.mapping(node, path, ("parallel", "timeout_sec"))
        if "parallel" not in found:
            self.blame(node, f"{path}.parallel", "it is required")
            return None
        stages = self.items(found["parallel"], f"{path}.parallel", self.text) or ()
        timeout = found.get("timeout_sec")
        timeout_s = None if timeout is None else self.whole(timeout, f"{path}.timeout_sec", 1, 7 * DAY_S)
        if not stages:
            self.blame(found["parallel"], f"{path}.parallel", "it has no stages")
            return None
        return Wave(stages=stages, is_parallel=True, timeout_s=timeout_s)


def _is_plugin(name: str) -> bool:
    try:
        registry.adapter(name)
    except HoldfastError:
        return False
    return True
