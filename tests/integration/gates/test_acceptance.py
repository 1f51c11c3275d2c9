"""The acceptance gate runs the commands in the workspace, with a time limit, and records their output."""

from __future__ import annotations

import os
import re
import time

import pytest

from holdfast.gates.acceptance import PROVES_NOTHING
from holdfast.gates.script import commands
from holdfast.gates.shell import HEAD_BYTES, TAIL_BYTES, run
from holdfast.model import events as ev
from tests.support import processes
from tests.support.journals import opened
from tests.support.repos import Repo, judge, packet_for, prepare, report
from tests.support.waiting import eventually


class Verify:
    def __init__(
        self,
        home: str,
        *commands: str,
        proposed: str | None = None,
        prepared: str = "codex_verify",
        stages=(("codex_verify", "verify"),),
        **asked,
    ) -> None:
        self.gates = 0
        self.repo = Repo(os.path.join(os.path.dirname(home), "project"))
        self.repo.commit("a")
        self.packet = packet_for(
            home,
            self.repo.path,
            stages=stages,
            acceptance_commands=commands,
            env={"MY_API_KEY": "very-secret-value"},
            **asked,
        )
        prepare(self.packet, prepared)
        report(self.packet, "All is well, every command passed.\n", "codex_verify")
        if proposed is not None:
            journal = opened(self.packet)
            journal.append([ev.HandoffMade(stage="codex_brief", script=proposed)])
            journal.close()

    def judge(self) -> tuple[int, list[str]]:
        """As a runner does: again, if the gate before was killed."""
        self.gates += 1
        opening = {
            "attempt": self.gates,
            "attempt_id": "ses_00000000",
            "stage": "codex_verify",
            "kind": "gate",
        }
        journal = opened(self.packet)
        journal.append([ev.AttemptOpened.from_json({**opening, "agent": "codex", "mode": "fresh"})])
        journal.close()
        code, result = judge(self.packet, "codex_verify")
        assert result["failed"] == ("acceptance" if code else "")
        return code, result["reasons"]

    @property
    def artifact(self) -> str:
        with open(self.packet.artifact("codex_verify"), encoding="utf-8") as file:
            return file.read()


@pytest.mark.req("GAT-2", "W-B3")
def test_commands_of_the_manifest_run_and_are_written_down(home: str) -> None:
    case = Verify(home, "ls", "echo out; echo err >&2")
    assert case.judge() == (0, [PROVES_NOTHING])  # nothing was changed
    section = r"## \$ ls\n\n- exit code: 0\n- duration: \d+\.\d s\n\n```\na\n```"
    assert re.search(section, case.artifact)
    assert "## $ echo out; echo err >&2" in case.artifact
    assert "```\nout\nerr\n```" in case.artifact
    assert case.artifact.endswith("Result: passed\n")


@pytest.mark.req("GAT-2")
def test_what_the_report_claims_does_not_matter(home: str) -> None:
    case = Verify(home, "echo 3 tests failed; exit 7", "true")
    code, reasons = case.judge()
    assert code == 1
    assert reasons == ["`echo 3 tests failed; exit 7` failed with exit status 7: 3 tests failed"]
    assert "- exit code: 7" in case.artifact
    assert "## $ true" in case.artifact


@pytest.mark.req("GAT-2")
def test_the_commands_of_a_brief_are_added(home: str) -> None:
    case = Verify(home, "echo mine; exit 1", "true", proposed="# run these\ntrue\n\ntest -f \\\n  a\n")
    assert case.judge() == (1, ["`echo mine; exit 1` failed with exit status 1: mine"])
    assert "Commands: 2 from the manifest, 1 proposed by the brief, and screened." in case.artifact
    assert "## $ test -f \\\n  a" in case.artifact


@pytest.mark.req("GAT-2")
def test_a_brief_without_commands_adds_none(home: str) -> None:
    assert Verify(home, "exit 1", proposed="\n# nothing\n").judge()[0] == 1


@pytest.mark.req("GAT-6")
def test_a_dangerous_proposal_is_not_run_and_fails_the_gate(home: str) -> None:
    case = Verify(home, "true", proposed="touch ran\nrm -rf a\n")
    code, reasons = case.judge()
    assert (code, reasons) == (1, ["refused to run `rm -rf a`: it removes recursively"])
    assert os.path.exists(os.path.join(case.repo.path, "a"))
    assert "- refused, not run: it removes recursively" in case.artifact


def test_what_a_person_wrote_is_not_screened(home: str) -> None:
    case = Verify(home, "mkdir -p built && rm -rf built")
    assert case.judge()[0] == 0


@pytest.mark.req("W-B3")
def test_a_command_that_hangs_is_ended_with_its_children_and_reported_as_a_timeout(home: str) -> None:
    case = Verify(home, "echo begun; sleep 600 & sleep 600", acceptance_timeout_s=0.5)
    began = time.monotonic()
    code, (reason,) = case.judge()
    assert time.monotonic() - began < 30
    assert code == 1
    assert "timed out" in reason
    assert "begun" in case.artifact
    assert "timed out after" in case.artifact
    # A fixture fails the test if a process is left.


def test_secrets_are_masked_in_the_artifact_and_in_reasons(home: str) -> None:
    case = Verify(home, "echo token is very-secret-value; exit 1")
    _, reasons = case.judge()
    assert "very-secret-value" not in case.artifact + "".join(reasons)
    assert "token is ***" in case.artifact


def test_nothing_is_run_after_another_check_has_failed(home: str) -> None:
    ran = os.path.join(os.path.dirname(home), "ran")  # not in the clean room, which is removed
    case = Verify(home, f"touch {ran}")
    os.unlink(case.packet.output("codex_verify", "codex", "meta.json"))
    code, result = judge(case.packet, "codex_verify")
    assert (code, result["failed"]) == (1, "report")
    assert not os.path.exists(ran)


def test_what_commands_leave_outside_the_scope_is_a_remark(home: str) -> None:
    case = Verify(home, "echo 1 > b; echo 1 > cache", scope_allow=("b",), acceptance_clean=False)
    remark = "the commands left 1 file outside the scope: cache; 'diff' and 'apply' leave them out"
    code, reasons = case.judge()
    assert (code, reasons[-1]) == (0, remark)
    assert reasons[0].endswith("(acceptance.clean_room is false)")
    assert f"{remark}\n\nResult: passed" in case.artifact
    # It existed before.
    assert case.judge() == (0, reasons[:1])


def test_missing_commands_are_reported(home: str) -> None:
    assert Verify(home).judge() == (0, ["there are no acceptance commands"])


def test_a_fence_in_the_output_does_not_end_the_block(home: str) -> None:
    case = Verify(home, "printf '```\\n# not a heading\\n````\\n'")
    case.judge()
    assert "\n`````\n```\n# not a heading\n````\n`````\n" in case.artifact


def test_long_output_keeps_its_beginning_and_its_end(tmp_path) -> None:
    done = run(["sh", "-c", "echo first; seq 1 100000; echo last"], cwd=str(tmp_path), limit_s=30)
    assert done.is_cut
    assert done.output.startswith(b"first\n1\n")
    assert done.output.endswith(b"100000\nlast\n")
    assert len(done.output) < HEAD_BYTES + TAIL_BYTES + 100
    assert b"bytes left out" in done.output


def test_a_background_process_does_not_hold_the_gate(tmp_path) -> None:
    began = time.monotonic()
    done = run(["sh", "-c", "sleep 600 & echo $!"], cwd=str(tmp_path), limit_s=60)
    assert time.monotonic() - began < 20
    assert (done.exit_code, done.is_timeout) == (0, False)
    eventually(lambda: not processes.is_alive(int(done.output)), what="it is ended with the command")


def test_one_that_ignores_the_first_signal_is_killed(tmp_path) -> None:
    done = run(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"], cwd=str(tmp_path), limit_s=0.3)
    assert (done.exit_code, done.is_timeout) == (137, True)


def test_lines_that_are_no_commands_by_themselves_are_one() -> None:
    assert commands("a\nb\n") == ("a", "b")
    assert commands("  a --x\n# comment\n\n") == ("a --x",)
    loop = "for i in 1 2; do\n  echo $i\ndone"
    document = "cat <<E\n# x\n\n  y\nE"
    assert commands(f"{loop}\nfalse\n{document}\ntrue\n") == (loop, "false", document, "true")
    assert commands("a \\\n  b\nc 'd\ne'\n") == ("a \\\n  b", "c 'd\ne'")
    assert commands("a\nif true; then\nb\n") == ("a", "if true; then\nb")
