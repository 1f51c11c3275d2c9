"""The implementation of each verb. A verb `x` is the function `x` of its module; `print` is `print_`."""

from __future__ import annotations

from importlib import import_module

from holdfast.testing.agent.verbs import COMMON, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.testing.agent.play import Play
    from holdfast.testing.agent.scenario import Step

#: Verbs whose names are reserved in Python.
RENAMED = {"print": "print_"}


def perform(play: Play, step: Step) -> None:
    """Perform one checked step; modules are imported when they are first needed."""
    module = import_module(f"{__name__}.{VERBS[step.verb].module}")
    function = getattr(module, RENAMED.get(step.verb, step.verb))
    arguments = {name: value for name, value in step.arguments.items() if name not in COMMON}
    function(play, **arguments)
