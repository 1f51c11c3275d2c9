"""The table of what an agent may do has every verb, every action, and only options that exist."""

from __future__ import annotations

import pytest

from holdfast.packet import asker
from holdfast.views.cli import permits, verbs
from holdfast.views.cli.parse import command_spec

TABLES = [(verb, rows) for verb, rows in verbs.FOR_AGENTS.items() if not isinstance(rows, str)]


def test_every_verb_has_a_row() -> None:
    assert list(verbs.FOR_AGENTS) == list(verbs.VERBS), (
        "a new verb needs a row: what may an agent do with it?"
    )


@pytest.mark.parametrize(("verb", "rows"), TABLES)
def test_every_action_and_option_of_a_row_exists_and_one_always_fits(
    verb: str, rows: tuple[tuple[str, str], ...]
) -> None:
    command = verbs.load(verb).COMMAND
    actions = [choice for argument in command.arguments[:1] for choice in argument.choices]
    flags = {flag for option in command.options for flag in option.flags}
    conditions = [when for when, _ in rows]
    named = [when for when in conditions if when and not when.startswith("--")]
    assert set(named) <= set(actions)
    assert {when.partition("=")[0] for when in conditions if when.startswith("--")} <= flags
    if actions:
        assert set(named) == set(actions), "a new action needs a row"
    for action in [*actions, *([] if not conditions or "" not in conditions else [None])]:
        values = {**command_spec.defaults(command), **({"action": action} if actions else {})}
        assert permits.rule_of(verb, values)


def test_what_depends_on_the_task_is_checked_where_the_task_is_known() -> None:
    of = {rule: {verb for verb, rows in verbs.FOR_AGENTS.items() if rows == rule} for rule in
          (verbs.OTHERS, verbs.STARTED)}  # fmt: skip
    assert of[verbs.OTHERS] == asker.FOR_PERSONS & (set(verbs.VERBS) - {"takeover"})
    assert of[verbs.STARTED] == asker.FOR_STARTERS


def test_trust_by_a_flag_needs_a_person() -> None:
    for verb in ("run", "submit", "review", "new", "fan-out"):
        values = command_spec.defaults(verbs.load(verb).COMMAND)
        assert permits.rule_of(verb, values) == verbs.START
        assert permits.rule_of(verb, {**values, "trust_project": True}) == verbs.PERSON
