"""A new packet is valid as it is written, and says what a plan says."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import DuplicateTask, UnreadableFile, UsageError
from holdfast.model import pack
from holdfast.pipeline.define import new_packet, written_packet
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.define.new_packet import Draft

PLAN = """# Plan: Make the client retry

## 1. Steps

Do it.

## Acceptance

- [ ] a failed call is tried again
* the tests pass

## Verify Commands

```sh
# all of them
make test
make lint
```

## Risks

none
"""


@pytest.mark.req("PKT-18")
@pytest.mark.parametrize("intent", INTENTS)
def test_every_intent_gives_a_packet_that_is_valid_as_written(tmp_path, intent: str) -> None:
    folder = str(tmp_path / "p")
    new_packet.write(folder, Draft(task_id="t", goal='say "no": it\'s — 12:30 #1\nand on', intent=intent))
    written = written_packet.read(folder, project=str(tmp_path))
    assert written.resolved.intent == intent
    assert written.manifest.get("goal") == 'say "no": it\'s — 12:30 #1\nand on'


@pytest.mark.req("PKT-18")
def test_the_defaults_are_safe(tmp_path) -> None:
    folder = str(tmp_path / "p")
    new_packet.write(folder, Draft(task_id="t", goal="x", intent="safe_impl"))
    spec = written_packet.pipeline_spec(written_packet.read(folder, project=str(tmp_path)))
    assert (spec.retry_budget, spec.paid_call_budget, spec.max_wallclock_s) == (2, 10, 900)
    assert spec.digest_policy == "auto"
    assert spec.forbidden_paths == (".env", "secrets/")


def test_the_folder_has_request_context_and_room_for_attachments(tmp_path) -> None:
    folder = tmp_path / "p"
    new_packet.write(str(folder), Draft(task_id="t", goal="x", intent="safe_impl", allow=("src/",)))
    assert sorted(os.listdir(folder)) == ["inputs", "manifest.yaml"]
    assert sorted(os.listdir(folder / "inputs")) == ["attachments", "context_pack.md", "user_request.md"]
    assert pack.missing((folder / "inputs" / "context_pack.md").read_text(encoding="utf-8")) == []
    assert os.listdir(tmp_path) == ["p"]


def test_what_is_there_is_never_overwritten(tmp_path) -> None:
    (tmp_path / "p").mkdir()
    with pytest.raises(DuplicateTask, match="is there already"):
        new_packet.write(str(tmp_path / "p"), Draft(task_id="t", goal="x", intent="safe_impl"))
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(DuplicateTask):
        new_packet.write(str(tmp_path / "link"), Draft(task_id="t", goal="x", intent="safe_impl"))


@pytest.mark.starts_processes
@pytest.mark.req("PKT-18")
def test_a_plan_gives_goal_commands_criteria_and_request() -> None:
    draft = new_packet.from_plan(Draft(task_id="t", goal="", intent="safe_impl", plan=PLAN))
    assert draft.goal == "Make the client retry"
    assert draft.commands == ("make test", "make lint")
    assert draft.criteria == ("a failed call is tried again", "the tests pass")
    assert PLAN.strip() in new_packet.request(draft)


def test_what_was_given_beats_the_plan() -> None:
    draft = Draft(task_id="t", goal="mine", intent="safe_impl", plan=PLAN, commands=("true",))
    assert new_packet.from_plan(draft).goal == "mine"
    assert new_packet.from_plan(draft).commands == ("true",)


@pytest.mark.parametrize(
    "plan", ["just words", "# only a title", "## Verify Commands\n\nnone\n", "```\n", "#"]
)
def test_a_plan_may_say_little(plan: str) -> None:
    draft = new_packet.from_plan(Draft(task_id="t", goal="", intent="safe_impl", plan=plan))
    assert draft.goal
    assert draft.commands == ()


def test_a_plan_that_cannot_be_read_is_told(tmp_path) -> None:
    with pytest.raises(UnreadableFile):
        new_packet.read_plan(str(tmp_path / "none"))
    (tmp_path / "empty").write_bytes(b" \n")
    with pytest.raises(UsageError, match="is empty"):
        new_packet.read_plan(str(tmp_path / "empty"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        new_packet.read_plan(str(tmp_path / "binary"))
    (tmp_path / "big").write_bytes(b"x" * (new_packet.MOST_PLAN_BYTES + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        new_packet.read_plan(str(tmp_path / "big"))
