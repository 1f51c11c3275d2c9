"""`holdfast agent`: list, probe, and the reading of a recorded run."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.agents import registry
from holdfast.agents.probe import login_seen, probe
from holdfast.agents.replay import exit_of
from holdfast.views.cli import entry
from tests.contract.adapters import recorded

TEXT = os.path.join(recorded.FOLDER, "codex", "badtool")
#: Agent, name of a model, what is on its command line.
MODELS = [
    ("claude", "sonnet", "claude-sonnet-5"),
    ("claude", "opus", "claude-opus-4-8"),
    ("claude", "haiku", "haiku"),
    ("claude", "claude-opus-4-1", "claude-opus-4-1"),
    ("gemini", "pro", "gemini-2.5-pro"),
    ("gemini", "flash", "gemini-2.5-flash"),
    ("codex", "gpt-5", "gpt-5"),
    ("opencode", "a/b", "a/b"),
    ("pi", "a/b", "a/b"),
    ("copilot", "gpt-5", "gpt-5"),
]
#: Arguments for `effort: high`; None: the program has no such option.
EFFORTS = {
    "claude": ["--effort", "high"],
    "codex": ["-c", "model_reasoning_effort=high"],
    "opencode": ["--variant", "high"],
    "pi": ["--thinking", "high"],
    "gemini": None,
    "copilot": None,
}


def test_replay_prints_the_fields_of_a_label(capsys: pytest.CaptureFixture[str]) -> None:
    status = entry.run(
        [
            "agent",
            "replay",
            "codex",
            f"{TEXT}.stdout.jsonl",
            "--stderr",
            f"{TEXT}.stderr.txt",
            "--exit",
            "0",
            "--json",
        ]
    )
    printed = json.loads(capsys.readouterr().out)
    assert status == 0
    assert tuple(printed) == recorded.FIELDS
    assert printed["outcome"] == "tool_failed_but_finished"


@pytest.mark.parametrize("flag", [["--exit", "-9"], ["--exit=-9"]])
def test_a_negative_exit_is_a_signal(flag: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["agent", "replay", "codex", f"{TEXT}.stdout.jsonl", *flag, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "killed"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["replay", "codex"], "STDOUT_FILE"),
        (["replay", "codex", "/no/such/file"], "No such file"),
        (["replay", "codex", f"{TEXT}.stdout.jsonl", "--exit", "x"], "not a number"),
        (["replay", "codx", "x"], "codex"),
        (["probe"], "agent list"),
    ],
)
def test_a_mistake_is_explained(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["agent", *argv]) == 2
    assert words in capsys.readouterr().err


def test_list_knows_every_agent(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.run(["agent", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["agents"]
    assert [row["agent"] for row in listed] == sorted(registry.BUILT_IN)
    assert entry.run(["agent", "list"]) == 0
    assert "claude" in capsys.readouterr().out


def test_probe_finds_the_program_and_asks_its_version(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert entry.run(["agent", "probe", "claude"]) == 3
    path = os.path.join(tmp_path, "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho '9.9.9 (Claude Code)'\n")
    os.chmod(path, 0o755)
    capsys.readouterr()
    assert entry.run(["agent", "probe", "claude", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["path"], printed["version"]) == (path, "9.9.9 (Claude Code)")


def test_an_exit_is_as_the_recorder_writes_it() -> None:
    assert (exit_of(-9).exit_signal, exit_of(-9).exit_code, exit_of(-9).wait_status) == (9, 137, 9)
    assert (exit_of(3).exit_signal, exit_of(3).exit_code, exit_of(3).wait_status) == (None, 3, 768)
    assert exit_of(None).exit_code == 0


# ── probe ───────────────────────────────────────────────────────────────────


def _npm(root: str, agent: str, version: str) -> str:
    """A program as npm installs it: a link in .bin, the package beside it. Returns the directory for
    PATH."""
    able = registry.adapter(agent).capabilities
    package = os.path.join(root, "node_modules", able.package)
    os.makedirs(os.path.join(package, "bin"))
    with open(os.path.join(package, "package.json"), "w", encoding="utf-8") as file:
        json.dump({"name": able.package, "version": version}, file)
    script = os.path.join(package, "bin", "run.js")
    with open(script, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\nexit 7\n")
    os.chmod(script, 0o755)
    programs = os.path.join(root, "node_modules", ".bin")
    os.makedirs(programs, exist_ok=True)
    os.symlink(script, os.path.join(programs, able.program))
    return programs


@pytest.mark.req("LCH-15")
@pytest.mark.parametrize("agent", recorded.AGENTS)
def test_the_version_is_read_from_the_package_and_no_program_is_run(
    agent: str, tmp_path: os.PathLike[str]
) -> None:
    programs = _npm(str(tmp_path), agent, "1.2.3")
    found = probe(registry.adapter(agent), {"PATH": programs}, asks=True)
    assert (found.version, found.path) == ("1.2.3", found.found)
    assert found.problems == ()


def test_the_native_binary_behind_a_wrapper_is_reported(tmp_path: os.PathLike[str]) -> None:
    programs = _npm(str(tmp_path), "copilot", "1.2.3")
    native = os.path.join(tmp_path, "node_modules", "@github", "copilot-linux-x64", "copilot")
    os.makedirs(os.path.dirname(native))
    with open(native, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n")
    os.chmod(native, 0o755)
    # The wrapper of this package is in its top directory.
    wrapper = os.path.join(tmp_path, "node_modules", "@github", "copilot", "npm-loader.js")
    os.rename(os.path.join(os.path.dirname(wrapper), "bin", "run.js"), wrapper)
    os.unlink(os.path.join(programs, "copilot"))
    os.symlink(wrapper, os.path.join(programs, "copilot"))
    found = probe(registry.adapter("copilot"), {"PATH": programs})
    assert (found.path, found.is_native, found.version) == (native, True, "1.2.3")


@pytest.mark.req("LCH-14")
def test_a_program_that_is_missing_is_a_problem_before_any_start() -> None:
    found = probe(registry.adapter("codex"), {"PATH": "/nowhere"})
    assert found.problems == ("codex is not installed: no codex in PATH",)


@pytest.mark.req("LCH-14")
def test_a_login_is_seen_by_names_alone(tmp_path: os.PathLike[str]) -> None:
    able = registry.adapter("claude").capabilities
    home = str(tmp_path)
    assert login_seen(able, {"HOME": home}) == ()
    assert login_seen(able, {"HOME": home, "ANTHROPIC_API_KEY": ""}) == ()
    assert login_seen(able, {"HOME": home, "ANTHROPIC_API_KEY": "sk-x"}) == ("ANTHROPIC_API_KEY",)
    os.mkdir(os.path.join(home, ".claude"))
    with open(os.path.join(home, ".claude", ".credentials.json"), "w", encoding="utf-8") as file:
        file.write("secret")
    os.chmod(os.path.join(home, ".claude", ".credentials.json"), 0)
    assert login_seen(able, {"HOME": home}) == ("~/.claude/.credentials.json",)
    elsewhere = {"CLAUDE_CONFIG_DIR": os.path.join(home, ".claude")}
    assert login_seen(able, elsewhere) == ("$CLAUDE_CONFIG_DIR/.credentials.json",)


def test_probe_prints_no_secret(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", _npm(str(tmp_path), "claude", "1.2.3"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    assert entry.run(["agent", "probe", "claude"]) == 0
    shown = capsys.readouterr().out
    assert entry.run(["agent", "probe", "claude", "--json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["login_seen"] == ["ANTHROPIC_API_KEY"]
    assert "ANTHROPIC_API_KEY" in shown
    assert "very-secret" not in shown + printed


@pytest.mark.req("LCH-16")
@pytest.mark.parametrize(("agent", "asked", "given"), MODELS)
def test_a_short_name_becomes_a_pinned_one_on_the_command_line(agent: str, asked: str, given: str) -> None:
    adapter = registry.adapter(agent)
    spec = recorded.launch_spec(agent, model=asked)
    for launch in (adapter.launch(spec), adapter.resume(spec)):
        assert given in launch.argv
        assert asked == given or asked not in launch.argv


@pytest.mark.req("LCH-4")
@pytest.mark.parametrize("agent", recorded.AGENTS)
def test_the_prompt_is_never_on_the_command_line(agent: str) -> None:
    adapter = registry.adapter(agent)
    assert adapter.capabilities.stdin_prompt
    for launch in (adapter.launch(recorded.launch_spec(agent)), adapter.resume(recorded.launch_spec(agent))):
        assert launch.stdin == "/packet/prompt.md"
        assert "/packet/prompt.md" not in " ".join(launch.argv)


@pytest.mark.parametrize(("agent", "words"), EFFORTS.items())
def test_an_effort_is_handed_on_where_there_is_a_way(agent: str, words: list[str] | None) -> None:
    adapter = registry.adapter(agent)
    assert adapter.capabilities.takes_effort == (words is not None)
    for launch in (
        adapter.launch(recorded.launch_spec(agent, effort="high")),
        adapter.resume(recorded.launch_spec(agent, effort="high")),
    ):
        text = " ".join(launch.argv)
        assert (" ".join(words) in text) if words else ("high" not in text)
