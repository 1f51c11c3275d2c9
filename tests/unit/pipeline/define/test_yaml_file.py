"""Reading untrusted YAML."""

from __future__ import annotations

import math

import pytest

from holdfast.errors import UnreadableFile
from holdfast.pipeline.define import yaml_file
from holdfast.pipeline.define.problem import Problem
from holdfast.pipeline.define.yaml_file import Node


def parse(text: str | bytes) -> tuple[Node | None, list[str]]:
    problems: list[Problem] = []
    data = text if isinstance(text, bytes) else text.encode()
    return yaml_file.parse(data, "f.yaml", problems), [str(each) for each in problems]


def plain(node: Node) -> object:
    if isinstance(node.value, dict):
        return {key: plain(inner) for key, inner in node.value.items()}
    if isinstance(node.value, list):
        return [plain(inner) for inner in node.value]
    return node.value


def test_words_are_those_of_yaml_1_2() -> None:
    node, problems = parse(
        "a: no\nb: 12:30\nc: 2026-01-31\nd: true\ne: 0o17\nf: 1e3\ng: ~\nh: '1'\ni: -7\nj: 012\nk: 0x1F\n"
    )
    assert problems == []
    assert node is not None
    assert plain(node) == {
        "a": "no", "b": "12:30", "c": "2026-01-31", "d": True, "e": 15, "f": 1000.0, "g": None, "h": "1",
        "i": -7, "j": 12, "k": 31,
    }  # fmt: skip


def test_special_numbers_are_numbers() -> None:
    assert yaml_file.resolve(".inf") == math.inf
    assert yaml_file.resolve("-.Inf") == -math.inf
    assert math.isnan(yaml_file.resolve(".nan"))  # type: ignore[arg-type]


def test_a_huge_number_is_no_whole_number() -> None:
    assert isinstance(yaml_file.resolve("9" * 5000), float)
    assert yaml_file.resolve("0x" + "f" * 5000) == "0x" + "f" * 5000


def test_every_value_has_its_line() -> None:
    node, _ = parse("a: 1\nb:\n  - x\n  - {c: 2}\n")
    assert node is not None
    assert isinstance(node.value, dict)
    b = node.value["b"].value
    assert isinstance(b, list)
    assert [item.line for item in b] == [3, 4]


def test_nothing_is_nothing() -> None:
    node, problems = parse("")
    assert node == Node(value=None, line=1)
    assert problems == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n", "f.yaml:2: duplicate key 'a' (first on line 1)"),
        ("a: &x 1\nb: *x\n", "f.yaml:1: anchors and aliases (& and *) are not allowed (write it out)"),
        ("a: !!python/object:os.system x\n", "f.yaml:1: tags are not allowed"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: more than one document"),
        ("a: [1, 2\nb: 3\n", "f.yaml:2: not YAML:"),
        ("a: 'open\n", "not YAML:"),
        ("\ta: 1\n", "f.yaml:1: not YAML:"),
        (b"a: \xff\xfe\n", "f.yaml:1: not UTF-8 (save it as UTF-8 text)"),
        (b"a: \x00\n", "not YAML:"),
        ("[" * 100, "f.yaml:1: nested deeper than 16 levels"),
        ("{a: " * 5000, "nested deeper than 16 levels"),
        ("? [1]\n: 2\n", "f.yaml:1: a key must be a string"),
        ("~: 2\n", "f.yaml:1: a key must be a string"),
        ("- 1\n" * 30_000, "more than 20000 values"),
        ("#" * 300_000, "f.yaml: larger than 256 KiB"),
        ("@: 1", "not YAML:"),
        ("%YAML 9.9\n---\na: 1\n", "not YAML:"),
    ],
)
def test_yaml_tricks_are_reported_with_their_line(text: str | bytes, said: str) -> None:
    _, problems = parse(text)
    assert len(problems) == 1
    assert said in problems[0]


def test_a_bomb_is_refused_at_its_first_anchor() -> None:
    bomb = "a: &a [x, x]\n" + "".join(
        f"{n}: &{n} [*{p}, *{p}]\n" for p, n in zip("abcdefgh", "bcdefghi", strict=True)
    )
    _, problems = parse(bomb)
    assert problems == ["f.yaml:1: anchors and aliases (& and *) are not allowed (write it out)"]


def test_a_mark_at_the_start_is_no_part_of_the_text() -> None:
    node, problems = parse("﻿a: 1\n".encode())
    assert problems == []
    assert node is not None
    assert plain(node) == {"a": 1}


def test_a_file_that_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(UnreadableFile, match=r"cannot read .*there-is-none"):
        yaml_file.contents(str(tmp_path / "there-is-none"))
