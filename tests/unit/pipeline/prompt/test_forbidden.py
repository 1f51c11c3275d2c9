"""Forbidden paths are refused and masked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InvalidPattern
from holdfast.pipeline.prompt import diff_text, forbidden
from holdfast.pipeline.prompt.forbidden import MASK, Forbidden

USUAL = Forbidden([".env", "secrets/", "*.pem", "config/prod.yaml"], project_dir="/srv/app")


@pytest.mark.req("CTX-3")
@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "./.env",
        "a/b/.env",
        "/srv/app/.env",
        "/elsewhere/.env",
        "../.env",
        "~/x/.env",
        "secrets/a.txt",
        "x/secrets/deep/er.txt",
        "key.pem",
        "config/prod.yaml",
        "/elsewhere/config/prod.yaml",
        "/srv/app/config/prod.yaml",
    ],
)
def test_what_is_forbidden(path: str) -> None:
    assert USUAL.matches(path)


@pytest.mark.parametrize(
    "path",
    [".env.example", "env", "secrets", "src/secretsauce.py", "pem", "sub/config/prod.yaml", "", "/", ".."],
)
def test_what_is_not(path: str) -> None:
    assert not USUAL.matches(path)


def test_an_exception_to_a_pattern_holds() -> None:
    paths = Forbidden(["*.pem", "!certs/ca.pem"])
    assert paths.matches("certs/key.pem")
    assert not paths.matches("certs/ca.pem")
    assert paths.mask("certs/ca.pem certs/key.pem") == f"certs/ca.pem {MASK}"


@pytest.mark.req("CTX-3")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("read .env first", f"read {MASK} first"),
        ("It is in `.env`.", f"It is in `{MASK}`."),
        ("It is in .env.", f"It is in {MASK}."),
        ('open("secrets/db.json")', f'open("{MASK}")'),
        ("see secrets/, or /srv/app/secrets", f"see {MASK}, or {MASK}"),
        ("--env-file=.env:ro", f"--env-file={MASK}:ro"),
        ("+.env\n-a/b/x.pem", f"+{MASK}\n-{MASK}"),
        ("a/config/prod.yaml b/config/prod.yaml", f"{MASK} {MASK}"),
        (r'"text": "see\n.env"', rf'"text": "see\n{MASK}"'),
        ("config/prod.yaml:12: bad", f"{MASK}:12: bad"),
        ("cp secrets/* /tmp", f"cp {MASK}* /tmp"),
    ],
)
def test_a_mention_is_masked(text: str, shown: str) -> None:
    assert USUAL.mask(text) == shown
    assert USUAL.mask(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "process.env.HOME",
        "no secrets here",
        ".env.example",
        "environment",
        "a pem file",
        "...",
        "src/prod.yaml",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert USUAL.mask(text) == text


def test_a_path_with_spaces_is_masked() -> None:
    assert Forbidden(["my files/"]).mask("see my files/a") == f"see {MASK}/a"


def test_without_patterns_nothing_changes() -> None:
    assert Forbidden([]).mask(".env") == ".env"
    assert not Forbidden([]).matches(".env")


@pytest.mark.parametrize("pattern", ["", "  ", "# x", "!", "a\\"])
def test_a_pattern_that_means_nothing_is_an_error(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        Forbidden([pattern])
    assert forbidden.check(pattern)
    assert forbidden.check("secrets/") is None


DIFF = """before
diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 x
-y
+z
diff --git a/.env b/.env
new file mode 100644
--- /dev/null
+++ b/.env
@@ -0,0 +1,3 @@
+TOKEN=1
+diff --git a/b.py b/b.py
+--- a/b.py
diff --git a/c.py b/d.pem
similarity index 90%
rename from c.py
rename to d.pem
--- c.py
+++ c.py
@@ -1 +1 @@
-1
+2
--- x/secrets/y
+++ x/secrets/y
@@ -1 +1 @@
-3
+4
+miscounted
after
"""


@pytest.mark.req("CTX-3")
def test_the_diff_of_a_forbidden_path_is_left_out() -> None:
    assert USUAL.without_diffs(DIFF).split("\n") == [
        *DIFF.split("\n")[:9],
        "[the diff of a forbidden path is left out: 8 lines]",
        "[the diff of a forbidden path is left out: 9 lines]",
        "[the diff of a forbidden path is left out: 6 lines]",
        "after",
        "",
    ]


@given(st.lists(st.sampled_from([*DIFF.split("\n"), "text", "@@ -1,5 +1,5 @@"]), max_size=40))
def test_a_diff_of_allowed_paths_is_left_as_it_is(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert diff_text.without(text, lambda _: False) == text
