"""OpenCode (`opencode run --format json`).

On stdout it prints its session id only when the model's first answer begins, and its retries are silent. So
it also logs to stderr, where a session appears when it is created, and an error when it occurs. A running
tool and a streaming text are silent. No event marks the end of the run: the last `step_finish` and the exit
status do so together.
"""

from __future__ import annotations

import json

from holdfast.agents import endings
from holdfast.agents.base import TERM_THEN_KILL, Capabilities, ConfigHome, End, Launch, LaunchSpec, Permission
from holdfast.agents.opencode.events import OpencodeLines, without_logs
from holdfast.model.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.agents.base import Adapter, Reader
    from holdfast.model.attempt import Attempt

#: Task options that are flags of the same name.
_FLAGS = ("agent", "variant")
#: Tools whose permission has another name.
_RULES: dict[str, str] = dict.fromkeys(("write", "patch", "apply_patch", "multiedit"), "edit")
#: Text on stderr when it refuses to start → outcome.
_REFUSALS = (
    ("Session not found", "unknown_session"),
    ("You must provide a message", "usage_error"),
    ("opencode run [message..]", "usage_error"),
    ("postinstall script was not run", "usage_error"),
    ("Configuration is invalid", "usage_error"),
    ("Config file at", "usage_error"),
)


#: The variable with its permissions, as JSON.
_VARIABLE = "OPENCODE_PERMISSION"
_PERMISSIONS = (
    Permission(
        profile="read",
        means="Reads files in the workspace. Edits and commands are refused.",
        env={_VARIABLE: '{"edit":"deny","bash":"deny","external_directory":"deny"}'},
    ),
    Permission(
        profile="edit",
        means="Edits files in the workspace and runs any command. Edits elsewhere are refused, and commands "
        "as far as it recognizes a path elsewhere in them.",
        # Asking would end the run, because no person can answer.
        env={_VARIABLE: '{"edit":"allow","bash":"allow","external_directory":"deny"}'},
    ),
    Permission(
        profile="full",
        means="Everything, without asking.",
        argv=("--auto",),
        env={_VARIABLE: '{"edit":"allow","bash":"allow","external_directory":"allow"}'},
    ),
)


class Opencode:
    """The prompt is on stdin: an argument with a space would reach the model in quotation marks."""

    name = "opencode"
    capabilities = Capabilities(
        options=_FLAGS,
        program="opencode",
        # No wrapper: on installation, its npm package replaces the command with the native binary.
        session_id_from="event",
        can_resume=True,
        stdin_prompt=True,
        has_events=True,
        silent_during=("text", "tool"),
        usage_scope="process",
        reports_cost=True,
        # It abandons a silent stream after 300 s, honours any Retry-After, and emits no events for running
        # tools.
        stale_s=900.0,
        # Each signal ends it at once; its tools have their own sessions and are left to the sweep.
        stop=TERM_THEN_KILL,
        env=(
            "OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION",
            "OPENCODE_API_KEY", "OPENCODE_MODELS_URL", "OPENCODE_DISABLE_*", "OPENCODE_EXPERIMENTAL_*",
            "ANTHROPIC_*", "OPENAI_*", "AZURE_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY",
            "GROQ_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "CEREBRAS_API_KEY",
            "GITHUB_TOKEN", "HF_TOKEN", "AWS_*", "NODE_EXTRA_CA_CERTS",
        ),
        login="opencode auth login",
        login_env=(
            "OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY",
            "OPENROUTER_API_KEY", "GROQ_API_KEY",
            "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "XAI_API_KEY", "CEREBRAS_API_KEY", "GITHUB_TOKEN",
            "HF_TOKEN",
            "OPENCODE_CONFIG_CONTENT",
        ),
        login_files=("~/.local/share/opencode/auth.json", "~/.config/opencode/opencode.json"),
        appends_system_prompt=True,
        takes_effort=True,
        config_homes=(
            ConfigHome(
                paths=("$XDG_CONFIG_HOME/opencode", "~/.config/opencode"),
                reads=("agent", "command", "plugin", "skills", "themes", "tool"),
                copies=("opencode.json", "opencode.jsonc", "config.json", "AGENTS.md"),
            ),
            ConfigHome(
                paths=("$XDG_DATA_HOME/opencode", "~/.local/share/opencode"),
                reads=("bin",),
                logins=("mcp-auth.json",),
                command_logins=("auth.json",),  # "wellknown": settings from an address, and variables
                sessions=("storage",),
                keeps=("log", "opencode.db*", "repos", "snapshot"),
            ),
            ConfigHome(paths=("$XDG_STATE_HOME/opencode", "~/.local/state/opencode"), keeps=("locks",)),
        ),
        package="opencode-ai",
        memory_mb=700,
        permissions=_PERMISSIONS,
    )  # fmt: skip

    def launch(self, spec: LaunchSpec) -> Launch:
        """A new session with our title, which saves the request that would generate one."""
        return self._line(spec, "--title", f"holdfast:{spec.task.task_id}:{spec.resume_count}")

    def resume(self, spec: LaunchSpec) -> Launch:
        """The same session."""
        return self._line(spec, "--session", spec.session_id or "")

    def takeover(self, spec: LaunchSpec) -> Launch:
        """The program itself, in the same session."""
        argv = [spec.program or "opencode", "--session", spec.session_id or ""]
        if model := self.capabilities.model(spec.model):
            argv += ["--model", model]
        if agent := spec.task.options.get("agent"):
            argv += ["--agent", str(agent)]
        return Launch(argv=argv, env=_env(spec))

    def reader(self) -> Reader:
        """JSON lines."""
        return OpencodeLines()

    def classify(self, end: End, attempt: Attempt) -> Outcome:
        """From signal, error, last step, in this order; exit status 0 is also used for a rejected
        permission."""
        exit, stderr = end.exit, without_logs(end.stderr_tail)
        by_signal = endings.by_signal(exit)
        if by_signal is not None:
            return by_signal
        if end.is_torn and exit.exit_code == 0:
            return Outcome(kind="truncated", detail="stdout ends inside a line")
        failed = endings.failed(attempt)
        if failed is not None:
            return failed
        if attempt.result is not None and exit.exit_code == 0:
            return endings.finished(attempt)
        if attempt.messages == 0 and attempt.tools_started == 0:
            for words, kind in _REFUSALS:
                if words in stderr:
                    return Outcome(kind=kind, detail=words)
        return endings.without_result(exit, stderr)

    def _line(self, spec: LaunchSpec, flag: str, value: str) -> Launch:
        argv = [
            spec.program or "opencode",
            "run",
            "--format",
            "json",
            "--print-logs",
            "--log-level",
            "INFO",
            flag,
            value,
        ]
        if model := self.capabilities.model(spec.model):
            argv += ["--model", model]
        options = {"variant": spec.effort, **spec.task.options}
        for option in _FLAGS:
            if options.get(option):
                argv += [f"--{option}", str(options[option])]
        argv += self.capabilities.permission(spec.permissions).argv
        return Launch(argv=argv, env=_env(spec), stdin=spec.prompt_path or None)


def _env(spec: LaunchSpec) -> dict[str, str]:
    """Options without a flag are passed in environment variables."""
    env = {"OPENCODE_DISABLE_AUTOUPDATE": "1", **Opencode.capabilities.permission(spec.permissions).env}
    if spec.settings_path:
        env["OPENCODE_CONFIG"] = spec.settings_path
    if spec.allowed_tools:
        allowed = {_RULES.get(tool, tool): "allow" for tool in spec.allowed_tools}
        env[_VARIABLE] = json.dumps({"*": "deny", **allowed}, separators=(",", ":"))
    if spec.system_prompt_path:
        env["OPENCODE_CONFIG_CONTENT"] = _instructed(
            spec.env.get("OPENCODE_CONFIG_CONTENT", ""), spec.system_prompt_path
        )
    return env


def _instructed(content: str, path: str) -> str:
    """The user's configuration from the variable, with one more instructions file.

    (The program merges config files itself.) An unreadable one is replaced.
    """
    try:
        configured: dict[str, Any] = {**json.loads(content or "{}")}
        return json.dumps({**configured, "instructions": [*configured.get("instructions", ()), path]})
    except (ValueError, TypeError):
        return json.dumps({"instructions": [path]})


ADAPTER: Adapter = Opencode()
