"""quick_json answers what json answers."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import quick_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(value=VALUES, indent=st.sampled_from([None, 2]), ascii_only=st.booleans())
def test_it_reads_what_json_writes(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert quick_json.loads(text) == value
    assert quick_json.loads(text + " \n") == value
    assert quick_json.dumps(value, ensure_ascii=ascii_only) == json.dumps(value, ensure_ascii=ascii_only)
    assert quick_json.dumps(value, is_compact=True) == json.dumps(value, separators=(",", ":"))


@pytest.mark.parametrize(
    "value", [object(), {(1,): 2}, {1: 2, None: 3, 1.5: 4}, {"a": {3}}, float("inf"), (1, [2])]
)
def test_whatever_it_is_to_write_json_says_the_same(value: Any) -> None:
    assert answer(quick_json.dumps, value) == answer(json.dumps, value)


def test_what_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises((ValueError, RecursionError)):
        quick_json.dumps(endless)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", " {}", "\n[1]", "{}x", "[1,]", "{'a': 1}", '{"a": 1', "nul", "01", "-", '"\t"', '"\\x"',
        b"\xff", b"\xef\xbb\xbf{}", '{"a": 1}'.encode("utf-16"), b'"\xed\xa0\x80"', "\ufeff{}", '"\\ud800"',
        '{"a": 1, "a": 2}', "-Infinity", "1e400",
    ],
)  # fmt: skip
def test_whatever_it_is_given_json_says_the_same(text: str | bytes) -> None:
    assert answer(quick_json.loads, text) == answer(json.loads, text)


def answer(does: Any, value: Any) -> Any:
    try:
        return does(value)
    except (ValueError, TypeError) as error:
        return type(error), str(error)


def test_nan_is_read() -> None:
    assert math.isnan(quick_json.loads("NaN"))


def test_what_is_nested_too_deeply_is_a_mistake_like_others() -> None:
    with pytest.raises(ValueError, match="too deeply"):
        quick_json.loads(b"[" * 100_000)
