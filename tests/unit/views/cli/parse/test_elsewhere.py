"""Words of other programs: a row for a verb of our own would never be used."""

from __future__ import annotations

import shlex

import pytest

from holdfast.views.cli import verbs
from holdfast.views.cli.parse import elsewhere


def test_no_word_is_a_verb() -> None:
    assert set(elsewhere.VERBS) & {*verbs.VERBS, *verbs.ALIASES} == set()


@pytest.mark.parametrize(("word", "instead"), elsewhere.VERBS.items())
def test_each_word_leads_to_a_verb(word: str, instead: str) -> None:
    for command in instead.split("', or '"):
        program, verb, *_ = shlex.split(command)
        assert program != "holdfast" or verb == "--version" or verb in verbs.VERBS
