"""A new packet is valid as written."""

from __future__ import annotations

import os

import pytest

from holdfast.errors import DuplicateTask
from holdfast.model import pack
from holdfast.pipeline.define import new_packet, written_packet
from holdfast.pipeline.define.intents import INTENTS
from holdfast.pipeline.define.new_packet import Draft


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
    with pytest.raises(DuplicateTask, match="exists already"):
        new_packet.write(str(tmp_path / "p"), Draft(task_id="t", goal="x", intent="safe_impl"))
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(DuplicateTask):
        new_packet.write(str(tmp_path / "link"), Draft(task_id="t", goal="x", intent="safe_impl"))
