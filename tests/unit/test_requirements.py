"""The list of requirements and the tests agree, in both directions."""

from __future__ import annotations

from tests.support import requirements

_ENTRY = {"text": "a sentence", "milestone": "core", "status": "built"}


def test_every_built_requirement_has_a_test_and_every_marked_test_a_requirement() -> None:
    assert requirements.problems(requirements.load(), requirements.uses()) == []


def test_a_built_requirement_without_a_test_is_found() -> None:
    assert requirements.problems({"SUP-1": _ENTRY}, []) == ["SUP-1: marked built, but no test names it"]


def test_an_open_requirement_needs_no_test() -> None:
    assert requirements.problems({"SUP-1": {**_ENTRY, "status": "open"}}, []) == []


def test_a_marker_with_an_unknown_id_is_found() -> None:
    used = requirements.uses_in('@pytest.mark.req("W-A1", "NO-1")\ndef test_x(): ...\n', "test_x.py")
    assert [use.id for use in used] == ["W-A1", "NO-1"]
    assert requirements.problems({"W-A1": _ENTRY}, used) == [
        "test_x.py:1: NO-1 is not in tests/requirements.toml"
    ]


def test_a_computed_id_is_refused() -> None:
    used = requirements.uses_in('pytestmark = [pytest.mark.req("SUP-" + "1")]\n', "test_x.py")
    assert requirements.problems({}, used) == ["test_x.py:1: req() takes plain strings only"]


def test_an_unknown_milestone_is_found() -> None:
    listed = {"SUP-1": {**_ENTRY, "status": "open", "milestone": "core", "also": ["corr"]}}
    assert requirements.problems(listed, []) == ["SUP-1: unknown milestone 'corr'"]
