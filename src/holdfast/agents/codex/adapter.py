"""Codex CLI, headless (`codex exec --json`), with a private config home and the prompt on stdin."""

from __future__ import annotations

from holdfast.agents import endings
from holdfast.agents.base import Capabilities, End, Launch, LaunchSpec, Permission, PrivateHome, StopStep
from holdfast.agents.codex.events import Lines, error_kind
from holdfast.model.outcome import HAS_RESET_TIME, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt

_DETAIL_CHARS = 300
_TRIPLES = {
    "linux-x64": "x86_64-unknown-linux-musl",
    "linux-arm64": "aarch64-unknown-linux-musl",
    "darwin-arm64": "aarch64-apple-darwin",
    "darwin-x64": "x86_64-apple-darwin",
}
#: npm puts the platform's package next to the wrapper's, or inside it.
_NATIVE = tuple(
    f"{folder}/codex-{platform}/vendor/{triple}/bin/codex"
    for platform, triple in _TRIPLES.items()
    for folder in ("../..", "../node_modules/@openai")
)
#: stderr is for humans; only these lines explain why it did not start.
_REFUSALS = ("Error:", "error:", "Not inside a trusted directory", "No prompt provided")


#: Its bubblewrap needs a user namespace, and our sandbox allows none: each command would fail.
_UNCONFINED = ("--dangerously-bypass-approvals-and-sandbox",)
_PERMISSIONS = (
    Permission(
        profile="read",
        means="Reads files and runs commands in its sandbox, which is read-only and without network.",
        argv=("-s", "read-only"),
        in_sandbox=_UNCONFINED,
    ),
    Permission(
        profile="edit",
        means="Edits files and runs commands in its sandbox: only the workspace and temporary directories "
        "are writable, and there is no network.",
        argv=("-s", "workspace-write"),
        in_sandbox=_UNCONFINED,
    ),
    Permission(
        profile="full",
        means="Everything, without its sandbox; also outside of git repositories.",
        argv=(*_UNCONFINED, "--skip-git-repo-check"),
    ),
)


class Codex:
    """It chooses thread ids itself; usage is the total of the thread; it enforces no limits."""

    name = "codex"
    capabilities = Capabilities(
        options=("sandbox", "skip_git_repo_check"),
        switches=("skip_git_repo_check",),
        program="codex",
        native=_NATIVE,
        can_resume=True,
        locks_session=True,
        stdin_prompt=True,
        # Counted in characters, so this many bytes always fit.
        prompt_bytes=1_048_576,
        has_events=True,
        silent_during=("tool", "text", "retry"),
        usage_scope="session",
        # No text deltas, and a stalled stream is abandoned after 300 s: one such silence is still healthy.
        stale_s=600.0,
        # INT ends the tool's process tree and is recorded in the thread; TERM and KILL leave the tool's
        # children running.
        stop=(
            StopStep(signal="INT", pause_s=10.0),
            StopStep(signal="TERM", pause_s=5.0),
            StopStep(signal="KILL", pause_s=5.0),
        ),
        env=(
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_ORGANIZATION",
            "OPENAI_PROJECT",
            "CODEX_API_KEY",
            "CODEX_HOME",
            "CODEX_CA_CERTIFICATE",
            "AZURE_OPENAI_API_KEY",
            "SSL_CERT_FILE",
        ),
        login="codex login",
        login_env=("OPENAI_API_KEY", "CODEX_API_KEY", "AZURE_OPENAI_API_KEY"),
        login_files=("$CODEX_HOME/auth.json", "~/.codex/auth.json"),
        # It takes a system prompt only on its command line (developer_instructions), where every user could
        # read it.
        appends_system_prompt=False,
        takes_effort=True,
        package="@openai/codex",
        memory_mb=150,
        permissions=_PERMISSIONS,
    )

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new thread; its first line has the id."""
        return self._line(spec)

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same thread.

        Never `--last`, and always the id: a name that does not match silently starts a new one.
        """
        return self._line(spec, "resume", spec.session_id or "")

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The program itself, in the same thread. Without `--no-daemon`, two daemons stay behind."""
        argv = [spec.program or "codex", *self._profile(spec)]
        if (model := self.capabilities.model(spec.model)) is not None:
            argv += ["-m", model]
        # That of `exec` alone: a person is asked.
        argv = [word for word in argv if word != "--skip-git-repo-check"]
        return Launch(argv=[*argv, "resume", "--no-daemon", spec.session_id or ""], home=_home(spec))

    def reader(self) -> Reader:
        """The JSON lines of `exec --json`."""
        return Lines()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """Success is a completed turn and exit status 0, or a completed turn after which we ended a
        lingering process."""
        exit, result, error = end.exit, attempt.result, attempt.error
        if endings.is_complete(exit, attempt):
            return _finished(attempt)
        if (death := endings.by_death(exit)) is not None:
            return death
        if error is not None and (result is None or result.is_error):
            is_limit = error.kind in HAS_RESET_TIME and attempt.rate_limit is not None
            return Outcome(
                kind=error.kind,
                detail=error.message[:_DETAIL_CHARS],
                resets_at=attempt.rate_limit.resets_at if is_limit and attempt.rate_limit else None,
            )
        return _without_turn(end, attempt)

    def _profile(self, spec: LaunchSpec) -> list[str]:
        """What it may do: as the user's option says, or the permission profile."""
        sandbox = spec.task.options.get("sandbox")
        if isinstance(sandbox, str):
            return ["-s", sandbox]
        permission = self.capabilities.permission(spec.permissions)
        is_boxed = spec.task.sandbox is not None and permission.in_sandbox
        return list(permission.in_sandbox if is_boxed else permission.argv)

    def _line(self, spec: LaunchSpec, *verb: str) -> Launch:
        argv = [spec.program or "codex", "exec", "--json"]
        # Otherwise it fetches plug-ins at its end, which takes 5 s without network.
        argv += ["-c", "features.plugin_discovery_prefetch=false"]
        argv += self._profile(spec)
        skip = "--skip-git-repo-check"
        if spec.task.options.get("skip_git_repo_check") is True and skip not in argv:
            argv.append(skip)
        if (model := self.capabilities.model(spec.model)) is not None:
            argv += ["-m", model]
        if spec.effort is not None:
            argv += ["-c", f"model_reasoning_effort={spec.effort}"]
        # Options come before `resume`, which refuses some of them after it; `-` means stdin.
        return Launch(argv=[*argv, *verb, "-"], stdin=spec.prompt_path or None, home=_home(spec))


def _home(spec: LaunchSpec) -> PrivateHome | None:
    """A private config home: it writes trusted directories to the user's config.toml, which loosens the
    sandbox of later runs."""
    if not spec.state_directory:
        return None
    return PrivateHome(
        variable="CODEX_HOME",
        path=f"{spec.state_directory}/codex",
        default=".codex",
        # A copied login would be renewed in one place and become invalid in the other.
        links=(
            # A user's own session is in the user's home, and stays there.
            *(["sessions"] if spec.task.session is not None else []),
            "auth.json",
            ".credentials.json",
            "AGENTS.md",
            "AGENTS.override.md",
            "prompts",
            "rules",
            "skills",
        ),
        logins=("sessions", "auth.json", ".credentials.json"),
        copies=("config.toml",),
        keeps=(
            "sessions", "archived_sessions", "history.jsonl", "*.sqlite", "*.sqlite-shm", "*.sqlite-wal",
            "thread-writer-locks", "shell_snapshots", "installation_id", "log", "tmp",
        ),
    )  # fmt: skip


def _finished(attempt: Attempt) -> Outcome:
    return endings.flaw(attempt) or Outcome(kind="success" if attempt.last_text else "empty_reply")


def _without_turn(end: End, attempt: Attempt) -> Outcome:
    code = end.exit.exit_code
    if code == 0:
        kind = "truncated" if end.is_torn else "crashed"
        return Outcome(kind=kind, detail="it exited before its turn was completed")
    refusals = [line for line in end.stderr_tail.splitlines() if line.startswith(_REFUSALS)]
    detail = refusals[-1][:_DETAIL_CHARS] if refusals else f"exit status {code} before the end of its turn"
    if code == 2:
        return Outcome(kind="usage_error", detail=detail)
    if refusals:
        return Outcome(kind=error_kind(refusals[-1]), detail=detail)
    # After INT it exits with status 1 and no message.
    is_silent = code in (1, 130) and attempt.has_spoken and attempt.result is None
    return Outcome(kind="interrupted" if is_silent else "crashed", detail=detail)


ADAPTER: Adapter = Codex()
