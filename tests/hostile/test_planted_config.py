"""Settings that an agent plants in the config home of its task are gone before the next attempt."""

from __future__ import annotations

import os
import stat

import pytest

from tests.support.tasks import Task, workspace
from tests.support.tools import need_sandbox

RETRY = ("--max-retries", "1", "--base-interval", "0.1s", "--max-interval", "0.2s", "--permissions", "read")
#: A program that plants files in its config home, dies, and shows all of them in its next attempt.
PROGRAM = """#!/bin/sh
[ "$1" = --version ] && {{ echo 99.0.0; exit; }}
cd "{folder}" || exit 1
if [ ! -e "{kept}" ]; then
    mkdir -p "$(dirname "{kept}")"; touch "{kept}"
    for name in {planted}; do
        mkdir -p "$(dirname "$name")"; rm -f "$name"; echo PLANTED > "$name"
    done
    kill -SEGV $$
fi
echo FOUND $(grep -rl PLANTED . 2>/dev/null) >&2
cat {settings} >&2
[ -e "{kept}" ] && echo KEPT >&2
exit 1
"""
CODEX = (
    "config.toml", "managed_config.toml", "requirements.toml", "hooks.json", ".env", "AGENTS.md",
    "AGENTS.override.md", "plugins/a/hooks.json", "rules/default.rules", "skills/a/SKILL.md",
    "prompts/a.md", "agents/a.toml", "work.config.toml", "tomorrow.toml",
)  # fmt: skip
#: Agent → its config home, what it must keep, its settings, and what is planted.
HOMES = {
    "claude": ("$HOME/.claude", "projects/a", "settings.json", ("settings.json", ".claude.json", "CLAUDE.md",
               "hooks/a", "plugins/a", "skills/a", "agents/a.md", "commands/a.md", "output-styles/a.md",
               "rules/a.md")),
    "copilot": ("$HOME/.copilot", "session-state/a", "settings.json", ("config.json", "mcp-config.json",
                "settings.json", "copilot-instructions.md", "agents/a", "skills/a", "hooks/a.json",
                "installed-plugins/a")),
    "gemini": ("$HOME/.gemini", "tmp/a", "settings.json", ("settings.json", "GEMINI.md", ".env",
               "commands/a.toml", "extensions/a/a", "policies/a", "skills/a", "agents/a.md", "hooks/a",
               "trustedFolders.json")),
    "opencode": ("$HOME/.config/opencode", "$HOME/.local/share/opencode/storage/a",
                 "opencode.json", ("opencode.json", "opencode.jsonc",
                 "config.json", "AGENTS.md", "plugin/a.js", "plugins/a.js", "tool/a.js", "tools/a.js",
                 "agent/a.md", "agents/a.md", "command/a.md", "commands/a.md", "mode/a.md", "modes/a.md",
                 "skills/a", "skill/a", "package.json")),
    "pi": ("$HOME/.pi/agent", "sessions/a", "settings.json", ("settings.json", "models.json", "AGENTS.md",
           "SYSTEM.md", "APPEND_SYSTEM.md", "extensions/a.ts", "prompts/a.md", "skills/a", "tools/a",
           "bin/fd", "auth.json")),
}  # fmt: skip


def _program(home: str, agent: str, folder: str, kept: str, settings: str, planted: tuple[str, ...]) -> str:
    """In the workspace, which the sandbox shows. Returns PATH."""
    programs = os.path.join(workspace(), "bin")
    os.makedirs(programs, exist_ok=True)
    path = os.path.join(programs, agent)
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROGRAM.format(folder=folder, kept=kept, settings=settings, planted=" ".join(planted)))
    os.chmod(path, stat.S_IRWXU)
    return f"{programs}:{os.environ['PATH']}"


def _user(home: str, folder: str, settings: str) -> str:
    """The user's home directory, with settings of the program."""
    user = os.path.join(os.path.dirname(home), "user")
    path = folder.replace("$HOME", user)
    os.makedirs(path)
    with open(os.path.join(path, settings), "w", encoding="utf-8") as file:
        file.write("# MINE\n")
    return user


def _check(task: Task) -> None:
    task.wait_for("interrupted", "failed", "abandoned", within_s=40)
    errors = "".join(task.read(os.path.join(attempt, "stderr.log")).decode() for attempt in task.attempts())
    assert "FOUND\n" in errors, errors
    assert "# MINE" in errors
    assert "KEPT" in errors


@pytest.mark.parametrize("options", [(), ("--sandbox",)])
def test_codex(home: str, options: tuple[str, ...]) -> None:
    """Its config home is in the packet, with and without a sandbox."""
    need_sandbox()
    user = _user(home, "$HOME/.codex", "config.toml")
    path = _program(home, "codex", "$CODEX_HOME", "sessions/2026/a.jsonl", "config.toml", CODEX)
    env = {"HOME": user, "PATH": path, "CODEX_API_KEY": "none"}
    words = ("--agent", "codex", "-o", "skip_git_repo_check=true", *RETRY, *options, "do it")
    task = Task.start(*words, env=env, project=workspace())
    _check(task)
    with open(os.path.join(user, ".codex", "config.toml"), encoding="utf-8") as file:
        assert file.read() == "# MINE\n"


@pytest.mark.parametrize("agent", HOMES)
def test_in_the_sandbox(home: str, agent: str) -> None:
    need_sandbox()
    folder, kept, settings, planted = HOMES[agent]
    user = _user(home, folder, settings)
    path = _program(home, agent, folder, kept, settings, planted)
    task = Task.start(
        "--agent", agent, "--sandbox", *RETRY, "do it", env={"HOME": user, "PATH": path}, project=workspace()
    )
    _check(task)
