"""Mistakes that people make, over all verbs: each is answered with what to type instead.

The table is the test: a command line, and a part of the answer. One process runs it: tests.support.batch.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.support import batch
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need

#: Refused as written: exit status 2.
WRONG = [
    ("rnu -- true", "did you mean 'run'?"),
    ("cancel done", "did you mean 'holdfast stop'?"),
    ("version", "did you mean 'holdfast --version'?"),
    ('start "fix the tests"', "did you mean 'holdfast run'?"),
    ("exec ls", "did you mean 'holdfast run'?"),
    ("tail done", "did you mean 'holdfast logs -f'?"),
    ("restart done", "did you mean 'holdfast retry'?"),
    ("delete done", "did you mean 'holdfast rm'?"),
    ("remove done", "did you mean 'holdfast rm'?"),
    ("continue asked", "did you mean 'holdfast resume'?"),
    ("pause later", "did you mean 'holdfast interrupt TASK', or 'holdfast queue"),
    ("unpause later", "did you mean 'holdfast resume'?"),
    ('add "fix the tests"', "did you mean 'holdfast submit'?"),
    ('enqueue "fix the tests"', "did you mean 'holdfast submit'?"),
    ("init", "did you mean 'holdfast new', or 'holdfast config path'?"),
    ("login", "did you mean 'holdfast agent probe AGENT'?"),
    ("agents", "did you mean 'holdfast agent list'?"),
    ("agent", "for example: holdfast agent list"),
    ("models", "did you mean 'holdfast agent list'?"),
    ("tasks", "did you mean 'holdfast ls'?"),
    ("info done", "did you mean 'holdfast show'?"),
    ("inspect done", "did you mean 'holdfast show'?"),
    ("output done", "did you mean 'holdfast logs'?"),
    ("cat done", "did you mean 'holdfast logs'?"),
    ("resume asked -m ''", "give an answer, or leave out -m"),
    ("answer asked yes", "did you mean 'holdfast resume TASK -m TEXT'?"),
    ("reply asked yes", "did you mean 'holdfast resume TASK -m TEXT'?"),
    ("tell asked yes", "did you mean 'holdfast resume TASK -m TEXT'?"),
    ("cost", "did you mean 'holdfast metrics'?"),
    ("history", "did you mean 'holdfast ls --all', or 'holdfast audit'?"),
    ("config", "for example: holdfast config show"),
    ("update", "did you mean 'pipx upgrade holdfast'?"),
    ("upgrade", "did you mean 'pipx upgrade holdfast'?"),
    ("uninstall", "did you mean 'holdfast service remove'?"),
    ("setup", "did you mean 'holdfast doctor', or 'holdfast service"),
    ("watch done", "did you mean 'holdfast attach'?"),
    ("top", "'top' needs a terminal"),
    ("clean", "did you mean 'holdfast prune'?"),
    ("merge done", "did you mean 'holdfast apply'?"),
    ("review-diff", "did you mean 'review'?"),
    ("daemon", "did you mean 'holdfast up'?"),
    ("-x", "'holdfast --help' shows the usage"),
    ("run", "'holdfast run --agent NAME PROMPT', or 'holdfast run --"),
    ("run --", "'holdfast run --agent NAME PROMPT', or 'holdfast run --"),
    ("run make", "did you mean 'holdfast run -- make'? With --agent NAME it"),
    ("run make test", "did you mean: holdfast run -- make test"),
    ("run ls -la", "did you mean: holdfast run -- ls -la"),
    ("run fix the tests", "quote the prompt: 'fix the tests'"),
    ('run "do it" -- true', "give one of them: 'holdfast run --agent NAME PROMPT' or"),
    ('run --agent claud "x"', "did you mean 'claude'?"),
    ('run --agent scripted "x"', "for example -o scenario=FILE"),
    ('run --agent scripted -o scenario=missing.json "x"', "check its path and mode"),
    ('run --agent scripted -o scenario=bad.json "x"', "fix the file"),
    ('run --agent scripted -o scenario=list.json "x"', "fix the file"),
    ('run --agent scripted -o scenario=unknown-step.json "x"', "fix the file"),
    ('run --agent scripted -o scenari=x "x"', "did you mean 'scenario'?"),
    ('run --agent scripted -o scenario "x"', "give it a value: --option scenario=VALUE"),
    ("run --agent scripted -o scenario=ok.json", "'holdfast run --agent scripted PROMPT', or --file FILE (-"),
    ('run --agent scripted -o scenario=ok.json ""', "'holdfast run --agent scripted PROMPT', or --file FILE"),
    ("run --timeout 5 minutes -- true", "did you mean --timeout 5m?"),
    ("run --timeout 5 -- true", "needs a unit: 5s, 5m, 5h or 5d"),
    ("run --timeout 5min -- true", "write 5m"),
    ("run --timeout 5mins -- true", "write 5m"),
    ('run --timeout "5 minutes" -- true', "write 5m"),
    ("run --timeout abc -- true", "write 90s, 15m, 1h30m or 7d"),
    ("run --timeout -5m -- true", "write 90s, 15m, 1h30m or 7d"),
    ("run --timeout 0 -- true", "for example --timeout=30m"),
    ("run --deadline 30 -- true", "needs a unit: 30s, 30m, 30h or 30d"),
    ("run --stale 30 -- true", "needs a unit: 30s, 30m, 30h or 30d"),
    ("run --grace 5 -- true", "needs a unit: 5s, 5m, 5h or 5d"),
    ("run --max-retries many -- true", "for example --max-retries=10"),
    ("run --max-retries -1 -- true", "for example --max-retries=10"),
    ("run --max-retries=1.5 -- true", "for example --max-retries=10"),
    ("run --env FOO -- true", "set it, or put it into a file for --env-file"),
    ("run --env FOO-BAR=1 -- true", "'--env NAME' passes on NAME as it is set here"),
    ("run --env-file missing.env -- true", "check its path and mode"),
    ("run --project nowhere -- true", "give an existing one with --project"),
    ("run --project file.txt -- true", "give its directory with --project"),
    ("run --file missing.md --agent scripted -o scenario=ok.json", "check its path and mode"),
    ('run -f missing.md "x"', "give one of them"),
    ("run --worktree -- true", "create one with 'git init' and a first commit, or run"),
    ("run --sandboxed -- true", "did you mean --sandbox?"),
    ("run --network example.org -- true", "--sandbox --network example.org"),
    ("run --sandbox --network https://x -- true", "not a host"),
    ('run --permissions write --agent scripted -o scenario=ok.json "x"', "--permissions read|edit|full"),
    ("run --permissions full -- true", "leave it out, or choose an agent with --agent NAME"),
    ('run --yolo --permissions read --agent scripted -o scenario=ok.json "x"', "--yolo means --permissions"),
    (
        'run --budget 5 --agent scripted -o scenario=ok.json "x"',
        "--budget-usd USD: Cost limit in dollars, as",
    ),
    ('run --budget-usd lots --agent scripted -o scenario=ok.json "x"', "--budget-usd=2.50"),
    ("run --budget-usd 5 -- true", "leave it out, or choose an agent with --agent NAME"),
    ('run --budget-tokens 1.5M --agent scripted -o scenario=ok.json "x"', "--budget-tokens=1500000"),
    ("run --memory-limit lots -- true", "for example --memory-limit=8GiB"),
    ("run --memory-limit 1 -- true", "for example --memory-limit=8GiB"),
    ("run --output-limit 5X -- true", "for example --output-limit=500MiB"),
    ("run --on-limit stop -- true", "--on-limit ask|end"),
    ("run --leftovers remove -- true", "--leftovers report|kill|keep"),
    ("run --id done -- true", "choose another id, or omit --id to get a new one"),
    ('run --id "two words" -- true', "an id starts with a letter or digit, followed by letters,"),
    ("run --id ../x -- true", "an id starts with a letter or digit, followed by letters,"),
    ("run --agent scripted -o scenario=ok.json --model=--yolo x", "'--yolo' is not the name of a model"),
    ("run --model opus -- true", "leave it out, or choose an agent with --agent NAME"),
    ("run --packet nowhere", "'holdfast new' creates one"),
    ("run --packet .", "a packet has a manifest.yaml"),
    ("run --failover codex -- true", "it names agents that take over from an agent"),
    ("run --session abc -- true", "leave it out, or choose an agent that can: 'holdfast agent"),
    (
        'run --session "a b" --agent scripted -o scenario=ok.json "x"',
        "'holdfast show TASK' shows the session",
    ),
    ("run --detach=yes -- true", "--detach takes no value"),
    ("run --background -- true", "-d or --detach: Print the id and return at once."),
    ("run -b -- true", "-d or --detach: Print the id and return at once."),
    ("run --follow -- true", "'run' follows the task"),
    ("run --cwd . -- true", "--project DIR: Directory to work in (default: the current"),
    ("run --dir . -- true", "--project DIR: Directory to work in (default: the current"),
    ('run --prompt "x"', "the prompt needs no option: holdfast run --agent NAME"),
    ('run -p "x"', "the prompt needs no option: holdfast run --agent NAME"),
    ('run -m opus "x"', "--model NAME: Model that the agent uses."),
    ("run --name -- true", "for example --name TEXT"),
    ("run -- nosuchprogram", "check the spelling and PATH"),
    ("run -- ./locked", "name a program in it"),
    ("run -- ./noshebang.sh", "run it with its interpreter: 'sh "),
    ("submit", "'holdfast submit --agent NAME PROMPT', or 'holdfast submit"),
    ("submit make test", "did you mean: holdfast submit -- make test"),
    ("submit --priority urgent -- true", "for example --priority high"),
    ("submit --not-before tomorrow -- true", "for example --not-before 22:00, or --not-before +2h"),
    ("submit --not-before 22 -- true", "for example --not-before 22:00, or --not-before +2h"),
    ("submit --not-before 10pm -- true", "for example --not-before 22:00, or --not-before +2h"),
    ("submit --not-before 25:00 -- true", "for example --not-before 22:00, or --not-before +2h"),
    ("submit --not-before +2 -- true", "needs a unit: 2s, 2m, 2h or 2d"),
    ("submit --at 22:00 -- true", "--not-before TIME: Earliest start: 22:00, 2026-01-31T22:00"),
    ("submit --every day -- true", "write day@02:00"),
    ("submit --every day@25:00 -- true", "write day@02:00"),
    ("submit --every 5 -- true", "needs a unit: 5s, 5m, 5h or 5d"),
    ("submit --every 10s -- true", "at least 60s"),
    ('submit --cron "0 2 * * *" -- true', "--every WHEN: Again and again: day@02:00"),
    ("submit --every day@02:00 --not-before 22:00 -- true", "give one of them"),
    ("submit -d -- true", "'submit' returns at once without it"),
    ("ls --state done", "did you mean 'completed'?"),
    ("ls --state error", "did you mean 'failed'?"),
    ("ls --state success", "did you mean 'completed'?"),
    ("ls --state stopped", "did you mean 'killed'?"),
    ("ls --state runing", "did you mean 'running'?"),
    ("ls --status running", "--state STATE: Only tasks in this state."),
    ("ls --failed", "'--state failed' lists the failed tasks"),
    ("ls --running", "'--state running' lists the running tasks"),
    ("show", "for example: holdfast show 20260131-fix"),
    ("show done later", "unexpected argument 'later'"),
    ("logs", "for example: holdfast logs 20260131-fix"),
    ("logs done --tail 5", "-n or --lines N: Print only the last N lines."),
    ("logs done --grep x", "'holdfast logs TASK | grep TEXT' prints the lines"),
    ("retry done --timeout 2m", "'--set timeout=15m' changes the time that an attempt may take"),
    ("logs done -n ten", "for example --lines 10"),
    ("logs done --attempt x", "for example --attempt 10"),
    ("wait", "'holdfast wait TASK…', or --label KEY=VALUE"),
    ("wait done --timeout 5", "needs a unit: 5s, 5m, 5h or 5d"),
    ("wait done --timeout soon", "write 90s, 15m, 1h30m or 7d"),
    ("attach done -n x", "for example --lines 10"),
    ("stop", "Give their ids, --all, --state STATE or --label KEY=VALUE"),
    ("interrupt", "Give their ids, --all, --state STATE or --label KEY=VALUE"),
    ("resume asked --message", "for example --message TEXT"),
    ("rm", "Give their ids, --all, --state STATE or --label KEY=VALUE"),
    ("rm done --recursive", "'holdfast rm TASK' removes a task with all its files"),
    ("rm -rf done", "'holdfast rm TASK' removes a task with all its files"),
    ("queue lst", "did you mean 'ls'?"),
    ('queue add "fix the tests"', "did you mean: holdfast submit 'fix the tests'?"),
    ("queue add", 'for example holdfast queue add \'{"title": "Fix the tests"}\''),
    ("queue add '{\"title\": }'", "a list of objects, or one object per line"),
    ('queue add \'{"title": "x"}\'', "'holdfast queue add ITEM --agent NAME', or \"agent\" or"),
    ('queue add \'{"title": "x", "priority": "urgent"}\' --agent scripted', 'for example {"id":'),
    ("queue add missing.json", "did you mean 'holdfast queue import missing.json'?"),
    ("queue import", "for example holdfast queue import items.json"),
    ("queue import missing.json", "a .json, .jsonl or directory of .md files"),
    ("queue import bad.json", "a list of objects, or one object per line"),
    ("queue import jira:X", "a .json, .jsonl or directory of .md files"),
    ("queue rm", "'holdfast queue rm TASK'"),
    ("queue remove later", "did you mean 'rm'?"),
    ("queue priority later", "'holdfast queue priority later high'"),
    ("queue priority later urgent", "'holdfast queue priority later high'"),
    ("queue priority", "'holdfast queue priority TASK high'"),
    ("queue pause default nightly", "'holdfast queue pause --help'"),
    ("queue stop", "did you mean 'pause'?"),
    ("queue start", "did you mean 'resume'?"),
    ("agent probe", "'holdfast agent probe claude'"),
    ("agent probe claud", "did you mean 'claude'?"),
    ("agent claude", "actions: list, probe, replay"),
    ("agent replay codex", "'holdfast agent replay AGENT STDOUT_FILE'"),
    ("agent replay codex missing.jsonl", "check path and permissions"),
    ("agent replay codex ok.json --exit one", "-9 means killed by signal 9"),
    ("agent install claude", "actions: list, probe, replay"),
    ("pipeline", "for example: holdfast pipeline list"),
    ("pipeline check", "'holdfast pipeline check DIR'"),
    ("pipeline check nowhere", "'holdfast new' creates one"),
    ("pipeline show nosuch", "'holdfast new' creates one"),
    ("pipeline show", "'holdfast pipeline show DIR'"),
    ("pipeline run x", "actions: list, show, check, index"),
    ("new", "for example --goal"),
    ("new --pipeline nosuch x", "did you mean --profile?"),
    ("service", "for example: holdfast service install"),
    ("service start", "did you mean 'status'?"),
    ("service instal", "did you mean 'install'?"),
    ("service install --kind launchd", "only a unit for this machine can be installed"),
    ("config get agent", "did you mean 'show'?"),
    ("config shw", "did you mean 'show'?"),
    ("config set agent claude", "'holdfast config path' shows which"),
    ("submit --not-before 2020-01-01 -- true", "leave it out to start as soon as there is a slot"),
    ("digest --since 24h", "'holdfast report --since 24h' looks back by time"),
    ("digest --since foo", "leave out --since for a full one"),
    ("config path x", "unexpected argument 'x'"),
    ("trust nowhere", "create it, or choose another one with --project"),
    ("prune --older-than 3", "needs a unit: 3s, 3m, 3h or 3d"),
    ("prune --older-than 3 days", "did you mean --older-than 3d?"),
    ("prune --keep x", "for example --keep 10"),
    ("prune --older-than 1w --yes", "write 7d"),
    ("archive --older-than 3", "'holdfast ls --state completed' lists completed tasks"),
    ("metrics --since yesterday", "'holdfast report --since 24h' looks back a day"),
    ("metrics --since 24", "'holdfast report --since 24h' looks back a day"),
    ("share", "for example: holdfast share 20260131-fix"),
    ("share done -o - --json", "give one of them"),
    ("share done -o nowhere/x.html", "create it, or choose another file"),
    ("export done", "did you mean 'holdfast share', or 'holdfast events TASK --export FILE'?"),
    ("report --since 24", "needs a unit: 24s, 24m, 24h or 24d"),
    ("report --since today", "write 90s, 15m, 1h30m or 7d"),
    ("audit --since 1", "needs a unit: 1s, 1m, 1h or 1d"),
    ("audit --since 2026-01-01", "write 90s, 15m, 1h30m or 7d"),
    ("up --slots x", "for example --slots 4"),
    ("up --slots -1", "for example --slots 4"),
    ("up --max-iterations x", "for example --max-iterations 4"),
    ("up --workers 3", "--slots N: Queued tasks that may run at the same time (1)."),
    ("down --force", "'holdfast down' stops the keeper"),
    ("doctor --fix", "'holdfast doctor' names what to do for each problem"),
    ("help nosuch", "topics: environment, exit-codes, files, states"),
    ("help queue imprt", "did you mean 'import'?"),
    ("help exitcodes", "did you mean 'exit-codes'?"),
    ("completion", "$(holdfast completion bash)"),
    ("completion zhs", "did you mean 'zsh'?"),
    ("run --env FOO=bar -- true", "FOO=bar holdfast … --env FOO"),
    ("run 'make test'", "claude: npm install -g @anthropic-ai/claude-code"),
    ('submit "fix it"', "'holdfast submit -- COMMAND"),
    ("completion powershell", "choose from: bash, zsh, fish"),
    ("review nosuch", "choose from: cross, post-impl"),
    ("up now", "'holdfast up' takes no arguments"),
    ('run --agent codex --agents x "x"', "did you mean --agent?"),
]
#: Not possible now, or nothing has this name: exit status 3.
NOT_POSSIBLE = [
    ("submit --after nosuch -- true", "'holdfast ls' shows the tasks of this home"),
    ("show nosuch", "'holdfast ls' shows the tasks of this home"),
    ("logs nosuch", "'holdfast ls' shows the tasks of this home"),
    ("share nosuch", "'holdfast ls' shows the tasks of this home"),
    ("logs done --attempt 9", "it has 1 attempt"),
    ("events nosuch", "'holdfast ls' shows the tasks of this home"),
    ("wait done nosuch", "'holdfast ls' shows the tasks of this home"),
    ("attach nosuch", "'holdfast ls' shows the tasks of this home"),
    ("stop nosuch", "'holdfast ls' shows the tasks of this home"),
    ("retry broken --from nope", "'holdfast logs broken -n 40' to see what happened"),
    ("diff done", "tasks with a scope or a worktree have one, and plain runs in a git repository"),
    ("diff nosuch", "'holdfast ls' shows the tasks of this home"),
    ("apply done", "only a task started with --worktree can be applied"),
    ("apply nosuch", "'holdfast ls' shows the tasks of this home"),
    ("rm don", "'rm' needs the full id: 'holdfast rm done'"),
    ("rm amb", "'rm' needs the full id: 'holdfast rm ambiguous-1'"),
    ("show ambiguous", "type more of the id"),
    ("show guous-2", "did you mean 'ambiguous-2'?"),
    ("stop guous", "did you mean 'ambiguous-1' or 'ambiguous-2'?"),
    ("show nightly", "it is a schedule: 'holdfast queue show nightly' shows it"),
    ("rm nightly", "'holdfast queue rm nightly' removes it"),
    ("queue rm nosuch", "'holdfast ls' shows the tasks of this home"),
    ("queue rm done", "'holdfast queue ls' lists the queue"),
    ("queue retry later", "'holdfast queue ls' shows what each task waits for"),
    ("queue claim nosuch", "'holdfast ls' shows the tasks of this home"),
    ("queue release later", "'holdfast stop later' ends it, 'holdfast interrupt later'"),
    ("queue done later", "claim it first: 'holdfast queue claim later'"),
    ("queue show nosuch", "'holdfast ls' shows the tasks of this home"),
    ("agent probe claude", "npm install -g @anthropic-ai/claude-code, then: claude auth"),
    ("archive nosuch", "'holdfast ls' shows the tasks of this home"),
    ("archive later", "'holdfast stop later' ends it"),
    ("audit nosuch", "'holdfast ls' shows the tasks of this home"),
    ("queue pause nopool", "the pools are default"),
    ("queue resume nopool", "the pools are default"),
]
#: What used to be refused, and works.
WORKS = [
    "ls", "list", "ps", "log done", "queue list", "queue ls", "agent ls", "agent list", "pipeline ls",
    "queue show nightly", "queue show nightly --json", "help queue import", "help exit codes",
    "help kill", "queue import --help", "agent replay -h", "service install --help",
    "pipeline check --help", "log --help",
]  # fmt: skip


@pytest.fixture
def place_of_mistakes(home: str) -> str:
    """A home with a completed, a failed, an interrupted and a queued task; it is down, and has no agent."""
    folder = workspace()
    files = {
        "file.txt": "x\n",
        "bad.json": "{nope",
        "list.json": "[1]",
        "unknown-step.json": '{"schema": "holdfast.scenario/1", "steps": [{"fly": 1}]}',
        "ok.json": '{"schema": "holdfast.scenario/1", "steps": []}',
        "noshebang.sh": "echo hi\n",
    }
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(os.path.join(folder, "noshebang.sh"), 0o755)
    os.mkdir(os.path.join(folder, "locked"))
    asked = Task.shell("sleep 60", "--id", "asked")
    asked.agent_pid()
    assert asked.ask("interrupt").returncode == 0
    Task.shell("true", "--id", "done").wait_for("completed")
    Task.shell("false", "--id", "broken", "--max-retries", "0").wait_for("failed")
    done = holdfast("submit", "--id", "later", "--not-before", "+9h", "--", "true", cwd=folder)
    assert done.returncode == 0, done.stderr
    for task_id in ("ambiguous-1", "ambiguous-2"):
        Task.shell("true", "--id", task_id).wait_for("completed")
    assert holdfast("submit", "--every", "day@02:00", "--id", "nightly", "--", "true").returncode == 0
    asked.wait_for("interrupted")
    assert holdfast("down").returncode == 0
    return folder


def path_without_agents() -> dict[str, str]:
    return {"PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin"}


def test_mistakes_are_answered_with_what_to_type(place_of_mistakes: str) -> None:
    cases = [(2, *row) for row in WRONG] + [(3, *row) for row in NOT_POSSIBLE]
    answers = batch.answers(
        [shlex.split(line) for _, line, _ in cases], cwd=place_of_mistakes, env=path_without_agents()
    )
    silent = []
    for (status, line, part), (got, stdout, stderr) in zip(cases, answers, strict=True):
        words = " ".join(stderr.split())
        if got != status or part not in words or stdout or not stderr.startswith("error: "):
            silent.append(f"{line}: {got} {words}, wanted {status} {part}")
    assert len(cases) >= 147
    assert not silent, "\n".join(silent)
    assert sorted(os.listdir(os.path.join(os.environ["HOLDFAST_HOME"], "tasks"))) == [
        "ambiguous-1", "ambiguous-2", "asked", "broken", "done", "later",
    ]  # fmt: skip


def test_other_words_for_the_same_thing_work(place_of_mistakes: str) -> None:
    answers = batch.answers([shlex.split(line) for line in WORKS], cwd=place_of_mistakes)
    assert [(line, got) for line, got in zip(WORKS, answers, strict=True) if got[0] != 0] == []


def test_a_project_that_cannot_be_entered(home: str) -> None:
    """Five retries over ten minutes would come to the same end."""
    folder = os.path.join(workspace(), "locked")
    os.mkdir(folder, 0o000)
    argv = [sys.executable, "-m", "holdfast", "run", "--project", folder, "--", "true"]
    if os.geteuid() == 0:
        need("setpriv")
        argv = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *argv]
    done = subprocess.run(argv, cwd=workspace(), capture_output=True, timeout=30, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"error: cannot enter the project directory {folder}: Permission denied" in " ".join(
        done.stderr.split()
    )
    assert f"hint: 'ls -ld {folder}'" in done.stderr
