"""Google's Gemini CLI, headless with `-o stream-json`.

The last line is `result`; without it the run did not finish, whatever the exit status (0 after a signal). An
API error exits with the HTTP status modulo 256.
"""

from __future__ import annotations

import re

from holdfast.agents import endings
from holdfast.agents.base import TERM_THEN_KILL, Capabilities, ConfigHome, End, Launch, LaunchSpec, Permission
from holdfast.agents.gemini.events import GeminiReader, error_kind, status_kind
from holdfast.model import outcome as oc
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt

#: HTTP statuses that an exit status can stand for.
_HTTP_STATUS = {
    status % 256: status for status in (400, 401, 403, 404, 408, 409, 413, 429, 500, 502, 503, 504, 529)
}
_EXITS = {
    41: "no_auth",
    42: "usage_error",
    44: "usage_error",  # no sandbox
    52: "usage_error",  # bad settings
    53: "max_turns",
    55: "not_trusted",
}
#: The outcome of an API error without a known cause: an empty reply exits with 0, a lost connection with 1.
_UNNAMED = {0: "empty_reply", 1: "network"}
_NO_SESSION = re.compile(
    r"Error resuming session|No previous sessions found|Session ID .* already exists", re.IGNORECASE
)
_USAGE = re.compile(r"Unknown argument|Usage: gemini|Show version number|Not enough arguments")


def _without_result(end: End, attempt: Attempt) -> Outcome:
    code, stderr = end.exit.exit_code, end.stderr_tail
    if by_signal := endings.by_signal(end.exit):
        return by_signal
    if code == 0 and end.is_torn:
        return Outcome(kind="truncated", detail="stdout ends inside a line")
    if code == 0 and "stdin input truncated" in stderr:
        return Outcome(kind="usage_error", detail="the prompt is longer than 8 MiB")
    if code == 0:
        return Outcome(kind="interrupted", detail="exit status 0 without a result")
    if code == 42 and (refusal := _NO_SESSION.search(stderr)):
        return Outcome(kind="unknown_session", detail=stderr[refusal.start() :].splitlines()[0][:200])
    if code == 55:
        hint = "run gemini there once and trust it, or allow everything with --permissions full"
        return Outcome(kind="not_trusted", detail=f"gemini does not trust this directory: {hint}")
    if code == 1 and _USAGE.search(stderr):
        return Outcome(kind="usage_error", detail=stderr.strip().splitlines()[0][:200])
    if code in _EXITS:
        return Outcome(kind=_EXITS[code], detail=endings.last_line(stderr))
    if failed := endings.failed(attempt):
        return failed
    status = _HTTP_STATUS.get(code) if code is not None else None
    kind = status_kind(status) if status is not None else "crashed"
    return Outcome(kind=kind, detail=f"exit status {code} without a result")


_PERMISSIONS = (
    Permission(
        profile="read",
        means="Reads files. Its tools for editing and for commands are removed.",
        argv=("--approval-mode", "default"),
    ),
    Permission(
        profile="edit",
        means="Edits files in the workspace and runs any command. Edits elsewhere are refused; what a "
        "command writes elsewhere is not.",
        argv=("--approval-mode", "auto_edit"),
        tools=("--allowed-tools=run_shell_command",),
    ),
    Permission(
        profile="full",
        means="Everything, without asking, also in a directory that it does not trust. Its own tool for "
        "editing still refuses files elsewhere; commands write them.",
        # In an untrusted directory it would fall back to asking, and stop.
        argv=("--approval-mode", "yolo", "--skip-trust"),
    ),
)


class Gemini:
    """Runs `gemini` in one process: its launcher ignores signals, and when it is killed, the child
    survives."""

    name = "gemini"
    capabilities = Capabilities(
        options=("approval_mode", "sandbox"),
        switches=("sandbox",),
        program="gemini",
        chooses_session_id=True,
        session_id_from="chosen",
        can_resume=True,
        resume_needs_same_cwd=True,
        stdin_prompt=True,
        prompt_bytes=8 * 1024 * 1024,
        has_events=True,
        silent_during=("tool", "retry"),
        usage_scope="process",
        # It abandons a silent stream after 300 s and retries.
        stale_s=330.0,
        stop=TERM_THEN_KILL,
        env=("GEMINI_*", "GOOGLE_*", "NODE_EXTRA_CA_CERTS"),
        login="gemini (then /auth), or set GEMINI_API_KEY",
        login_env=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
        login_files=("~/.gemini/oauth_creds.json",),
        # Its variable for this (GEMINI_SYSTEM_MD) replaces the system prompt, and with it everything that
        # makes it an agent.
        appends_system_prompt=False,
        aliases={
            "pro": "gemini-2.5-pro",
            "flash": "gemini-2.5-flash",
            "flash-lite": "gemini-2.5-flash-lite",
        },
        config_homes=(
            ConfigHome(
                paths=("~/.gemini",),
                reads=("commands", "extensions", "policies", "skills"),
                logins=("oauth_creds.json", "google_accounts.json", "gemini-credentials.json"),
                sessions=("tmp",),
                copies=("settings.json", "GEMINI.md", ".env", "installation_id", "trustedFolders.json"),
                keeps=("history", "projects.json"),
            ),
        ),
        package="@google/gemini-cli",
        memory_mb=260,
        permissions=_PERMISSIONS,
    )

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session. An id that was used before is refused, even after a first turn that failed."""
        return _line(spec, "--session-id")

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session, from the same directory."""
        return _line(spec, "--resume")

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The program itself, in the same session."""
        launch = _line(spec, "--resume")
        return launch.evolve(argv=[launch.argv[0], *launch.argv[3:]], stdin=None)  # without `-o stream-json`

    def reader(self) -> Reader:
        """Its own kind of stream-json."""
        return GeminiReader()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """From the result line; the exit status tells which error it was, or why there is no result."""
        # A first turn that fails is not saved, but its id is used up: only a new session can be started.
        has_failed = attempt.result is not None and attempt.result.is_error
        was_answered = attempt.messages > 0 or attempt.tools_started > 0
        was_kept = attempt.has_spoken and (was_answered or not has_failed)
        return endings.in_session(self._outcome(end, attempt), attempt, was_kept=was_kept)

    def _outcome(self, end: End, attempt: Attempt) -> Outcome:
        result, code = attempt.result, end.exit.exit_code
        if result is None:
            return _without_result(end, attempt)
        if not result.is_error:
            if code and end.exit.exit_signal is None:
                return Outcome(kind="crashed", detail=f"exit status {code} after its result")
            return endings.finished(attempt)
        message = attempt.error.message if attempt.error else ""
        status = _HTTP_STATUS.get(code) if code is not None else None
        kind = error_kind(message, result.subtype, status) or _by_exit(code, message)
        limit = attempt.rate_limit if kind in oc.MUST_WAIT else None
        detail = message.splitlines()[0][:200] if message else result.subtype
        return Outcome(kind=kind, detail=detail, resets_at=limit.resets_at if limit else None)


def _by_exit(code: int | None, message: str) -> str:
    if code in _EXITS:
        return _EXITS[code]
    return _UNNAMED.get(code, "crashed") if code is not None and "API Error" in message else "crashed"


def _line(spec: LaunchSpec, flag: str) -> Launch:
    argv = [spec.program or "gemini", "-o", "stream-json"]
    if spec.session_id is not None:
        argv += [flag, spec.session_id]
    if model := Gemini.capabilities.model(spec.model):
        # Without a model, it first asks another model which one to use.
        argv += ["-m", model]
    permission = Gemini.capabilities.permission(spec.permissions)
    mode = spec.task.options.get("approval_mode")
    # `default` is what the shipped agent file has: it leaves the choice to the profile.
    argv += ["--approval-mode", mode] if isinstance(mode, str) and mode != "default" else permission.argv
    if spec.task.options.get("sandbox") is True:
        argv.append("--sandbox")
    argv += [f"--allowed-tools={tool}" for tool in spec.allowed_tools] or permission.tools
    env = {"GEMINI_CLI_NO_RELAUNCH": "1"}
    if spec.settings_path:
        # This layer overrides the user's and the project's settings.
        env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] = spec.settings_path
    return Launch(argv=argv, env=env, stdin=spec.prompt_path or None)


ADAPTER: Adapter = Gemini()
