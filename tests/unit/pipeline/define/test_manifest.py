"""Checking manifest.yaml: every field, and all problems together, each with its path."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from contracts import manifest_yaml
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.pipeline.define.problem import Problem
from tests.support import manifests
from tests.support.manifests import put, valid

REQUIRED = [
    "task_id",
    "goal",
    "routing.intent",
    "scope.allow",
    "scope.deny",
    "acceptance.commands",
    "acceptance.criteria",
    "budgets.retry_budget",
    "budgets.paid_call_budget",
    "budgets.max_wallclock_sec",
    "context.digest_policy",
]


def problems(data: Any) -> dict[str, str]:
    found: list[Problem] = []
    manifests.checked(data, found)
    return manifests.said(found)


@pytest.mark.req("PKT-3")
def test_the_required_fields_are_those_of_the_packet_and_no_others() -> None:
    assert problems(valid()) == {}
    assert [field.path for field in FIELDS if field.required] == REQUIRED


@pytest.mark.req("PKT-3")
@pytest.mark.parametrize("path", REQUIRED)
def test_a_required_field_is_demanded(path: str) -> None:
    assert problems(put(valid(), path, ...))[path].startswith("missing")


@pytest.mark.req("PKT-3")
def test_the_optional_fields_are_understood() -> None:
    found: list[Problem] = []
    data = valid()
    for path, value in (
        ("routing.model", {"codex": "gpt-5.2-codex", "gemini": "flash", "copilot": "auto"}),
        (
            "routing.pipeline",
            {
                "profile": "codex_only",
                "flags": {"enable_brief": False},
                "options": {"timeout_mode": "enforce"},
            },
        ),
        ("security", {"redaction_patterns": ["tok_[a-z]+"], "forbidden_paths": [".env", "secrets/"]}),
        ("project", ".."),
        ("workspace", "worktree"),
        ("scope.revert", True),
        ("approval", ["codex_impl"]),
        ("env", ["DATABASE_URL"]),
        ("notes", "ask Ann"),
        ("acceptance.timeout_sec", 60),
        ("budgets.budget_usd", 2.5),
        ("budgets.budget_tokens", 100_000),
        ("budgets.max_turns", 50),
        ("budgets.deadline_sec", 7200),
        ("budgets.on_limit", "end"),
        ("routing.failover", ["claude"]),
        ("routing.options", {"codex": {"sandbox": "read-only"}}),
    ):
        data = put(data, path, value)
    got = manifests.checked(data, found)
    assert found == []
    assert got.below("routing.model") == {"codex": "gpt-5.2-codex", "gemini": "flash", "copilot": "auto"}
    assert got.get("security.forbidden_paths") == (".env", "secrets/")
    assert got.get("budgets.budget_usd") == 2.5
    assert got.get("routing.options.codex") == {"sandbox": "read-only"}


def test_what_is_left_out_has_its_default() -> None:
    got = manifests.checked(valid(), [])
    assert got.get("workspace") == "in_place"
    assert got.get("acceptance.timeout_sec") == 600
    assert got.get("security.redaction_patterns") == ()
    assert got.get("budgets.budget_usd") is None


@pytest.mark.req("PKT-4")
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (
            "routing.intent",
            ("safe_impl", "one_shot_impl", "design_only", "review_only", "review_cross", "post_impl_review"),
        ),
        ("context.digest_policy", ("off", "auto", "aggressive")),
    ],
)
def test_an_enum_takes_its_values_and_no_others(path: str, allowed: tuple[str, ...]) -> None:
    assert [field.choices for field in FIELDS if field.path == path] == [allowed]
    for value in allowed:
        assert problems(put(valid(), path, value)) == {}
    for value in ("", "AUTO", "plan", True, 1, None, ["auto"], {}):
        said = problems(put(valid(), path, value))[path]
        assert f"allowed: {', '.join(allowed)}" in said


def test_off_is_a_word_and_not_false() -> None:
    text = b"context: {digest_policy: off}\n"
    found: list[Problem] = []
    assert manifests.checked(text, found).get("context.digest_policy") == "off"


@pytest.mark.req("PKT-6")
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("task_id", "../x", "is not a valid task id"),
        ("task_id", 7, "must be a string, not 7 (put it in quotes)"),
        ("goal", "  ", "must not be empty"),
        ("goal", "x" * 20_000, "longer than 10000 characters"),
        ("goal", "a\0b", "NUL"),
        ("scope.allow", "src/", "must be a list, not 'src/'"),
        ("budgets.retry_budget", True, "integer from 0 to 100, not true"),
        ("budgets.retry_budget", -1, "integer from 0 to 100, not -1"),
        ("budgets.retry_budget", 2.0, "integer from 0 to 100, not 2"),
        ("budgets.retry_budget", "2", "not '2'"),
        ("budgets.paid_call_budget", 0, "from 1 to 10000, not 0"),
        ("budgets.max_wallclock_sec", 10**30, "integer"),
        ("budgets.budget_usd", 0, "must be a number above 0"),
        ("budgets.budget_usd", True, "must be a number above 0"),
        ("budgets.budget_usd", "2", "must be a number above 0"),
        ("workspace", "wortree", "did you mean 'worktree'?"),
        ("routing.pipeline.flags.enable_brief", "no", "must be true or false, not 'no'"),
        ("routing.pipeline.flags.enable_brief", 1, "must be true or false, not 1"),
        ("env", ["A-B"], "not a valid variable name"),
        ("approval", ["a", "a"], "duplicate 'a'"),
        ("scope", None, "must be a map, not null"),
        ("scope", ["src"], "must be a map, not a list"),
        ("routing.options", {"codex": {"x": None}}, "not null"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_reported_with_its_path_and_the_allowed_ones(
    path: str, value: Any, said: str
) -> None:
    found = problems(put(valid(), path, value))
    assert any(key.startswith(path.split("[")[0]) and said in text for key, text in found.items()), found


@pytest.mark.parametrize(
    ("path", "key", "near"),
    [
        ("", "gaol", "goal"),
        ("scope.", "alow", "allow"),
        ("budgets.", "retry_budgets", "retry_budget"),
        ("routing.pipeline.", "flag", "flags"),
    ],
)
def test_an_unknown_key_is_reported_with_a_suggestion(path: str, key: str, near: str) -> None:
    found = problems(put(valid(), path + key, 1))
    assert f"did you mean '{near}'?" in found[path + key]
    assert "allowed:" in found[path + key]


@pytest.mark.parametrize("key", ["scope.allow", "scope.deny", "security.forbidden_paths"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("/etc/passwd", "is absolute"),
        ("~/x", "is absolute"),
        ("C:\\x", "is absolute"),
        ("../x", "leaves the project"),
        ("src/../../x", "leaves the project"),
        ("a\\..\\b", "leaves the project"),
        ("..", "leaves the project"),
        ("!src", "begins with '!'"),
        ("", "must not be empty"),
        ("a\nb", "control character"),
        ("# note", "not a valid pattern"),
        (3, "must be a string, not 3"),
    ],
)
def test_a_path_that_escapes_is_refused(key: str, value: Any, said: str) -> None:
    assert said in problems(put(valid(), key, ["ok/", value]))[f"{key}[1]"]


@pytest.mark.parametrize("value", ["src/", "**", "a..b", "docs/*.md", "...", "x/..y"])
def test_a_path_inside_is_fine(value: str) -> None:
    assert problems(put(valid(), "scope.allow", [value])) == {}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("(a", "is not a regular expression"),
        ("a{2,1}", "is not a regular"),
        ("(?P<", "is not a regular"),
        (".*", "matches the empty string"),
        (r"(\w)\1", "RE2 syntax"),
        ("a" * 2000, "longer than 1000"),
        (1, "must be a string"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_an_error(value: Any, said: str) -> None:
    found = problems(put(valid(), "security.redaction_patterns", ["ok", value]))
    assert said in found["security.redaction_patterns[1]"]


@pytest.mark.req("PKT-6")
def test_all_mistakes_are_reported_together_in_order() -> None:
    text = b"""task_id: 1
goal: ''
routing: {intent: nope}
scope: {allow: /x}
acceptance: {commands: [1], criteria: []}
budgets: {retry_budget: true, paid_call_budget: 10, max_wallclock_sec: -1}
context: {digest_policy: auto}
extra: 1
"""
    found: list[Problem] = []
    manifests.checked(text, found)
    assert {(each.path, each.line) for each in found} == {
        ("task_id", 1),
        ("goal", 2),
        ("routing.intent", 3),
        ("scope.allow", 4),
        ("scope.deny", 4),
        ("acceptance.commands[0]", 5),
        ("budgets.retry_budget", 6),
        ("budgets.max_wallclock_sec", 6),
        ("extra", 8),
    }


@pytest.mark.parametrize("text", [b"", b"[]", b"3", b"just words"])
def test_a_value_that_is_no_map_is_reported_once(text: bytes) -> None:
    found: list[Problem] = []
    manifests.checked(text, found)
    assert [each.message[:22] for each in found] == ["a manifest must be a m"]


def test_a_dotted_key_is_not_passed_over() -> None:
    _, found = manifests.resolved(put(valid(), "routing.model", {"a.b": "x"}))
    assert "unknown agent 'a.b'" in found["routing.model.a.b"]


# ── the schema for editors ──

SIMPLE = [
    (valid(), True),
    (put(valid(), "goal", ...), False),
    (put(valid(), "goal", 3), False),
    (put(valid(), "gaol", "x"), False),
    (put(valid(), "routing.intent", "nope"), False),
    (put(valid(), "routing.pipeline.options.timeout_mode", "enforce"), True),
    (put(valid(), "routing.pipeline.options.timeout_mode", "sometimes"), False),
    (put(valid(), "routing.pipeline.flags.enable_brief", 1), False),
    (put(valid(), "scope.allow", ["/x"]), False),
    (put(valid(), "scope.allow", ["a/../b"]), False),
    (put(valid(), "scope.allow", ["a..b", "...", "src/**"]), True),
    (put(valid(), "budgets.retry_budget", True), False),
    (put(valid(), "budgets.retry_budget", -1), False),
    (put(valid(), "budgets.budget_usd", 0.5), True),
    (put(valid(), "acceptance.commands", []), True),
    (put(valid(), "approval", ["codex_impl"]), True),
    (put(valid(), "scope.deny", ...), False),
    (put(valid(), "workspace", "worktree"), True),
    (put(valid(), "routing.model.codex", "gpt-5.2-codex"), True),
]


@pytest.mark.parametrize(("data", "fits"), SIMPLE)
def test_the_schema_accepts_and_refuses_what_the_check_does(data: dict[str, Any], fits: bool) -> None:
    assert jsonschema.Draft202012Validator(manifest_yaml.schema()).is_valid(data) == fits
    assert (manifests.resolved(data)[1] == {}) == fits
