"""The schema and the page of manifest.yaml are those of the table."""

from __future__ import annotations

import json
import os
import re

import jsonschema
import pytest

from holdfast.pipeline.define import catalog, reference, yaml_file
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.pipeline.define.problem import Problem
from tests.support.pages import read

REMAKE = "run python -m holdfast.pipeline.define.reference --write ."


@pytest.mark.parametrize("path", reference.SCHEMAS)
def test_the_schema_on_disk_is_fresh(path: str) -> None:
    assert read(path) == reference.schema_text(), REMAKE


def test_the_page_is_fresh() -> None:
    assert read(reference.PAGE) == reference.page(), REMAKE


def test_the_schema_is_a_schema_and_knows_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(reference.schema())
    for field in FIELDS:
        place = json.loads(reference.schema_text())
        for name in field.path.split("."):
            if name == "*":
                break
            place = place["properties"][name]


def test_the_examples_of_the_page_are_valid(tmp_path) -> None:
    for text in re.findall(r"^```yaml\n(.*?)^```$", reference.page(), re.DOTALL | re.MULTILINE):
        kind, name = re.match(r"# \.holdfast/(\w+)/(.*)\n", text).groups()  # type: ignore[union-attr]
        os.makedirs(tmp_path / kind, exist_ok=True)
        (tmp_path / kind / name).write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    found = catalog.read({"package": catalog.folders(None)["package"], "project": str(tmp_path)}, problems)
    assert problems == []
    assert "ours" in found.groups["impl"].profiles


def test_writing_needs_a_root(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reference.main([]) == 2
    assert "usage:" in capsys.readouterr().err
    assert reference.main(["--write", str(tmp_path)]) == 0
    assert (tmp_path / reference.PAGE).is_file()
    assert yaml_file.MOST_BYTES == 256 * 1024  # the page says so
