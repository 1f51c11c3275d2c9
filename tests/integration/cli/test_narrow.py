"""Every verb fits an 80-column terminal and one that is not UTF-8, with tasks of every kind."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

import pytest

from holdfast.testing import Scenario
from holdfast.views.cli import verbs
from holdfast.views.text.fit_text import cell_width
from tests.support.packets import Written
from tests.support.repos import Repo
from tests.support.tasks import Task, workspace

#: The longest allowed id.
LONG = "a-task-whose-name-says-at-length-what-it-is-about-and-more-than-it"[:64]
LOUD = "printf 'gr\\303\\274n \\342\\206\\222 %s\\n' " + "'word after word '" * 12


class Walk:
    """Runs command lines in a minimal environment, and collects faults in their output."""

    def __init__(self, *, columns: int, locale: str) -> None:
        self.columns, self.locale = columns, locale
        kept = ("PATH", "HOME", "TMPDIR", "HOLDFAST_HOME", "HOLDFAST_TEST_ID", "HOLDFAST_KEEPER")
        self.env = {name: os.environ[name] for name in kept if name in os.environ}
        self.env |= {"TERM": "dumb", "COLUMNS": str(columns), "LC_ALL": locale}
        self.faults: list[str] = []

    def __call__(
        self, *args: str, status: int | None = 0, cwd: str | None = None, keeper: bool = False
    ) -> str:
        """Run `holdfast ARGS…`; returns its output."""
        env = {name: value for name, value in self.env.items() if not (keeper and name == "HOLDFAST_KEEPER")}
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *args],
            env=env,
            cwd=cwd or workspace(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
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
        for line in (done.stdout + done.stderr).splitlines() if self.locale == "C" else ():
            if not line.isascii():
                self._fault(args, "not ASCII", repr(line))
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
    """Whether stdout is data, or a task's own output: its lines must not be broken."""
    return args[:1] in (("logs",), ("attach",), ("diff",), ("completion",)) or bool(
        {"--json", "--prometheus"} & {*args}
    )


def is_whole(line: str) -> bool:
    """Whether it is a path, or a command to copy: it stays on one line, however long."""
    words = line.strip(" |,.;:()'").split(" ")
    return len(words) == 1 or words[0] == "holdfast" or line.lstrip().startswith("'holdfast ")


class World:
    """A home with tasks of every kind."""

    def __init__(self, walk: Walk) -> None:
        self.scenario = str(
            Scenario()
            .say("I shall do this … → now, " * 10)
            .tool("Bash", command="echo " + "x y " * 40)
            .tool("Bash", command="false", fails=True)
            .usage(input_tokens=12345, output_tokens=678, cost_usd=1.25)
            .result("all is well — and done " * 6)
            .write_to(os.path.join(workspace(), "played.json"))
        )
        self.repo = Repo(os.path.join(workspace(), "repo"))
        self.repo.write("a.txt", "one\n")
        self.repo.commit("a.txt")
        self.written = Written(
            {"scripted_brief": None, "scripted_impl": None, "scripted_review": None}, task_id="staged"
        )
        self.made = os.path.join(workspace(), "made-by-new")
        self.walk = walk

    def all(self, lines: str) -> None:
        """Run command lines, each after its expected exit status (`?`: any)."""
        for line in filter(None, lines.splitlines()):
            for name in ("scenario", "made"):
                line = line.replace(f"${name.upper()}", getattr(self, name))
            line = line.replace("$PACKET", self.written.path).replace("$LONG", LONG).replace("$LOUD", LOUD)
            status, *words = shlex.split(line.replace("$WORK", workspace()))
            self.walk(*words, status=None if status == "?" else int(status))


MAKING = """
0 ls
0 status
0 report
0 metrics
0 audit
0 doctor
0 queue
0 run --id fine --name 'größe …' -- sh -c 'echo hello; echo ünder'
1 run --id loud -- sh -c "$LOUD; exit 3"
5 run --id $LONG --max-retries 0 -- sh -c "$LOUD; kill -9 $$"
0 run -d --id held -- sleep 60
0 interrupt held -m 'which of the two databases do you mean: the old one, or the new one from the wiki?'
4 wait held
0 run -d --id gone -- sleep 60
0 stop gone
1 wait gone
0 run --id played --agent scripted -o scenario=$SCENARIO 'do “it”, then do it again, and once more'
0 run --id tree --worktree --project $WORK/repo -- sh -c 'echo two > b.txt'
0 pipeline check $PACKET
0 pipeline show $PACKET
0 run --packet $PACKET
0 new $MADE --intent safe_impl --goal 'add retries … to the client' --allow src/
0 pipeline check $MADE
0 pipeline show $MADE
2 run --packet $MADE
0 submit --id later --not-before +2h --pool nightly --priority high -- true
0 submit --id after --after later --after held -- true
0 submit --agent scripted -o scenario=$SCENARIO 'a long goal with many words where few would do'
"""

LOOKING = """
0 ls
0 ls --all
0 ls -q
0 ls --json
0 ls --state hung
0 show fine
0 show loud
0 show $LONG
0 show held
0 show gone
0 show played
0 show tree
0 show staged
0 show later
0 show played --json
0 events loud
0 events $LONG
0 events held
0 events played
0 events tree
0 events staged
0 events played --json
0 events held --timeline
0 events played --summary
0 events played --tools
0 events loud --tools
0 events played --errors
0 events held --errors
0 logs fine
0 logs loud -n 2
0 attach played
1 attach loud
0 wait fine
1 wait loud
0 status
0 status --json
0 report
0 report --detailed
0 report --json
0 metrics
0 metrics played
0 metrics $LONG
0 metrics --json
0 metrics --prometheus
0 audit
0 audit loud
0 audit --json
0 config show
0 config path
0 doctor
0 doctor --json
0 pipeline list
0 pipeline index
0 pipeline list --json
0 pipeline check $PACKET --json
0 agent list
0 agent probe scripted
0 agent probe command
0 agent replay claude $SCENARIO
3 service status
0 prune
0 prune --older-than 0s
0 queue
0 queue show later
0 queue check
0 queue --json
0 diff tree
0 diff tree --stat
0 diff staged --stat
"""

MISTAKES = """
2 nope
2 sho
2 -x
2 help nope
3 show nobody
3 logs nobody
3 stop nobody
3 rm nobody
3 archive nobody
2 run
2 run ls -l --all
2 run two words
2 run echo one two three four five six seven eight nine ten eleven twelve -l thirteen
2 run -- no-such-program-anywhere-in-the-path
2 run --agent claude 'do it'
2 run --agent nobody 'do it'
2 run --agent scripted 'do it'
2 run --deadline soon -- true
2 run --id fine -- true
2 run --id '../x y' -- true
2 run --project /nowhere -- true
2 run --packet /nowhere
2 submit --not-before soon -- true
3 submit --after nobody -- true
2 submit --priority most -- true
3 resume fine
3 resume later
3 approve held
3 retry held
0 stop fine
3 interrupt gone
3 rm held
3 apply fine
3 diff fine
3 diff staged --stage nope
3 retry staged --from nope
2 ls --state nope
2 logs fine -n x
3 logs fine --attempt 9
2 logs fine --raw --stderr
2 events
2 events fine --tools --errors
2 events fine --follow --summary
2 audit --since soon
2 wait held --timeout nope
2 metrics --json --prometheus
2 queue nope
2 queue add
2 queue add {
2 queue add '{"id": "x"}'
2 queue import ftp:nowhere
3 queue rm fine
3 queue retry later
2 queue clear
3 queue release later
2 agent nope
2 agent probe
3 agent probe claude
2 agent replay claude /nowhere
2 pipeline check /nowhere
2 pipeline show
2 pipeline list x
2 config nope
2 service nope
3 service remove
2 completion nope
2 prune --older-than soon
2 archive
2 demo --home $WORK
3 up
2 up --slots none
2 new
2 new --intent nope
2 new --intent safe_impl
2 new $PACKET --intent safe_impl --goal x
2 review
2 review cross --context /nowhere --report /nowhere
2 pipeline check $MADE
"""

DOING = """
0 queue pause
0 queue
0 report
0 queue resume
0 queue pause nightly
3 queue claim later
0 queue
0 queue rm after
0 queue clear --yes
0 resume held -m 'the first'
0 stop held
1 wait held
0 retry loud
1 wait loud
0 apply tree
0 archive fine
0 ls --archived
0 archive --all-ended
0 prune --archived --keep 3
0 rm gone
0 prune --older-than 0s --yes
0 audit
"""


def without_a_runner(world: World) -> None:
    """Its runner was killed: every view says so, and how to start another."""
    walk = world.walk
    live = Task.shell("sleep 60", "--id", "orphan")
    live.agent_pid()
    live.kill_runner()
    assert "gone" in walk("show", "orphan").partition("\nrunner ")[2].partition("\n")[0]
    world.all("0 status\n0 report\n0 ls")
    walk("up", keeper=True)
    world.all("0 status\n0 doctor\n0 stop orphan\n1 wait orphan")
    walk("down", "--now", keeper=True)
    walk("down", keeper=True)
    world.all("0 status\n0 submit -- true\n0 queue")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("columns", "locale"), [(80, "C"), (120, "C.UTF-8")])
def test_every_verb_fits_the_terminal(columns: int, locale: str, home: str) -> None:
    walk = Walk(columns=columns, locale=locale)
    world = World(walk)
    world.all(MAKING)
    world.all(LOOKING)
    if locale == "C":  # these do not depend on the width
        with open(os.path.join(world.made, "manifest.yaml"), "a", encoding="utf-8") as file:
            file.write("\nnonsense: 1\nrouting:\n  intent: nothing-of-the-kind\n")
        world.all(MISTAKES)
        for topic in ("", "environment", "exit-codes", "files", "states"):
            walk("help", *filter(None, [topic]))
        for verb in verbs.VERBS:
            walk(verb, "--help")
            walk(verb, "--nope", status=2)
    world.all(DOING)
    without_a_runner(world)
    assert walk.faults == [], "\n".join([f"{len(walk.faults)} faults", *walk.faults])
