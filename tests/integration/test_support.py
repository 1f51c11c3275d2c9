"""The support code does what the other tests expect of it."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import textwrap

import pytest

from tests.crash import points
from tests.support import processes, sources
from tests.support.tools import need
from tests.support.waiting import eventually


def test_eventually_returns_the_first_true_value() -> None:
    values = iter([0, None, 7])
    assert eventually(lambda: next(values)) == 7


def test_eventually_says_what_it_awaited_and_what_it_saw_last(tmp_path) -> None:
    journal = tmp_path / "events.jsonl"
    journal.write_text('{"seq": 1}\n{"seq": 2}\n', encoding="utf-8")
    with pytest.raises(AssertionError) as caught:
        eventually(lambda: 1 / 0, within_s=0.01, what="the sky falls", journal=tmp_path)
    message = str(caught.value)
    assert "the sky falls" in message
    assert "ZeroDivisionError" in message
    assert '{"seq": 2}' in message


def test_every_failpoint_that_a_test_names_exists() -> None:
    """A name that is not in the source does nothing, and its test proves nothing."""
    named: set[str] = set()
    for _, text in sources.below(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))):
        named.update(re.findall(r"\b([a-z_]+\.[a-z_]+)=(?:kill|stop|enospc)\b", text))
    assert len(named) > 20
    assert named <= set(points.names())


def test_a_home_is_private_short_and_in_the_environment(home: str) -> None:
    assert stat.S_IMODE(os.stat(home).st_mode) == 0o700
    assert len(home) < 40
    assert os.environ["HOLDFAST_HOME"] == home
    assert os.environ["HOME"].startswith(os.path.dirname(home))


def test_a_process_that_left_group_and_session_is_found_by_its_mark_and_killed_by_pid(home: str) -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    eventually(lambda: [p.pid for p in processes.marked(home)] == [child.pid], what="the child is found")
    processes.kill(processes.marked(home))
    assert child.wait(timeout=10) == -9
    assert processes.marked(home) == []


def test_a_missing_tool_skips_for_a_person_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    need("sh")
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception):
        need("no-such-program")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        need("no-such-program")


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("subprocess.Popen(['sleep', '60'], start_new_session=True)", 1, "still alive"),
        ("os.fork() or signal.pause()", 1, "still alive"),
        ("pass", 0, "1 passed"),
    ],
)
def test_a_test_that_leaves_a_process_fails(tmp_path, body: str, status: int, words: str) -> None:
    """Runs pytest on a test of one line, with this suite's own conftest."""
    source = f"""
        import os, signal, subprocess
        import pytest
        from tests import conftest
        from tests.conftest import clean_env, home, place
        conftest.GRACE_S = 0.2

        @pytest.mark.filterwarnings("ignore::ResourceWarning")
        @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
        def test_one(home):
            {body}
    """
    path = tmp_path / "test_one.py"
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={root}"]
    command += ["-c", os.path.join(root, "pyproject.toml"), str(path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stdout
    assert words in done.stdout
