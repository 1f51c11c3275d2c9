"""Read what version 0.1.0 wrote: fields that it did not have are derived from its texts.

The only place where the text of a message decides anything. New files have the fields.
"""

from __future__ import annotations

from holdfast.model.status import DOWN_COMMAND, Cause, Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_CONFIRM = "STOP_AND_CONFIRM"
_NOT_INSTALLED = " is not installed"


def with_field(event: dict[str, Any], name: str) -> dict[str, Any]:
    """The journal line of an event with the field that it lacks."""
    return {**event, name: _FIELDS[name](event)}


def _cause(event: dict[str, Any]) -> str:
    return Cause.DOWN if DOWN_COMMAND in (event.get("interrupt"), event.get("reason")) else ""


def _missing_program(event: dict[str, Any]) -> str:
    before, found, _ = str(event.get("detail", "")).partition(_NOT_INSTALLED)
    return before.split()[-1] if found and before.split() else ""


def _is_limited(event: dict[str, Any]) -> bool:
    return "429" in str(event.get("reason", ""))


_FIELDS = {"cause": _cause, "missing_program": _missing_program, "is_limited": _is_limited}


def cause_of(manifest: dict[str, Any], failure: dict[str, Any]) -> str:
    """Why a task was stopped, from its manifest and its last_failure.json."""
    interrupt: dict[str, Any] = manifest.get("interrupt") or {}
    reason = str(interrupt.get("reason") or manifest.get("status_reason") or "")
    if reason == DOWN_COMMAND:
        return Cause.DOWN
    stopped = manifest.get("status") in (Status.INTERRUPTED, Status.ABANDONED)
    detail = str(failure.get("detail") or "")
    return Cause.FAILURE if stopped and detail and detail in reason else ""


def confirmations(remarks: Iterable[str]) -> list[str]:
    """A reviewer's requests for approval among the remarks of a gate; an empty text gives no reason."""
    return [remark.removeprefix(_CONFIRM).lstrip(": ") for remark in remarks if remark.startswith(_CONFIRM)]
