"""The prompt of a stage."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ForbiddenInput, InvalidPattern, MissingTemplate, PromptTooLarge
from holdfast.model.spec import Limits, PipelineSpec, StageSpec, TaskSpec
from holdfast.pipeline.prompt import compose as composing
from holdfast.pipeline.prompt.attachments import Attachment
from holdfast.pipeline.prompt.compose import Additions, Composed, PromptPart, compose, facts, write
from holdfast.redact import Redactor
from holdfast.store.digest import sha256
from holdfast.store.layout import Packet

IMPL = StageSpec(name="codex_impl", agent="codex", role="impl", writes=True)
PIPELINE = PipelineSpec(
    intent="safe_impl",
    group="impl",
    profile="safe_impl",
    scope_allow=("src/",),
    scope_deny=("docs/",),
    acceptance_commands=("make test",),
    acceptance_criteria=("all tests pass",),
    forbidden_paths=(".env", "secrets/"),
)
MARKER = re.compile(r"^<<<(BEGIN|END) (.*) ([0-9a-f]{16})>>>$", re.MULTILINE)


@pytest.fixture
def packet(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> Packet:
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.join(str(tmp_path), "config"))
    found = Packet(os.path.join(str(tmp_path), "task"))
    for folder in (found.attachments, found.outputs, found.state):
        os.makedirs(folder)
    put(found.user_request, "Migrate the tests.\n")
    put(found.context_pack, "## 0. Goal\n\nThe goal of the pack.\n\n## 7. Current state\n\nIt is bad.\n")
    return found


def put(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def task(packet: Packet, pipeline: PipelineSpec | None = PIPELINE, stage: StageSpec = IMPL) -> TaskSpec:
    return TaskSpec(
        task_id="t",
        task_name="t",
        goal="Use pytest",
        agent=stage.agent,
        project_dir=packet.path,
        stages=(stage,),
        limits=Limits(),
        pipeline=pipeline,
    )


def composed(
    packet: Packet,
    *,
    pipeline: PipelineSpec | None = PIPELINE,
    stage: StageSpec = IMPL,
    redact: Redactor | None = None,
    **additions: Any,
) -> Composed:
    return compose(
        packet,
        task(packet, pipeline, stage),
        stage,
        Additions(**additions),
        project_dir=packet.path,
        redact=redact or Redactor({}),
    )


def parts(text: str) -> dict[str, str]:
    """The parts by name, in order, found by the seal of the first marker."""
    seal = MARKER.search(text)
    assert seal is not None
    found = re.findall(rf"<<<BEGIN (.*) {seal[3]}>>>\n(.*?)\n<<<END \1 {seal[3]}>>>\n", text, re.DOTALL)
    return dict(found)


@pytest.mark.req("CTX-5")
def test_the_parts_stand_in_order_between_markers(packet: Packet) -> None:
    put(os.path.join(packet.attachments, "git.diff"), "+ x\n")
    put(os.path.join(packet.attachments, "logs.txt"), "ok\n")
    found = composed(
        packet, reports=(Attachment(name="gemini_review", text="fine"),), notes="The gate refused."
    )
    names = ["rules", "role", "task", "context", "request", "notes"]
    attached = ["attachment gemini_review", "attachment git.diff", "attachment logs.txt"]
    assert list(parts(found.text)) == [*names, *attached]
    assert parts(found.text)["request"] == "Migrate the tests."
    assert parts(found.text)["notes"] == "The gate refused."
    assert parts(found.text)["attachment git.diff"] == "+ x"
    assert "# Role: implementation" in parts(found.text)["role"]
    assert "It is bad." in parts(found.text)["context"]
    assert found.template.endswith("impl.md")
    assert found.digest is None


@pytest.mark.req("CTX-5")
def test_its_hash_is_that_of_what_is_written_and_the_same_inputs_give_the_same(packet: Packet) -> None:
    found = composed(packet)
    path = write(packet, IMPL, found)
    assert path == packet.prompt("codex", "impl")
    with open(path, "rb") as file:
        data = file.read()
    assert data == found.text.encode()
    assert found.sha256 == sha256(data)
    assert composed(packet) == found
    with open(packet.output("codex_impl", "codex", "compose.log"), encoding="utf-8") as file:
        log = file.read()
    assert found.sha256 in log
    assert "impl.md (package)" in log
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_half_a_character_in_a_note_is_no_trouble(packet: Packet) -> None:
    found = composed(packet, notes="half \ud83d")
    assert parts(found.text)["notes"] == "half ?"
    assert found.sha256 == sha256(found.text.encode())


def test_the_prompt_has_the_task_with_scope_and_acceptance(packet: Packet) -> None:
    told = facts(task(packet), IMPL)
    assert "Goal: Use pytest" in told
    assert "may change:\n- src/" in told
    assert "must not change:\n- docs/" in told
    assert "- all tests pass" in told
    assert "- make test" in told
    assert "must not change files" in facts(task(packet), IMPL.evolve(writes=False))


def test_commands_of_a_brief_are_added_to_those_of_the_manifest(packet: Packet) -> None:
    told = parts(composed(packet, script="make check\n").text)["task"]
    assert "- make test" in told
    assert told.partition("Acceptance commands that the brief adds:\n")[2].startswith("    make check")


@pytest.mark.req("CTX-3")
def test_secrets_and_forbidden_paths_appear_nowhere(packet: Packet) -> None:
    dirty = "ACME-1234 hunter2hunter2 password=abcd1234 .env secrets/x\n"
    put(packet.user_request, dirty)
    put(packet.context_pack, dirty)
    put(os.path.join(packet.attachments, "notes.md"), dirty)
    os.makedirs(os.path.join(packet.inputs, "templates"))
    put(os.path.join(packet.inputs, "templates", "impl.md"), dirty)
    pipeline = PIPELINE.evolve(
        scope_deny=(".env",), acceptance_criteria=(dirty,), acceptance_commands=(dirty,)
    )
    found = composed(
        packet,
        pipeline=pipeline,
        redact=Redactor({"A_KEY": "hunter2hunter2"}, patterns=[r"ACME-\d+"]),
        reports=(Attachment(name="secrets/x", text=dirty),),
        notes=dirty,
    )
    for secret in ("ACME", "hunter2", "abcd1234", ".env", "secrets/"):
        assert secret not in found.text, secret
        assert secret not in "\n".join(found.log), secret
    assert found.text.count("[forbidden path]") >= 14
    assert any("forbidden paths removed" in line for line in found.log)


@pytest.mark.req("CTX-3")
def test_a_secret_that_looks_like_a_forbidden_path_is_masked_whole(packet: Packet) -> None:
    put(packet.user_request, "use /x/secrets/abc:def\n")
    found = composed(packet, redact=Redactor({"A_KEY": "/x/secrets/abc:def"}))
    assert parts(found.text)["request"] == "use ***"


@pytest.mark.req("CTX-3")
def test_the_diff_of_a_forbidden_path_is_left_out(packet: Packet) -> None:
    diff = "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-A=1\n+A=2\n"
    put(os.path.join(packet.attachments, "git.diff"), diff)
    assert parts(composed(packet).text)["attachment git.diff"] == (
        "[the diff of a forbidden path is left out: 6 lines]"
    )


@pytest.mark.req("CTX-3", "W-B6")
def test_what_cannot_be_made_safe_stops_the_prompt(packet: Packet) -> None:
    with pytest.raises(InvalidPattern):
        composed(packet, pipeline=PIPELINE.evolve(forbidden_paths=("!",)))
    put(os.path.join(packet.attachments, ".env"), "A=1\n")
    with pytest.raises(ForbiddenInput):
        composed(packet)
    assert not os.path.exists(packet.prompts)


@pytest.mark.req("PIP-11")
def test_a_role_without_template_stops_the_prompt(packet: Packet) -> None:
    with pytest.raises(MissingTemplate):
        composed(packet, stage=IMPL.evolve(role="juggle"))


@pytest.mark.req("CTX-1")
def test_the_digest_is_used_by_policy_and_kept(packet: Packet) -> None:
    put(packet.context_pack, "## Goal\n\nkept\n\n## Other\n\n" + "dropped\n" * 2000)
    assert "dropped" in parts(composed(packet, digest_policy="off").text)["context"]
    for policy, stage in (("auto", IMPL), ("aggressive", IMPL), ("off", IMPL.evolve(agent="copilot"))):
        found = composed(packet, digest_policy=policy, stage=stage)
        assert parts(found.text)["context"] == "## Goal\n\nkept"
        assert found.digest == "## Goal\n\nkept\n"
    write(packet, IMPL, composed(packet))
    with open(packet.context_digest, encoding="utf-8") as file:
        assert file.read() == "## Goal\n\nkept\n"


def test_a_task_without_pack_request_or_pipeline_has_a_prompt(packet: Packet) -> None:
    os.unlink(packet.context_pack)
    os.unlink(packet.user_request)
    found = composed(packet, pipeline=None)
    assert list(parts(found.text)) == ["rules", "role", "task", "request"]
    assert parts(found.text)["request"] == "Use pytest"
    assert "context: none" in found.log


@pytest.mark.req("CTX-5", "W-B6")
def test_long_logs_lose_their_middle_and_earlier_outputs_do_not(packet: Packet) -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    put(os.path.join(packet.attachments, "logs.txt"), text)
    found = composed(packet, reports=(Attachment(name="gemini_review", text=text, is_whole=True),))
    assert parts(found.text)["attachment gemini_review"] == text.rstrip("\n")
    log = parts(found.text)["attachment logs.txt"].split("\n")
    assert (log[0], log[199], log[201], log[-1]) == ("line 0", "line 199", "line 800", "line 999")
    assert "600 lines" in log[200]
    assert any("attachment logs.txt" in line and "600 lines" in line for line in found.log)


@pytest.mark.req("CTX-5")
def test_over_the_limit_it_is_cut_step_by_step_with_a_note(packet: Packet) -> None:
    put(packet.context_pack, "## Goal\n\nkept\n\n## Other\n\n" + "dropped\n" * 1000)
    put(
        os.path.join(packet.attachments, "logs.txt"), "".join(f"line {number:04}\n" for number in range(1000))
    )
    full = len(composed(packet, digest_policy="off").text.encode())
    seen: list[tuple[bool, int]] = []
    sizes: list[int] = []
    limit = full
    for _ in range(5):
        found = composed(packet, digest_policy="off", limit_bytes=limit)
        size = len(found.text.encode())
        assert size <= limit
        assert any("cut to fit" in line for line in found.log) is (limit < full)
        log = parts(found.text)["attachment logs.txt"]
        seen.append(("dropped" in found.text, log.count("line 0") + log.count("line 1")))
        sizes.append(size)
        limit = size - 1
    with pytest.raises(PromptTooLarge, match=f"takes only {limit}"):
        composed(packet, digest_policy="off", limit_bytes=limit)
    assert [is_whole for is_whole, _ in seen] == [True, False, False, False, False]
    assert [lines for _, lines in seen] == sorted((lines for _, lines in seen), reverse=True)
    assert sizes == sorted(sizes, reverse=True)
    assert "left out: no room" in found.text


def test_attachments_have_a_limit_of_their_own(packet: Packet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composing, "ATTACHMENTS_BYTES", 3000)
    put(packet.context_pack, "## Goal\n\nkept\n\n## Other\n\nstays\n")
    for name in ("a.log", "b.log"):
        put(os.path.join(packet.attachments, name), "".join(f"line {number:04}\n" for number in range(1000)))
    found = composed(packet)
    assert sum(len(text) for name, text in parts(found.text).items() if name.startswith("attachment")) <= 3000
    assert "line 0059" in found.text
    assert "line 0060" not in found.text
    assert "stays" in found.text
    assert any("cut further" in line for line in found.log)


def test_earlier_outputs_are_cut_last_and_never_left_out(packet: Packet) -> None:
    log = "".join(f"line {number:04}\n" for number in range(1000))
    put(os.path.join(packet.attachments, "logs.txt"), log)
    review = Attachment(
        name="review", text="".join(f"finding {number:04}\n" for number in range(500)), is_whole=True
    )
    full = composed(packet, reports=(review,))
    spare = len(parts(full.text)["attachment logs.txt"]) - 50 * 10
    less = composed(packet, reports=(review,), limit_bytes=len(full.text.encode()) - spare)
    assert parts(less.text)["attachment review"] == parts(full.text)["attachment review"]
    assert "line 0019\n[… 960 lines" in parts(less.text)["attachment logs.txt"]
    least = composed(packet, reports=(review,), limit_bytes=len(full.text.encode()) - spare - 3000)
    assert "finding 0059\n[… 380 lines" in parts(least.text)["attachment review"]
    assert "no room" in parts(least.text)["attachment logs.txt"]


NASTY = st.sampled_from(
    [
        "<<<END request ",
        "<<<BEGIN rules ",
        ">>>",
        "0123456789abcdef",
        "\n",
        "text",
        "<<<END",
        "rules",
        "\u2028",
        "",
    ]
)


@pytest.mark.req("CTX-5")
@given(st.lists(st.lists(NASTY, max_size=8).map("".join), min_size=1, max_size=4))
def test_no_text_can_pass_for_the_end_of_its_part(texts: list[str]) -> None:
    written = [PromptPart(name=f"part {number}", text=text) for number, text in enumerate(texts)]
    read = parts(composing.sealed(written) + "\n")
    assert list(read.items()) == [(part.name, part.text.strip("\n")) for part in written]


def test_a_text_that_quotes_another_prompt_is_still_one_part(packet: Packet) -> None:
    first = composed(packet).text
    put(packet.user_request, first)
    again = composed(packet)
    assert parts(again.text)["request"] == first.strip("\n")
