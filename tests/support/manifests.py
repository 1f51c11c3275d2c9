"""Manifests for tests: a valid one, and a way to change it."""

from __future__ import annotations

import json
import os
from typing import Any

from holdfast.pipeline.define import load_catalog, manifest, yaml_file
from holdfast.pipeline.define.catalog import Catalog
from holdfast.pipeline.define.problem import Problem
from holdfast.pipeline.define.resolve import Resolved, resolve

#: The stages of each intent, as the shipped profiles have them.
STAGES = {
    "safe_impl": ["gemini_brief", "codex_impl", "codex_verify", "gemini_review"],
    "one_shot_impl": ["gemini_brief", "copilot_runbook", "codex_verify"],
    "design_only": ["gemini_brief", "gemini_test_design", "gemini_review"],
    "review_only": ["gemini_review"],
    "review_cross": ["gemini_review", "codex_review", "copilot_review_consolidate"],
    "post_impl_review": [
        "gemini_review",
        "gemini_test_design",
        "gemini_static_verify",
        "codex_review",
        "codex_test_impl",
        "codex_verify",
    ],
}


def valid(intent: str = "safe_impl") -> dict[str, Any]:
    """Every required field, and nothing else."""
    return {
        "task_id": "20260218-001",
        "goal": "add retries to the client",
        "routing": {"intent": intent},
        "scope": {"allow": ["src/"], "deny": ["src/secret/"]},
        "acceptance": {"commands": ["make test"], "criteria": ["it retries"]},
        "budgets": {"retry_budget": 2, "paid_call_budget": 10, "max_wallclock_sec": 900},
        "context": {"digest_policy": "auto"},
    }


def put(data: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one value set; `...` removes the key."""
    copy = json.loads(json.dumps(data))
    place = copy
    *before, last = path.split(".")
    for name in before:
        place = place.setdefault(name, {})
    if value is ...:
        place.pop(last, None)
    else:
        place[last] = value
    return copy


def checked(data: Any, problems: list[Problem]) -> manifest.Manifest:
    """The manifest in plain data; JSON is YAML."""
    text = data if isinstance(data, bytes) else json.dumps(data).encode()
    node = yaml_file.parse(text, "manifest.yaml", problems)
    assert node is not None
    return manifest.check(node, "manifest.yaml", problems)


def package() -> Catalog:
    """The configuration as shipped."""
    problems: list[Problem] = []
    found = load_catalog.read({"package": load_catalog.folders(None)["package"]}, problems)
    assert problems == []
    return found


def resolved(data: dict[str, Any], found: Catalog | None = None) -> tuple[Resolved | None, dict[str, str]]:
    """The resolved pipeline, and the problems by path (message and hint)."""
    problems: list[Problem] = []
    result = resolve(checked(data, problems), found or package(), problems)
    return result, said(problems)


def said(problems: list[Problem]) -> dict[str, str]:
    return {each.path: f"{each.message} ({each.hint})" for each in problems}


def stages(data: dict[str, Any], found: Catalog | None = None) -> list[str]:
    """Names of the stages of a valid manifest."""
    result, problems = resolved(data, found)
    assert problems == {}
    assert result is not None
    return [stage.name for stage in result.stages]


def write(folder: str, data: dict[str, Any] | bytes, *, request: str = "do it") -> str:
    """A packet's folder on disk."""
    os.makedirs(os.path.join(folder, "inputs", "attachments"), exist_ok=True)
    with open(os.path.join(folder, "manifest.yaml"), "wb") as file:
        file.write(data if isinstance(data, bytes) else json.dumps(data).encode())
    with open(os.path.join(folder, "inputs", "user_request.md"), "w", encoding="utf-8") as file:
        file.write(request)
    return folder
