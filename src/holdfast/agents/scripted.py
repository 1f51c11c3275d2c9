"""The scripted agent, which plays a scenario file (`holdfast.testing.agent`), for tests and the demo."""

from __future__ import annotations

import re

from holdfast import clock, own_python
from holdfast.agents.base import Capabilities, ConfigHome, End, Launch, LaunchSpec, Permission
from holdfast.agents.shared import api_errors, stream_json
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt


_MEANS = "Nothing changes: it plays its scenario."
_PERMISSIONS = tuple(Permission(profile=profile, means=_MEANS) for profile in ("read", "edit", "full"))


#: As the steps `rate_limit` and `unauthorized` print it.
_REFUSED = re.compile(r"API Error: (?:Request rejected \()?(4\d\d|5\d\d)\b")
_RESETS = re.compile(r"resets at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")


class Scripted:
    """Speaks stream-json, and saves its session on disk."""

    name = "scripted"
    #: Option → the module that reads its file: `load(path)` raises ValueError if the file is wrong.
    option_files = {"scenario": "holdfast.testing.agent.scenario"}
    capabilities = Capabilities(
        chooses_session_id=True,
        session_id_from="chosen",
        can_resume=True,
        stdin_prompt=True,
        has_events=True,
        usage_scope="process",
        reports_cost=True,
        stale_s=90.0,
        env=("HOLDFAST_SCRIPTED_STATE",),
        needs=("scenario",),
        options=("scenario",),
        config_homes=(
            ConfigHome(
                paths=("$HOLDFAST_SCRIPTED_STATE", "$HOLDFAST_PACKET/../../scripted-agent"), is_shared=True
            ),
        ),
        permissions=_PERMISSIONS,
    )

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session with a chosen id."""
        return self._line(spec, "--session-id")

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session."""
        return self._line(spec, "--resume")

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The same session, for a person: it takes the lines that are typed."""
        line = self._line(spec, "--resume")
        return line.evolve(argv=[*line.argv, "--interactive"], stdin=None)

    def reader(self) -> Reader:
        """stream-json."""
        return stream_json.StreamJson()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """Success only with a result that is not an error. A refusal (429, 401, …) is named in the result."""
        outcome = stream_json.classify(end, attempt)
        refused = _REFUSED.search(outcome.detail) if outcome.kind == "failed" else None
        if refused is None:
            return outcome
        resets = _RESETS.search(outcome.detail)
        return Outcome(
            kind=api_errors.kind(int(refused[1]), "") or outcome.kind,
            detail=outcome.detail,
            resets_at=clock.iso(clock.parse_iso(resets[1])) if resets is not None else None,
        )

    def _line(self, spec: LaunchSpec, flag: str) -> Launch:
        scenario = str(spec.task.options.get("scenario", ""))
        argv = own_python.command("holdfast.testing.agent", scenario)
        if spec.session_id is not None:
            argv += [flag, spec.session_id]
        return Launch(argv=argv, stdin=spec.prompt_path or None)


ADAPTER: Adapter = Scripted()
