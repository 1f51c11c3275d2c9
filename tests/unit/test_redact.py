"""Redaction: secrets go, ordinary text stays."""

from __future__ import annotations

import pytest

from holdfast.redact import MASK, Redactor

PLAIN = Redactor({})


@pytest.mark.parametrize(
    "name",
    ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "MY_SECRET", "DB_PASSWORD", "aws_credentials", "PASSWD", "SERVICE_KEYS",
     "DATABASE_URL"],
)  # fmt: skip
def test_the_exact_value_of_a_secret_variable_is_masked(name: str) -> None:
    redact = Redactor({name: "hunter2hunter2"})
    assert redact("x hunter2hunter2 y") == f"x {MASK} y"


@pytest.mark.parametrize("name", ["PATH", "HOME", "KEYBOARD", "TOKENIZER", "EDITOR", "MONKEY_BUSINESS"])
def test_other_variables_are_not(name: str) -> None:
    redact = Redactor({name: "hunter2hunter2"})
    assert redact("x hunter2hunter2 y") == "x hunter2hunter2 y"


def test_a_short_value_would_mask_ordinary_words_and_is_left() -> None:
    assert Redactor({"A_KEY": "yes"})("yes, all is well") == "yes, all is well"


def test_a_secret_that_contains_another_is_masked_whole() -> None:
    redact = Redactor({"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-and-more"})
    assert redact("abcdefgh-and-more abcdefgh") == f"{MASK} {MASK}"


def test_a_value_is_taken_literally_not_as_a_pattern() -> None:
    redact = Redactor({"A_KEY": "a.c(d)[e]+*"})
    assert redact("a.c(d)[e]+* abc(d)[e]+*") == f"{MASK} abc(d)[e]+*"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-" + "aB3_" * 8,
        "sk-proj-" + "x" * 24,
        "sk-" + "0123456789abcdef" * 2,
        "ghp_" + "A1" * 18,
        "gho_" + "A1" * 18,
        "github_pat_" + "11ABC_def" * 5,
        "glpat-" + "a1B2" * 5,
        "xoxb-" + "1234567890-abc",
        "AKIA" + "ABCDEFGHIJ234567",
        "AIza" + "a1B2-" * 7,
    ],
)
def test_a_token_is_known_by_its_shape(secret: str) -> None:
    assert PLAIN(f'{{"line": "{secret}"}}') == f'{{"line": "{MASK}"}}'
    assert PLAIN(f"({secret})\n") == f"({MASK})\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdef0123456789==", f"Authorization: Bearer {MASK}"),
        (
            "https://example.org/?access_token=abcd1234&page=2",
            f"https://example.org/?access_token={MASK}&page=2",
        ),
        ("PASSWORD=correct-horse next", f"PASSWORD={MASK} next"),
        ("api_key=abcd1234", f"api_key={MASK}"),
        ('secret=abcd1234" other', f'secret={MASK}" other'),
    ],
)
def test_what_stands_behind_its_name_is_masked_and_the_name_stays(text: str, shown: str) -> None:
    assert PLAIN(text) == shown


def test_a_private_key_is_masked_whole_also_when_its_end_is_missing() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    assert PLAIN(f"a\n{begin}\nMIIE\nxyz\n{end}\nb") == f"a\n{MASK}\nb"
    assert PLAIN(f"a\n{begin}\nMIIE") == f"a\n{MASK}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "all tests pass",
        "the risk-adjusted task-list of the desk-bound",
        "skip-worktree ask-for-more",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "id 081d0293-612a-42d0-9e22-b06ea1e3de6e ses_f9632e9c 01M7F9QQ3TSFT3EPM333Q0714K",
        "the password is asked for; a secret is a secret; bearer of news",
        "def test_tokens(token: str) -> None: assert token == expected_token",
        "-----BEGIN CERTIFICATE-----",
        "AKIA is a prefix, ghp_ too",
        "max_tokens=4096 key=value keyboard=us",
        "https://example.org/path?page=2&sort=name",
        "PATH=/usr/bin:/bin HOME=/placeholder",
        "Grüße, 日本語, 🦑",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert PLAIN(text) == text


def test_redacting_twice_changes_nothing_more() -> None:
    redact = Redactor({"A_KEY": "hunter2hunter2"})
    once = redact("password=hunter2hunter2 sk-ant-" + "a" * 30)
    assert redact(once) == once


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("HTTP_PROXY=http://bob:hunter2secret@host", f"HTTP_PROXY=http://{MASK}@host"),
        ("https://bob:p%40ss@host:3128/x?y=z", f"https://{MASK}@host:3128/x?y=z"),
        ("postgres://u:pw@db/name and more", f"postgres://{MASK}@db/name and more"),
        ("http://host:3128/a@b", "http://host:3128/a@b"),
        ("ssh://git@host/x", "ssh://git@host/x"),
    ],
)
def test_a_password_in_an_address_is_masked(text: str, shown: str) -> None:
    assert PLAIN(text) == shown


def test_a_variable_that_was_handed_over_is_masked_whatever_its_name() -> None:
    redact = Redactor({"PLAIN": "hunter2hunter2", "OTHER": "ordinary words"}, ["PLAIN"])
    assert redact("hunter2hunter2, ordinary words") == f"{MASK}, ordinary words"
