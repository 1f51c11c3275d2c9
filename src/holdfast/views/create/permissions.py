"""The permission profile of a new task: flag > manifest > setting > `edit`."""

from __future__ import annotations

from holdfast.agents import registry
from holdfast.errors import UsageError
from holdfast.model import permissions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter
    from holdfast.model.spec import TaskSpec
    from holdfast.pipeline.define.manifest import Manifest
    from holdfast.views.create.new_task import Talk

WARNING = "warning: full permissions without a sandbox: the agent may do everything that you may, everywhere"


def asked(values: dict[str, Any]) -> str | None:
    """The profile that the command line asks for. Raises UsageError."""
    profile = values.get("permissions")
    if not values.get("yolo"):
        return profile
    if profile not in (None, permissions.FULL):
        raise UsageError(
            f"--yolo and --permissions {profile} exclude each other", hint="--yolo means --permissions full"
        )
    return permissions.FULL


def chosen(values: dict[str, Any], settings: dict[str, Any], adapters: list[Adapter], *, talk: Talk) -> str:
    """The profile of a task without a pipeline. Raises UsageError if an agent cannot keep to it."""
    by_flag = asked(values)
    profile = by_flag or settings.get("permissions") or permissions.DEFAULT
    for adapter in adapters:
        if adapter.capabilities.permissions or profile == permissions.FULL:
            continue
        if by_flag:
            raise UsageError(
                f"--permissions {profile}: the adapter of {adapter.name} has no permission profiles",
                hint="leave it out: the program's own settings decide what it may do",
            )
        if "permissions" in settings:
            talk(f"{adapter.name} has no permission profiles; the setting permissions does not apply")
    return profile


def check_stages(
    spec: TaskSpec, *, by_flag: str | None, manifest: Manifest, settings: dict[str, Any], talk: Talk
) -> None:
    """Refuse a profile for an agent that cannot keep to it: a limit that is not enforced is worse than none.

    The profile of a packet's stage; a setting that does not apply is only reported. Raises UsageError.
    """
    of_stages = manifest.below("routing.permissions")
    for stage in spec.stages:
        if registry.adapter(stage.agent).capabilities.permissions or stage.permissions == permissions.FULL:
            continue
        where = f"routing.permissions.{stage.name}" if stage.name in of_stages else ""
        if not where and stage.writes:
            where = "--permissions" if by_flag else "permissions" if manifest.get("permissions") else ""
        if where:
            raise UsageError(
                f"{where}: {stage.permissions} for {stage.name}, but the adapter of {stage.agent} has no "
                "permission profiles",
                hint="leave it out: the program's own settings decide what it may do",
            )
        if stage.writes and "permissions" in settings:
            talk(f"{stage.agent} has no permission profiles; the setting permissions does not apply")


def warn(spec: TaskSpec, *, talk: Talk) -> None:
    """Warn that nothing limits an agent."""
    if spec.sandbox is None and permissions.is_full(spec):
        talk(WARNING)
