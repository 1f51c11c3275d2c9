"""Sources of work items: output of tools, files, folders; and the errors for anything else.

The samples in tests/captures/sources have the fields that `gh issue list --json`, `bd ready --json` and
`gt ready --json` print, with invented contents.
"""

from __future__ import annotations

import json
import os
import pathlib
import time

import pytest

from holdfast.errors import CommandNotFound, NotPossible, UnreadableFile, UsageError
from holdfast.queue import sources
from holdfast.queue.engine import weights
from holdfast.queue.sources import beads, folder, github, lines, run
from holdfast.queue.work_item import WorkItem, from_json, parse_time, task_id

SAMPLES = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "captures", "sources")


def sample(name: str) -> bytes:
    with open(os.path.join(SAMPLES, name), "rb") as file:
        return file.read()


def program(folder: str, name: str, script: str) -> None:
    """An executable in a folder of PATH."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(path, 0o755)


def brief(found: list[WorkItem]) -> list[tuple[str, int]]:
    return [(work.task_id, work.priority) for work in found]


# ── gh ──


@pytest.mark.req("QUE-1")
def test_issues_become_items_with_the_priority_of_their_labels() -> None:
    found = github.parse(sample("gh-issue-list.json"), "label=agent")
    assert brief(found) == [("gh-123", 10), ("gh-98", 5), ("gh-7", 1)]
    assert found[0].prompt == (
        "Tests fail without git\n\n`make test` fails on a machine without git.\n\n"
        "1. remove git\n2. run `make test`\n\n"
        "https://github.com/ada/engine/issues/123"
    )
    assert found[1].title == "Say “hello” in the README"


def test_an_issue_of_a_named_repository_has_its_name_in_the_id() -> None:
    found = github.parse(sample("gh-issue-list.json"), "label=agent,repo=ada/engine")
    assert found[0].task_id == "gh-ada-engine-123"
    argv = github.argv("label=agent,repo=ada/engine", most=20)
    assert argv[:3] == ["gh", "issue", "list"]
    assert argv[argv.index("--limit") + 1] == "20"
    assert argv[argv.index("--label") + 1] == "agent"
    assert argv[argv.index("--repo") + 1] == "ada/engine"


@pytest.mark.parametrize("rest", ["colour=red", "label", "label="])
def test_an_unknown_option_of_gh_is_reported(rest: str) -> None:
    with pytest.raises(UsageError, match="unknown option"):
        github.argv(rest, most=1)


@pytest.mark.parametrize("raw", [b"[1]", b'[{"title": "x"}]', b"[null]"])
def test_an_invalid_issue_is_reported(raw: bytes) -> None:
    with pytest.raises(UsageError, match="not an issue"):
        github.parse(raw, "label=agent")


# ── beads ──


def test_ready_beads_become_items_and_epics_do_not() -> None:
    found = beads.parse(sample("bd-ready.json"), "bd")
    assert brief(found) == [("engine-a3f8", 10), ("engine-c77e.1", 20)]
    assert found[0].prompt == (
        "Parse the header\n\nThe header has two forms.\n\n## Design\n\nOne function for each form.\n\n"
        "## Acceptance criteria\n\nBoth forms of tests/data parse."
    )


def test_a_town_has_more_than_one_source_and_an_order_of_rigs() -> None:
    assert brief(beads.parse(sample("gt-ready.json"), "gt")) == [("hq-12", 5), ("en-1", 5)]
    assert brief(beads.parse(sample("gt-ready.json"), "gt", rigs="engine,town")) == [
        ("en-1", 5),
        ("hq-12", 5),
    ]
    assert brief(beads.parse(sample("gt-ready.json"), "gt", rigs="engine")) == [("en-1", 5)]


def test_nothing_ready_is_nothing() -> None:
    for raw in (b"[]", b"null", b"", b'{"sources": []}'):
        assert beads.parse(raw, "bd") == []


@pytest.mark.parametrize("raw", [b"no beads here", b"3", b'{"error": "x"}', b"[3]"])
def test_an_invalid_list_of_beads_is_reported(raw: bytes) -> None:
    with pytest.raises(UsageError):
        beads.parse(raw, "bd")


# ── json ──


@pytest.mark.parametrize(
    "raw",
    [
        b'[{"id": "a", "title": "A"}, {"id": "b", "title": "B", "priority": "high"}]',
        b'{"items": [{"id": "a", "title": "A"}, {"id": "b", "title": "B", "priority": 10}]}',
        b'{"id": "a", "title": "A"}\n\n{"id": "b", "title": "B", "priority": "10"}\n',
    ],
)
def test_a_list_an_object_with_a_list_or_an_item_a_line(raw: bytes) -> None:
    assert brief(lines.parse(raw, source="x")) == [("a", 5), ("b", 10)]


def test_one_object_is_one_item() -> None:
    (work,) = lines.parse(b'{"id": "a", "body": "do it", "after": ["b", "c"], "pool": "p"}', source="x")
    assert (work.title, work.prompt, work.after, work.pool) == ("a", "do it", ("b", "c"), "p")


def test_what_is_closed_or_in_progress_is_passed_over() -> None:
    raw = (
        b'[{"id": "a", "status": "closed"}, {"id": "b", "status": "in_progress"}, '
        b'{"id": "c", "status": "ready"}]'
    )
    assert brief(lines.parse(raw, source="x")) == [("c", 5)]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"id": "a"}\nnot json\n', "line 2"),
        (b"3", "no items"),
        (b"[3]", "item 1"),
        (b"[{}]", "needs an id or a title"),
        (b'[{"id": "a", "priority": "soon"}]', "priority"),
        (b'[{"id": "a", "title": []}]', "title must be a string"),
        (b'[{"id": "a", "after": 3}]', "list of ids"),
        (b'[{"id": "a", "command": 3}]', "command"),
        (b'[{"id": "a", "not_before": "tomorrow"}]', "not a time"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_bad_input_is_reported_with_its_position(raw: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        lines.parse(raw, source="x")


# ── folders ──


def test_a_folder_of_markdown_is_one_item_a_file(tmp_path: os.PathLike[str]) -> None:
    files = {
        "010-parser.md": "---\ntitle: Write the parser\npriority: high\nagent: claude\n"
        "after: [020-lexer]\n---\n\nAll of it.\n",
        "020-lexer.md": "# The lexer\n\nTwo forms.\n",
        "notes.txt": "nothing",
        ".hidden.md": "nothing",
    }
    for name, text in files.items():
        with open(os.path.join(tmp_path, name), "w", encoding="utf-8") as file:
            file.write(text)
    parser, lexer = folder.read(str(tmp_path))
    assert (parser.task_id, parser.title, parser.prompt) == ("010-parser", "Write the parser", "All of it.")
    assert (parser.priority, parser.agent, parser.after) == (10, "claude", ("020-lexer",))
    assert (lexer.task_id, lexer.title, lexer.prompt) == (
        "020-lexer",
        "The lexer",
        "# The lexer\n\nTwo forms.",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntitle: [\n---\nx", "item.md:"),
        ("---\njust words\n---\nx", "no `name: value` lines"),
        ("---\na: 1\na: 2\n---\n", "item.md:3"),
    ],
)
def test_bad_front_matter_is_reported_with_its_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        folder.parse(text.encode(), "item.md")


def test_front_matter_may_have_maps() -> None:
    head = b"---\noptions: {scenario: /x/ok.json}\nvariables:\n  NAME: Ada\n  COUNT: 2\n---\nDo it."
    work = folder.parse(head, "item.md")
    assert work is not None
    assert (work.options, work.variables) == (("scenario=/x/ok.json",), ("NAME=Ada", "COUNT=2"))


@pytest.mark.parametrize("name", ["title", "priority", "agent", "command", "accept", "after", "not_before"])
@pytest.mark.parametrize("value", ["{a: b}", "{a: {b: [c]}}", ".inf"])
def test_a_wrong_value_in_one_file_does_not_stop_the_others(
    name: str, value: str, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "bad.md").write_text(f"---\n{name}: {value}\n---\nx", encoding="utf-8")
    (tmp_path / "good.md").write_text("Do it.", encoding="utf-8")
    wrong: list[str] = []
    assert folder.read(str(tmp_path), wrong=wrong)[-1].task_id == "good"
    assert all("bad.md" in each for each in wrong)


def test_a_rule_that_is_never_closed_is_no_front_matter() -> None:
    work = folder.parse(b"---\nan introduction\n", "item.md")
    assert work is not None
    assert work.prompt == "---\nan introduction"


# ── ids and times ──


@pytest.mark.parametrize(
    ("key", "prefix", "expected"),
    [
        ("123", "gh-", "gh-123"),
        ("a/b#3", "", "a-b-3"),
        ("../../etc", "", "etc"),
        ("x" * 99, "", "x" * 64),
        ("…", "", "item"),
    ],
)
def test_an_id_is_the_same_for_the_same_key_and_safe(key: str, prefix: str, expected: str) -> None:
    assert task_id(key, prefix) == expected


def test_a_time_is_absolute_or_from_now() -> None:
    assert parse_time("+90m", now=0.0) == "1970-01-01T01:30:00.000Z"
    assert parse_time("2026-01-31T12:00:00Z", now=0.0) == "2026-01-31T12:00:00.000Z"
    for text in ("noon", "+", "2026-13", ""):
        with pytest.raises(ValueError):
            parse_time(text, now=0.0)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31T12:00:00+02:00", "2026-01-31T10:00:00.000Z"),
        ("2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500Z"),
        ("2026-01-31", "2026-01-31T02:00:00.000Z"),
        ("2026-01-31T12:00", "2026-01-31T14:00:00.000Z"),
    ],
)
def test_a_time_may_have_an_offset_or_be_that_of_the_clock_here(
    text: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "XYZ+2")
    time.tzset()
    try:
        assert parse_time(text, now=0.0) == at
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text", ["2026-02-30T00:00:00Z", "2026-01-31T25:00:00Z", "2026-01-31T12:00:00Zulu", "9999999"]
)
def test_a_time_that_no_calendar_has_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        parse_time(text, now=0.0)


@pytest.mark.parametrize(
    "item", [{"command": "a\0b"}, {"command": ["a", "b\0"]}, {"prompt": "\0"}, {"options": {"a": "\0"}}]
)
def test_a_nul_is_refused(item: dict) -> None:
    with pytest.raises(UsageError, match="NUL"):
        from_json({"id": "a", **item}, source="x", where="x")


def test_a_command_may_be_a_line_for_the_shell() -> None:
    work = from_json({"id": "a", "command": "make && make test"}, source="x", where="x")
    assert work is not None
    assert work.command == ["sh", "-c", "make && make test"]


# ── running ──


@pytest.mark.starts_processes
def test_sources_are_read_by_their_names(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    bin_dir, here = os.path.join(tmp_path, "bin"), os.path.join(tmp_path, "project")
    os.mkdir(here)
    for name, recording in (("gh", "gh-issue-list"), ("bd", "bd-ready"), ("gt", "gt-ready")):
        program(bin_dir, name, f'echo "$@" > {here}/asked; cat {os.path.abspath(SAMPLES)}/{recording}.json')
    monkeypatch.setenv("PATH", f"{bin_dir}:/usr/bin:/bin")
    assert brief(sources.read("gh:label=agent", project=here).works) == [
        ("gh-123", 10),
        ("gh-98", 5),
        ("gh-7", 1),
    ]
    with open(os.path.join(here, "asked"), encoding="utf-8") as file:
        assert (
            file.read()
            == "issue list --state open --limit 100 --json number,title,body,labels,url --label agent\n"
        )
    assert brief(sources.read("bd:", project=here).works) == [("engine-c77e.1", 20), ("engine-a3f8", 10)]
    assert brief(sources.read("gt:", project=here, most=1).works) == [("hq-12", 5)]
    assert brief(sources.read('cmd:echo \'{"id": "a"}\'', project=here).works) == [("a", 5)]


@pytest.mark.starts_processes
@pytest.mark.req("QUE-5")
def test_a_program_is_asked_for_more_where_its_first_answer_is_known(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bin_dir, here = os.path.join(tmp_path, "bin"), os.path.join(tmp_path, "project")
    os.mkdir(here)
    said = 'head -n "$6" all | { printf "["; paste -sd, -; printf "]"; }'
    program(bin_dir, "gh", f'cd {here}; echo "$6" >> asked; {said}')
    with open(os.path.join(here, "all"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"number": n, "title": "t"}) + "\n" for n in range(1, 31))
    monkeypatch.setenv("PATH", f"{bin_dir}:/usr/bin:/bin")
    known: set[str] = set()
    for expected, left in ((range(1, 11), 0), (range(11, 21), 10), (range(21, 31), 0), ((), 0)):
        found = sources.read("gh:", project=here, most=10, is_known=known.__contains__)
        assert [work.task_id for work in found.works] == [f"gh-{n}" for n in expected]
        assert found.left == left
        known |= {work.task_id for work in found.works}
    with open(os.path.join(here, "asked"), encoding="utf-8") as file:
        assert file.read().split() == ["10", "10", "40", "10", "40", "10", "40"]


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("source", "said"), [("gh:label=x", "gh auth login"), ("bd:", "beads"), ("gt:", "Gas Town")]
)
def test_a_tool_that_is_missing_is_named_with_a_cure(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandNotFound, match=f"{source.partition(':')[0]} is not installed") as caught:
        sources.read(source, project=str(tmp_path))
    assert said in caught.value.hint


@pytest.mark.starts_processes
def test_a_tool_that_fails_or_hangs_is_reported(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(NotPossible, match="failed with exit status 4: not logged in"):
        run.output(["sh", "-c", "echo not logged in >&2; exit 4"], cwd=str(tmp_path))
    with pytest.raises(NotPossible, match="did not finish"):
        run.output(["sh", "-c", "sleep 60 & wait"], cwd=str(tmp_path), limit_s=0.2)


@pytest.mark.starts_processes
def test_a_tool_that_prints_without_end_is_stopped(
    tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_MAX_BYTES", 1024 * 1024)
    with pytest.raises(NotPossible, match="sh prints more than 1 MiB"):
        run.output(["sh", "-c", "yes & yes >&2"], cwd=str(tmp_path))
    with open(os.path.join(tmp_path, "much"), "wb") as file:
        file.truncate(1024 * 1024 + 1)
    with pytest.raises(UnreadableFile, match="more than 1 MiB"):
        run.contents(os.path.join(tmp_path, "much"))


def test_an_unknown_source_is_reported(tmp_path: os.PathLike[str]) -> None:
    with pytest.raises(UsageError, match="no such file"):
        sources.read("nowhere.json", project=str(tmp_path))
    with pytest.raises(UnreadableFile):
        run.contents(os.path.join(tmp_path, "nowhere"))


# ── weights and order ──


@pytest.mark.req("QUE-5")
def test_words_for_a_priority_weigh_what_the_settings_say() -> None:
    heavy = weights(["high=100", "low=2", "tomorrow=3"])
    assert heavy == {"high": 100, "medium": 5, "low": 2, "tomorrow": 3}
    assert brief(github.parse(sample("gh-issue-list.json"), "label=agent", weights=heavy)) == [
        ("gh-123", 100),
        ("gh-98", 5),
        ("gh-7", 2),
    ]
    assert brief(beads.parse(sample("bd-ready.json"), "bd", weights=heavy))[1] == ("engine-c77e.1", 200)
    raw = b'[{"id": "a", "priority": "Tomorrow"}, {"id": "b", "priority": 7}, {"id": "c"}]'
    assert brief(lines.parse(raw, source="x", weights=heavy)) == [("a", 3), ("b", 7), ("c", 5)]


@pytest.mark.req("QUE-5")
def test_equally_urgent_items_go_by_the_order_of_their_projects(tmp_path: os.PathLike[str]) -> None:
    items = [
        {"id": "far", "project": "/code/other"},
        {"id": "rig", "rig": "engine"},
        {"id": "own", "project": "/code/site/"},
        {"id": "urgent", "priority": "high", "project": "/code/other"},
    ]
    path = os.path.join(tmp_path, "items.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(items, file)
    found = sources.read(path, project="/", projects=["site", "engine"])
    assert [work.task_id for work in found.works] == ["urgent", "own", "rig", "far"]
    assert [work.task_id for work in sources.read(path, project="/", most=2).works] == ["urgent", "far"]


@pytest.mark.req("QUE-5")
def test_beads_of_a_town_know_their_rig() -> None:
    assert [work.rig for work in beads.parse(sample("gt-ready.json"), "gt")] == ["town", "engine"]
