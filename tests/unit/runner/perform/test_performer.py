"""Every step has a handler, and every handler a failpoint at which the crash run kills the runner."""

from __future__ import annotations

import inspect
import re
import typing

import pytest

from holdfast.model.record import Record
from holdfast.runner.perform import performer
from holdfast.runner.plan import step as steps

STEPS: tuple[type[Record], ...] = typing.get_args(steps.Step)


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def test_the_union_names_every_step_of_its_module() -> None:
    own = {
        each
        for _, each in inspect.getmembers(steps, inspect.isclass)
        if issubclass(each, Record) and each.__module__ == steps.__name__
    }
    assert set(STEPS) == own


def test_the_performer_knows_the_steps_and_nothing_else() -> None:
    assert set(performer.HANDLERS) == set(STEPS)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_the_handler_of_a_step_has_its_name_and_its_failpoint(step: type[Record]) -> None:
    name = snake_case(step.__name__)
    handler = performer.handler(step)
    assert handler.__name__ == name
    module = inspect.getmodule(handler)
    assert module is not None
    # A handler may leave the failpoint to a function that it shares with another one.
    called = re.findall(r"\b(_\w+)\(", inspect.getsource(handler))
    bodies = [
        handler,
        *(getattr(module, other) for other in called if inspect.isfunction(vars(module).get(other))),
    ]
    assert any(f'failpoint("step.{name}")' in inspect.getsource(body) for body in bodies)
