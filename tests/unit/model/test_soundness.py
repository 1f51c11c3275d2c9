"""Every manifest that a runner writes is sound: otherwise each reader would derive it again."""

from __future__ import annotations

import json
import os

import pytest

from holdfast.model import events as ev
from holdfast.model import manifest
from holdfast.model.fold import apply
from holdfast.model.soundness import is_sound
from holdfast.model.task import Task

LIVES = os.path.join(os.path.dirname(__file__), "..", "..", "crash", "lives")


@pytest.mark.parametrize("name", sorted(os.listdir(LIVES)))
def test_a_manifest_is_sound_after_every_event(name: str) -> None:
    task = Task()
    with open(os.path.join(LIVES, name), encoding="utf-8") as file:
        for line in file:
            data = {"id": "01K00000000000000000000000", **json.loads(line)}
            event = ev.decode(data)
            apply(task, event, data["at"])
            shown = json.loads(json.dumps(manifest.render(task, "/packet", manifest.Observed())))
            assert is_sound(shown), (data["type"], shown)


SOUND = {"status": "running", "started_at": "2026-01-31T12:00:00.000Z", "agent": "command"}


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), float("inf"), float("nan")], ids=["huge", "least", "inf", "nan"]
)
@pytest.mark.parametrize("field", ["asked_s", "attempt", "cost_usd"])
def test_a_number_that_cannot_be_shown_is_not_sound(field: str, value: float) -> None:
    assert is_sound({**SOUND, "asked_s": 1e9, "usage": {"cost_usd": 0.5}})
    assert not is_sound({**SOUND, **({"usage": {field: value}} if field == "cost_usd" else {field: value})})
