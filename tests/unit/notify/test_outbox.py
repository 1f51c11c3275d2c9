"""Posting a notice: durable, redacted, one for each rule, and never in the way."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.keeper.delivery import FIRST_PAUSE_S, TRIES, pause_s
from holdfast.notify import outbox
from holdfast.redact import Redactor
from holdfast.store.layout import Home

RULES = [{"on": ["failed"], "to": "gt"}, {"on": ["all"], "to": "desktop"}]


def posted(home: str) -> list[dict]:
    place = Home(home)
    found = []
    for name in outbox.names(place):
        with open(os.path.join(place.outbox, name), encoding="utf-8") as file:
            found.append(json.load(file))
    return found


def test_one_file_for_each_rule_that_matches(home: str) -> None:
    event = {"event": "failed", "task_id": "fix", "status": "failed", "reason": "exit 3", "project_dir": "/p"}
    assert outbox.post(Home(home), RULES, event, str) == 2
    assert outbox.post(Home(home), RULES, {**event, "event": "killed"}, str) == 1
    notices = posted(home)
    assert [notice["rule"]["to"] for notice in notices] == ["gt", "desktop", "desktop"]
    first = notices[0]
    assert first["schema"] == "holdfast.notice/1"
    assert (first["task_id"], first["status"], first["reason"], first["tries"]) == (
        "fix",
        "failed",
        "exit 3",
        0,
    )
    assert first["text"] == "holdfast: fix failed: exit 3"
    for name in os.listdir(Home(home).outbox):
        assert os.stat(os.path.join(Home(home).outbox, name)).st_mode & 0o777 == 0o600


def test_secrets_do_not_leave(home: str) -> None:
    redact = Redactor({"DB_PASSWORD": "hunter2hunter2"})
    event = {"event": "failed", "task_id": "fix", "reason": "no login with hunter2hunter2"}
    outbox.post(Home(home), RULES, event, redact)
    assert posted(home)
    assert "hunter2" not in json.dumps(posted(home))


@pytest.mark.req("NOT-1")
def test_what_cannot_be_written_is_swallowed(home: str) -> None:
    event = {"event": "failed", "task_id": "fix", "reason": ""}
    os.symlink("/nonexistent/somewhere", Home(home).outbox)
    os.chmod(home, 0o500)
    try:
        if os.getuid() != 0:
            assert outbox.post(Home(home), RULES, event, str) == 0
    finally:
        os.chmod(home, 0o700)
    assert outbox.post(Home(os.path.join(home, "nowhere")), RULES, event, str) == 0
    assert outbox.post(Home(home), RULES, {"no": "event"}, str) == 0


def test_the_tries_take_about_a_day() -> None:
    pauses = [pause_s(number) for number in range(1, TRIES)]
    assert pauses[0] == FIRST_PAUSE_S
    assert pauses == sorted(pauses)
    assert 20 * 3600 < sum(pauses) < 30 * 3600
