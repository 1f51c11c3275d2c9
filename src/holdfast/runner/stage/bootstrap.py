"""The bootstrap: instructions for every agent of a task, appended to its system prompt.

A template contains variables as `{{NAME}}`. Values are inserted unchanged and are not expanded again.
"""

from __future__ import annotations

import os
import re

from holdfast import paths
from holdfast.errors import UnreadableFile, UsageError
from holdfast.model import events as ev
from holdfast.model.spec import StageSpec
from holdfast.runner.ledger import Ledger
from holdfast.store import no_links

_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
#: Maximum length of a template.
_TEMPLATE_CHARS = 1024 * 1024


def render(ledger: Ledger, stage: StageSpec, opened: ev.AttemptOpened, *roots: str) -> str:
    """The text for one attempt. `roots`: directories out of which no link leads to the template.

    Raises UnreadableFile if the template cannot be read, UsageError if it uses a variable that is not set.
    """
    name = ledger.task.spec.bootstrap or "default"
    return fill(_template(name, roots), variables(ledger, stage, opened), name)


def variables(ledger: Ledger, stage: StageSpec, opened: ev.AttemptOpened) -> dict[str, str]:
    """The variables of a template. Our own override the user's."""
    spec, packet = ledger.task.spec, ledger.packet
    work = spec.work
    return {
        **spec.variables,
        "SESSION_ID": opened.attempt_id,
        "ITERATION": str(ledger.task.iteration or 1),
        "WORK_ITEM": str(work.get("id") or spec.task_id),
        "WORK_DETAILS": str(work.get("details") or spec.goal),
        "RIG": str(spec.variables.get("RIG") or work.get("rig") or os.path.basename(spec.project_dir)),
        "TASK_ID": spec.task_id,
        "STAGE": stage.name,
        "PROJECT_DIR": spec.project_dir,
        "PACKET": packet.path,
        "INTERRUPT_FILE": packet.interrupt_request if spec.sandbox is None else packet.sandbox_request,
        "WORK_FILE": packet.work,
    }


def fill(template: str, values: dict[str, str], name: str) -> str:
    """Replace the variables of a template, in one pass."""
    unknown = sorted(set(_VARIABLE.findall(template)) - set(values))
    if unknown:
        raise UsageError(
            f"the bootstrap {name} uses variables that are not set: {', '.join(unknown)}",
            hint="set them with --var NAME=VALUE",
        )
    return _VARIABLE.sub(lambda match: values[match.group(1)], template)


def _template(name: str, roots: tuple[str, ...]) -> str:
    path = default_path() if name == "default" else name
    try:
        text = no_links.read_named(path, *roots).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFile(
            f"cannot read the bootstrap {path}: {error}", hint="check its path and mode"
        ) from error
    if len(text) > _TEMPLATE_CHARS:
        raise UnreadableFile(
            f"the bootstrap {path} is longer than {_TEMPLATE_CHARS} characters",
            hint="check that it is the right file",
        )
    return text


def default_path() -> str:
    """The user's bootstrap.md if there is one, else the default of holdfast."""
    own = os.path.join(os.path.dirname(paths.user_settings()), "bootstrap.md")
    if os.path.exists(own):
        return own
    return os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "config", "bootstrap.md")
