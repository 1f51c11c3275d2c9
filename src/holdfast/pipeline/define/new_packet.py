"""Creating a packet: a manifest with comments, the request, and a context pack with its ten headings."""

from __future__ import annotations

import contextlib
import json
import os

from holdfast.errors import DuplicateTask
from holdfast.model.pack import HEADINGS
from holdfast.model.record import Record
from holdfast.pipeline.define.intents import INTENTS
from holdfast.store import atomic
from holdfast.store.layout import NEW_PREFIX, Packet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

RETRY_BUDGET = 2
PAID_CALL_BUDGET = 10
MAX_WALLCLOCK_S = 900
FORBIDDEN = (".env", "secrets/")


class Draft(Record):
    """The values of a new packet."""

    task_id: str
    goal: str
    intent: str
    project: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    #: One agent for all roles.
    agent: str | None = None
    profile: str | None = None
    permissions: str | None = None
    #: `key=value`.
    labels: tuple[str, ...] = ()
    workspace: str = "in_place"
    #: The text of the request; the goal if empty.
    request: str = ""
    #: The text of an approved plan; it becomes the request.
    plan: str | None = None
    #: Whether the commands are another's, because the plan is.
    needs_trust: bool = False
    #: Commands of the plan that were refused, each with the reason.
    refused: tuple[str, ...] = ()
    paid_call_budget: int = PAID_CALL_BUDGET
    max_wallclock_s: int = MAX_WALLCLOCK_S


def manifest(draft: Draft) -> str:
    """The content of manifest.yaml."""
    changes = INTENTS[draft.intent].changes
    allow = draft.allow or (("**",) if changes else ())
    lines = [
        "# A task packet. 'holdfast pipeline check DIR' checks it, 'holdfast run --packet DIR' runs it.",
        f"task_id: {_text(draft.task_id)}",
        f"goal: {_text(draft.goal)}",
        "# Where the agents work, relative to this folder. Default: where you run it.",
        f"project: {_text(draft.project)}" if draft.project is not None else "# project: ..",
        "# in_place, or worktree: in a new git worktree with its own branch.",
        f"workspace: {draft.workspace}",
        "# What agents that write may do: read, edit (in the workspace) or full. Others only read.",
        f"permissions: {draft.permissions}" if draft.permissions else "# permissions: edit",
        "# To find the task by: 'holdfast ls --label batch=nightly'.",
        f"labels: {json.dumps(draft.labels, ensure_ascii=False)}"
        if draft.labels
        else "# labels: [batch=nightly]",
        *(
            [
                "# The acceptance commands come from a plan inside a project: 'holdfast trust DIR' shows and",
                "# allows them.",
                "needs_trust: true",
            ]
            if draft.needs_trust
            else []
        ),
        "",
        "routing:",
        f"  # {', '.join(INTENTS)}",
        f"  intent: {draft.intent}",
        "  # One agent for all stages, whatever the profile names.",
        f"  agent: {_text(draft.agent)}" if draft.agent else "  # agent: claude",
        "  # 'holdfast pipeline list' shows models, profiles, flags and options.",
        "  # 'holdfast pipeline show DIR' shows what this packet resolves to.",
        "  # model:",
        "  #   codex: gpt-5.3-codex",
        *(
            ["  pipeline:", f"    profile: {_text(draft.profile)}"]
            if draft.profile
            else ["  # pipeline:", "  #   profile: codex_only"]
        ),
        "",
        "# Paths in the project, as in .gitignore; deny overrides allow.",
        "scope:",
        *_list("allow", allow),
        *_list("deny", draft.deny),
        "",
        "acceptance:",
        "  # Shell commands that must all succeed; [] for none.",
        *(f"  # Refused command of the plan: {' '.join(each.split())}" for each in draft.refused),
        *_list("commands", draft.commands),
        "  # What a reviewer checks, in sentences.",
        *_list("criteria", draft.criteria),
        "",
        "budgets:",
        "  # Retries per error signature.",
        f"  retry_budget: {RETRY_BUDGET}",
        "  # Agent calls, including failed ones.",
        f"  paid_call_budget: {draft.paid_call_budget}",
        "  # Time limit of each call.",
        f"  max_wallclock_sec: {draft.max_wallclock_s}",
        "  # budget_usd: 10.0",
        "",
        "context:",
        "  # off, auto (a digest if the context pack is long) or aggressive (always a digest).",
        "  digest_policy: auto",
        "",
        "security:",
        "  # Regular expressions (RE2) whose matches are masked. Common tokens always are.",
        "  redaction_patterns: []",
        "  # Paths that must not appear in any input.",
        *_list("forbidden_paths", FORBIDDEN),
        "",
        "# Stages that wait for approval: approval: [codex_impl]",
    ]
    return "\n".join(lines) + "\n"


def _text(value: str | None) -> str:
    """A quoted string: JSON is valid YAML."""
    return json.dumps(value, ensure_ascii=False)


def _list(name: str, items: tuple[str, ...]) -> list[str]:
    if not items:
        return [f"  {name}: []"]
    return [f"  {name}:", *(f"    - {_text(item)}" for item in items)]


def context_pack(draft: Draft) -> str:
    """The content of context_pack.md: its ten headings, with what the draft knows."""
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
    """The content of user_request.md."""
    if draft.plan is not None:
        return f"# {draft.goal}\n\nCarry out this approved plan.\n\n{draft.plan.strip()}\n"
    return f"{(draft.request or draft.goal).rstrip()}\n"


@contextlib.contextmanager
def temporary(draft: Draft) -> Generator[str]:
    """The folder of a packet that exists only as long as it is needed to create a task from it."""
    import tempfile

    from holdfast.store.directories import remove_tree

    place = tempfile.mkdtemp(prefix="holdfast-new-")
    try:
        folder = os.path.join(place, draft.task_id)
        write(folder, draft)
        yield folder
    finally:
        remove_tree(place)


def write(folder: str, draft: Draft) -> None:
    """Create the packet's folder, completely or not at all. Raises DuplicateTask, StorageError."""
    if os.path.lexists(folder):
        raise DuplicateTask(f"{folder} exists already", hint="choose another folder, or remove it")
    staged = os.path.join(
        os.path.dirname(os.path.abspath(folder)), f"{NEW_PREFIX}{os.getpid()}-{draft.task_id}"
    )
    packet = Packet(staged)
    try:
        os.makedirs(packet.attachments, mode=0o700)
        for path, text in (
            (packet.manifest_yaml, manifest(draft)),
            (packet.user_request, request(draft)),
            (packet.context_pack, context_pack(draft)),
        ):
            atomic.write(path, text.encode(), durable=True)
        os.rename(staged, folder)
    except OSError as error:
        from holdfast.store.directories import remove_tree

        remove_tree(staged)
        atomic.storage_failed(error, f"cannot create the packet {folder}")
