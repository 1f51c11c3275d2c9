"""Permission profiles reach the agent's program, and a denied tool is never plain success.

A stand-in for Claude Code is denied a tool unless its permissions are bypassed.
"""

from __future__ import annotations

import json
import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast import paths
from holdfast.agents import registry
from holdfast.errors import UsageError
from holdfast.model.spec import Limits, SandboxSpec, StageSpec, TaskSpec
from holdfast.testing import Scenario
from holdfast.views.create import permissions
from tests.support.packets import REPORTS, Written, summary
from tests.support.tasks import Task, holdfast, trust, workspace

pytestmark = pytest.mark.usefixtures("home")

_PROGRAM = """#!{python}
import json, sys
argv = sys.argv[1:]
session = argv[argv.index("--session-id" if "--session-id" in argv else "--resume") + 1]
names = [] if "--dangerously-skip-permissions" in argv else ["Write", "Bash"]
denied = [{{"tool_name": name}} for name in names]
for line in (
    {{"type": "system", "subtype": "init", "session_id": session, "model": "m"}},
    {{"type": "assistant", "message": {{"content": [{{"type": "text", "text": "All done."}}]}}}},
    {{"type": "result", "subtype": "success", "is_error": False, "result": "All done.",
      "session_id": session, "permission_denials": denied}},
):
    print(json.dumps(line, separators=(",", ":")))
"""
MODES = {
    "read": ["--permission-mode", "default"],
    "edit": ["--permission-mode", "acceptEdits"],
    "full": ["--dangerously-skip-permissions"],
}


def claude() -> dict[str, str]:
    """The environment in which `claude` is the stand-in."""
    folder = os.path.join(os.path.dirname(os.environ["HOLDFAST_HOME"]), "programs")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_PROGRAM.format(python=sys.executable))
    os.chmod(path, 0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": "none"}


def start(*flags: str, **given: Any) -> Task:
    return Task.start("--agent", "claude", *flags, "hello", env=claude(), **given)


def argv(task: Task, number: int = 0) -> list[str]:
    with open(os.path.join(task.attempts()[number], "argv.json"), encoding="utf-8") as file:
        return json.load(file)["argv"]


def mode(task: Task) -> list[str]:
    """The arguments of the first attempt that set the permission mode."""
    line = argv(task)
    at = next(at for at, word in enumerate(line) if "permission" in word)
    return line[at : at + (1 if "dangerously" in line[at] else 2)]


def user_settings(text: str) -> None:
    path = paths.user_settings()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# ── which profile ──


@pytest.mark.parametrize(
    ("flags", "profile"),
    [
        ([], "edit"),
        (["--permissions", "read"], "read"),
        (["--permissions", "edit"], "edit"),
        (["--permissions", "full"], "full"),
        (["--yolo"], "full"),
    ],
    ids=str,
)
def test_a_profile_reaches_the_program_and_is_shown(flags: list[str], profile: str) -> None:
    task = start(*flags)
    manifest = task.wait_for("completed")
    assert mode(task) == MODES[profile]
    assert manifest["permissions"] == profile
    assert manifest["yolo"] == (profile == "full")
    assert f"claude, permissions {profile}" in task.ask("show").stdout


def test_a_setting_of_the_user_is_the_default_and_a_flag_beats_it() -> None:
    user_settings('permissions = "read"\n')
    assert start().wait_for("completed")["permissions"] == "read"
    assert start("--permissions", "edit").wait_for("completed")["permissions"] == "edit"


def test_a_project_widens_nothing_without_trust() -> None:
    project = workspace()
    os.mkdir(os.path.join(project, ".holdfast"))
    with open(os.path.join(project, ".holdfast", "config.toml"), "w", encoding="utf-8") as file:
        file.write('permissions = "full"\n')
    assert start(project=project).wait_for("completed")["permissions"] == "edit"
    trust(project)
    assert start(project=project).wait_for("completed")["permissions"] == "full"


def test_an_option_of_the_agent_beats_the_profile() -> None:
    task = start("--permissions", "full", "-o", "permission_mode=plan")
    task.wait_for("completed")
    assert mode(task) == ["--permission-mode", "plan"]
    assert "--dangerously-skip-permissions" not in argv(task)


def test_a_work_item_has_its_own_profile() -> None:
    item = {"id": "i1", "title": "t", "agent": "claude", "permissions": "read", "project": workspace()}
    done = holdfast("queue", "add", json.dumps(item), env=claude())
    assert done.returncode == 0, done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "i1"))
    assert task.manifest()["permissions"] == "read"
    wrong = holdfast("queue", "add", json.dumps({**item, "id": "i2", "permissions": "all"}), env=claude())
    assert wrong.returncode == 2
    assert "permissions must be one of read, edit, full" in wrong.stderr


def test_a_command_has_no_profile() -> None:
    assert Task.shell("true").wait_for("completed")["permissions"] is None
    refused = holdfast("run", "--permissions", "read", "--", "true")
    assert refused.returncode == 2
    assert "--permissions applies to agents" in refused.stderr


def test_yolo_and_another_profile_contradict_each_other() -> None:
    done = holdfast("run", "--agent", "claude", "--yolo", "--permissions", "read", "hi", env=claude())
    assert done.returncode == 2
    assert "--yolo means --permissions full" in done.stderr


def test_full_without_a_sandbox_prints_one_warning() -> None:
    done = holdfast("run", "-d", "--agent", "claude", "--permissions", "full", "hi", env=claude())
    assert done.stderr.count("warning:") == 1
    assert "full permissions without a sandbox" in done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", done.stdout.strip()))
    task.wait_for("completed")
    assert "warning" not in holdfast("run", "-d", "--agent", "claude", "--id", "b", "hi", env=claude()).stderr
    Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "b")).wait_for("completed")


def test_an_adapter_without_profiles_is_reported() -> None:
    plain = registry.adapter("scripted").capabilities.evolve(permissions=())
    adapter = SimpleNamespace(name="plain", capabilities=plain)
    none = {"permissions": None, "yolo": False}
    assert permissions.chosen(none, {}, [adapter], talk=print) == "edit"  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="the adapter of plain has no permission profiles"):
        permissions.chosen({**none, "permissions": "read"}, {}, [adapter], talk=print)  # pyright: ignore[reportArgumentType]


def test_a_manifest_cannot_limit_an_agent_without_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.pipeline.define.manifest import Manifest

    plain = registry.adapter("scripted").capabilities.evolve(permissions=())
    adapter = SimpleNamespace(name="plain", capabilities=plain)
    monkeypatch.setattr(registry, "adapter", lambda _: adapter)
    stage = StageSpec(name="plain_impl", agent="plain", permissions="edit", writes=True)
    spec = TaskSpec(
        task_id="t",
        task_name="t",
        goal="g",
        agent="plain",
        project_dir="/p",
        stages=(stage,),
        limits=Limits(),
    )

    def check(values: dict[str, str], spec: TaskSpec = spec) -> None:
        manifest = Manifest(file="m", values=values, lines={})
        permissions.check_stages(spec, by_flag=None, manifest=manifest, settings={}, talk=print)

    check({})
    for values in ({"permissions": "edit"}, {"routing.permissions.plain_impl": "edit"}):
        with pytest.raises(UsageError, match="the adapter of plain has no permission profiles"):
            check(values)
    check({"permissions": "full"}, spec.evolve(stages=(stage.evolve(permissions="full"),)))


def test_full_in_a_sandbox_needs_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    stage = StageSpec(name="claude_run", agent="claude", permissions="full")
    spec = TaskSpec(
        task_id="t",
        task_name="t",
        goal="g",
        agent="claude",
        project_dir="/p",
        stages=(stage,),
        limits=Limits(),
    )
    permissions.warn(spec.evolve(sandbox=SandboxSpec()), talk=print)
    assert capsys.readouterr().out == ""
    permissions.warn(spec, talk=print)
    assert "without a sandbox" in capsys.readouterr().out


# ── pipelines ──


def profiles(task: Task) -> dict[str, str]:
    stages = task.events("task.created")[0]["spec"]["stages"]
    return {stage["name"]: stage["permissions"] for stage in stages}


def test_a_stage_that_writes_may_edit_and_a_reviewer_reads() -> None:
    task = Written({"scripted_impl": None, "scripted_review": None}).start("--permissions", "full")
    assert profiles(task) == {"scripted_impl": "full", "scripted_review": "read"}
    assert task.wait_for("completed", within_s=40.0)["permissions"] == "full"


def test_a_manifest_has_profiles_for_the_task_and_for_stages() -> None:
    stages = {"scripted_impl": None, "scripted_verify": None, "scripted_review": None}
    written = Written(stages, permissions="full")
    written.manifest["routing"]["permissions"] = {"scripted_verify": "edit"}
    written.put("manifest.yaml", json.dumps(written.manifest))
    task = written.run()
    assert profiles(task) == {
        "scripted_impl": "full",
        "scripted_verify": "edit",
        "scripted_review": "read",
    }


def test_a_stage_that_does_not_exist_has_no_profile() -> None:
    written = Written({"scripted_impl": None})
    written.manifest["routing"]["permissions"] = {"scripted_reviw": "edit"}
    written.put("manifest.yaml", json.dumps(written.manifest))
    done = holdfast("pipeline", "check", written.path, cwd=written.project.path)
    assert done.returncode == 2
    assert "unknown stage 'scripted_reviw'" in done.stdout + done.stderr


def test_a_packet_in_a_repository_widens_nothing_without_trust() -> None:
    written = Written({"scripted_impl": None}, permissions="full")
    folder = os.path.join(written.project.path, "packet")
    os.rename(written.path, folder)
    done = holdfast("run", "-d", "--packet", folder, cwd=written.project.path)
    assert done.returncode == 2
    assert "was not trusted yet" in done.stderr
    assert "permissions" in done.stderr


def test_a_tool_that_a_reviewer_was_denied_is_a_remark() -> None:
    review = Scenario().say(REPORTS["review"]).result("ok", denied=["Write"])
    task = Written({"scripted_impl": None, "scripted_review": review}).run()
    assert task.manifest()["denied"] == []
    assert "scripted_review: tools were denied (Write); its role only reads" in summary(task)
    lines = task.ask("show").stdout.splitlines()
    assert any("scripted_review" in line and line.endswith(", tools were denied") for line in lines)
    assert holdfast("wait", task.id).returncode == 0


def test_a_tool_that_a_writer_was_denied_is_named_with_its_stage() -> None:
    impl = Scenario().write("b.txt", content="hello").say(REPORTS["impl"]).result("ok", denied=["Bash"])
    task = Written({"scripted_impl": impl, "scripted_review": None}).run()
    reason = "scripted_impl: tools were denied (Bash); --permissions full allows more"
    assert task.manifest()["status_reason"] == reason
    assert "holdfast retry it --from scripted_impl --permissions full" in summary(task)
    assert holdfast("wait", task.id).returncode == 4


# ── denied tools ──


def test_a_denied_tool_is_told_everywhere_and_the_exit_status_is_4() -> None:
    done = holdfast("run", "--id", "it", "--agent", "claude", "--permissions", "read", "hi", env=claude())
    retry = "holdfast retry it --from claude_run --permissions edit"
    assert done.returncode == 4
    assert "it completed" in done.stderr
    assert "tools were denied (Write, Bash); --permissions edit allows more" in done.stderr
    assert retry in done.stderr
    task = Task(os.path.join(os.environ["HOLDFAST_HOME"], "tasks", "it"))
    manifest = task.wait_for("completed")
    assert manifest["denied"] == [{"stage": "claude_run", "tools": "Write, Bash", "allow": "edit"}]
    assert "[tools denied: Write, Bash (--permissions edit allows more)]" in holdfast("ls").stdout
    shown = task.ask("show").stdout
    assert "completed: tools were denied (Write, Bash)" in shown
    assert "claude_run  done, tools were denied" in shown
    assert retry in shown
    summary = task.read("outputs", "_summary.md").decode()
    assert "tools were denied (Write, Bash)" in summary
    assert "next_action: **allow_tools**" in summary
    assert f"`{retry}`" in summary
    assert "tools denied: Write, Bash (--permissions edit allows more)" in holdfast("report").stdout
    waited = holdfast("wait", "it")
    words = "it completed: tools denied: Write, Bash (--permissions edit allows more)\n"
    assert (waited.returncode, waited.stdout) == (4, words)
    assert holdfast("attach", "--no-tmux", "it").returncode == 4


def test_the_recommended_retry_allows_the_tools() -> None:
    task = start("--id", "it")
    manifest = task.wait_for("completed")
    (denied,) = manifest["denied"]
    assert denied["allow"] == "full"
    command = ["retry", "it", "--from", denied["stage"], "--permissions", denied["allow"]]
    assert " ".join(command) in task.ask("show").stdout
    done = holdfast(*command, env=claude())
    assert done.returncode == 0, done.stderr
    assert holdfast("wait", "it").returncode == 0
    manifest = task.wait_for("completed")
    assert (manifest["permissions"], manifest["denied"], manifest["run"]) == ("full", [], 2)
    assert "--dangerously-skip-permissions" in argv(task, 1)
    assert "--resume" in argv(task, 1)


def test_a_tool_that_is_denied_with_full_permissions_names_no_flag() -> None:
    task = Task.play(Scenario().result(denied=["Write"]), "--permissions", "full", "--id", "it")
    manifest = task.wait_for("completed")
    assert manifest["denied"] == [{"stage": "scripted_run", "tools": "Write", "allow": ""}]
    assert manifest["status_reason"] == "tools were denied (Write)"
    assert "[tools denied: Write]" in holdfast("ls").stdout
    assert holdfast("wait", "it").returncode == 4


def test_a_retry_asks_for_a_profile_that_exists() -> None:
    task = Task.play(Scenario().result(denied=["Write"]), "--id", "it")
    task.wait_for("completed")
    done = task.ask("retry", "--from", "scripted_run", "--permissions", "all")
    assert done.returncode == 2
    assert "read" in done.stderr
