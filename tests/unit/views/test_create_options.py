"""The typed options of a new task are those of the command line."""

from __future__ import annotations

from holdfast.views.cli.commands import run
from holdfast.views.cli.parse import command_spec
from holdfast.views.cli.parse.task_options import OPTIONS
from holdfast.views.create.options import LIMIT_OPTIONS, TaskOptions


def test_each_option_of_the_command_line_has_a_field_with_the_same_default() -> None:
    values = command_spec.defaults(run.COMMAND)
    wanted = {name: values[name] for name in (*(option.dest for option in OPTIONS), "prompt", "command")}
    assert TaskOptions().values() == wanted
    assert set(LIMIT_OPTIONS) <= wanted.keys()
