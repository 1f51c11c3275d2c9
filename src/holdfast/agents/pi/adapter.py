"""Pi (`pi --mode json`), version 0.76 or later, in which the session id can be chosen.

It exits with 0 after a refused key and failed retries, so only its events count. It has no permission
prompts: `--tools` controls what it may do, and `--approve` concerns the project's `.pi/`.
"""

from __future__ import annotations

from holdfast.agents import endings
from holdfast.agents.base import TERM_THEN_KILL, Capabilities, ConfigHome, End, Launch, LaunchSpec, Permission
from holdfast.agents.pi.events import PiLines
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt

#: Task options that are flags of the same name.
_FLAGS = ("provider", "thinking")
#: Text on stderr when it refuses to start → outcome.
_REFUSALS = (
    ("No session found matching", "unknown_session"),
    ("Fork this session into current directory?", "unknown_session"),
    ("Session found in different project", "unknown_session"),
    ("Unknown option", "usage_error"),
    ("cannot be combined with", "usage_error"),
    ("No API key", "no_auth"),
    ("No models available", "no_auth"),
    ("No model selected", "no_auth"),
    ("not found. Use --list-models", "model_not_found"),
)


_PERMISSIONS = (
    Permission(
        profile="read",
        means="Reads files. It has no tools for editing and for commands.",
        tools=("--tools", "read,grep,find,ls"),
    ),
    Permission(
        profile="edit",
        means="Edits files and runs commands, everywhere: it knows no boundary. The project's `.pi/` is not "
        "loaded unless it is trusted.",
    ),
    Permission(
        profile="full",
        means="As `edit`, and trusts the project's `.pi/`.",
        argv=("--approve",),
    ),
)


class Pi:
    """The prompt is on stdin; the session id is chosen."""

    name = "pi"
    capabilities = Capabilities(
        options=_FLAGS,
        program="pi",
        chooses_session_id=True,
        session_id_from="chosen",
        can_resume=True,
        resume_needs_same_cwd=True,
        stdin_prompt=True,
        has_events=True,
        pieces=('{"type":"message_update"', '{"type":"tool_execution_update"'),
        silent_during=("start",),
        usage_scope="process",
        reports_cost=True,
        # It abandons a silent stream after 300 s and announces the retry.
        stale_s=330.0,
        # TERM and HUP end its tools, INT leaves them running.
        stop=TERM_THEN_KILL,
        env=(
            "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "PI_PACKAGE_DIR", "PI_OFFLINE",
            "PI_TELEMETRY",
            "PI_CACHE_RETENTION", "PI_RADIUS_GATEWAY",
            "ANTHROPIC_*", "OPENAI_*", "AZURE_OPENAI_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY",
            "GROQ_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "CEREBRAS_API_KEY",
            "OPENCODE_API_KEY", "COPILOT_GITHUB_TOKEN", "HF_TOKEN", "AWS_*", "NODE_EXTRA_CA_CERTS",
        ),
        login="pi, then /login",
        login_env=(
            "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "GROQ_API_KEY",
            "MISTRAL_API_KEY",
            "DEEPSEEK_API_KEY", "XAI_API_KEY", "CEREBRAS_API_KEY", "OPENCODE_API_KEY",
            "COPILOT_GITHUB_TOKEN", "HF_TOKEN",
        ),
        login_files=("$PI_CODING_AGENT_DIR/auth.json", "~/.pi/agent/auth.json", "~/.pi/agent/models.json"),
        appends_system_prompt=True,
        takes_effort=True,
        config_homes=(
            ConfigHome(
                paths=("$PI_CODING_AGENT_DIR", "~/.pi/agent"),
                reads=("bin", "extensions", "prompts", "skills", "themes", "tools"),
                command_logins=("auth.json",),  # "key": "!command"
                sessions=("sessions",),
                keeps=("models-store.json",),
                copies=("settings.json", "models.json", "AGENTS.md", "SYSTEM.md"),
            ),
        ),
        package="@earendil-works/pi-coding-agent",
        memory_mb=180,
        permissions=_PERMISSIONS,
    )  # fmt: skip

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session with a chosen id."""
        return self._line(spec, "--session-id")

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session. Not with `--session-id`, which would start an empty one if there is none."""
        return self._line(spec, "--session")

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The program itself, in the same session."""
        launch = self._line(spec, "--session")
        argv = [launch.argv[0], *launch.argv[3:]]  # without `--mode json`
        return launch.evolve(argv=argv, stdin=None)

    def reader(self) -> Reader:
        """JSON lines."""
        return PiLines()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """A settled result counts, whatever came after it; then signal, end of stdout, errors."""
        # Up to 0.87, it saves no session before its first answer is complete, which is when usage is
        # reported.
        was_answered = attempt.usage.input_tokens is not None or attempt.tools_started > 0
        return endings.in_session(self._outcome(end, attempt), attempt, was_kept=was_answered)

    def _outcome(self, end: End, attempt: Attempt) -> Outcome:
        exit, result = end.exit, attempt.result
        if end.is_torn and exit.exit_code == 0:
            return Outcome(kind="truncated", detail="stdout ends inside a line")
        if result is not None and result.subtype == "settled":
            return _by_result(attempt)
        by_signal = endings.by_signal(exit)
        if by_signal is not None:
            return by_signal
        if result is not None and result.subtype == "ended" and exit.exit_code == 0:
            return _by_result(attempt)
        failed = endings.failed(attempt)
        if failed is not None:
            return failed
        if attempt.messages == 0 and attempt.tools_started == 0:
            for words, kind in _REFUSALS:
                if words in end.stderr_tail:
                    return Outcome(kind=kind, detail=endings.last_line(end.stderr_tail))
        return endings.without_result(exit, end.stderr_tail)

    def _line(self, spec: LaunchSpec, flag: str) -> Launch:
        argv = [spec.program or "pi", "--mode", "json"]
        if spec.session_id is not None:
            argv += [flag, spec.session_id]
        if model := self.capabilities.model(spec.model):
            argv += ["--model", model]
        permission = self.capabilities.permission(spec.permissions)
        argv += ["--tools", ",".join(spec.allowed_tools)] if spec.allowed_tools else permission.tools
        if spec.system_prompt_path:
            argv += ["--append-system-prompt", spec.system_prompt_path]
        options = {"thinking": spec.effort, **spec.task.options}
        for option in _FLAGS:
            if options.get(option):
                argv += [f"--{option}", str(options[option])]
        argv += permission.argv
        return Launch(argv=argv, env={"PI_SKIP_VERSION_CHECK": "1"}, stdin=spec.prompt_path or None)


def _by_result(attempt: Attempt) -> Outcome:
    if attempt.result is not None and not attempt.result.is_error:
        return endings.finished(attempt)
    return endings.failed(attempt) or Outcome(kind="truncated", detail="it ended without a last reply")


ADAPTER: Adapter = Pi()
