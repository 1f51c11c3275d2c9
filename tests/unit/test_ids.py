"""Ids: valid ones, and that new ones do not collide."""

from __future__ import annotations

import re

import pytest

from holdfast import ids
from holdfast.errors import InvalidId


@pytest.mark.parametrize("text", ["a", "7", "A.b_c-d", "20260131-fix-k3qa", "a" * 64, "a..b"])
def test_an_id_passes(text: str) -> None:
    assert ids.check_task_id(text) == text


@pytest.mark.parametrize(
    "text", ["", ".", "..", ".a", "-a", "_a", "a/b", "../a", "a b", "a\n", "a\0", "ä", "a" * 65, "a:b"]
)
def test_anything_else_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(InvalidId) as caught:
        ids.check_task_id(text)
    assert caught.value.hint
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Fix the tests!", "fix-the-tests"),
        ("", "task"),
        ("///", "task"),
        ("Größe", "grosse"),
        ("Überprüfung größer", "uberprufung-grosser"),
        ("Ångström, Łódź: œuvre naïve", "angstrom-lodz-oeuvre"),
        ("日本語 fix", "fix"),
        ("x" * 99, "x" * 24),
    ],
)
def test_a_slug_is_a_few_plain_words(text: str, slug: str) -> None:
    assert ids.slug(text) == slug


@pytest.mark.parametrize("name", ["fix the tests", "", "../../etc/passwd", "x" * 500, "日本語"])
def test_a_new_id_is_an_id_whatever_the_name(name: str) -> None:
    made = ids.new_task_id(name)
    assert ids.check_task_id(made) == made
    assert re.fullmatch(r"\d{8}-[a-z0-9-]+-[a-z2-7]{4}", made)


def test_ulids_grow_strictly_within_one_process() -> None:
    made = [ids.new_ulid() for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(ids.is_ulid(text) for text in made)


def test_many_ulids_at_once_grow_with_those_made_one_by_one() -> None:
    made: list[str] = []
    for count in (0, 1, 2, 1000, 1024, 5000, 3):
        made.append(ids.new_ulid())
        at_once = ids.new_ulids(count)
        assert len(at_once) == count
        made += at_once
    assert made == sorted(set(made))
    assert all(ids.is_ulid(text) for text in made)


@pytest.mark.parametrize("text", ["", "0" * 25, "0" * 27, "I" * 26, "0" * 25 + "u", "0" * 25 + "/"])
def test_what_is_no_ulid(text: str) -> None:
    assert not ids.is_ulid(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("007", 7),
        ("999999999", 999999999),
        ("", None),
        ("²", None),
        ("٣", None),
        ("9" * 10, None),
        ("-1", None),
        (" 1", None),
        ("1_0", None),
    ],
)
def test_a_number_in_a_name_has_few_plain_digits(text: str, number: int | None) -> None:
    assert ids.number_in(text) == number


def test_attempt_ids_and_uuids_have_their_shape() -> None:
    assert re.fullmatch(r"ses_[0-9a-f]{8}", ids.new_attempt_id())
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", ids.new_uuid()
    )
