"""holdfast completion: with real shells."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.shells import complete_in_bash
from tests.support.tasks import Task, holdfast, workspace
from tests.support.tools import need


@pytest.fixture(autouse=True)
def in_a_home(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    workspace()


def bash(*words: str) -> list[str]:
    """Bash's candidates for the last word of `holdfast WORDS…`."""
    need("bash")
    script = 'eval "$(holdfast completion bash)"; COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#; _holdfast; '
    script += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "syntax" not in done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes_verbs_options_choices_and_values() -> None:
    assert bash("st") == ["stop", "status"]
    assert "--state" in bash("ls", "--")
    assert bash("ls", "--state", "comp") == ["completing", "completed"]
    assert bash("run", "--leftovers", "k") == ["kill", "keep"]
    assert bash("run", "--agent", "s") == ["scripted"]
    assert bash("completion", "") == ["bash", "zsh", "fish"]
    assert bash("help", "exit") == ["exit-codes"]
    assert bash("nonsense", "") == []
    assert bash("show", "a", "b", "") == []


def test_bash_completes_task_ids_that_make_sense() -> None:
    Task.shell("true", "--id", "20260131-done").wait_for("completed")
    live = Task.shell("sleep 60", "--id", "20260131-live")
    live.agent_pid()
    assert bash("show", "2026") == ["20260131-live", "20260131-done"]
    assert bash("logs", "-n", "5", "20260131-d") == ["20260131-done"]
    assert bash("stop", "") == ["20260131-live"]
    assert bash("retry", "") == ["20260131-done"]
    assert bash("resume", "") == []
    holdfast("submit", "--id", "20260131-later", "--not-before", "+9h", "--", "true", cwd=workspace())
    # Only what the verb accepts: neither a queued task nor one that has ended.
    assert bash("resume", "") == []
    assert bash("approve", "") == []
    assert bash("interrupt", "") == ["20260131-live"]
    assert bash("archive", "") == ["20260131-done"]
    assert bash("queue", "rm", "") == ["20260131-later"]
    assert bash("queue", "pause", "") == ["default"]
    assert bash("queue", "list", "") == []
    assert bash("agent", "probe", "cl") == ["claude"]
    assert bash("wait", "20260131-live", "20260131-d") == ["20260131-done"]
    live.stop()


def test_bash_itself_offers_files() -> None:
    need("bash")
    with open(os.path.join(workspace(), "prompt.md"), "w", encoding="utf-8"):
        pass
    assert holdfast("_complete", "run", "--file", "").stdout == ":files\n"
    assert holdfast("_complete", "run", "--", "make", "").stdout == ":files\n"
    assert holdfast("_complete", "run", "--project", "").stdout == ":dirs\n"


def test_an_interactive_bash_completes_a_task_id() -> None:
    need("bash")
    Task.shell("true", "--id", "20260131-fix-the-tests").wait_for("completed")
    complete_in_bash("holdfast show 2026\t", wanted="-fix-the-tests")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_are_understood_by_them(shell: str) -> None:
    script = holdfast("completion", shell).stdout
    assert "_complete" in script
    need(shell)
    done = subprocess.run(
        [shell, "-n"], input=script, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_completes_task_ids() -> None:
    need("fish")
    Task.shell("true", "--id", "20260131-done", "--name", "a name").wait_for("completed")
    script = 'holdfast completion fish | source; complete -C "holdfast show 2026"; complete -C "holdfast st"'
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, timeout=30, check=False)
    first, *verbs = done.stdout.splitlines()
    assert first == "20260131-done\tcompleted: a name", done.stderr
    assert [line.split("\t")[0] for line in verbs] == ["status", "stop"]


def test_zsh_completes_task_ids() -> None:
    need("zsh")
    Task.shell("true", "--id", "20260131-done").wait_for("completed")
    # Run the script's function with stubs for the two zsh builtins it uses.
    script = """
        compdef() { :; }
        _describe() { print -rl -- "${(@P)2}"; }
        _files() { print files "$@"; }
        eval "$(holdfast completion zsh)"
        words=(holdfast show 2026) CURRENT=3; _holdfast
        words=(holdfast run --project "") CURRENT=4; _holdfast
    """
    done = subprocess.run(
        ["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.stdout.splitlines() == ["20260131-done:completed: sh -c true", "files -/"], done.stderr


def test_nothing_is_offered_where_there_is_no_home(home: str) -> None:
    os.rmdir(home)
    assert holdfast("_complete", "show", "").stdout == ""
    assert not os.path.exists(home)


def test_an_unknown_shell_is_refused_with_those_that_are_known() -> None:
    done = holdfast("completion", "tcsh")
    assert (done.returncode, "bash" in done.stderr) == (2, True)
    assert holdfast("completion").returncode == 2
