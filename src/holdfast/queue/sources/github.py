"""`gh:label=agent[,repo=owner/name]`: open issues, as printed by `gh issue list --json`."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.queue.engine import WEIGHTS
from holdfast.queue.sources import lines
from holdfast.queue.work_item import CollectErrors, from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.queue.work_item import WorkItem

_FIELDS = "number,title,body,labels,url"


def argv(rest: str, *, most: int) -> list[str]:
    """The command that lists the issues. Raises UsageError for an unknown option."""
    command = ["gh", "issue", "list", "--state", "open", "--limit", str(most), "--json", _FIELDS]
    for name, value in _options(rest):
        command += ["--label" if name == "label" else "--repo", value]
    return command


def host_named(rest: str) -> str:
    """The repository that is asked for, if it is named with its host."""
    repo = dict(_options(rest)).get("repo", "")
    return repo if repo.count("/") > 1 else ""


def parse(
    raw: bytes, rest: str, *, weights: Mapping[str, int] = WEIGHTS, wrong: list[str] | None = None
) -> list[WorkItem]:
    """Parse issues; errors go to `wrong`.

    The task id is `gh-NUMBER`, or `gh-OWNER-NAME-NUMBER` with a repository.
    """
    items: list[WorkItem] = []
    for where, data in lines.objects(raw, f"gh:{rest}"):
        with CollectErrors(wrong):
            work = _issue(data, rest, where=where, weights=weights)
            items += [work] if work is not None else []
    return items


def _issue(data: Any, rest: str, *, where: str, weights: Mapping[str, int]) -> WorkItem | None:
    if not isinstance(data, dict) or not isinstance(data.get("number"), int):  # pyright: ignore
        raise UsageError(f"{where}: not an issue: it has no number", hint="is gh up to date?")
    issue: dict[str, Any] = data  # pyright: ignore[reportUnknownVariableType]
    repo, number = dict(_options(rest)).get("repo", ""), issue["number"]
    item = {
        "id": f"{repo}#{number}" if repo else f"{number}",
        "title": issue.get("title"),
        "prompt": _prompt(issue),
        "priority": priority(issue.get("labels") or [], weights),
        "url": issue.get("url"),
    }
    return from_json(item, source=f"gh:{rest}", where=where, prefix="gh-", weights=weights)


def priority(labels: list[dict[str, Any]], weights: Mapping[str, int] = WEIGHTS) -> int:
    """The highest priority that a label ends with, such as `priority: high` or `P1`; otherwise medium."""
    urgent = weights["high"] * 2
    known = {
        "critical": urgent,
        "urgent": urgent,
        "p0": urgent,
        "p1": weights["high"],
        "p2": weights["medium"],
        "p3": weights["low"],
        **weights,
    }
    words = [
        str(label.get("name", "")).lower().replace(":", " ").replace("/", " ").split() for label in labels
    ]
    priorities = [known[parts[-1]] for parts in words if parts and parts[-1] in known]
    return max(priorities, default=weights["medium"])


def _prompt(issue: dict[str, Any]) -> str:
    parts = (issue.get("title"), issue.get("body"), issue.get("url"))
    return "\n\n".join(str(part).strip() for part in parts if part)


def _options(rest: str) -> list[tuple[str, str]]:
    options: list[tuple[str, str]] = []
    for part in rest.split(","):
        name, equals, value = part.strip().partition("=")
        if not name:
            continue
        if not equals or not value or name not in ("label", "repo"):
            raise UsageError(
                f"gh:{rest}: unknown option {part.strip()!r}", hint="gh:label=NAME,repo=OWNER/NAME"
            )
        options.append((name, value))
    return options
