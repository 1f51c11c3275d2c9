"""Any manifest gives a task, or problems with their positions, but never a traceback."""

from __future__ import annotations

import json
import os
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from holdfast.pipeline.define import load_catalog, written_packet, yaml_file
from holdfast.pipeline.define.catalog_file import FileReader
from holdfast.pipeline.define.manifest_fields import FIELDS
from holdfast.pipeline.define.problem import Problem
from tests.support import manifests

PATHS = [field.path.replace("*", "codex") for field in FIELDS]
PATHS += sorted({path.rpartition(".")[0] for path in PATHS if "." in path})

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from(
        ["..", "/", "(", "safe_impl", "codex", "gpt-5-codex", "off", "\0", "￿", "a" * 20_000, "[", "🙂"]
    ),
    st.integers(min_value=10**40, max_value=10**60),
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=10) | st.sampled_from(PATHS), inner, max_size=4)
    ),
    max_leaves=12,
)


def examined(data: bytes) -> tuple[Any, tuple[Problem, ...]]:
    written, problems = written_packet.examine(data, "/nowhere/p/manifest.yaml", project="/")
    assert (written is None) == bool(problems)
    for problem in problems:
        assert problem.message
        assert "\n" not in str(problem)
    return written, problems


@pytest.mark.req("PKT-6")
@hypothesis.settings(max_examples=60)
@hypothesis.given(st.lists(st.tuples(st.sampled_from(PATHS), anything), min_size=1, max_size=4))
def test_any_value_anywhere_gives_a_task_or_problems(changes: list[tuple[str, Any]]) -> None:
    data = manifests.valid()
    for path, value in changes:
        place = data
        *before, last = path.split(".")
        for name in before:
            inner = place.get(name)
            if not isinstance(inner, dict):
                inner = place[name] = {}
            place = inner
        place[last] = value
    examined(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))


@hypothesis.settings(max_examples=60)
@hypothesis.given(st.binary(max_size=200))
def test_any_bytes_give_problems(data: bytes) -> None:
    written, problems = examined(data)
    assert written is None
    assert problems


@hypothesis.settings(max_examples=60)
@hypothesis.given(st.text(alphabet="abc:-[]{}&*!|>'\"#%@`,? \n\t\0~é🙂", max_size=120))
def test_any_marks_of_yaml_give_problems(text: str) -> None:
    assert examined(text.encode())[0] is None


@hypothesis.settings(max_examples=60)
@hypothesis.given(st.data())
def test_a_manifest_with_bytes_changed_gives_a_task_or_problems(data: st.DataObject) -> None:
    text = bytearray(SCAFFOLDED)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    examined(bytes(text))


@hypothesis.settings(max_examples=100)
@hypothesis.given(anything, st.sampled_from(["agent", "pipeline"]))
def test_any_configuration_file_gives_leaves_or_problems(data: Any, kind: str) -> None:
    problems: list[Problem] = []
    node = yaml_file.parse(json.dumps(data).encode(), "f.yaml", problems)
    if node is not None:
        reader = FileReader("f.yaml", "f.yaml", problems)
        getattr(reader, kind)(node)
        assert problems


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    st.dictionaries(
        st.sampled_from(
            [
                "about",
                "stages",
                "flags",
                "options",
                "stage_models",
                "stage_efforts",
                "stage_options",
                "writes",
                "approval",
            ]
        ),
        anything,
    )
)
def test_any_profile_gives_a_configuration_or_problems(tmp_path_factory, profile: dict[str, Any]) -> None:
    folder = str(tmp_path_factory.getbasetemp() / "fuzz")
    os.makedirs(os.path.join(folder, "pipelines"), exist_ok=True)
    text = json.dumps({"version": 1, "pipeline": "impl", "profiles": {"x": profile}})
    with open(os.path.join(folder, "pipelines", "x.yaml"), "w", encoding="utf-8") as file:
        file.write(text)
    problems: list[Problem] = []
    load_catalog.read({"package": load_catalog.folders(None)["package"], "user": folder}, problems)
    if "stages" not in profile:
        assert problems


CORPUS = [
    b"",
    b"\n",
    b"---\n",
    b"...",
    b"\xef\xbb\xbf",
    b"\xff\xfe\x00",
    b"a: \x80",
    b"\x00",
    b"- - - - -",
    b"[" * 10_000,
    b"{" * 10_000,
    b"a: &a [*a, *a]\n",
    b"a: !!python/object/apply:os.system ['true']\n",
    b"!!binary aGVsbG8=",
    b"<<: {a: 1}\n",
    b"? ? ? ?",
    b"? |\n  a\n: b",
    b"%TAG ! x\n---\na: 1",
    b"a: 1\n a: 2",
    b"'" * 1001,
    b'"\\x',
    b'"\\uD800"',
    b"a: |\n" + b" " * 1000,
    b"a: >-\n\n\n",
    b"budgets: {retry_budget: 1" + b"0" * 4000 + b"}",
    b"budgets: {budget_usd: 1e999999}",
    b"budgets: {budget_usd: .inf}",
    b"scope: {allow: [" + b"x, " * 5000 + b"]}",
    b"a: " + b"z" * 250_000,
    b"a" * 250_000 + b": 1",
    b"x: 1\n" * 3000,
    b"\tx",
    b"task_id: *nobody",
    b"goal: 2026-02-30",
    b"goal: 99:99:99",
    b"on: yes\nno: off\n",
    b"1: 2\n1.0: 3\ntrue: 4\n",
]


@pytest.mark.req("PKT-6")
@pytest.mark.parametrize("data", CORPUS, ids=range(len(CORPUS)))
def test_the_malformed_corpus_always_gives_errors(data: bytes) -> None:
    written, problems = examined(data)
    assert written is None
    assert problems


def scaffolded() -> bytes:
    from holdfast.pipeline.define.new_packet import Draft, manifest

    return manifest(
        Draft(task_id="t", goal="g", intent="safe_impl", allow=("src/",), commands=("make test",))
    ).encode()


SCAFFOLDED = scaffolded()
