"""A new packet from an approved plan: `holdfast new --from-plan`."""

from __future__ import annotations

import re

from holdfast.errors import UnreadableFile, UsageError
from holdfast.gates import screen, script
from holdfast.model import markdown
from holdfast.packet import inputs
from holdfast.pipeline.define.new_packet import Draft
from holdfast.pipeline.results import handoff

MAX_PLAN_BYTES = 1024 * 1024


def read_plan(path: str) -> str:
    """The text of a plan. Raises UnreadableFile, UsageError."""
    try:
        data = inputs.contents(path, MAX_PLAN_BYTES)
    except OSError as error:
        raise UnreadableFile(f"cannot read the plan {path}: {error.strerror}") from error
    if len(data) > MAX_PLAN_BYTES:
        raise UsageError(f"the plan {path} is larger than {MAX_PLAN_BYTES // 1024**2} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"the plan {path} is not UTF-8") from None
    if not text.strip():
        raise UsageError(f"the plan {path} is empty")
    return text


def filled(draft: Draft, *, is_foreign: bool = False) -> Draft:
    """Fill in what the draft lacks from its plan. `is_foreign`: others may have written it.

    The goal is the first heading; commands are under `Verify Commands`, criteria under `Acceptance`, paths
    under `Scope`. A model may have written the plan, so its commands are screened like those of a brief.
    """
    if draft.plan is None:
        return draft
    proposed = () if draft.commands else script.commands(handoff.read_brief(draft.plan).script or "")
    screened = [(command, screen.objection(command)) for command in proposed]
    taken = tuple(command for command, why in screened if why is None)
    return draft.evolve(
        goal=draft.goal or goal_of(draft.plan),
        allow=draft.allow or _paths(draft.plan),
        commands=draft.commands or taken,
        needs_trust=is_foreign and bool(taken),
        refused=tuple(f"`{command}`: {why}" for command, why in screened if why is not None),
        criteria=draft.criteria or _items(draft.plan, "Acceptance"),
    )


def goal_of(plan: str) -> str:
    """The first heading of a plan, or its first line."""
    lines = [line.strip() for line in plan.splitlines() if line.strip()]
    title = next((line for line in lines if line.startswith("#")), lines[0])
    return title.lstrip("# ").strip().removeprefix("Plan:").strip()[:500] or "carry out the plan"


def _paths(plan: str) -> tuple[str, ...]:
    """The items of the scope if all of them are paths. A person has to translate prose."""
    items = [item.strip("`") for item in _items(plan, "Scope")]
    return tuple(items) if all(re.fullmatch(r"[\w.@+/*-]+", item) for item in items) else ()


def _items(plan: str, heading: str) -> tuple[str, ...]:
    section = markdown.find(markdown.sections(plan), heading)
    body = section.body if section is not None else ""
    items = re.findall(r"^[ \t]*[-*][ \t]+(?:\[.\][ \t]+)?(.+)$", body, re.MULTILINE)
    return tuple(item.strip() for item in items)
