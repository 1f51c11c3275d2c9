"""Written packets whose stages are played: by the scripted agent, or by stand-ins for the programs of the
shipped profiles."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from holdfast.model.pack import HEADINGS
from holdfast.testing import Scenario
from tests.support.repos import Repo
from tests.support.tasks import Task, holdfast, trust, workspace

PACK = "\n".join(f"### {heading}\n\nsaid by the brief\n" for heading in HEADINGS)


def brief(*commands: str, pack: str = PACK) -> str:
    """The report of a brief that proposes these commands."""
    fenced = "```bash\n" + "".join(f"{command}\n" for command in commands) + "```" if commands else "none"
    parts = (
        ("Summary", "what is asked"),
        ("Acceptance", "it works"),
        ("Scope", "b.txt"),
        ("Constraints", "none"),
    )
    return (
        "".join(f"## {heading}\n\n{text}\n\n" for heading, text in parts)
        + f"## Verify Commands\n\n{fenced}\n\n## Updated Context Pack\n\n{pack}"
    )


def _with(*headings: str) -> str:
    return "".join(f"## {heading}\n\nnothing to say\n\n" for heading in headings)


#: A valid report of each role.
REPORTS = {
    "brief": brief(),
    "impl": "## Summary\n\nb.txt is there.\n",
    "verify": "All commands pass.\n",
    "judge": "## Choice\n\nCandidate 3\n\n## Comparison\n\nnothing to say\n",
    "review": _with("Findings", "Test gaps", "Breaking changes", "Minimal fix"),
    "review_consolidate": _with("Findings", "Test gaps", "Breaking changes", "Minimal fix"),
    "security_review": _with("Findings", "Test gaps", "Breaking changes", "Minimal fix"),
    "fix": _with("Fixed", "Not fixed", "Checks"),
    "runbook": _with("Problem", "Plan", "Commands", "Risks"),
    "test_design": "".join(f"- case {number}\n" for number in range(12)),
    "static_verify": _with("Pre-execution checks", "Dangerous changes", "Rollback plan", "Go/No-Go"),
    "test_impl": _with("Added or Updated Tests", "Unified Diff", "Rationale") + "No changes required.\n",
    "plan_draft": "## Plan\n\n1. do it\n",
    "plan_enrich": "## Plan\n\n1. do it well\n",
    "plan_review": "## Findings\n\nnone\n",
    "plan_consolidate": "## Plan\n\n1. do it well\n",
}
#: Roles that must change a file.
WRITERS = ("impl", "runbook", "fix")
#: The file that they write by default.
WORK = "b.txt"


def played(role: str, text: str | None = None, *, before: Scenario | None = None) -> Scenario:
    """A scenario: what comes `before`, the role's work, its report."""
    scenario = before or Scenario()
    if role in WRITERS and before is None:
        scenario.write(WORK, content="hello\n")
    return scenario.say(REPORTS[role] if text is None else text).result("ok")


def role_of(stage: str) -> str:
    """`codex_test_impl` → `test_impl`."""
    return stage.partition("_")[2]


def _is_written(stages: Mapping[str, Any] | None, writes: tuple[str, ...]) -> bool:
    """Whether these stages leave the file that the usual acceptance command asks for, or verify that."""
    return stages is None or bool(writes) or any(role_of(stage) in (*WRITERS, "verify") for stage in stages)


class Written:
    """The folder of a packet, and its project."""

    def __init__(
        self,
        stages: Mapping[str, Scenario | str | None] | None = None,
        *,
        task_id: str = "it",
        intent: str = "safe_impl",
        group: str = "impl",
        waves: list[Any] | None = None,
        writes: tuple[str, ...] = (),
        project: Repo | None = None,
        request: str = "Write b.txt.\n",
        repairs: int = 0,
        **manifest: Any,
    ) -> None:
        """`stages`: each with its scenario, its report, or None for the right report. Without stages the
        shipped profile runs. `waves` is the profile's own list where some of them run side by side. Further
        words are parts of the manifest, laid over the usual ones."""
        self.project = project or Repo(os.path.join(workspace(), "project"))
        # Not where other tasks run: it would need trust after each change.
        self.path = os.path.join(os.path.dirname(workspace()), f"packet-{task_id}")
        self.task_id = task_id
        os.makedirs(os.path.join(self.path, "inputs", "attachments"))
        self.put("inputs/user_request.md", request)
        self.manifest: dict[str, Any] = {
            "task_id": task_id,
            "goal": "write b.txt",
            "project": self.project.path,
            "routing": {"intent": intent},
            "scope": {"allow": [WORK], "deny": []},
            "acceptance": {
                "commands": [f"test -e {WORK}"] if _is_written(stages, writes) else [],
                "criteria": ["b.txt is there"],
            },
            "budgets": {"retry_budget": 2, "paid_call_budget": 20, "max_wallclock_sec": 60},
            "context": {"digest_policy": "auto"},
        }
        if stages is not None:
            self._play(stages, intent, group, waves or list(stages), writes)
        for key, value in manifest.items():
            old = self.manifest.get(key)
            self.manifest[key] = {**old, **value} if isinstance(old, dict) else value
        if group == "impl" and stages is not None:
            # What a gate refuses stays refused, unless the test is about repairs.
            pipeline = {"on_fail": {"times": repairs}, **self.manifest["routing"].get("pipeline", {})}
            self.manifest["routing"] = {**self.manifest["routing"], "pipeline": pipeline}
        self.put("manifest.yaml", json.dumps(self.manifest, indent=2))
        trust(self.path, is_new=True)

    def _play(
        self, stages: Mapping[str, Any], intent: str, group: str, waves: list[Any], writes: tuple[str, ...]
    ) -> None:
        profile: dict[str, Any] = {"stages": waves}
        if writes:
            profile["writes"] = list(writes)
        pipeline = {"version": 1, "pipeline": group, "profiles": {intent: profile}}
        self.project.write(f".holdfast/pipelines/{group}.yaml", json.dumps(pipeline))
        trust(self.project.path)
        options: dict[str, Any] = {}
        for stage, how in stages.items():
            scenario = how if isinstance(how, Scenario) else played(role_of(stage), how)
            scenario.write_to(os.path.join(self.path, f"{stage}.json"))
            options[stage] = {"scenario": f"{stage}.json"}
        self.manifest["routing"]["options"] = options

    def put(self, name: str, text: str) -> None:
        """A file of the packet."""
        with open(os.path.join(self.path, name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, *flags: str, env: dict[str, str] | None = None) -> Task:
        """`holdfast run -d --packet …`."""
        words = ("--packet", self.path, "--base-interval", "0.3s", *flags)
        return Task.start(*words, project=self.project.path, env=env)

    def run(self, *flags: str, end: str = "completed", within_s: float = 40.0) -> Task:
        """Start it, and wait for its end."""
        task = self.start(*flags)
        task.wait_for(end, within_s=within_s)
        return task


def gate(task: Task, stage: str) -> dict[str, Any]:
    """The last gate result of a stage."""
    return task.json("outputs", f"{stage}.gate_result.json")


def calls(task: Task, stage: str = "") -> list[dict[str, Any]]:
    """The attempts of agents that were opened; of one stage, or of all."""
    opened = [event for event in task.events("attempt.opened") if event.get("kind", "agent") == "agent"]
    return [event for event in opened if stage in ("", event["stage"])]


def summary(task: Task) -> str:
    """`_summary.md`, which never has more than 80 lines."""
    text = task.read("outputs", "_summary.md").decode()
    assert len(text.splitlines()) <= 80, text
    return text


# ── stand-ins ──

#: A program that reports what lies in a folder under its stage's name, in the words of the CLI whose name it
#: has.
_PROGRAM = """#!{python}
import json, os, subprocess, sys, uuid
me, folder = os.path.basename(sys.argv[0]), {folder!r}
if "--version" in sys.argv:
    print("99.0.0")
    sys.exit()
stage = os.path.basename(os.environ["HOLDFAST_ATTEMPT"]).split("-", 1)[1]
def after(flag):
    return next((sys.argv[at + 1] for at, word in enumerate(sys.argv) if word == flag), str(uuid.uuid4()))
def say(**line):
    print(json.dumps(line, separators=(",", ":")), flush=True)
if me == "gemini":
    say(type="init", timestamp="2026-01-01T00:00:00.000Z", session_id=after("--session-id"), model="m")
elif me == "codex":
    say(type="thread.started", thread_id=str(uuid.uuid4()))
    say(type="turn.started")
with open(os.path.join(folder, stage + ".ran"), "a") as file:
    file.write("%d\\n" % os.getpid())
script = os.path.join(folder, stage + ".sh")
if os.path.exists(script):
    subprocess.run(["sh", script], check=True, stdout=sys.stderr)
with open(os.path.join(folder, stage + ".md")) as file:
    text = file.read()
if me == "gemini":
    say(type="message", timestamp="2026-01-01T00:00:00.000Z", role="assistant", content=text)
    say(type="result", timestamp="2026-01-01T00:00:00.000Z", status="success", stats={{"total_tokens": 2}})
elif me == "codex":
    say(type="item.completed", item={{"id": "item_1", "type": "agent_message", "text": text}})
    say(type="turn.completed", usage={{"input_tokens": 1, "output_tokens": 1}})
else:
    say(type="assistant.message", data={{"content": text}})
    say(type="result", timestamp="2026-01-01T00:00:00.000Z", sessionId=after("--session-id"), exitCode=0)
"""


#: A `claude` that is the scripted agent: it plays the scenario of its stage, in the session that it is given.
_CLAUDE = """#!{python}
import os, sys
if "--version" in sys.argv:
    print("99.0.0 (Claude Code)")
    sys.exit()
stage = os.path.basename(os.environ["HOLDFAST_ATTEMPT"]).split("-", 1)[1]
words = ["{python}", "-m", "holdfast.testing.agent", os.path.join({folder!r}, stage + ".json")]
for flag in ("--session-id", "--resume"):
    if flag in sys.argv:
        words += [flag, sys.argv[sys.argv.index(flag) + 1]]
os.execv("{python}", words)
"""


def scripted_claude(**scenarios: Scenario) -> dict[str, str]:
    """A `claude` in PATH that plays these scenarios, by role; the environment that has it."""
    root = os.path.dirname(os.environ["HOLDFAST_HOME"])
    folder, programs = os.path.join(root, "scenarios"), os.path.join(root, "programs")
    os.makedirs(folder, exist_ok=True)
    os.makedirs(programs, exist_ok=True)
    for role, scenario in scenarios.items():
        scenario.write_to(os.path.join(folder, f"claude_{role}.json"))
    path = os.path.join(programs, "claude")
    with open(path, "w", encoding="utf-8") as file:
        file.write(_CLAUDE.format(python=sys.executable, folder=folder))
    os.chmod(path, 0o755)
    return {"PATH": f"{programs}:{os.environ['PATH']}", "ANTHROPIC_API_KEY": "none"}


class StandIns:
    """Free stand-ins for gemini, codex and copilot in PATH, with prepared reports."""

    def __init__(self, stages: list[str], **reports: str) -> None:
        root = os.path.dirname(os.environ["HOLDFAST_HOME"])
        self.folder, programs = os.path.join(root, "stand-ins"), os.path.join(root, "programs")
        os.mkdir(self.folder)
        os.mkdir(programs)
        for name in ("gemini", "codex", "copilot"):
            path = os.path.join(programs, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(_PROGRAM.format(python=sys.executable, folder=self.folder))
            os.chmod(path, 0o755)
        self.env = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GEMINI_API_KEY": "none",
            "CODEX_API_KEY": "none",
        }
        for stage in stages:
            self.tell(f"{stage}.md", reports.get(stage, REPORTS[role_of(stage)]))
            if role_of(stage) in WRITERS:
                self.tell(f"{stage}.sh", f"echo hello > {WORK}\n")

    def tell(self, name: str, text: str) -> None:
        """A report (`<stage>.md`), or what is done before it (`<stage>.sh`)."""
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def times(self, stage: str) -> int:
        """How often a stage was played."""
        path = os.path.join(self.folder, f"{stage}.ran")
        if not os.path.exists(path):
            return 0
        with open(path, encoding="utf-8") as file:
            return len(file.readlines())


def stages_of(path: str, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    """The stages of a packet, from `pipeline show`."""
    done = holdfast("pipeline", "show", path, "--json", env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["stages"]
