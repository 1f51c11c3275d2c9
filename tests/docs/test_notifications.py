"""docs/reference/notifications.md has every event and notifier with its options, and a valid example."""

from __future__ import annotations

import os
import re

import pytest

from holdfast.config import notices, settings
from holdfast.keeper import delivery
from holdfast.notify import command
from tests.support import pages


def page() -> str:
    return pages.read("docs/reference/notifications.md")


def test_every_event_and_notifier_is_explained() -> None:
    for event in (*notices.EVENTS, "all"):
        assert re.search(rf"^\|.*`{event}`.*\|", page(), re.MULTILINE), event
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page().partition("## How")[2], re.MULTILINE))
    assert list(rows) == list(notices.NOTIFIERS)
    for name, options in notices.NOTIFIERS.items():
        assert set(re.findall(r"`(\w+)`", rows[name])) == set(options), name
    for variable in command.variables({}):
        assert f"`{variable}`" in page()


def test_the_limits_are_those_of_the_code() -> None:
    assert delivery.TRIES == 8
    assert f"ends after {delivery.LIMIT_S:.0f} s" in " ".join(page().split())
    assert delivery.pause_s(1) == 5
    assert round(delivery.pause_s(delivery.TRIES - 1) / 3600) == 22


def test_the_example_is_valid(place) -> None:
    path = os.path.join(place.root, "config.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(pages.fenced(page(), "toml"))
    assert [rule["to"] for rule in settings.read(path)["notify"]] == ["desktop", "webhook", "ntfy"]


@pytest.mark.parametrize("name", ["context.json", "summary.md", "logs.txt", "work.json"])
def test_the_files_of_an_interrupt_are_on_the_page_of_files(name: str) -> None:
    assert f"`T/state/interrupts/<n>/{name}`" in pages.read("docs/reference/files.md")
