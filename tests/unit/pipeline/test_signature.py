"""The same failure has the same signature, whenever and wherever it happens; another failure has another."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import clock, ids
from holdfast.pipeline.signature import CHARS, LENGTH, LINES, normalise, signature

BASE = "error: cannot open the door at src/door.py:42"


def said(noise: str) -> str:
    return f"{noise} {BASE} {noise}"


@pytest.mark.req("GAT-8")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2026-01-31T12:00:00.123Z", "2025-02-01T03:04:05Z"),
        ("2026-01-31 12:00:00,123", "2026-01-31 12:00:01,456"),
        ("[12:00:01]", "[23:59:59.999]"),
        ("Sat Jan 31 12:00:00 2026", "Sun Feb  1 07:30:00 2026"),
        ("Sat, 31 Jan 2026 12:00:00 GMT", "Sun, 01 Feb 2026 07:30:00 GMT"),
        ("at 1769860800", "at 1769860801"),
        ("at 1769860800123", "at 1769860899999"),
        ("20260131-fix-the-tests-k3qa", "20260201-fix-it-zz2a"),
        ("123e4567-e89b-12d3-a456-426614174000", "00000000-0000-4000-8000-000000000001"),
        ("/home/ada/.local/state/holdfast/tasks/a/outputs/x.out", "/srv/hf/tasks/b/outputs/x.out"),
        ("in attempts/001-codex_impl/stdout.log", "in attempts/017-codex_impl/stdout.log"),
        ("/tmp/holdfast-k2j3/x", "/tmp/holdfast-aaaa/x"),
        ("0x7ffdeadbeef", "0x1"),
        ("commit 3f2a9c1", "commit 0b1c2d3"),
        ("ses_0a1b2c3d", "ses_ffffffff"),
        ("req_011CVa8pQ2", "req_022DWb9qR3"),
        ("sk-aaaa1111bbbb", "sk-cccc2222dddd"),
        ("01M7F9RPPST286TF62BTYGQT40", "01M7F9RPPST286TF62BTYGQT41"),
        ("after 12s", "after 340 ms"),
        ("1.5 GB used", "200 KiB used"),
        ("took 3 minutes", "took 45 seconds"),
        ("201,345 tokens", "99 tokens"),
        ("$1.20", "$0.03"),
        ("pid 4711", "pid 12"),
        ("127.0.0.1:43211", "127.0.0.1:80"),
        ("\x1b[31mred\x1b[0m", "\x1b[1;32mred\x1b[0m"),
        ("key ***", "key ******"),
        ("a  \t b", "a\nb"),
    ],
)
def test_what_changes_from_try_to_try_does_not_count(one: str, other: str) -> None:
    assert signature(said(one)) == signature(said(other)), (normalise(said(one)), normalise(said(other)))


@pytest.mark.req("GAT-8")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/door.py:42: bad", "src/door.py:43: bad"),
        ("src/door.py: bad", "src/window.py: bad"),
        ("exit status 1", "exit status 2"),
        ("missing heading: Summary", "missing heading: Acceptance"),
        ("HTTP 401", "HTTP 500"),
        ("model gpt-5 refused", "model gpt-6 refused"),
        ("/p/src/tasks/door.py: bad", "/p/src/tasks/window.py: bad"),
        ("/tmp/p/door.py: bad", "/tmp/p/window.py: bad"),
        ("feedback", "facade"),
        ("request_too_large", "request_malformed"),
        ("internationalization_is_hard", "counterrevolutionaries_meet"),
    ],
)
def test_text_that_distinguishes_failures_stays(one: str, other: str) -> None:
    assert signature(one) != signature(other)


@pytest.mark.req("GAT-8")
def test_it_is_sixteen_hex_digits_of_the_first_hundred_lines() -> None:
    text = "\n".join(f"line {number} of it" for number in range(LINES))
    assert re.fullmatch(rf"[0-9a-f]{{{LENGTH}}}", signature(text))
    short = "x\n" * (LINES - 1)
    assert signature(f"{short}a\nb") == signature(f"{short}a\nc")
    assert signature(f"{short}a") != signature(f"{short}b")
    assert len(normalise("word " * 1000)) == CHARS
    assert signature("word " * 1000 + "a") == signature("word " * 1000 + "b")


def test_a_task_id_that_a_person_chose_is_taken_out_where_it_is_given() -> None:
    assert signature("no room in fix-door", task_id="fix-door") == signature("no room in it2", task_id="it2")
    assert "fix-doors" in normalise("no room in fix-doors", task_id="fix-door")


def test_two_kinds_that_said_nothing_are_two() -> None:
    assert signature("", kind="crashed") != signature("", kind="killed")


@given(st.text(), st.floats(0, 4e9))
def test_a_time_in_front_never_counts(text: str, at: float) -> None:
    assert signature(f"{clock.iso(at)} {text}") == signature(f"{clock.iso(0)} {text}")


@given(st.text(st.sampled_from("ab01-_./:= \n'$%sm"), max_size=3000))
def test_any_text_has_a_signature_and_a_short_normal_form(text: str) -> None:
    assert len(signature(text)) == LENGTH
    normal = normalise(text)
    assert len(normal) <= CHARS
    assert "\n" not in normal


def test_an_enormous_text_is_read_in_no_time() -> None:
    started = clock.mono()
    for evil in (
        "a" * 5_000_000,
        "/" * 200_000,
        "1," * 200_000,
        "a-" * 200_000,
        "0" * 3_000_000,
        "/tasks" * 9999,
    ):
        signature(evil)
        signature("\n".join([evil[:2000]] * 5000))
    assert clock.mono() - started < 5.0


def test_ids_made_by_us_are_all_known() -> None:
    for make in (ids.new_ulid, ids.new_uuid, ids.new_attempt_id, lambda: ids.new_task_id("fix the door")):
        for _ in range(50):
            made = make()
            assert normalise(f"in {made} it broke") == "in it broke", made
