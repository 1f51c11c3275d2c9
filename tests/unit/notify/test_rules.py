"""Which rules match, the label of a rule, and the text of a notice."""

from __future__ import annotations

import pytest

from holdfast.notify import rules

RULES = [
    {"on": ["interrupted"], "to": "gt"},
    {"on": ["all"], "to": "desktop"},
    {"on": ["failed", "completed"], "to": "command", "argv": ["/opt/say it"], "projects": ["/work/api"]},
]


@pytest.mark.req("NOT-4")
@pytest.mark.parametrize(
    ("event", "project", "told"),
    [
        ("interrupted", "/work/api", ["gt", "desktop"]),
        ("failed", "/work/api", ["desktop", "command"]),
        ("failed", "/work/api/inner", ["desktop", "command"]),
        ("failed", "/work/api2", ["desktop"]),
        ("completed", None, ["desktop"]),
        ("killed", "/work/api", ["desktop"]),
    ],
)
def test_each_event_has_its_own_targets(event: str, project: str | None, told: list[str]) -> None:
    assert [rule["to"] for rule in rules.matching(RULES, event, project=project)] == told


@pytest.mark.parametrize(
    ("rule", "label"),
    [
        ({"to": "gt"}, "gt"),
        ({"to": "gt", "name": "boss"}, "boss"),
        ({"to": "command", "argv": ["/opt/say it", "secret"]}, "command say it"),
        ({"to": "webhook", "url": "https://user:pw@hooks.example/T1/secret"}, "webhook hooks.example"),
        ({"to": "webhook", "url_env": "HOOK"}, "webhook HOOK"),
        ({}, "?"),
    ],
)
def test_a_label_names_the_rule_and_nothing_secret(rule: dict, label: str) -> None:
    assert rules.label(rule) == label


@pytest.mark.req("NOT-3")
def test_the_text_has_the_reason() -> None:
    event = {"event": "interrupted", "task_id": "fix", "reason": "which branch?"}
    assert rules.message(event) == "holdfast: fix needs a person: which branch?"
    assert rules.message({"event": "completed", "task_id": "fix", "reason": ""}) == "holdfast: fix is done"
    assert rules.message({"event": "home_interrupt", "reason": "stop"}) == (
        "holdfast: the queue is stopped: stop"
    )


def test_only_its_cause_tells_an_interrupt_by_down_from_a_question() -> None:
    event = {"event": "interrupted", "task_id": "t1", "reason": "holdfast down --now", "cause": "down"}
    assert rules.message(event) == "holdfast: t1 was interrupted by 'holdfast down --now'"
    assert rules.message({**event, "cause": ""}) == "holdfast: t1 needs a person: holdfast down --now"
    event = {"event": "interrupted", "task_id": "t1", "reason": "interrupted by ada@host"}
    assert rules.message(event) == "holdfast: t1 was interrupted by ada@host"
    event = {"event": "interrupted", "task_id": "t1", "reason": "not now", "asked_by": "person"}
    assert rules.message(event) == "holdfast: t1 was interrupted by a person: not now"
