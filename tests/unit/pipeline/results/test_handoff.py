"""The hand-off of a brief."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import pack
from holdfast.pipeline.results import handoff
from holdfast.pipeline.results.handoff import Handoff, read_brief
from holdfast.store.layout import Packet

HEADINGS = ["Summary", "Acceptance", "Scope", "Constraints"]


def a_pack(mark: str = "###") -> str:
    return "\n".join(f"{mark} {heading}\ntext of {heading}\n" for heading in pack.HEADINGS)


def a_brief(*, packed: str | None = None, commands: str = "```sh\nmake test\n```", mark: str = "##") -> str:
    parts = [f"{mark} {name}\n\ntext\n" for name in HEADINGS]
    parts.append(f"{mark} Verify Commands\n\n{commands}\n")
    if packed is not None:
        parts.append(f"{mark} Updated Context Pack\n\n{packed}\n")
    return "\n".join(parts)


@pytest.fixture
def packet(tmp_path: object) -> Packet:
    found = Packet(os.path.join(str(tmp_path), "task"))
    for folder in (found.inputs, found.state):
        os.makedirs(folder)
    return found


@pytest.mark.req("PIP-8")
def test_a_brief_hands_over_the_pack_and_the_commands() -> None:
    read = read_brief(a_brief(packed=a_pack()))
    assert read.context_pack == a_pack()
    assert read.script == "make test\n"


@pytest.mark.req("PIP-8")
@pytest.mark.parametrize(
    "brief",
    [
        a_brief(packed=a_pack("##")),
        a_brief(packed=a_pack("##"), mark="###"),
        a_brief(packed=a_pack("#"), mark="#"),
        a_brief(packed=f"```markdown\n{a_pack('##')}```"),
        a_brief(packed=f"Here:\n\n```\n{a_pack('##')}```\n\nThat is all."),
        "```markdown\n" + a_brief(packed=a_pack()) + "```",
        a_brief(packed=a_pack()).upper().replace("MAKE TEST", "make test"),
        a_brief(packed=a_pack()).replace("Context Pack", "Context\nPack"),
        a_brief(packed=a_pack()).replace("\n", "\r\n"),
        a_brief(packed=a_pack("## ") + "### Detail\n\nmore\n") + "\n# Remarks\n\nbye\n",
    ],
)
def test_it_is_found_however_the_agent_wrote_it(brief: str) -> None:
    read = read_brief(brief)
    assert read.context_pack is not None
    assert pack.missing(read.context_pack) == []
    assert "text of 9. change history" in read.context_pack.lower()
    assert "text of 0. goal" in read.context_pack.lower()
    assert "remarks" not in read.context_pack.lower()
    assert "summary" not in read.context_pack.lower()
    assert read.script == "make test\n"


def test_the_pack_ends_where_another_section_begins() -> None:
    brief = a_brief(packed=a_pack("##")) + "\n## Notes\n\nnot of the pack\n"
    assert "not of the pack" not in (read_brief(brief).context_pack or "")


def test_a_comment_in_a_code_block_of_the_pack_is_not_its_end() -> None:
    inner = a_pack().replace("text of 7. Current state", "```sh\n# 1. look\n## 2. go\n```\nbehind")
    assert read_brief(a_brief(packed=inner)).context_pack == inner


@pytest.mark.req("PIP-9")
@pytest.mark.parametrize(
    "packed", [None, "", "text only", a_pack().replace("### 5. Files to read", ""), "```sh\n" + a_pack()]
)
def test_a_missing_or_incomplete_pack_is_ignored(packed: str | None) -> None:
    assert read_brief(a_brief(packed=packed)).context_pack is None


@pytest.mark.req("PIP-8", "PIP-9")
@pytest.mark.parametrize(
    ("block", "script"),
    [
        ("```sh\n# first\nmake test\n\nmake lint\n```", "# first\nmake test\n\nmake lint\n"),
        ("```\na\n```", "a\n"),
        ("~~~bash\na \\\n  b\n~~~", "a \\\n  b\n"),
        ("```sh\nfor i in 1; do\n  a\ndone\n```", "for i in 1; do\n  a\ndone\n"),
        ("```console\n$ make test\nok\n$ true\n```", "make test\ntrue\n"),
        ("```sh\n$ make test\n3 passed\n```", "make test\n"),
        ("```python\nprint()\n```\n```sh\na\n```", "a\n"),
        ("```sh\n```\n```sh\na\n```", "a\n"),
        ("```sh\n# none\n```", ""),
        ("```sh\n```", ""),
        ("`make test`", None),
        ("```python\nprint()\n```", None),
        ("", None),
    ],
)
def test_commands_are_the_text_of_the_block(block: str, script: str | None) -> None:
    assert read_brief(a_brief(commands=block)).script == script
    assert read_brief("## Summary\n\nx").script is None


@pytest.mark.req("PIP-8")
def test_it_goes_where_the_next_stages_look_and_twice_is_once(packet: Packet) -> None:
    given_over = Handoff(context_pack="## new\n", script="make test\ntrue\n")
    handoff.apply(packet, given_over)
    with open(packet.context_pack, encoding="utf-8") as file:
        assert file.read() == "## new\n"
    with open(packet.commands_override, encoding="utf-8") as file:
        assert file.read() == "make test\ntrue\n"
    before = os.stat(packet.context_pack).st_ino, os.stat(packet.commands_override).st_ino
    handoff.apply(packet, given_over)
    assert before == (os.stat(packet.context_pack).st_ino, os.stat(packet.commands_override).st_ino)


@pytest.mark.req("PIP-9")
@pytest.mark.parametrize("script", [None, ""])
def test_without_a_pack_the_old_one_stays_and_stale_commands_go(packet: Packet, script: str | None) -> None:
    handoff.apply(packet, Handoff(context_pack="old\n", script="make old\n"))
    for _ in range(2):
        handoff.apply(packet, Handoff(context_pack=None, script=script))
        assert not os.path.exists(packet.commands_override)
    with open(packet.context_pack, encoding="utf-8") as file:
        assert file.read() == "old\n"


PIECES = st.sampled_from(
    [*a_brief(packed=a_pack()).split("\n"), "```", "```markdown", "## Updated Context", "Pack", "# x", "$ a"]
)


@given(st.lists(PIECES, max_size=60))
def test_no_answer_of_an_agent_breaks_it_and_a_pack_is_whole_or_none(lines: list[str]) -> None:
    read = read_brief("\n".join(lines))
    assert read.context_pack is None or pack.missing(read.context_pack) == []
    assert not read.script or read.script.strip()
