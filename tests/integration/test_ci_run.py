""".ci/run: which tests needed a second try, and how many of them are too many. `make` is a stand-in here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

#: The first run of the tests, without those of `make check`.
FIRST = "test ARGS=--ignore=tests/unit --ignore=tests/property"

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

#: Records its arguments, leaves pytest's list of failed tests, and fails as often as configured.
MAKE = """#!/bin/sh
echo "$*" >> calls
case "$*" in
    test*) name=test ;;
    *) name=$1 ;;
esac
left=$(cat "$name.fails" 2>/dev/null || echo 0)
[ "$left" -gt 0 ] || exit 0
echo $((left - 1)) > "$name.fails"
[ ! -e failed ] || { mkdir -p .pytest_cache/v/cache; cp failed .pytest_cache/v/cache/lastfailed; }
exit 2
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(os.path.join(ROOT, ".ci", "run"), tmp_path / ".ci" / "run")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "make").write_text(MAKE)
    (tmp_path / "bin" / "make").chmod(0o755)
    return tmp_path


def failed(checkout, count: int, times: int = 1, target: str = "test") -> list[str]:
    """This many tests fail, in this many runs of the target."""
    names = [f"tests/integration/test_{number}.py::test_it[a b]" for number in range(count)]
    (checkout / "failed").write_text(json.dumps(dict.fromkeys(names, True)))
    (checkout / f"{target}.fails").write_text(f"{times}\n")
    return names


def run(checkout) -> tuple[int, str, list[str]]:
    """The exit status, what was printed, and the calls of make."""
    env = {**os.environ, "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(checkout / ".ci" / "run")], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout, (checkout / "calls").read_text().splitlines()


def test_a_run_without_a_failure_says_nothing_of_second_tries(checkout) -> None:
    status, printed, calls = run(checkout)
    assert (status, calls) == (
        0,
        ["mcp-setup", "check", FIRST, "mutants ARGS=--check", "chaos-smoke", "conformance-smoke"],
    )
    assert printed.endswith("== all passed\n")


def test_up_to_three_tests_get_a_second_try_and_are_listed_at_the_end(checkout) -> None:
    names = failed(checkout, 3)
    status, printed, calls = run(checkout)
    assert status == 0
    assert calls[2:4] == [FIRST, "test WORKERS=1 ARGS=--last-failed --last-failed-no-failures=none"]
    assert printed.endswith("== needed a second try (3):\n" + "\n".join(names) + "\n")


def test_the_tests_of_check_get_a_second_try_too(checkout) -> None:
    names = failed(checkout, 1, target="check")
    status, printed, calls = run(checkout)
    assert status == 0
    assert calls[1:4] == ["check", "test WORKERS=1 ARGS=--last-failed --last-failed-no-failures=none", FIRST]
    assert printed.endswith("== needed a second try (1):\n" + names[0] + "\n")


def test_a_check_that_is_no_test_gets_none(checkout) -> None:
    (checkout / "check.fails").write_text("1\n")
    status, printed, calls = run(checkout)
    assert (status, calls) == (1, ["mcp-setup", "check"])
    assert "no single test did" in printed


def test_a_fourth_is_too_many(checkout) -> None:
    names = failed(checkout, 4)
    status, printed, calls = run(checkout)
    assert (status, calls) == (1, ["mcp-setup", "check", FIRST])
    assert all(name in printed for name in names)
    assert "more than 3 tests failed" in printed


def test_a_second_failure_is_final(checkout) -> None:
    failed(checkout, 1, times=2)
    status, printed, calls = run(checkout)
    assert status != 0
    assert len(calls) == 4
    assert "all passed" not in printed


def test_a_list_of_an_earlier_run_is_not_taken_for_this_one(checkout) -> None:
    failed(checkout, 1)
    os.makedirs(checkout / ".pytest_cache" / "v" / "cache")
    os.rename(checkout / "failed", checkout / ".pytest_cache" / "v" / "cache" / "lastfailed")
    status, printed, calls = run(checkout)
    assert (status, calls) == (1, ["mcp-setup", "check", FIRST])
    assert "no single test did" in printed


def test_a_second_try_of_the_real_programs_is_listed_too(checkout) -> None:
    (checkout / "conformance-smoke.fails").write_text("1\n")
    status, printed, calls = run(checkout)
    assert (status, calls[-1]) == (0, "conformance-smoke REAL_WORKERS=1")
    assert printed.endswith("== needed a second try (1):\nmake conformance-smoke\n")
