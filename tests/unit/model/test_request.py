"""The table of requests."""

from __future__ import annotations

from holdfast.model.request import REQUESTS, RequestRules, rules
from holdfast.runner.plan import requests


def test_a_verb_that_does_not_exist_allows_nothing() -> None:
    """A file in the inbox may say anything, also one whose request was applied before."""
    assert rules("paint") == RequestRules()


def test_every_verb_has_a_handler() -> None:
    assert list(requests._EFFECTS) == list(REQUESTS)
