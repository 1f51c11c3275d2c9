"""The permission profile of a new task: flag > manifest > setting > `edit`."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.model import permissions
from holdfast.views.cli.show import out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter
    from holdfast.model.spec import TaskSpec

WARNING = (
    "warning: --permissions full without a sandbox: the agent may do everything that you may, everywhere"
)


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


def chosen(values: dict[str, Any], settings: dict[str, Any], adapters: list[Adapter]) -> str:
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
            out.talk(f"{adapter.name} has no permission profiles; the setting permissions does not apply")
    return profile


def warn(spec: TaskSpec) -> None:
    """Tell that nothing limits an agent."""
    if spec.sandbox is None and any(
        permissions.of_stage(spec, stage) == permissions.FULL for stage in spec.stages
    ):
        out.talk(WARNING)
