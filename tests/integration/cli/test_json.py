"""The output of --json matches its schema, and docs/contracts/schemas is up to date."""

from __future__ import annotations

import json

import jsonschema
import pytest

from contracts import schema
from tests.support.tasks import holdfast

SCHEMAS = schema.schemas()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["config", "show"], "config"),
        (["config", "path"], "config-path"),
        (["doctor"], "doctor"),
        (["service", "status"], "service-status"),
        (["status"], "status"),
        (["metrics"], "metrics"),
        (["report"], "report"),
        (["prune"], "prune"),
        (["agent", "list"], "agents"),
        (["agent", "probe", "command"], "agent"),
        (["demo"], "demo"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_verb_prints_what_its_schema_says(
    home: str, monkeypatch: pytest.MonkeyPatch, words: list[str], name: str
) -> None:
    monkeypatch.delenv("HOLDFAST_KEEPER")
    done = holdfast(*words, "--json")
    # A failed check exits 1 and a missing service 3, both with JSON.
    assert done.returncode in (0, 1, 3), done.stderr
    jsonschema.validate(json.loads(done.stdout), SCHEMAS[name])
