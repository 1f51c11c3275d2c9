"""`[[notify]]`: valid rules, and the errors for invalid ones."""

from __future__ import annotations

import os

import pytest

from holdfast.config import notices, settings
from holdfast.errors import UsageError


def read(place, text: str, *, folder: str = "holdfast") -> list[dict]:
    path = os.path.join(place.root, folder, "config.toml")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return settings.read(path)["notify"]


def test_rules_are_read_with_their_options(place) -> None:
    found = read(
        place,
        """
        [[notify]]
        on = ["interrupted", "quality_gate"]
        to = "command"
        argv = ["say", "it"]
        name = "me"
        projects = ["~/api", "here"]

        [[notify]]
        on = ["all"]
        to = "webhook"
        url = "https://example.org/x?y=1"
        secret_file = "key"
        """,
    )
    folder = os.path.join(place.root, "holdfast")
    assert found == [
        {
            "to": "command",
            "on": ["interrupted", "quality_gate"],
            "name": "me",
            "projects": [os.path.expanduser("~/api"), os.path.join(folder, "here")],
            "argv": ["say", "it"],
        },
        {
            "to": "webhook",
            "on": ["all"],
            "url": "https://example.org/x?y=1",
            "secret_file": os.path.join(folder, "key"),
        },
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('notify = "me"', "must be [[notify]] tables"),
        ('notify = ["me"]', "must be [[notify]] tables"),
        ('[[notify]]\non = ["failed"]', "rule 1 has no 'to'; known: command, webhook"),
        ('[[notify]]\nto = "desktop"', "rule 1 has no 'on'"),
        ('[[notify]]\nto = "desktop"\non = []', "rule 1 has no 'on'"),
        (
            '[[notify]]\nto = "desktop"\non = ["faild"]',
            "on: unknown event 'faild'; known: interrupted, failed",
        ),
        ('[[notify]]\nto = "pigeon"\non = ["all"]', "unknown notifier 'pigeon'; known: command"),
        ('[[notify]]\nto = "command"\non = ["all"]', "rule 1: command needs 'argv'"),
        ('[[notify]]\nto = "command"\non = ["all"]\nargv = "say"', "argv: must be a list of strings"),
        ('[[notify]]\nto = "command"\non = ["all"]\nargv = []', "argv: must be a list of strings"),
        ('[[notify]]\nto = "gt"\non = ["all"]\nargv = ["a"]', "gt has no option 'argv'; allowed: on, to"),
        ('[[notify]]\nto = "webhook"\non = ["all"]', "webhook needs one of 'url' and 'url_env'"),
        ('[[notify]]\nto = "webhook"\non = ["all"]\nurl = "ftp://x"', "must start with https:// or http://"),
        (
            '[[notify]]\nto = "webhook"\non = ["all"]\nurl_env = "U"\nsecret_env = "A"\nsecret_file = "b"',
            "one of 'secret_env' and 'secret_file'",
        ),
        ('[[notify]]\nto = "apprise"\non = ["all"]', "apprise needs one of 'urls' and 'url_env'"),
    ],
)
def test_a_wrong_rule_is_refused_with_what_is_allowed(place, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(place, text + "\n")
    assert said in str(error.value)
    assert "notify = [{ on" in error.value.hint


def test_the_projects_settings_cannot_hold_rules(place) -> None:
    """An agent can write them, and a rule runs programs outside of its sandbox."""
    with pytest.raises(UsageError, match="must be in the user's settings"):
        read(place, '[[notify]]\nto = "desktop"\non = ["all"]\n', folder=".holdfast")


def test_every_notifier_has_its_function() -> None:
    from holdfast.notify import registry

    for name in notices.NOTIFIERS:
        assert callable(registry.notifier(name))
    with pytest.raises(UsageError, match="no notifier 'pigeon'"):
        registry.notifier("pigeon")
