"""What each stage of a task used: calls, time, tokens and cost, from the lines of its journal. Pure."""

from __future__ import annotations

from holdfast.model.usage import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class StageUsage:
    """The figures of one stage."""

    def __init__(self, stage: str, agent: str, model: str | None) -> None:
        self.stage, self.agent, self.model = stage, agent, model
        #: Attempts of an agent. Each is a paid call.
        self.calls = 0
        #: How long its agents ran, and holdfast's steps around them, such as its gate.
        self.seconds = 0.0
        #: Of attempts that have ended, or were replaced; `used` includes the open one.
        self.ended = Usage()
        #: Of the open attempt, and how much of that an earlier attempt of its session had used.
        self.open, self.before = Usage(), Usage()
        #: When the open attempt was opened; None if there is none.
        self.since: str | None = None
        self.is_done = False

    @property
    def used(self) -> Usage:
        """All that was reported. What no agent reported is None, not zero."""
        return self.ended.plus(self.open.minus(self.before))

    def close(self) -> None:
        """The open attempt has ended."""
        self.ended, self.open, self.before = self.used, Usage(), Usage()
        self.since = None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "stage": self.stage,
            "agent": self.agent,
            "model": self.model,
            "is_done": self.is_done,
            "calls": self.calls,
            "seconds": round(self.seconds, 3),
            **self.used.to_json(),
        }


class StageUsages:
    """The figures of all stages, in the order in which they began."""

    def __init__(self) -> None:
        self.stages: dict[str, StageUsage] = {}
        self._models: dict[str, str | None] = {}
        #: Attempt → its stage. Only attempts of agents are here.
        self._of: dict[int, StageUsage] = {}
        #: Holdfast's step → its stage. The first step of a stage is before its first attempt.
        self._steps: dict[int, str] = {}
        self._before: dict[str, float] = {}
        #: What the last attempt of a stage had reported of its whole session.
        self._of_session: dict[str, Usage] = {}

    def apply(self, line: dict[str, Any]) -> None:
        """Add a line of the journal. Raises KeyError, TypeError, ValueError if it is invalid."""
        match line.get("type"):
            case "task.created":
                self._models = {each["name"]: each.get("model") for each in line["spec"].get("stages") or ()}
            case "attempt.opened" if line.get("kind", "agent") == "agent":
                self._open(line)
            case "attempt.opened":
                self._steps[line["attempt"]] = str(line["stage"])
            case "agent.usage":
                self._report(line)
            case "attempt.ended" if line["attempt"] in self._steps:
                self._step_ended(self._steps.pop(line["attempt"]), float(line.get("lived_s") or 0.0))
            case "attempt.ended" if line["attempt"] in self._of:
                stage = self._of[line["attempt"]]
                stage.seconds += float(line.get("lived_s") or 0.0)
                stage.close()
            case "stage.done" if line["stage"] in self.stages:
                self.stages[line["stage"]].is_done = True
            case _:
                return

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data."""
        return [stage.to_json() for stage in self.stages.values()]

    def _open(self, line: dict[str, Any]) -> None:
        name = str(line["stage"])
        stage = self.stages.get(name)
        if stage is None:
            stage = self.stages[name] = StageUsage(name, str(line["agent"]), self._models.get(name))
            stage.seconds = self._before.pop(name, 0.0)
        stage.close()
        stage.agent = str(line["agent"])
        stage.calls += 1
        stage.since = str(line["at"])
        stage.is_done = False
        if line["mode"] != "resume":
            self._of_session.pop(name, None)
        self._of[line["attempt"]] = stage

    def _step_ended(self, name: str, lived_s: float) -> None:
        if name in self.stages:
            self.stages[name].seconds += lived_s
        else:
            self._before[name] = self._before.get(name, 0.0) + lived_s

    def _report(self, line: dict[str, Any]) -> None:
        stage = self._of.get(line["attempt"])
        if stage is None:
            return
        reported = Usage(**{name: line.get(name) for name in ("input_tokens", "output_tokens", "cost_usd")})
        if line.get("of_session"):
            if stage.open == Usage():
                stage.before = self._of_session.get(stage.stage, Usage())
            self._of_session[stage.stage] = reported
        stage.open = reported if line.get("cumulative") else stage.open.plus(reported)
