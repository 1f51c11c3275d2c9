"""The --json output and the two index files match their schemas."""

from __future__ import annotations

import json
import os

import jsonschema
import pytest

from contracts import schema
from tests.support import manifests
from tests.support.manifests import valid
from tests.support.tasks import holdfast, workspace


def check(name: str, data: dict) -> None:
    assert data["schema"] == f"holdfast.{name}/1"
    jsonschema.validate(data, schema.schemas()[name])


@pytest.mark.usefixtures("home")
def test_the_json_of_new_and_pipeline_fits_its_schema() -> None:
    manifests.write(os.path.join(workspace(), "p"), valid("review_cross"))
    manifests.write(os.path.join(workspace(), "bad"), b"a: 1")
    for name, words in (
        ("new", ("new", "n", "--intent", "review_only", "--goal", "x")),
        ("pipelines", ("pipeline", "list")),
        ("pipeline", ("pipeline", "show", "p")),
        ("pipeline-check", ("pipeline", "check", "p")),
        ("pipeline-check", ("pipeline", "check", "bad")),
    ):
        check(name, json.loads(holdfast(*words, "--json", cwd=workspace()).stdout))
