"""No verb surprises whoever sits at a narrow terminal, or at one that is not UTF-8: the whole tool, over tasks of every kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from holdfast.testing import Scenario
from holdfast.views.cli import verbs
from holdfast.views.cli.out import cell_width
from tests.support.packets import Written
from tests.support.repos import Repo
from tests.support.tasks import Task, workspace

#: As long as an id may be.
LONG = "a-task-whose-name-says-at-length-what-it-is-about-and-more-than-it"[:64]
LOUD = "printf 'gr\\303\\274n \\342\\206\\222 %s\\n' " + "'word after word '" * 12


class Walk:
    """Runs command lines in an environment of few words, and gathers what is wrong with what they print."""

    def __init__(self, *, columns: int, locale: str) -> None:
        self.columns, self.locale = columns, locale
        kept = ("PATH", "HOME", "TMPDIR", "HOLDFAST_HOME", "HOLDFAST_TEST_ID", "HOLDFAST_KEEPER")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"TERM": "dumb", "COLUMNS": str(columns), "LC_ALL": locale}
        self.faults: list[str] = []

    def __call__(
        self, *args: str, status: int | None = 0, cwd: str | None = None, keeper: bool = False
    ) -> str:
        """`holdfast ARGS…`; returns what it printed."""
        env = {name: value for name, value in self.env.items() if not (keeper and name == "HOLDFAST_KEEPER")}
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *args],
            env=env, cwd=cwd or workspace(), stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        print(f"$ holdfast {' '.join(args)}    [{done.returncode}]")
        print((done.stdout + done.stderr).decode("utf-8", "backslashreplace"))
        if status is not None and done.returncode != status:
            self._fault(
                args, f"exit status {done.returncode}, not {status}", done.stderr.decode("utf-8", "replace")
            )
        for line in (done.stderr if is_data(args) else done.stdout + b"\n" + done.stderr).split(b"\n"):
            self._look(args, line)
        if b"Traceback" in done.stderr or b"has a bug" in done.stderr:
            self._fault(args, "a traceback", done.stderr.decode())
        if "--json" in args and done.returncode == 0:
            for line in done.stdout.splitlines():
                json.loads(line)
        if self.locale == "C" and not (done.stdout + done.stderr).isascii():
            self._fault(
                args,
                "not ASCII",
                repr(next(x for x in done.stdout.splitlines() + done.stderr.splitlines() if not x.isascii())),
            )
        return done.stdout.decode()

    def _look(self, args: tuple[str, ...], line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\n")
        if cell_width(text) > self.columns and not is_whole(text):
            self._fault(args, f"{cell_width(text)} columns", text)
        if text != text.rstrip():
            self._fault(args, "blanks at the end", repr(text))

    def _fault(self, args: tuple[str, ...], what: str, text: str) -> None:
        self.faults.append(f"holdfast {' '.join(args)}: {what}\n    {text}")


def is_data(args: tuple[str, ...]) -> bool:
    """Whether stdout is for programs, or what a task printed or wrote: no line of it is ours to break."""
    return args[:1] in (("logs",), ("attach",), ("diff",), ("completion",)) or bool(
        {"--json", "--prometheus"} & {*args}
    )


def is_whole(line: str) -> bool:
    """A path, or a command to be copied: it has its line for itself, however long."""
    words = line.strip(" |,.;:()'").split(" ")
    return len(words) == 1 or words[0] == "holdfast" or line.lstrip().startswith("'holdfast ")


class World:
    """A home in which a bit of everything happened."""

    def __init__(self, walk: Walk) -> None:
        shell = ("--", "sh", "-c")
        (
            walk("ls"),
            walk("status"),
            walk("report"),
            walk("metrics"),
            walk("audit"),
            walk("doctor"),
            walk("queue"),
        )
        walk("run", "--id", "fine", "--name", "größe …", *shell, "echo hello; echo ünder")
        walk("run", "--id", "loud", *shell, LOUD + "; exit 3", status=1)
        walk("run", "--id", LONG, "--max-retries", "0", *shell, LOUD + "; kill -9 $$", status=5)
        walk("run", "-d", "--id", "held", *shell, "sleep 60")
        walk("interrupt", "held", "-m", "which of the two databases do you mean, " * 4)
        walk("wait", "held", status=4)
        walk("run", "-d", "--id", "gone", *shell, "sleep 60")
        walk("stop", "gone")
        walk("wait", "gone", status=None)
        self.agent(walk)
        self.worktree(walk)
        self.packet(walk)
        walk(
            "submit",
            "--id",
            "later",
            "--not-before",
            "+2h",
            "--pool",
            "nightly",
            "--priority",
            "high",
            *shell,
            "true",
        )
        walk("submit", "--id", "after", "--after", "later", "--after", "held", *shell, "true")
        walk("submit", "--agent", "scripted", "-o", f"scenario={self.scenario}", "a long goal " * 12)

    def agent(self, walk: Walk) -> None:
        """One that talks, uses tools, costs something, and asks."""
        self.scenario = str(
            Scenario()
            .say("I shall do this … → now, " * 10)
            .tool("Bash", command="echo " + "x y " * 40)
            .tool("Bash", command="false", fails=True)
            .usage(input_tokens=12345, output_tokens=678, cost_usd=1.25)
            .result("all is well — and done " * 6)
            .write_to(os.path.join(workspace(), "played.json"))
        )
        walk(
            "run", "--id", "played", "--agent", "scripted", "-o", f"scenario={self.scenario}", "do “it” " * 20
        )

    def worktree(self, walk: Walk) -> None:
        self.repo = Repo(os.path.join(workspace(), "repo"))
        self.repo.write("a.txt", "one\n")
        self.repo.commit("a.txt")
        walk("run", "--id", "tree", "--worktree", "--", "sh", "-c", "echo two > b.txt", cwd=self.repo.path)

    def packet(self, walk: Walk) -> None:
        self.written = Written(
            {"scripted_brief": None, "scripted_impl": None, "scripted_review": None}, task_id="staged"
        )
        walk("pipeline", "check", self.written.path)
        walk("pipeline", "show", self.written.path)
        walk("run", "--packet", self.written.path, cwd=self.written.project.path)
        folder = os.path.join(workspace(), "made-by-new")
        walk(
            "new", folder, "--intent", "safe_impl", "--goal", "add retries … to the client", "--allow", "src/"
        )
        walk("pipeline", "check", folder)
        walk("pipeline", "show", folder)
        walk("run", "--packet", folder, status=None)
        with open(os.path.join(folder, "manifest.yaml"), "a", encoding="utf-8") as file:
            file.write("\nnonsense: 1\nrouting:\n  intent: nothing-of-the-kind\n")
        walk("pipeline", "check", folder, status=2)


def help_of_everything(walk: Walk) -> None:
    walk(), walk("--help"), walk("help")
    for topic in ("environment", "exit-codes", "files", "states"):
        walk("help", topic)
    for verb in verbs.VERBS:
        walk(verb, "--help")


def views(walk: Walk, world: World) -> None:
    """Every verb that only looks."""
    walk("ls"), walk("ls", "--all"), walk("ls", "-q"), walk("ls", "--json"), walk("ls", "--state", "hung")
    for task in ("fine", "loud", LONG, "held", "gone", "played", "tree", "staged", "later", "after"):
        walk("show", task), walk("events", task)
    for task in ("played", "loud", "held"):
        walk("show", task, "--json"), walk("events", task, "--json"), walk("events", task, "--timeline")
        walk("events", task, "--summary"), walk("events", task, "--tools"), walk("events", task, "--errors")
        walk("audit", task), walk("attach", task, status=None) if task != "held" else None
    walk("wait", "fine"), walk("wait", "loud", status=1), walk("logs", "loud", "-n", "2")
    (
        walk("status"),
        walk("status", "--json"),
        walk("report"),
        walk("report", "--detailed"),
        walk("report", "--json"),
    )
    (
        walk("metrics"),
        walk("metrics", "--json"),
        walk("metrics", "--prometheus"),
        walk("audit"),
        walk("audit", "--json"),
    )
    walk("config", "show"), walk("config", "path"), walk("doctor"), walk("doctor", "--json", status=None)
    walk("pipeline", "list"), walk("pipeline", "index"), walk("pipeline", "list", "--json")
    walk("pipeline", "show", world.written.path), walk("pipeline", "check", world.written.path, "--json")
    walk("agent", "list"), walk("agent", "probe", "scripted"), walk("agent", "probe", "command")
    walk("agent", "replay", "claude", world.scenario)
    walk("service", "status", status=3), walk("prune", "--older-than", "0s"), walk("prune")
    walk("queue"), walk("queue", "show", "later"), walk("queue", "check"), walk("queue", "--json")
    walk("diff", "tree"), walk("diff", "tree", "--stat"), walk("diff", "staged", "--stat")


def mistakes(walk: Walk, world: World) -> None:
    """What is refused, and why."""
    walk("nope", status=2), walk("sho", status=2), walk("-x", status=2), walk("help", "nope", status=2)
    for verb in verbs.VERBS:
        walk(verb, "--nope", status=2)
    for verb in (
        "show",
        "logs",
        "events",
        "wait",
        "attach",
        "stop",
        "interrupt",
        "resume",
        "approve",
        "reject",
        "retry",
    ):
        walk(verb, "no-such-task", status=3)
    for verb in ("diff", "apply", "rm", "metrics", "archive"):
        walk(verb, "no-such-task", status=3)
    walk("run", status=2), walk("run", "ls", "-l", "--all", status=2), walk("run", "two", "words", status=2)
    walk("run", "--", "no-such-program-anywhere-in-the-path", status=2)
    walk("run", "--agent", "claude", "do it", status=2), walk("run", "--agent", "nobody", "do it", status=2)
    (
        walk("run", "--deadline", "soon", "--", "true", status=2),
        walk("run", "--id", "fine", "--", "true", status=2),
    )
    (
        walk("run", "--id", "../x y", "--", "true", status=2),
        walk("run", "--project", "/nowhere", "--", "true", status=2),
    )
    walk("run", "--packet", "/nowhere", status=2), walk("run", "--agent", "scripted", "do it", status=2)
    (
        walk("submit", "--not-before", "soon", "--", "true", status=2),
        walk("submit", "--after", "nobody", "--", "true", status=3),
    )
    walk("submit", "--priority", "most", "--", "true", status=2)
    walk("resume", "fine", status=3), walk("approve", "held", status=3), walk("retry", "held", status=3)
    walk("resume", "later", status=3), walk("stop", "fine", status=None), walk("interrupt", "gone", status=3)
    (
        walk("rm", "held", status=3),
        walk("apply", "fine", status=3),
        walk("diff", "fine", status=3),
        walk("apply", "held", status=3),
    )
    (
        walk("diff", "staged", "--stage", "nope", status=3),
        walk("retry", "staged", "--from", "nope", status=None),
    )
    (
        walk("ls", "--state", "nope", status=2),
        walk("logs", "fine", "-n", "x", status=2),
        walk("logs", "fine", "--attempt", "9", status=3),
    )
    (
        walk("logs", "fine", "--raw", "--stderr", status=2),
        walk("events", status=2),
        walk("events", "fine", "--tools", "--errors", status=2),
    )
    walk("events", "fine", "--follow", "--summary", status=2), walk("audit", "--since", "soon", status=2)
    walk("wait", "held", "--timeout", "nope", status=2), walk("metrics", "--json", "--prometheus", status=2)
    walk("queue", "nope", status=2), walk("queue", "add", status=2), walk("queue", "add", "{", status=2)
    (
        walk("queue", "add", '{"id": "x"}', status=2),
        walk("queue", "import", "ftp:nowhere", status=2),
        walk("queue", "rm", "fine", status=3),
    )
    (
        walk("queue", "retry", "later", status=None),
        walk("queue", "clear", status=2),
        walk("queue", "release", "later", status=None),
    )
    (
        walk("agent", "nope", status=2),
        walk("agent", "probe", status=2),
        walk("agent", "probe", "nobody", status=2),
    )
    walk("agent", "probe", "claude", status=3), walk("agent", "replay", "claude", "/nowhere", status=2)
    (
        walk("pipeline", "check", "/nowhere", status=2),
        walk("pipeline", "show", status=2),
        walk("pipeline", "list", "x", status=2),
    )
    walk("config", "nope", status=2), walk("service", "nope", status=2), walk("service", "remove", status=3)
    (
        walk("completion", "nope", status=2),
        walk("prune", "--older-than", "soon", status=2),
        walk("archive", status=2),
    )
    (
        walk("demo", "--home", workspace(), status=2),
        walk("up", status=3),
        walk("up", "--slots", "none", status=2),
    )
    (
        walk("new", status=2),
        walk("new", "--intent", "nope", status=2),
        walk("new", "--intent", "safe_impl", status=2),
    )
    walk("new", world.written.path, "--intent", "safe_impl", "--goal", "x", status=2)
    walk("review", status=2), walk("review", "--context", "/nowhere", "--report", "/nowhere", status=2)


def deeds(walk: Walk, world: World) -> None:
    """Every verb that changes something."""
    (
        walk("queue", "pause"),
        walk("queue"),
        walk("report"),
        walk("queue", "resume"),
        walk("queue", "pause", "nightly"),
    )
    walk(
        "queue",
        "add",
        '{"id": "issue-123", "title": "Fix … the tests", "priority": "high"}',
        "--agent",
        "scripted",
        status=None,
    )
    (
        walk("queue", "claim", "later", status=None),
        walk("queue"),
        walk("queue", "rm", "after"),
        walk("queue", "clear", "--yes", status=None),
    )
    walk("resume", "held", "-m", "the first"), walk("stop", "held"), walk("wait", "held", status=None)
    walk("retry", "loud"), walk("wait", "loud", status=None), walk("apply", "tree", cwd=world.repo.path)
    (
        walk("archive", "fine"),
        walk("ls", "--archived"),
        walk("archive", "--all-ended"),
        walk("prune", "--archived", "--keep", "3"),
    )
    walk("rm", "gone", status=None), walk("prune", "--older-than", "0s", "--yes"), walk("audit")
    live = Task.shell("sleep 60", "--id", "orphan")
    live.agent_pid()
    live.kill_runner()
    assert "gone" in walk("show", "orphan").partition("runner")[2].partition("\n")[0]
    walk("status"), walk("report"), walk("ls")
    walk("up", keeper=True), walk("status"), walk("up", keeper=True), walk("doctor", status=None)
    walk("stop", "orphan"), walk("wait", "orphan", status=None)
    (
        walk("down", "--now", keeper=True),
        walk("down", keeper=True),
        walk("status"),
        walk("submit", "--", "true"),
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("columns", "locale"), [(80, "C"), (120, "C.UTF-8")])
def test_every_verb_fits_the_terminal(columns: int, locale: str, home: str) -> None:
    walk = Walk(columns=columns, locale=locale)
    world = World(walk)
    views(walk, world)
    if locale == "C":  # a wider terminal makes no difference to these
        help_of_everything(walk)
        mistakes(walk, world)
    deeds(walk, world)
    assert walk.faults == [], "\n".join([f"{len(walk.faults)} faults", *walk.faults])
