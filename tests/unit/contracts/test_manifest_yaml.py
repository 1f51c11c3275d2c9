"""The schema and the page of manifest.yaml are those of the table."""

from __future__ import annotations

import os
import re

import jsonschema

from contracts import manifest_yaml, schema
from holdfast.pipeline.define import load_catalog, yaml_file
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.pipeline.define.problem import Problem
from tests.support.pages import read

REGENERATE = "run python -m contracts"


def test_the_schema_on_disk_is_up_to_date() -> None:
    assert read(f"docs/{manifest_yaml.SCHEMA}") == schema.as_text(manifest_yaml.schema()), REGENERATE


def test_the_page_is_up_to_date() -> None:
    assert read(f"docs/{manifest_yaml.PAGE}") == manifest_yaml.page(), REGENERATE


def test_the_schema_is_a_schema_and_knows_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(manifest_yaml.schema())
    for field in FIELDS:
        place = manifest_yaml.schema()
        for name in field.path.split("."):
            if name == "*":
                break
            place = place["properties"][name]


def test_the_examples_of_the_page_are_valid(tmp_path) -> None:
    for text in re.findall(r"^```yaml\n(.*?)^```$", manifest_yaml.page(), re.DOTALL | re.MULTILINE):
        kind, name = re.match(r"# \.holdfast/(\w+)/(.*)\n", text).groups()  # type: ignore[union-attr]
        os.makedirs(tmp_path / kind, exist_ok=True)
        (tmp_path / kind / name).write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    found = load_catalog.read(
        {"package": load_catalog.folders(None)["package"], "user": str(tmp_path)}, problems
    )
    assert problems == []
    assert "ours" in found.groups["impl"].profiles


def test_the_page_has_the_size_limit_of_the_file() -> None:
    assert yaml_file.MAX_BYTES == 256 * 1024
