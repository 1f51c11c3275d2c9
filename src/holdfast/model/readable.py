"""Events as lines for people: what output.log says of an agent that speaks JSON."""

from __future__ import annotations

from holdfast.model import events as ev


def lines(event: ev.AgentEvent) -> list[str]:
    """The readable lines of an agent's event; often none."""
    match event:
        case ev.AgentSession():
            return [f"[session {event.session_id}]"]
        case ev.AgentText():
            return event.text.splitlines()
        case ev.AgentToolStarted():
            return [f"[tool] {event.name} {event.summary}".rstrip()]
        case ev.AgentToolFinished() if event.denied:
            return ["[tool denied]"]
        case ev.AgentToolFinished() if event.is_error:
            return ["[tool failed]"]
        case ev.AgentRetry():
            return [
                f"[retry in {event.delay_s:.1f}s] {event.reason}"
                if event.delay_s
                else f"[retry] {event.reason}"
            ]
        case ev.AgentRateLimit():
            return [
                f"[rate limit] {event.reason}" + (f", resets at {event.resets_at}" if event.resets_at else "")
            ]
        case ev.AgentProgress():
            words = f"{event.steps_completed}/{event.steps_total} {event.current_step or ''}"
            return [f"[{' '.join(words.split())}]"]
        case ev.AgentError():
            return [f"[error: {event.kind}] {event.message}"]
        case ev.AgentResult():
            return [
                f"[result: {'error' if event.is_error else 'ok'}{' ' + event.subtype if event.subtype else ''}]"
            ]
        case _:
            return []
