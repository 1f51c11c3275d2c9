"""The gate as a process: distinct exit statuses, and a complete result or none."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.repos import Repo, judge_argv, module, packet_for, prepare, report


@pytest.fixture
def packet(home: str):
    repo = Repo(os.path.join(os.path.dirname(home), "project"))
    repo.commit("a")
    packet = packet_for(home, repo.path, scope_allow=("*",))
    prepare(packet)
    report(packet, "No changes required.\n")
    return packet


@pytest.mark.req("GAT-5")
def test_passed_not_passed_and_not_judged(packet) -> None:
    argv = judge_argv(packet, "codex_impl")
    out = argv[7]
    done = module("gates", *argv, cwd=packet.path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open(out, encoding="utf-8") as file:
        assert json.load(file)["passed"] is True
    report(packet, " ")
    assert module("gates", *argv, cwd=packet.path).returncode == 1
    with open(out, encoding="utf-8") as file:
        result = json.load(file)
    assert (result["passed"], result["failed"]) == (False, "report")
    os.unlink(out)
    done = module("gates", *judge_argv(packet, "codex_other"), cwd=packet.path)
    assert (done.returncode, os.path.exists(out)) == (3, False)
    assert done.stderr.startswith("error: it has no stage codex_other")


def test_a_check_of_another_package_is_made_if_the_packet_names_it(home: str, tmp_path) -> None:
    (tmp_path / "their_gate.py").write_text(
        "from holdfast.gates.base import Check\n"
        "def check(case):\n    return Check(name='any', passed='rhyme' in case.report, "
        "reasons=('no rhyme',))\n"
    )
    about = tmp_path / "theirs-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[holdfast.gates]\npoem = their_gate:check\n")
    repo = Repo(os.path.join(os.path.dirname(home), "project"), with_git=False)
    env = {"PYTHONPATH": str(tmp_path)}
    packet = packet_for(home, repo.path, stages=(("codex_plan_draft", "plan_draft"),), checks=("poem",))
    argv = judge_argv(packet, "codex_plan_draft")

    def judged(text: str) -> tuple[int, list[str]]:
        report(packet, text, "codex_plan_draft")
        done = module("gates", *argv, cwd=home, env=env)
        with open(argv[7], encoding="utf-8") as file:
            result = json.load(file)
        return done.returncode, [f"{check['name']} {check['passed']}" for check in result["checks"]]

    assert judged("## Plan\n\na rhyme\n") == (0, ["report True", "scope True", "poem True"])
    assert judged("## Plan\n\nprose\n") == (1, ["report True", "scope True", "poem False"])
    env["HOLDFAST_PLUGINS"] = ""
    done = module("gates", *argv, cwd=home, env=env)
    assert done.returncode == 3, "a check that cannot be made is no verdict"
    assert "no check named 'poem'" in done.stderr


def test_a_bug_is_not_taken_for_a_verdict(packet, tmp_path) -> None:
    # A fake git with impossible output.
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\necho tree\n")
    fake.chmod(0o700)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = judge_argv(packet, "codex_impl")
    done = module("gates", *argv, cwd=packet.path, env=env)
    assert done.returncode == 70
    assert done.stderr.startswith("Traceback")
    assert not os.path.exists(argv[7])


def test_missing_git_is_reported(packet, tmp_path) -> None:
    done = module("gates", *judge_argv(packet, "codex_impl"), cwd=packet.path, env={"PATH": str(tmp_path)})
    assert done.returncode == 3
    assert "error: git is not in PATH" in done.stderr
    assert "hint: install git" in done.stderr


@pytest.mark.parametrize(
    "argv", [[], ["--packet"], ["--packet", "p", "--stage", "s", "--attempt", "x", "--out", "o"]]
)
def test_a_wrong_call_is_reported(home: str, argv: list[str]) -> None:
    done = module("gates", *argv, cwd=home)
    assert done.returncode == 3
    assert "python -m holdfast.gates" in done.stderr
