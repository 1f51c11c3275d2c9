"""Patterns of paths mean what git means by them, and take no time whatever the path."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from holdfast.workspace.scope import compiled

# Not `[!a]`: pathspec lets it match a slash, which git does not.
_SEGMENT = st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "**", "."]), min_size=1, max_size=6)
_PATTERN = st.builds(
    lambda root, parts, end: root + "/".join("".join(part) for part in parts) + end,
    st.sampled_from(["", "/", "**/"]),
    st.lists(_SEGMENT | st.just(["**"]), min_size=1, max_size=5),
    st.sampled_from(["", "/", "/**"]),
)
_PATH = st.lists(st.text("ab.", min_size=1, max_size=5), min_size=1, max_size=6).map("/".join)


@settings(max_examples=400, deadline=None)
@given(_PATTERN, st.lists(_PATH, min_size=1, max_size=8))
def test_the_meaning_is_that_of_pathspec(pattern: str, paths: list[str]) -> None:
    try:
        plain = GitIgnoreSpec.from_lines([pattern], backend="simple")
    except ValueError:
        return
    ours = compiled([pattern])
    for path in (*paths, *(f"{each}/" for each in paths)):
        assert ours.match_file(path) == plain.match_file(path), (pattern, path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 20 + "*c", "a" * 200),
        ("x/" + "*a" * 20 + "*c", "x/" + "a" * 200),
        ("*?" * 20 + "*c", "a" * 200),
        ("*?[!b]" * 20 + "*c", "a" * 200),
        ("a/**/" * 12 + "b", "a/" * 400 + "c"),
        ("**/a/" * 12 + "b", "a/" * 400 + "c"),
        ("**/" + "*a*a/**/" * 8 + "b", "aaa/" * 300 + "c"),
    ],
)
def test_wildcards_are_matched_in_no_time(pattern: str, path: str) -> None:
    spec, started = compiled([pattern]), time.process_time()
    assert not spec.match_file(path)
    assert time.process_time() - started < 2
