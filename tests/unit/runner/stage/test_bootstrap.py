"""The bootstrap renders any value as it is."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.errors import UnreadableFile, UsageError
from holdfast.model import events as ev
from holdfast.redact import Redactor
from holdfast.runner.ledger import Ledger
from holdfast.runner.stage import bootstrap
from holdfast.store.journal import Journal
from holdfast.store.layout import Home
from tests.support.story import Story

OPENED = ev.AttemptOpened(attempt=1, attempt_id="ses_0a1b2c3d", stage="a_run", agent="a", mode="fresh")
#: Everything that a shell, sed, a format or a template engine could stumble over.
VALUES = (
    "b|x&y",
    r"\1 \g<0> \n",
    "{{NAME}}",
    "{{ WORK_ITEM }}",
    "{0} %s ${HOME} $(id) `id`",
    "a/b#c@d",
    "'\"",
    "a\nb",
    "ä € \U0001f980",
    "}}{{",
    "",
    " ",
)


@pytest.fixture
def make(home: str):
    made: list[Journal] = []

    def ledger(**more: Any) -> Ledger:
        packet = Home(home).packet("t")
        os.makedirs(packet.path, exist_ok=True)
        with open(packet.journal, "ab"):
            pass
        made.append(Journal(packet.journal))
        return Ledger(packet, Story(**more).task, made[-1], Redactor({}))

    yield ledger
    for journal in made:
        journal.close()


def template(folder: object, text: str) -> str:
    path = os.path.join(str(folder), "own.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


@pytest.mark.req("W-C7")
@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_put_in_as_it_is(value: str) -> None:
    filled = bootstrap.fill("<{{NAME}}>{{ OTHER }}<{{NAME}}>", {"NAME": value, "OTHER": "-"}, "own")
    assert filled == f"<{value}>-<{value}>"


@pytest.mark.req("W-C7")
@pytest.mark.parametrize("value", [value for value in VALUES if value])
def test_any_work_id_and_any_details_render(make: Any, tmp_path: object, value: str) -> None:
    path = template(tmp_path, "item {{WORK_ITEM}}, {{WORK_DETAILS}}, own {{OWN}}.")
    ledger = make(bootstrap=path, work={"id": value, "details": value}, variables={"OWN": value})
    stage = ledger.task.spec.stages[0]
    assert bootstrap.render(ledger, stage, OPENED) == f"item {value}, {value}, own {value}."


@pytest.mark.req("W-C7")
@pytest.mark.parametrize("value", [value for value in VALUES if value])
def test_the_bootstrap_that_comes_with_holdfast_renders_any_work_item(make: Any, value: str) -> None:
    ledger = make(bootstrap="default", work={"id": value, "details": value})
    text = bootstrap.render(ledger, ledger.task.spec.stages[0], OPENED)
    assert f"work item: {value}\n" in text
    assert "ses_0a1b2c3d" in text


def test_unset_variables_are_an_error_that_names_all_of_them() -> None:
    with pytest.raises(UsageError, match="uses variables that are not set: A, B") as raised:
        bootstrap.fill("{{B}} {{KNOWN}} {{A}} {{B}}", {"KNOWN": "1"}, "own.md")
    assert raised.value.hint is not None
    assert "--var" in raised.value.hint


def test_braces_that_name_no_variable_stay() -> None:
    for text in ("{{}}", "{{ 1X }}", "{ {NAME} }", "{{NAME}", "{{a b}}"):
        assert bootstrap.fill(text, {}, "own") == text


def test_ours_cannot_be_replaced_but_the_rig_can(make: Any) -> None:
    own = {"SESSION_ID": "mine", "RIG": "north", "EXTRA": "x"}
    ledger = make(variables=own)
    found = bootstrap.variables(ledger, ledger.task.spec.stages[0], OPENED)
    assert (found["SESSION_ID"], found["RIG"], found["EXTRA"]) == ("ses_0a1b2c3d", "north", "x")


def test_without_a_work_item_the_task_itself_is_it(make: Any) -> None:
    ledger = make()
    found = bootstrap.variables(ledger, ledger.task.spec.stages[0], OPENED)
    assert (found["WORK_ITEM"], found["WORK_DETAILS"], found["ITERATION"]) == ("t", "g", "1")


def test_a_template_that_is_missing_or_no_text_is_an_error(make: Any, tmp_path: object) -> None:
    binary = template(tmp_path, "")
    with open(binary, "wb") as file:
        file.write(b"\xff\xfe{{NAME}}")
    for path in (os.path.join(str(tmp_path), "none.md"), binary):
        ledger = make(bootstrap=path)
        with pytest.raises(UnreadableFile, match="cannot read the bootstrap"):
            bootstrap.render(ledger, ledger.task.spec.stages[0], OPENED)


def test_a_template_that_is_far_too_long_is_an_error_and_not_cut(make: Any, tmp_path: object) -> None:
    path = template(tmp_path, "x" * (1024 * 1024) + "the rule that matters")
    ledger = make(bootstrap=path)
    with pytest.raises(UnreadableFile, match="longer than"):
        bootstrap.render(ledger, ledger.task.spec.stages[0], OPENED)


def test_the_users_own_comes_before_ours(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert bootstrap.default_path().endswith(os.path.join("config", "bootstrap.md"))
    own = os.path.join(str(tmp_path), "holdfast")
    os.mkdir(own)
    with open(os.path.join(own, "bootstrap.md"), "w", encoding="utf-8") as file:
        file.write("mine")
    assert bootstrap.default_path() == os.path.join(own, "bootstrap.md")
