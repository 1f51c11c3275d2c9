"""The loop over the steps of a scenario."""

from __future__ import annotations

from holdfast.testing.agent import signals, steps
from holdfast.testing.agent.play import ScriptFailure
from holdfast.testing.agent.verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from holdfast.testing.agent.play import Play
    from holdfast.testing.agent.scenario import Step


def run(play: Play) -> NoReturn:
    """Play to the end. A scenario that neither gave a result nor exited succeeds."""
    signals.install(play, play.scenario.on_signal)
    play.dialect.begin()
    try:
        for step in _steps(play):
            _perform(play, step)
    except ScriptFailure as failure:
        play.fail(str(failure))
    if not play.dialect.has_result:
        play.dialect.result()
    play.leave(play.exit_code)


def _steps(play: Play) -> list[Step]:
    """The steps of this process: standing ones of earlier processes, then the remaining ones."""
    name, chosen = "steps", play.scenario.steps
    if play.is_resume and play.scenario.resume_steps is not None:
        name, chosen = "resume_steps", play.scenario.resume_steps
    if not play.is_resume or play.scenario.on_resume == "restart":
        return chosen
    first = play.session.next_index(name)
    standing = [step for step in chosen[:first] if VERBS[step.verb].is_standing]
    return standing + chosen[first:]


def _perform(play: Play, step: Step) -> None:
    """Perform one step. It is done when it returns; a step that ends the process is never done."""
    session = play.session
    limit = step.process_limit
    tries = step.arguments.get("tries")
    is_over = (limit is not None and session.process_number > limit) or (
        tries is not None and session.times_begun(step.place) >= tries
    )
    if is_over:
        session.record("skip", step=step.place, verb=step.verb)
        return
    session.record("begin", step=step.place, verb=step.verb)
    try:
        steps.perform(play, step)
    except (ScriptFailure, OSError) as error:
        raise ScriptFailure(f"{step.place}.{step.verb}: {error}") from error
    session.record_durably("done", step=step.place, verb=step.verb)
