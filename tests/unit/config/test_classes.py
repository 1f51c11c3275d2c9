"""Everything that a project can bring is classified."""

from __future__ import annotations

from holdfast.config import classes
from holdfast.config.keys import KEYS
from holdfast.pipeline.define import catalog_file
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.queue.work_item import WorkItem


def test_every_setting_has_a_class_and_a_new_one_needs_trust() -> None:
    assert set(classes.SETTINGS) == set(KEYS), "add it to config/classes.py"
    assert classes.of_setting("not_classified_yet") in classes.CLASSES


def test_every_key_of_agents_and_pipelines_has_a_class_and_a_new_one_needs_trust() -> None:
    heads = {"version", "agent", "pipeline"}
    assert set(classes.AGENTS) == set(catalog_file._AGENT_KEYS) - heads
    assert set(classes.PIPELINES) == set(catalog_file._PIPELINE_KEYS) - heads
    assert set(classes.PIPELINES["profiles"]) == {*catalog_file._PROFILE_KEYS, "is_there"}
    assert classes.of_catalog("agents", "new.key") in classes.CLASSES
    assert classes.of_catalog("pipelines", "profiles.mine.new") in classes.CLASSES
    assert classes.of_catalog("pipelines", "profiles.mine.stages") == classes.PROGRAMS


def test_every_field_of_a_packet_has_a_class_and_a_new_one_needs_trust() -> None:
    assert set(classes.PACKET) == {field.path for field in FIELDS}
    assert classes.of_packet("new.field") in classes.CLASSES


def test_what_runs_something_is_not_harmless() -> None:
    for name, key in KEYS.items():
        if key.kind in ("commands", "rules", "file"):
            assert classes.of_setting(name), name


def test_every_field_of_a_work_item_has_a_class_and_a_new_one_needs_trust() -> None:
    assert set(classes.WORK_ITEM) == set(WorkItem.fields)
    assert classes.of_work_item("new_field") in classes.CLASSES
