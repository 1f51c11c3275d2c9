"""The security lens: when it is added, and where."""

from __future__ import annotations

import os
from typing import Any

import pytest

from holdfast.pipeline.define import security_lens, written_packet
from tests.support.manifests import put, resolved, stages, valid, write

OPTION = "routing.pipeline.options.security_lens"


def lens(intent: str, mode: str, **more: Any) -> dict[str, Any]:
    data = put(valid(intent), OPTION, mode)
    for path, value in more.items():
        data = put(data, path.replace("__", "."), value)
    return data


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mend the loginForm", ("login",)),
        ("src/auth_token.py", ("auth", "token")),
        ("parse HTTPAuth headers, TLS only", ("auth", "tls")),
        ("the author tokenizes shellfish", ()),
        ("Login, login, LOGIN", ("login",)),
        ("", ()),
    ],
)
def test_words_are_seen_in_names_and_not_inside_others(text: str, words: tuple[str, ...]) -> None:
    assert security_lens.security_words(text) == words


@pytest.mark.req("PIP-13")
@pytest.mark.parametrize(
    ("intent", "found"),
    [
        ("review_only", [("gemini_review", "parallel-1"), ("gemini_security_review", "parallel-1")]),
        (
            "review_cross",
            [
                ("gemini_review", None),
                ("codex_review", "parallel-1"),
                ("gemini_security_review", "parallel-1"),
                ("copilot_review_consolidate", None),
            ],
        ),
    ],
)
def test_it_runs_beside_the_last_review(intent: str, found: list[tuple[str, str | None]]) -> None:
    result, problems = resolved(lens(intent, "always"))
    assert problems == {}
    assert result is not None
    assert [(stage.name, stage.group) for stage in result.stages] == found
    assert not any(stage.writes for stage in result.stages)
    assert stages(lens(intent, "off")) == stages(valid(intent))


@pytest.mark.req("PIP-13")
@pytest.mark.parametrize(
    ("more", "is_there"),
    [
        ({}, False),
        ({"goal": "reset a forgotten password"}, True),
        ({"scope__allow": ["src/login/"]}, True),
        ({"acceptance__criteria": ["input is sanitized"]}, True),
        ({"scope__deny": ["secrets/"]}, False),
    ],
)
def test_auto_is_decided_by_what_the_task_touches(more: dict[str, Any], is_there: bool) -> None:
    result, _ = resolved(lens("review_only", "auto", **more))
    assert result is not None
    assert ("gemini_security_review" in [stage.name for stage in result.stages]) == is_there
    assert ("security_lens" in result.sources) == is_there


@pytest.mark.req("PIP-13")
def test_auto_reads_the_request_and_the_paths_of_diffs(tmp_path: object) -> None:
    def names(request: str, diff: str = "") -> list[str]:
        folder = write(
            os.path.join(str(tmp_path), "p"),
            lens("review_only", "auto", project=str(tmp_path)),
            request=request,
        )
        with open(
            os.path.join(folder, "inputs", "attachments", "change.diff"), "w", encoding="utf-8"
        ) as file:
            file.write(diff)
        return [stage.name for stage in written_packet.read(folder).resolved.stages]

    assert names("look at it") == ["gemini_review"]
    assert names("look at the login") == ["gemini_review", "gemini_security_review"]
    code = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-password\n+token\n"
    assert names("look at it", code.format("src/x.py")) == ["gemini_review"]
    assert names("look at it", code.format("src/crypto.py")) == ["gemini_review", "gemini_security_review"]


def test_a_flag_and_the_lack_of_a_review_are_heeded() -> None:
    off = put(lens("safe_impl", "always"), "routing.pipeline.flags.enable_review", False)
    assert stages(off) == ["gemini_brief", "codex_impl", "codex_verify"]
    _, problems = resolved(lens("one_shot_impl", "always"))
    assert "has no review for it to run beside" in problems[OPTION]
    _, problems = resolved(lens("review_only", "sometimes"))
    assert "allowed: off, auto, always" in problems[OPTION]


def test_a_profile_with_its_own_lens_keeps_it(tmp_path) -> None:
    from tests.unit.pipeline.define.test_resolve import with_project

    text = "version: 1\npipeline: review\nprofiles: {ours: {stages: [pi_security_review, gemini_review]}}\n"
    found = with_project(tmp_path, pipelines_ours=text)
    ours = put(valid("review_only"), "routing.pipeline.profile", "ours")
    assert stages(ours, found) == ["pi_security_review", "gemini_review"]
    assert stages(put(ours, OPTION, "always"), found) == ["pi_security_review", "gemini_review"]
    assert stages(put(ours, OPTION, "off"), found) == ["gemini_review"]
    assert stages(put(ours, OPTION, "auto"), found) == ["gemini_review"]
