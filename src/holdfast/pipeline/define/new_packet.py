"""A new packet to begin with: a manifest with comments, the request, and a context pack with its ten headings."""

from __future__ import annotations

import json
import os
import re

from holdfast.errors import DuplicateTask, UnreadableFile, UsageError
from holdfast.gates import screen, script
from holdfast.model import markdown
from holdfast.model.pack import HEADINGS
from holdfast.model.record import Record
from holdfast.packet import inputs
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.results import handoff
from holdfast.store import atomic
from holdfast.store.layout import NEW_PREFIX, Packet

RETRY_BUDGET = 2
PAID_CALL_BUDGET = 10
MAX_WALLCLOCK_S = 900
FORBIDDEN = (".env", "secrets/")
MOST_PLAN_BYTES = 1024 * 1024


class Draft(Record):
    """What a new packet is about."""

    task_id: str
    goal: str
    intent: str
    project: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    profile: str | None = None
    #: What an approved plan says; it becomes the request.
    plan: str | None = None
    #: Commands of the plan that are not taken over, each with what speaks against it.
    refused: tuple[str, ...] = ()
    paid_call_budget: int = PAID_CALL_BUDGET


def manifest(draft: Draft) -> str:
    """The text of manifest.yaml."""
    changes = INTENTS[draft.intent].changes
    allow = draft.allow or (("**",) if changes else ())
    lines = [
        "# What is asked of holdfast. 'holdfast pipeline check DIR' checks it, 'holdfast run --packet DIR' runs it.",
        f"task_id: {_text(draft.task_id)}",
        f"goal: {_text(draft.goal)}",
        "# Where the agents work, from this folder on. Left out: where you run it.",
        f"project: {_text(draft.project)}" if draft.project is not None else "# project: ..",
        "# worktree: in a git worktree and branch of its own.",
        "workspace: in_place",
        "",
        "routing:",
        f"  # {', '.join(INTENTS)}",
        f"  intent: {draft.intent}",
        "  # 'holdfast pipeline list' shows models, profiles, flags and options; 'holdfast pipeline show DIR' what comes of them.",
        "  # model:",
        "  #   codex: gpt-5.3-codex",
        *(
            ["  pipeline:", f"    profile: {_text(draft.profile)}"]
            if draft.profile
            else ["  # pipeline:", "  #   profile: codex_only"]
        ),
        "",
        "# Paths of the project, as in .gitignore; deny beats allow.",
        "scope:",
        *_list("allow", allow),
        *_list("deny", draft.deny),
        "",
        "acceptance:",
        "  # Shell commands; all must succeed. [] means that nothing is run.",
        *(f"  # Left out, of the plan: {' '.join(each.split())}" for each in draft.refused),
        *_list("commands", draft.commands),
        "  # Sentences that a reviewer checks.",
        *_list("criteria", draft.criteria),
        "",
        "budgets:",
        "  # Retries for each error signature.",
        f"  retry_budget: {RETRY_BUDGET}",
        "  # Calls of agents, failed ones too.",
        f"  paid_call_budget: {draft.paid_call_budget}",
        "  # Time for each call.",
        f"  max_wallclock_sec: {MAX_WALLCLOCK_S}",
        "  # budget_usd: 10.0",
        "",
        "context:",
        "  # off, auto (a digest when the context pack is long) or aggressive (always).",
        "  digest_policy: auto",
        "",
        "security:",
        "  # Regular expressions; what they match is masked. Common tokens always are.",
        "  redaction_patterns: []",
        "  # Must not appear in any input.",
        *_list("forbidden_paths", FORBIDDEN),
        "",
        "# Stages that wait for a person: approval: [codex_impl]",
    ]
    return "\n".join(lines) + "\n"


def _text(value: str | None) -> str:
    """In quotes: JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)


def _list(name: str, items: tuple[str, ...]) -> list[str]:
    if not items:
        return [f"  {name}: []"]
    return [f"  {name}:", *(f"    - {_text(item)}" for item in items)]


def context_pack(draft: Draft) -> str:
    """The ten headings, with what is known already."""
    known = {
        "0. Goal": draft.goal,
        "2. Scope": "\n".join(
            [
                *(f"- may change: {path}" for path in draft.allow),
                *(f"- must not change: {path}" for path in draft.deny),
            ]
        ),
        "3. Acceptance": "\n".join(
            [*(f"- `{command}`" for command in draft.commands), *(f"- {each}" for each in draft.criteria)]
        ),
    }
    parts = [f"# Context pack: {draft.task_id}\n"]
    parts += [f"## {heading}\n\n{known.get(heading) or '-'}\n" for heading in HEADINGS]
    return "\n".join(parts)


def request(draft: Draft) -> str:
    """The text of user_request.md."""
    if draft.plan is not None:
        return f"# {draft.goal}\n\nCarry out this approved plan.\n\n{draft.plan.strip()}\n"
    return f"{draft.goal}\n"


def write(folder: str, draft: Draft) -> None:
    """Make the packet's folder, whole or not at all. Raises DuplicateTask when there is something, StorageError."""
    if os.path.lexists(folder):
        raise DuplicateTask(f"{folder} is there already", hint="name another folder, or remove it")
    staged = os.path.join(
        os.path.dirname(os.path.abspath(folder)), f"{NEW_PREFIX}{os.getpid()}-{draft.task_id}"
    )
    try:
        packet = Packet(staged)
        os.makedirs(packet.attachments, mode=0o700)
        for path, text in (
            (packet.manifest_yaml, manifest(draft)),
            (packet.user_request, request(draft)),
            (packet.context_pack, context_pack(draft)),
        ):
            atomic.write(path, text.encode(), durable=True)
        os.rename(staged, folder)
    except OSError as error:
        from holdfast.packet.create import remove_tree

        remove_tree(staged)
        atomic.storage_failed(error, f"cannot make the packet {folder}")


def read_plan(path: str) -> str:
    """The text of a plan. Raises UnreadableFile, UsageError."""
    try:
        data = inputs.contents(path, MOST_PLAN_BYTES)
    except OSError as error:
        raise UnreadableFile(f"cannot read the plan {path}: {error.strerror}") from error
    if len(data) > MOST_PLAN_BYTES:
        raise UsageError(f"the plan {path} is larger than {MOST_PLAN_BYTES // 1024**2} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"the plan {path} is not UTF-8") from None
    if not text.strip():
        raise UsageError(f"the plan {path} is empty")
    return text


def from_plan(draft: Draft) -> Draft:
    """What a plan says beyond its text: the goal (its first heading), commands (under `Verify Commands`), criteria (under
    `Acceptance`), paths (under `Scope`). What the draft has already is kept. A plan may be a model's: its commands are screened
    like those of a brief."""
    if draft.plan is None:
        return draft
    proposed = () if draft.commands else script.commands(handoff.read_brief(draft.plan).script or "")
    judged = [(command, screen.objection(command)) for command in proposed]
    return draft.evolve(
        goal=draft.goal or goal_of(draft.plan),
        allow=draft.allow or _paths(draft.plan),
        commands=draft.commands or tuple(command for command, why in judged if why is None),
        refused=tuple(f"`{command}`: {why}" for command, why in judged if why is not None),
        criteria=draft.criteria or _criteria(draft.plan),
    )


def goal_of(plan: str) -> str:
    """Its first heading, or its first line."""
    lines = [line.strip() for line in plan.splitlines() if line.strip()]
    title = next((line for line in lines if line.startswith("#")), lines[0])
    return title.lstrip("# ").strip().removeprefix("Plan:").strip()[:500] or "carry out the plan"


def _criteria(plan: str) -> tuple[str, ...]:
    return _items(plan, "Acceptance")


def _paths(plan: str) -> tuple[str, ...]:
    """The items of its scope, where each is a path and nothing else: a sentence about the scope needs a person."""
    items = [item.strip("`") for item in _items(plan, "Scope")]
    return tuple(items) if all(re.fullmatch(r"[\w.@+/*-]+", item) for item in items) else ()


def _items(plan: str, heading: str) -> tuple[str, ...]:
    section = markdown.find(markdown.sections(plan), heading)
    body = section.body if section is not None else ""
    found = re.findall(r"^[ \t]*[-*][ \t]+(?:\[.\][ \t]+)?(.+)$", body, re.MULTILINE)
    return tuple(item.strip() for item in found)
