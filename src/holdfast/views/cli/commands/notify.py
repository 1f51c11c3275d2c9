"""holdfast notify: send a test notice to every rule."""

from __future__ import annotations

import os
import subprocess
import tempfile

from holdfast import clock, ids, own_python, paths
from holdfast.config import settings
from holdfast.errors import UsageError
from holdfast.notify import outbox, rules
from holdfast.store import atomic
from holdfast.views.cli.parse.command_spec import Action, Argument, Command, actions_help
from holdfast.views.text import fit_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A delivery ends itself after 30 s.
_LIMIT_S = 40.0

_ACTIONS = (
    Action(
        name="test",
        summary="send a notice (event 'test') for every rule",
        description="Sends at once, without the keeper, and tells which rules delivered it. Variables that a "
        "rule names are taken from this shell; those of the keeper may differ.",
        examples=("holdfast notify test",),
        options=(),
    ),
)
_EXAMPLE = 'notify = [{ on = ["all"], to = "desktop" }]'

COMMAND = Command(
    name="notify",
    summary="Send a test notice for every notification rule.",
    description=actions_help(_ACTIONS)
    + "\n\nRules are [[notify]] tables in your settings ('holdfast config path').",
    examples=("holdfast notify test",),
    arguments=(Argument(dest="action", metavar="test", choices=("test",)),),
    actions=_ACTIONS,
)


def run(values: dict[str, Any]) -> int:
    """Deliver a notice for each rule; exits 1 if one fails."""
    known = settings.notify_rules()
    if not known:
        raise UsageError(
            "there are no notification rules",
            hint=f"add one to {paths.user_settings()}, for example: {_EXAMPLE}",
        )
    results = [{"rule": rules.label(rule), "error": _deliver(rule)} for rule in known]
    for each in results:
        state = "FAILED" if each["error"] else "ok"
        print(fit_text.printable(f"{state:7} {each['rule']} {each['error']}".rstrip()))
    return 1 if any(each["error"] for each in results) else 0


def _deliver(rule: dict[str, Any]) -> str:
    """Deliver one notice as the keeper does; returns the error, or an empty string."""
    event = {"event": "test", "task_id": "holdfast notify test", "status": "", "reason": "it works"}
    notice = {
        **event,
        "schema": outbox.SCHEMA,
        "id": ids.new_ulid(),
        "at": clock.iso_now(),
        "home": paths.home(),
        "text": rules.message(event),
        "rule": rule,
    }
    with tempfile.TemporaryDirectory(prefix="holdfast-notify-") as folder:
        path = os.path.join(folder, "notice.json")
        atomic.write_json(path, notice, durable=False)
        argv = own_python.command("holdfast.notify", path)
        try:
            done = subprocess.run(
                argv, timeout=_LIMIT_S, capture_output=True, check=False, start_new_session=True
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_LIMIT_S:g} s"
        if done.returncode == 0:
            return ""
        left = atomic.read_json(path) or {}
        return str(left.get("error") or done.stderr.decode(errors="replace").strip()[-200:] or "failed")
