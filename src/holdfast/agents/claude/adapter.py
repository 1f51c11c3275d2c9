"""Claude Code, headless (`claude -p`), with a chosen session id and the prompt on stdin."""

from __future__ import annotations

from holdfast.agents import endings
from holdfast.agents.base import Capabilities, ConfigHome, End, Launch, LaunchSpec, Permission, StopStep
from holdfast.agents.claude.events import Lines
from holdfast.model.outcome import HAS_RESET_TIME, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt

_DETAIL_CHARS = 300
#: Its exit statuses after HUP, INT and TERM.
_BY_SIGNAL = (129, 130, 143)
#: Refusals before any model call: text on stderr → outcome.
_REFUSALS = (
    ("No conversation found", "unknown_session"),
    ("is not a UUID and does not match", "unknown_session"),
    # A transcript with that id exists: only a new id can be used.
    ("is already in use", "unknown_session"),
    ("cannot be used with root", "usage_error"),
    ("error: ", "usage_error"),
    ("Error: Invalid", "usage_error"),
    ("Error: Input must be provided", "usage_error"),
    ("Error: When using", "usage_error"),
    ("Error: piped stdin input exceeds", "usage_error"),
    ("Settings file not found", "usage_error"),
)
_ROOT_RULE = (
    "Claude Code does not bypass permissions for root: "
    "run the task as another user, or set IS_SANDBOX=1 in a sandbox"
)


_PERMISSIONS = (
    Permission(
        profile="read",
        means="Reads files and runs commands that only read. Edits are refused.",
        argv=("--permission-mode", "default"),
        # A rule that denies beats every rule of the user's settings that allows.
        tools=("--disallowedTools", "Edit", "Write", "NotebookEdit"),
    ),
    Permission(
        profile="edit",
        means="Edits files in the workspace and runs any command. Edits elsewhere are refused; what a "
        "command writes elsewhere is not.",
        argv=("--permission-mode", "acceptEdits"),
        tools=("--allowedTools", "Bash"),
    ),
    Permission(
        profile="full",
        means="Everything, without asking. Not for root, unless IS_SANDBOX=1 is set.",
        argv=("--dangerously-skip-permissions",),
    ),
)


class Claude:
    """Each process counts its own usage; a session can be resumed only from the same directory."""

    name = "claude"
    capabilities = Capabilities(
        options=("permission_mode",),
        program="claude",
        chooses_session_id=True,
        session_id_from="chosen",
        can_resume=True,
        resume_needs_same_cwd=True,
        stdin_prompt=True,
        prompt_bytes=9_900_000,
        has_events=True,
        pieces=('{"type":"stream_event","event":{"type":"content_block_',),
        silent_during=("start", "tool", "retry"),
        usage_scope="process",
        reports_cost=True,
        own_limits=("turns", "usd"),
        # A stalled stream is requested again without streaming, silently, for up to 300 s.
        stale_s=330.0,
        # INT ends the tool's process tree and keeps the call in the transcript; TERM and KILL leave tools
        # running.
        stop=(
            StopStep(signal="INT", pause_s=10.0),
            StopStep(signal="TERM", pause_s=10.0),
            StopStep(signal="KILL", pause_s=5.0),
        ),
        env=(
            "ANTHROPIC_*",
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "AWS_*",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GOOGLE_CLOUD_PROJECT",
            "CLOUD_ML_REGION",
            "VERTEX_REGION_*",
            "API_TIMEOUT_MS",
            "BASH_DEFAULT_TIMEOUT_MS",
            "BASH_MAX_TIMEOUT_MS",
            "MAX_THINKING_TOKENS",
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "IS_SANDBOX",
            "NODE_EXTRA_CA_CERTS",
        ),
        login="claude auth login",
        login_env=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ),
        login_files=("$CLAUDE_CONFIG_DIR/.credentials.json", "~/.claude/.credentials.json"),
        appends_system_prompt=True,
        takes_effort=True,
        # Aliases change with the program's versions, and a resumed task must keep its model.
        aliases={"opus": "claude-opus-4-8", "sonnet": "claude-sonnet-5"},
        config_homes=(
            ConfigHome(
                paths=("$CLAUDE_CONFIG_DIR", "~/.claude"),
                reads=("agents", "commands", "hooks", "local", "output-styles", "plugins", "rules", "skills"),
                logins=(".credentials.json",),
                sessions=("projects",),
                copies=("settings.json", "CLAUDE.md", ".claude.json", "~/.claude.json"),
                keeps=("file-history", "history.jsonl", "plans", "session-env", "sessions", "shell-snapshots",
                       "tasks", "todos"),
                # Otherwise .claude.json would be beside it, in a folder that is read-only.
                variable="CLAUDE_CONFIG_DIR",
            ),
        ),
        package="@anthropic-ai/claude-code",
        memory_mb=300,
        permissions=_PERMISSIONS,
    )  # fmt: skip

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session with a chosen id."""
        return self._line(spec, "--session-id")

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session. Never `-c`: it takes the most recent session, or silently starts a new one."""
        return self._line(spec, "--resume")

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The program itself, in the same session. What it may do without asking stays the same."""
        permission = self.capabilities.permission(spec.permissions)
        mode = spec.task.options.get("permission_mode")
        argv = [spec.program or "claude", "--resume", spec.session_id or ""]
        argv += ["--permission-mode", mode] if isinstance(mode, str) else permission.argv
        for flag, value in (
            ("--model", self.capabilities.model(spec.model)),
            ("--settings", spec.settings_path),
        ):
            argv += [flag, value] if value is not None else []
        argv += ["--allowedTools", *spec.allowed_tools] if spec.allowed_tools else permission.tools
        return Launch(argv=argv, env={"DISABLE_AUTOUPDATER": "1"})

    def reader(self) -> Reader:
        """stream-json with partial messages."""
        return Lines()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """Success is a result without an error and exit status 0, or a result after which we ended a
        lingering process."""
        # The transcript begins with the prompt and is written with the first line: no output means no
        # session.
        return endings.in_session(self._outcome(end, attempt), attempt, was_kept=attempt.has_spoken)

    def _outcome(self, end: End, attempt: Attempt) -> Outcome:
        exit, result, error = end.exit, attempt.result, attempt.error
        if endings.is_complete(exit, attempt):
            return _finished(attempt)
        if (death := endings.by_death(exit)) is not None:
            return death
        if exit.exit_code in _BY_SIGNAL:
            return Outcome(kind="interrupted", detail=f"exit status {exit.exit_code}")
        if result is not None and result.is_error and error is not None:
            resets_at = attempt.rate_limit.resets_at if attempt.rate_limit is not None else None
            is_limit = error.kind in HAS_RESET_TIME
            return Outcome(
                kind=error.kind,
                detail=(error.message or result.subtype)[:_DETAIL_CHARS],
                resets_at=resets_at if is_limit else None,
            )
        return _without_result(end, attempt)

    def _line(self, spec: LaunchSpec, session_flag: str) -> Launch:
        # Deltas show progress while a long answer is generated.
        argv = [spec.program or "claude", "-p", "--output-format", "stream-json", "--verbose"]
        argv.append("--include-partial-messages")
        if spec.session_id is not None:
            argv += [session_flag, spec.session_id]
        permission = self.capabilities.permission(spec.permissions)
        mode = spec.task.options.get("permission_mode")
        argv += ["--permission-mode", mode] if isinstance(mode, str) else permission.argv
        for flag, value in (
            ("--model", self.capabilities.model(spec.model)),
            ("--effort", spec.effort),
            ("--max-turns", spec.max_turns),
            ("--max-budget-usd", spec.budget_usd),
            ("--append-system-prompt-file", spec.system_prompt_path),
            ("--settings", spec.settings_path),
        ):
            if value is not None:
                argv += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
        # It takes all words up to the next option, so it comes last.
        argv += ["--allowedTools", *spec.allowed_tools] if spec.allowed_tools else permission.tools
        return Launch(argv=argv, env={"DISABLE_AUTOUPDATER": "1"}, stdin=spec.prompt_path or None)


def _finished(attempt: Attempt) -> Outcome:
    is_empty = not attempt.last_text and attempt.result is not None and not attempt.result.text
    return endings.flaw(attempt) or Outcome(kind="empty_reply" if is_empty else "success")


def _without_result(end: End, attempt: Attempt) -> Outcome:
    code, stderr = end.exit.exit_code, end.stderr_tail.strip()
    detail = stderr[-_DETAIL_CHARS:] or f"exit status {code} without a result"
    if end.is_torn and code == 0:
        return Outcome(kind="truncated", detail="stdout ends inside a line")
    if code == 0:
        # The usual end after TERM if a tool had been running for some seconds.
        return Outcome(kind="interrupted", detail="it exited without a result")
    if attempt.error is not None and attempt.result is None:
        return Outcome(kind=attempt.error.kind, detail=attempt.error.message[:_DETAIL_CHARS])
    for words, kind in _REFUSALS if attempt.result is None else ():
        if words in stderr:
            return Outcome(kind=kind, detail=f"{_ROOT_RULE} ({detail})" if "root" in words else detail)
    return Outcome(kind="crashed", detail=detail)


ADAPTER: Adapter = Claude()
