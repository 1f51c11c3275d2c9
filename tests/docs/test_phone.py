"""docs/guides/phone.md: its rule is valid, its console blocks run as shown, and its values are those of the
code."""

from __future__ import annotations

import os
import sys

import pytest

from holdfast.config import notices
from tests.support import loops, pages
from tests.support.ntfy import press, serving
from tests.support.packets import Written
from tests.support.tasks import workspace
from tests.support.waiting import eventually


def page() -> str:
    return pages.read("docs/guides/phone.md")


@pytest.mark.timeout(120)
def test_it_runs_as_shown(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace()
    monkeypatch.delenv("HOLDFAST_KEEPER")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=":")
    monkeypatch.setenv("NTFY_TOPIC", "alerts")
    monkeypatch.setenv("NTFY_TOKEN", "tk_secret")
    steps = [step for block in pages.blocks(page()) for step in pages.steps(block)]
    with serving(token="tk_secret", write_token="tk_secret") as server:
        loops.settings(pages.fenced(page(), "toml").replace("https://ntfy.example.org", server.url))
        command, expected = steps[0]
        assert pages.check(["sh", "-c", command], command, expected, home=home) == 0
        stages = dict.fromkeys(["scripted_verify"])
        packet = Written(
            stages,
            intent="review_only",
            group="review",
            approval=list(stages),
            acceptance={"commands": ["true"]},
        )
        task = packet.start()
        (message,) = eventually(
            lambda: [each for each in server.of("alerts") if each.get("actions")], 20, "the notice arrives"
        )
        assert [action["label"] for action in message["actions"]] == ["Approve", "Reject"]
        server.token = ""  # the guide's server lets everybody write replies
        press(message, "Approve")
        task.wait_for("completed", within_s=40)
        for command, expected in steps[1:]:
            assert pages.check(["sh", "-c", command], command, expected, home=home) == 0


def test_its_values_are_those_of_the_code() -> None:
    assert notices.REPLY_WITHIN == "12h"
    assert notices.DEFAULT_VERBS == ("reject",)


def test_links_resolve() -> None:
    for link in pages.links(page()):
        if not link.startswith("https://"):
            assert os.path.exists(os.path.join(pages.ROOT, "docs", "guides", link)), link
