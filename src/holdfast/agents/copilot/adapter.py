"""GitHub Copilot CLI, headless with `--output-format json`.

It prints its session id only with the result, so the id is chosen. The exit status is 1 for every error, and
0 for a signal.
"""

from __future__ import annotations

import re

from holdfast.agents import endings
from holdfast.agents.base import TERM_THEN_KILL, Capabilities, ConfigHome, End, Launch, LaunchSpec, Permission
from holdfast.agents.copilot.events import CopilotReader, usage_of
from holdfast.model.outcome import Outcome
from holdfast.store.layout import AttemptDir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt
    from holdfast.model.events import AgentEvent

#: Refusals before any model call.
_STDERR = [
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"No authentication information found|Classic Personal Access Tokens", "no_auth"),
        (r"No session(, task,)? or (name|task) matched", "unknown_session"),
        (r"No prompt provided|BYOK providers require|Try 'copilot --help'|^error: ", "usage_error"),
    )
]


_PERMISSIONS = (
    Permission(
        profile="read",
        means="Reads files. Edits and commands are refused.",
        tools=("--deny-tool=write", "--deny-tool=shell"),
    ),
    Permission(
        profile="edit",
        means="Edits files and runs commands in the workspace and in temporary directories. Paths elsewhere "
        "are refused as far as it recognizes them in a command.",
        tools=("--allow-tool=write", "--allow-tool=shell"),
    ),
    Permission(
        profile="full",
        means="Everything, without asking.",
        argv=("--allow-all-tools", "--allow-all-paths"),
    ),
)


class Copilot:
    """Runs the native binary if possible: the npm wrapper does not forward signals."""

    name = "copilot"
    capabilities = Capabilities(
        options=(),
        program="copilot",
        native=tuple(
            f"{folder}/copilot-{platform}/copilot"
            for platform in ("linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64")
            for folder in ("..", "node_modules/@github")
        ),
        chooses_session_id=True,
        # Printed only with the result.
        session_id_from="chosen",
        can_resume=True,
        stdin_prompt=True,
        has_events=True,
        pieces=(
            '{"type":"assistant.tool_call_delta"',
            '{"type":"session.background_tasks_changed"',
            '{"type":"tool.shell_output"',
        ),
        silent_during=("retry",),
        # In a file that it writes at its end, not on stdout.
        usage_scope="session",
        # It abandons a silent stream only after 600 to 700 s, so holdfast acts first.
        stale_s=300.0,
        stop=TERM_THEN_KILL,
        env=("COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "NODE_EXTRA_CA_CERTS"),
        login="copilot (then /login), or set COPILOT_GITHUB_TOKEN",
        login_env=("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
        login_files=("~/.copilot/config.json",),
        appends_system_prompt=False,
        config_homes=(
            ConfigHome(
                paths=("$COPILOT_HOME", "~/.copilot"),
                reads=("agents", "pkg", "skills"),
                sessions=("session-state",),
                copies=("config.json", "mcp-config.json", "settings.json", "copilot-instructions.md"),
                keeps=("logs", "session-store.db*", "settings.json.lock"),
            ),
        ),
        package="@github/copilot",
        memory_mb=260,
        permissions=_PERMISSIONS,
    )

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session with a chosen id."""
        return self._line(spec, ["--session-id", spec.session_id] if spec.session_id else [])

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session. `--session-id` would silently start a new one if the old one is lost."""
        return self._line(spec, [f"--resume={spec.session_id}"] if spec.session_id else [])

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The program itself, in the same session."""
        launch = self._line(spec.evolve(directory=""), [f"--resume={spec.session_id}"])
        # Without `--output-format json`.
        return launch.evolve(argv=[launch.argv[0], *launch.argv[3:]], stdin=None)

    def reader(self) -> Reader:
        """Session events, one per line."""
        return CopilotReader()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """From the result line and what came before it; without a result, from signal, error, stderr and
        exit status."""
        return endings.in_session(self._outcome(end, attempt), attempt, was_kept=attempt.has_spoken)

    def usage_file(self, directory: str) -> str | None:
        """Next to the logs of the attempt. Written only at a normal end."""
        return AttemptDir(directory).usage if directory else None

    def read_usage(self, data: bytes) -> list[AgentEvent]:
        """The tokens of the whole session, of all models."""
        return usage_of(data)

    def _outcome(self, end: End, attempt: Attempt) -> Outcome:
        result, code = attempt.result, end.exit.exit_code
        if result is not None and not result.is_error:
            if code and end.exit.exit_signal is None:
                return Outcome(kind="crashed", detail=f"exit status {code} after its result")
            return endings.finished(attempt)
        if result is None and (by_signal := endings.by_signal(end.exit)):
            return by_signal
        if result is None and code == 0 and end.is_torn:
            return Outcome(kind="truncated", detail="stdout ends inside a line")
        if failed := endings.failed(attempt):
            return failed
        for pattern, kind in _STDERR:
            if code and pattern.search(end.stderr_tail):
                return Outcome(kind=kind, detail=end.stderr_tail.strip().splitlines()[0][:200])
        if result is None and code == 0:
            return Outcome(kind="interrupted", detail="exit status 0 without a result")
        return Outcome(kind="crashed", detail=f"exit status {code} without an answer")

    def _line(self, spec: LaunchSpec, session: list[str]) -> Launch:
        argv = [spec.program or "copilot", "--output-format", "json", *session]
        if model := self.capabilities.model(spec.model):
            argv += ["--model", model]
        if usage := self.usage_file(spec.directory):
            argv += ["--usage-output-file", usage]
        permission = self.capabilities.permission(spec.permissions)
        argv += permission.argv
        argv += [f"--allow-tool={tool}" for tool in spec.allowed_tools] or permission.tools
        return Launch(argv=argv, env={"COPILOT_AUTO_UPDATE": "false"}, stdin=spec.prompt_path or None)


ADAPTER: Adapter = Copilot()
