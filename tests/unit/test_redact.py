"""Redaction masks secrets and keeps ordinary text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, InvalidPattern
from holdfast.patterns import objection
from holdfast.redact import MARGIN, MASK, LineRedactor, Redactor, begin_of, end_of

PLAIN = Redactor({})


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "GITHUB_TOKEN",
        "MY_SECRET",
        "DB_PASSWORD",
        "aws_credentials",
        "PASSWD",
        "SERVICE_KEYS",
        "DATABASE_URL",
    ],
)
def test_the_exact_value_of_a_secret_variable_is_masked(name: str) -> None:
    redact = Redactor({name: "hunter2hunter2"})
    assert redact("x hunter2hunter2 y") == f"x {MASK} y"


@pytest.mark.parametrize("name", ["PATH", "HOME", "KEYBOARD", "TOKENIZER", "EDITOR", "PWD", "OLDPWD"])
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
        "ASIA" + "ABCDEFGHIJ234567",
        "npm_" + "a1B2" * 9,
        "sk_live_" + "a1B2" * 5,
        "eyJ" + "hbGciOiJI" + ".eyJ" + "zdWIiOiIx" + "." + "c2lnbmF0dXJl",
    ],
)
@pytest.mark.req("CTX-4")
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
        ('"password": "a b c", "user": "u"', f'"password": "{MASK}", "user": "u"'),
        (r'{"t": "{\"api_key\": \"abcd1234\", 1}"}', rf'{{"t": "{{\"api_key\": \"{MASK}\", 1}}"}}'),
        ("db_password: hunter2", f"db_password: {MASK}"),
        ("Password = 'it\"s mine'", f"Password = '{MASK}'"),
        ("secret => hunter2;", f"secret => {MASK};"),
        ("AWS_SECRET_ACCESS_KEY=" + "a/b+" * 10, f"AWS_SECRET_ACCESS_KEY={MASK}"),
        ('"SecretAccessKey": "wJalrXUtnFEMI"', f'"SecretAccessKey": "{MASK}"'),
        ("x-api-key: abcd1234", f"x-api-key: {MASK}"),
        ("aws_secret_key: ab,cd)ef", f"aws_secret_key: {MASK}"),
        ("connect(user, password=hunter2)", f"connect(user, password={MASK})"),
        ("authToken: abcd1234", f"authToken: {MASK}"),
        ("authorization: basic dXNlcjpwYXNz", f"authorization: basic {MASK}"),
        ("AUTHORIZATION: BEARER abcdef0123456789", f"AUTHORIZATION: BEARER {MASK}"),
    ],
)
@pytest.mark.req("CTX-4")
def test_a_value_after_a_secret_name_is_masked_and_the_name_stays(text: str, shown: str) -> None:
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
        "def login(password: str, secret: bytes = None, api_key: str | None = None) -> None:",
        "password = getpass.getpass()",
        "self.api_key = os.environ['API_KEY']",
        "self.password = settings.password",
        'if password == "" or password != other:',
        '"password": "", "secret": null, "token": "t"',
        "task-20260131-migrate-the-tests-to-pytest",
        "Invalid token: unexpected end of input",
        "secret:\n  name: of-a-file",
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


def test_a_secret_of_several_lines_is_masked_line_by_line() -> None:
    redact = Redactor({"DEPLOY_KEY": "short\nabcdefghijklmnopqrstuvwxyz\nABCDEFGHIJKLMNOPQRSTUVWXYZ"})
    assert redact("> ABCDEFGHIJKLMNOPQRSTUVWXYZ short") == f"> {MASK} short"


def test_the_exact_value_wins_over_the_shape() -> None:
    redact = Redactor({"DB_PASSWORD": "correct horse battery"})
    assert redact("PASSWORD=correct horse battery staple") == f"PASSWORD={MASK} staple"


@pytest.mark.req("CTX-3")
def test_patterns_of_the_user_are_masked_too_each_by_itself() -> None:
    redact = Redactor({}, patterns=[r"ACME-\d{4}", r"(?i)(x)yx", r"(z)z"])
    assert (
        redact("ACME-1234 ACME-12 XYX zz password=hunter2") == f"{MASK} ACME-12 {MASK} {MASK} password={MASK}"
    )


@pytest.mark.req("CTX-3")
def test_a_pattern_that_masks_a_name_does_not_reveal_its_value() -> None:
    assert Redactor({}, patterns=["password"])("password=hunter2") == f"{MASK}={MASK}"


@pytest.mark.req("CTX-3")
@pytest.mark.parametrize(
    "pattern",
    ["(", "[a", "*x", "", "x*", "^", "(?<=a)", r"(x)\1", r"(.*\s)*", "((ab)*c|x*)+"],
)
def test_a_pattern_that_cannot_be_used_stops_before_anything_is_shown(pattern: str) -> None:
    with pytest.raises(InvalidPattern) as raised:
        Redactor({}, patterns=[pattern])
    assert isinstance(raised.value, HoldfastError)
    assert objection(pattern)


@given(
    st.lists(
        st.sampled_from(
            ["password=", "secret: ", '"api_key": "', "hunter2hunter2", "***", ",", ")", '"', "'", "&", "\\"]
        )
        | st.sampled_from(["Bearer ", "a" * 16, "sk-", "://", "@", ":", " ", "\n", "x", "=", "str", "AKIA"]),
        max_size=12,
    )
)
def test_redacting_anything_twice_changes_nothing_more(pieces: list[str]) -> None:
    redact = Redactor({"A_KEY": "hunter2hunter2"})
    once = redact("".join(pieces))
    assert redact(once) == once
    assert "hunter2" not in once


# ── parts of files ──

_TOKEN = "ghp_" + "Z" * 36


@pytest.mark.parametrize("before", range(80, 101, 4))
@pytest.mark.parametrize("secret", [_TOKEN, "hunter2-hunter2"])
def test_a_secret_at_the_edge_of_an_excerpt_is_masked_whole(before: int, secret: str) -> None:
    redact, far = Redactor({"API_KEY": "hunter2-hunter2"}), "y" * 2 * MARGIN
    begin = begin_of(f"{'x' * before} {secret} {far}".encode()[: 100 + MARGIN], redact, 100)
    end = end_of(f"{far} {secret} {'x' * before}".encode()[-100 - MARGIN :], redact, 100)
    # The mask is shorter than the secret; nothing more is read for it.
    assert (begin[:50], end[-50:]) == ("x" * 50, "x" * 50)
    assert max(len(begin), len(end)) <= 100
    for size in range(4, len(secret)):
        assert secret[:size] not in begin
        assert secret[-size:] not in end


def test_secrets_that_shrink_do_not_pull_half_a_secret_in() -> None:
    """Masks are shorter than secrets, so the margin moves closer to the kept part."""
    redact = Redactor({})
    text = f"{_TOKEN} " * 1000
    data = text.encode()
    assert "Z" not in begin_of(data[: 100 + MARGIN], redact, 100)
    assert "Z" not in end_of(data[-100 - MARGIN :], redact, 100)


def test_what_is_short_is_kept_whole() -> None:
    assert begin_of(b"all of it", Redactor({}), 100) == end_of(b"all of it", Redactor({}), 100) == "all of it"


# ── line by line ──

_KEY = [
    "-----BEGIN RSA PRIVATE KEY-----",
    "Proc-Type: 4,ENCRYPTED",
    "",
    "MIIEowIBAAKCAQEAtheBODYofTheKey",
    "QUJD==",
]
_KEY_ENDS = "-----END RSA PRIVATE KEY-----"


def test_a_key_that_comes_line_by_line_is_masked_whole() -> None:
    redact = LineRedactor(Redactor({}))
    assert [redact(line) for line in ["before", *_KEY, _KEY_ENDS + " then", "behind"]] == [
        "before",
        *[MASK] * len(_KEY),
        f"{MASK} then",
        "behind",
    ]


def test_a_first_line_alone_hides_nothing_behind_it() -> None:
    redact = LineRedactor(Redactor({}))
    assert [redact(line) for line in [_KEY[0], "done", "and more words"]] == [MASK, "done", "and more words"]
    assert [redact(line) for line in [*_KEY, "words that are none"]][-1] == "words that are none"


def test_a_successor_knows_that_it_is_inside_a_key() -> None:
    redact = LineRedactor(Redactor({}))
    redact.remember("x\n" + "\n".join(_KEY[:4]))
    assert redact(_KEY[4]) == MASK


def test_a_value_is_masked_in_its_json_form() -> None:
    value = 'qu"ote\\Tail9\nümlaut'
    redact = Redactor({"DB_PASSWORD": value})
    for text in (json.dumps({"x": value}), json.dumps({"x": value}, ensure_ascii=False), value):
        assert "Tail9" not in redact(text)
        assert "mlaut" not in redact(text)
