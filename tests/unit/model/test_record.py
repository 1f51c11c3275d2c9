"""Record: a frozen value with named fields."""

from __future__ import annotations

import pytest

from holdfast.model.process import Exit, ProcessIdentity
from holdfast.model.record import Record
from holdfast.model.spec import Limits, StageSpec, TaskSpec


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


IDENTITY = ProcessIdentity(boot_id="b", pid=7, start_time=9)


def test_fields_are_the_annotations_inherited_ones_first() -> None:
    assert Named.fields == ("x", "y", "name")
    assert Named.all_fields == {"x": None, "y": 0, "name": ""}
    assert Named.must_have == {"x"}


def test_a_value_is_frozen() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError, match=r"Point\.x is frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 2  # type: ignore[attr-defined]
    assert point.x == 1


def test_a_missing_or_unknown_field_is_an_error_that_names_it() -> None:
    with pytest.raises(TypeError, match=r"missing \['x'\]"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"unknown \['z'\]"):
        Point(x=1, z=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(y=1, z=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]


def test_evolve_copies_and_leaves_the_old_one_alone() -> None:
    old = Point(x=1, y=2)
    new = old.evolve(x=5)
    assert (new.x, new.y, old.x) == (5, 2, 1)
    with pytest.raises(TypeError):
        old.evolve(z=1)


def test_values_are_equal_by_type_and_fields() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Named(x=1)
    assert len({Point(x=1), Point(x=1, y=0), Named(x=1)}) == 2


def test_repr_shows_the_fields() -> None:
    assert repr(Point(x=1)) == "Point(x=1, y=0)"


def test_json_round_trip() -> None:
    assert ProcessIdentity.from_json(IDENTITY.to_json()) == IDENTITY
    assert IDENTITY.to_json() == {"boot_id": "b", "pid": 7, "start_time": 9}


def test_unknown_keys_are_passed_over() -> None:
    assert ProcessIdentity.from_json({**IDENTITY.to_json(), "colour": "red"}) == IDENTITY


def test_a_missing_key_without_default_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match=r"ProcessIdentity: missing 'pid'"):
        ProcessIdentity.from_json({"boot_id": "b", "start_time": 9})


def test_a_missing_key_with_default_gets_it() -> None:
    made = Exit.from_json({"by": "recorder", "wait_status": 0, "exit_code": 0, "at": "t"})
    assert made.schema == "holdfast.exit/1"
    assert made.exit_signal is None


def test_nested_records_and_tuples_of_them_survive_json() -> None:
    spec = TaskSpec(
        task_id="t",
        task_name="t",
        goal="g",
        agent="command",
        command=["true"],
        project_dir="/",
        stages=(StageSpec(name="a_run", agent="a"), StageSpec(name="b_run", agent="b", model="m")),
        limits=Limits(max_retries=3, deadline_s=None),
    )
    data = spec.to_json()
    assert data["limits"]["max_retries"] == 3
    assert [stage["name"] for stage in data["stages"]] == ["a_run", "b_run"]
    again = TaskSpec.from_json(data)
    assert (again.limits, again.stages) == (spec.limits, spec.stages)
    assert again.to_json() == data


def test_a_tuple_of_plain_values_survives_json() -> None:
    class Names(Record):
        names: tuple[str, ...] = ()

    made = Names(names=("a", "b"))
    assert Names.from_json(made.to_json()) == made


def test_a_spec_of_a_later_version_loads_with_its_unknown_fields_left_out() -> None:
    data = {
        "task_id": "t",
        "task_name": "t",
        "goal": "g",
        "agent": "a",
        "project_dir": "/",
        "stages": [],
        "limits": {},
    }
    spec = TaskSpec.from_json({**data, "new": 1, "limits": {"new_limit_s": 5}})
    assert spec.limits == Limits()


def test_defaults_are_not_shared_through_to_json() -> None:
    class Holder(Record):
        items: list[int] = []

    shown = Holder().to_json()
    shown["items"].append(1)
    assert Holder().items == []
