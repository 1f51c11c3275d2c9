"""Prompt templates: which one is used, and which headings each requires."""

from __future__ import annotations

import os

import pytest

from holdfast.config.needs import Part
from holdfast.errors import MissingTemplate, UsageError
from holdfast.model import markdown, pack
from holdfast.model.roles import ROLES
from holdfast.model.spec import StageSpec
from holdfast.pipeline.prompt import template
from holdfast.store.layout import Packet

#: The headings that gates check, and more.
ASKED_FOR = {
    **{name: role.headings for name, role in ROLES.items() if role.headings},
    "brief": (*ROLES["brief"].headings, *pack.HEADINGS),
    "plan_review": ROLES["review"].headings,
    "impl": ("Summary", "Unified Diff"),
    "plan_draft": ("Goal", "Scope", "Steps", "Acceptance", "Verify Commands"),
    "plan_consolidate": ("Goal", "Scope", "Steps", "Acceptance", "Verify Commands"),
}


@pytest.fixture
def places(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    root = str(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", os.path.join(root, "config"))
    return {
        "task": os.path.join(root, "tasks", "t", "inputs", "templates"),
        "project": os.path.join(root, "project", ".holdfast", "prompts"),
        "user": os.path.join(root, "config", "holdfast", "prompts"),
        "project_dir": os.path.join(root, "project"),
        "packet": os.path.join(root, "tasks", "t"),
    }


def put(folder: str, name: str, text: str) -> None:
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def load(places: dict[str, str], role: str, profile: str = "") -> template.Template:
    packet = Packet(places["packet"])
    return template.load(
        role, project_dir=places["project_dir"], profile=profile, packet=packet, judge=everything
    )


def everything(part: Part) -> bool:
    """A judge that trusts the project."""
    return True


def problems(stages: list[StageSpec], places: dict[str, str]) -> list[str]:
    return template.needed(stages, project_dir=places["project_dir"], judge=everything)[1]


@pytest.mark.parametrize("role", [*ROLES, template.RULES])
def test_every_role_has_a_template_in_the_package(places: dict[str, str], role: str) -> None:
    found = load(places, role)
    assert found.place == "package"
    assert found.text.startswith("# R")


@pytest.mark.parametrize("role", ASKED_FOR)
def test_a_template_asks_for_the_headings_that_the_gate_looks_for(places: dict[str, str], role: str) -> None:
    found = markdown.sections(load(places, role).text)
    lines = [section.line for heading in ASKED_FOR[role] if (section := markdown.find(found, heading))]
    assert len(lines) == len(ASKED_FOR[role])
    assert lines == sorted(lines)


def test_a_template_of_the_task_must_lie_in_its_packet(places: dict[str, str]) -> None:
    put(places["user"], "other.md", "outside")
    os.makedirs(places["task"])
    os.symlink(os.path.join(places["user"], "other.md"), os.path.join(places["task"], "impl.md"))
    with pytest.raises(MissingTemplate, match="link out of the packet"):
        load(places, "impl")


@pytest.mark.req("PIP-11")
def test_the_nearest_place_wins_and_in_each_the_profile(places: dict[str, str]) -> None:
    expected = "package"
    for place in ("user", "project", "task"):
        assert load(places, "impl", "strict").place == expected
        put(places[place], "impl.md", f"{place}")
        assert load(places, "impl", "strict").text == place
        put(places[place], "strict/impl.md", f"{place}, strict")
        assert load(places, "impl", "strict").text == f"{place}, strict"
        assert load(places, "impl", "other").text == place
        assert load(places, "impl").text == place
        expected = place


@pytest.mark.req("PIP-11")
def test_a_missing_template_is_found_before_anything_is_paid(places: dict[str, str]) -> None:
    stages = [
        StageSpec(name="codex_impl", agent="codex", role="impl"),
        StageSpec(name="codex_juggle", agent="codex", role="juggle"),
        StageSpec(name="gemini_juggle", agent="gemini", role="juggle"),
    ]
    assert problems(stages, places) == ["there is no prompt template for the role juggle"]
    with pytest.raises(MissingTemplate) as raised:
        load(places, "juggle")
    assert isinstance(raised.value, UsageError)
    assert "juggle.md" in raised.value.hint
    put(places["project"], "juggle.md", "juggle")
    assert problems(stages, places) == []


@pytest.mark.parametrize("data", [b"", b" \n", b"\xff\xfe", b"x" * (256 * 1024 + 1)])
def test_a_template_that_cannot_be_used_is_an_error_not_passed_over(
    places: dict[str, str], data: bytes
) -> None:
    put(places["project"], "impl.md", "")
    with open(os.path.join(places["project"], "impl.md"), "wb") as file:
        file.write(data)
    with pytest.raises(MissingTemplate, match=r"impl\.md"):
        load(places, "impl")
    assert problems([StageSpec(name="a_impl", agent="a", role="impl")], places)
    packet = Packet(places["packet"])
    assert template.load("impl", project_dir=places["project_dir"], packet=packet).place == "package"


@pytest.mark.parametrize("name", ["../impl", "..", "", "a/b"])
def test_a_name_that_climbs_out_of_its_place_names_nothing(places: dict[str, str], name: str) -> None:
    put(os.path.dirname(places["project"]), "impl.md", "outside")
    with pytest.raises(MissingTemplate):
        load(places, name)
    assert load(places, "impl", name).place == "package"
