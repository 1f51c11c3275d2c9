"""Checks of a report."""

from __future__ import annotations

import os

import pytest

from holdfast.model.pack import HEADINGS as PACK
from holdfast.model.roles import ROLES
from tests.support.repos import Repo, judge, packet_for, prepare, report

REQUIRED = {name: role.headings for name, role in ROLES.items() if role.headings}
BRIEF = "".join(f"## {title}\n\nwords\n\n" for title in REQUIRED["brief"]) + "".join(
    f"### {title}\n\nwords\n\n" for title in PACK
)


def judged(home: str, role: str, text: str | None, *, with_meta: bool = True) -> tuple[str, list[str]]:
    """The check that failed first, and the reasons."""
    repo = Repo(os.path.join(os.path.dirname(home), "project"), with_git=False)
    packet = packet_for(home, repo.path, stages=(("codex_it", role),))
    if role in ("test_impl", "fix"):
        prepare(packet, "codex_it")
    if text is not None:
        report(packet, text, "codex_it")
        if not with_meta:
            os.unlink(packet.output("codex_it", "codex", "meta.json"))
    code, result = judge(packet, "codex_it")
    assert result["passed"] == (code == 0)
    return result["failed"], result["reasons"]


def written(role: str, without: str = "") -> str:
    titles = [title for title in REQUIRED[role] if title != without]
    return "".join(f"## {title}\n\nwords\n\n" for title in titles)


@pytest.mark.req("GAT-4")
@pytest.mark.parametrize("role", [role for role in REQUIRED if role not in ("brief", "test_impl", "fix")])
def test_a_report_with_its_headings_passes(home: str, role: str) -> None:
    assert judged(home, role, written(role)) == ("", [])


@pytest.mark.starts_processes
@pytest.mark.req("GAT-4")
@pytest.mark.parametrize("role", [role for role in REQUIRED if role != "brief"])
def test_each_missing_heading_is_named(home: str, role: str) -> None:
    last = REQUIRED[role][-1]
    text = written(role, without=last) + "No changes required.\n"
    failed, reasons = judged(home, role, text)
    assert failed == "headings"
    assert f"the report has no heading {last!r}" in reasons


@pytest.mark.req("GAT-5")
def test_case_numbers_emphasis_and_wrapping_do_not_matter(home: str) -> None:
    text = (
        "# FINDINGS (3)\n\nx\n\n### 2. **Test Gaps**\n\nx\n\n## breaking\nchanges\n\nx\n\n## "
        "Minimal fix:\n\nx\n"
    )
    assert judged(home, "review", text) == ("", [])


@pytest.mark.req("GAT-4")
def test_a_brief_has_its_headings_and_those_of_the_pack(home: str) -> None:
    assert judged(home, "brief", BRIEF) == ("", [])


@pytest.mark.parametrize("shape", ["same level", "in a fence"])
def test_the_pack_may_stand_in_a_brief_in_other_shapes(home: str, shape: str) -> None:
    pack = "".join(f"## {title}\n\nwords\n\n" for title in PACK)
    if shape == "in a fence":
        pack = f"```markdown\n{pack}```\n"
    assert judged(home, "brief", written("brief") + pack) == ("", [])


@pytest.mark.req("GAT-4")
def test_a_missing_heading_of_the_pack_is_reported(home: str) -> None:
    text = BRIEF.replace("### 9. Change History", "### History")
    assert judged(home, "brief", text)[1] == ["the updated context pack has no heading '9. Change History'"]


def test_a_heading_of_the_pack_does_not_stand_for_the_reports_own(home: str) -> None:
    text = BRIEF.replace("## Scope\n", "## Area\n", 1)
    assert judged(home, "brief", text)[1] == ["the report has no heading 'Scope'"]


@pytest.mark.req("GAT-4")
def test_a_design_of_tests_is_more_than_a_few_lines(home: str) -> None:
    failed, reasons = judged(home, "test_design", "one\n\n\n\n\n\n\n\n\n\n\n\ntwo\n")
    assert (failed, reasons) == ("lines", ["the report has 2 lines of text; it needs 10"])


@pytest.mark.req("GAT-4")
def test_ten_lines_are_enough(home: str) -> None:
    assert judged(home, "test_design", "a case\n" * 10) == ("", [])


@pytest.mark.req("GAT-4")
@pytest.mark.parametrize("text", [None, "", " \n\n"])
def test_every_stage_reports_something(home: str, text: str | None) -> None:
    assert judged(home, "plan_draft", text)[0] == "report"


@pytest.mark.req("GAT-4")
def test_every_stage_leaves_the_record_of_its_call(home: str) -> None:
    failed, reasons = judged(home, "plan_draft", "words\n", with_meta=False)
    assert (failed, reasons) == ("report", ["outputs/codex_it.codex.meta.json is missing"])
