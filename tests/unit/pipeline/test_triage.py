"""Failures are classified by outcome, then gate, then words on stderr; the class decides what follows."""

from __future__ import annotations

import re

import pytest

from holdfast.model import outcome
from holdfast.model.decision import Decision, Then
from holdfast.model.next_action import ACTIONS
from holdfast.model.status import Status
from holdfast.pipeline import triage as module
from holdfast.pipeline.failure_rules import RULES, Counts, after_failure
from holdfast.pipeline.triage import Failure, FailureClass, classify, triage
from tests.support import pages


def failure(kind: str = "failed", **facts: object) -> Failure:
    return Failure(**{"stage": "codex_impl", "agent": "codex", "outcome": kind, "exit_code": 1, **facts})  # type: ignore[arg-type]


# ── classes ──


@pytest.mark.req("GAT-7", "W-B2")
@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("network", "transient"),
        ("rate_limit", "transient"),
        ("killed", "transient"),
        ("context_too_long", "prompt_too_large"),
        ("auth", "auth"),
        ("no_auth", "auth"),
        ("spawn_failed", "tooling"),
        ("model_not_found", "tooling"),
        ("gate_broken", "tooling"),
        ("max_budget", "budget"),
        ("budget", "budget"),
        ("timeout", "timeout"),
    ],
)
def test_a_typed_outcome_is_believed_whatever_else_is_said(kind: str, found: str) -> None:
    misleading = "HTTP 401 unauthorized: command not found, connection refused"
    assert classify(failure(kind, stderr_excerpt=misleading, exit_code=124)) == found


def test_every_outcome_that_is_a_failure_has_a_class_or_leaves_it_to_the_words() -> None:
    known = outcome.MUST_WAIT | outcome.NEEDS_PERSON | outcome.FINAL | outcome.NEEDS_FRESH_SESSION
    known |= outcome.BLAMELESS | outcome.RESUMABLE
    assert known - module.BY_OUTCOME.keys() == {"failed", "crashed"}
    assert not outcome.SUCCESS & module.BY_OUTCOME.keys()


@pytest.mark.req("GAT-7")
@pytest.mark.parametrize(
    ("check", "found"),
    [("scope", "scope_violation"), ("headings", "contract_violation"), ("acceptance", "contract_violation")],
)
def test_a_gate_that_did_not_pass(check: str, found: str) -> None:
    assert classify(failure("success", gate_failed=check, stderr_excerpt="401 Unauthorized")) == found


@pytest.mark.req("GAT-7")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("HTTP 401: who are you", "auth"),
        ("API error: status code 403", "auth"),
        ("Error: Invalid API key", "auth"),
        ("Please log in first", "auth"),
        ("the prompt is too long: 213000 tokens > 200000", "prompt_too_large"),
        ("context_length_exceeded", "prompt_too_large"),
        ("bash: Argument list too long", "prompt_too_large"),
        ("connect ECONNREFUSED 127.0.0.1:1", "transient"),
        ("Error: socket hang up", "transient"),
        ("HTTP/1.1 status: 503", "transient"),
        ("Rate limit reached", "transient"),
        ("sh: 1: codex: not found", "tooling"),
        ("ModuleNotFoundError: No module named 'x'", "tooling"),
        ("error: unknown option '--fast'", "tooling"),
        ("Segmentation fault", "unknown"),
        ("AssertionError at line 401 of 503", "unknown"),
        ("I found the authentication module", "unknown"),
        ("", "unknown"),
    ],
)
def test_words_decide_where_nothing_else_does(text: str, found: str) -> None:
    for kind in ("failed", "crashed", "an outcome of a later version"):
        assert classify(failure(kind, stderr_excerpt=text)) == found


@pytest.mark.req("GAT-7", "W-B4")
@pytest.mark.parametrize("code", [1, 2, 10, 13, 31, 77, 124, 127, 142])
def test_an_exit_status_alone_means_nothing(code: int) -> None:
    assert triage(failure(exit_code=code)).failure_class == "unknown"


def test_every_class_has_remedies_and_a_rule() -> None:
    assert set(module.REMEDIES) == set(RULES) == set(FailureClass)
    for found, (action, suggested) in module.REMEDIES.items():
        assert action in ACTIONS, found
        assert suggested


@pytest.mark.req("GAT-9", "GAT-10")
def test_a_triage_says_class_signature_and_what_to_do() -> None:
    found = triage(failure("auth", detail="401"))
    assert found.failure_class == "auth"
    assert re.fullmatch(r"[0-9a-f]{16}", found.signature)
    assert found.next_action == "login"
    assert found.suggested_actions


# ── signatures ──


@pytest.mark.req("W-B4", "GAT-8")
def test_gate_failures_without_stderr_do_not_share_a_signature() -> None:
    def of(check: str, *reasons: str, **facts: object) -> str:
        return triage(failure("success", gate_failed=check, gate_reasons=reasons, **facts)).signature

    signatures = {
        of("headings", "missing heading: Summary"),
        of("headings", "missing heading: Risks"),
        of("scope", "missing heading: Summary"),
        of("headings", "missing heading: Summary", stage="gemini_brief"),
        of("headings"),
        of("patch"),
    }
    assert len(signatures) == 6
    assert of("headings", "no Summary") == of("headings", "no Summary", stderr_excerpt="other words")


def test_the_same_words_after_another_end_are_another_failure() -> None:
    words = {"stderr_excerpt": "it broke"}
    ends = [failure("crashed", **words), failure("killed", **words), failure("failed", exit_code=2, **words)]
    assert len({triage(each).signature for each in ends}) == 3


def test_without_stderr_the_detail_counts() -> None:
    one = triage(failure(detail="exit status 1: no disk", stderr_excerpt=" \n"))
    other = triage(failure(detail="exit status 1: no memory"))
    assert one.signature != other.signature


def test_the_same_failure_in_another_stage_has_the_same_signature() -> None:
    one, other = failure(stderr_excerpt="no route"), failure(stderr_excerpt="no route", stage="gemini_brief")
    assert triage(one).signature == triage(other).signature


# ── what follows ──


def follow(kind: str, seen: int = 0, retry_budget: int = 2, **options: object):  # type: ignore[no-untyped-def]
    facts = failure(kind) if kind not in ("scope", "headings") else failure("success", gate_failed=kind)
    counts = Counts(seen=seen, retry_budget=retry_budget, **{"calls_left": 5, **options})  # type: ignore[arg-type]
    then = Then.WAIT if kind in outcome.MUST_WAIT else Then.RETRY
    return after_failure(
        Decision(then=then, status=Status.CRASHED, reason="it failed"), triage(facts), counts
    )


@pytest.mark.req("GAT-9")
@pytest.mark.parametrize(
    ("kind", "then", "pause_s"),
    [
        ("network", Then.RETRY, 5.0),
        ("context_too_long", Then.RETRY, 0.0),
        ("auth", Then.ASK, 0.0),
        ("usage_error", Then.END, 0.0),
        ("scope", Then.END, 0.0),
        ("headings", Then.END, 0.0),
        ("budget", Then.ASK, 0.0),
        ("timeout", Then.RETRY, 0.0),
        ("failed", Then.RETRY, 5.0),
        ("rate_limit", Then.WAIT, 0.0),
        ("quota", Then.WAIT, 0.0),
    ],
)
def test_the_first_time(kind: str, then: Then, pause_s: float) -> None:
    found = follow(kind)
    assert (found.then, found.pause_s) == (then, pause_s)
    assert found.reason


@pytest.mark.req("GAT-9", "BUD-3", "W-B4")
@pytest.mark.parametrize(
    ("kind", "retry_budget", "retries", "at_last"),
    [
        ("network", 2, 2, Then.END),
        ("network", 5, 5, Then.END),
        ("network", 0, 0, Then.END),
        ("failed", 5, 1, Then.END),
        ("failed", 0, 0, Then.END),
        ("context_too_long", 5, 1, Then.END),
        ("context_too_long", 0, 0, Then.END),
        ("timeout", 2, 2, Then.ASK),
        ("auth", 5, 0, Then.ASK),
        ("usage_error", 5, 0, Then.END),
        ("scope", 5, 0, Then.END),
        ("headings", 5, 0, Then.END),
    ],
)
def test_retries_of_one_signature_are_capped(
    kind: str, retry_budget: int, retries: int, at_last: Then
) -> None:
    said = [follow(kind, seen, retry_budget).then for seen in range(8)]
    tries = [then for then in said if then is Then.RETRY]
    assert len(tries) == retries
    assert said[retries:] == [at_last] * (8 - retries)


def test_a_prompt_that_was_too_large_is_made_smaller_in_a_new_session() -> None:
    assert follow("context_too_long").fresh_session
    assert not follow("network").fresh_session
    assert RULES[FailureClass.PROMPT_TOO_LARGE].with_digest


@pytest.mark.req("BUD-3")
def test_a_limit_of_the_service_burns_no_retry() -> None:
    assert follow("rate_limit", seen=100, retry_budget=0).then is Then.WAIT


@pytest.mark.req("W-B2")
def test_a_timeout_ends_as_a_timeout() -> None:
    assert follow("timeout", seen=2, on_limit="end").status is Status.TIMEOUT
    assert follow("timeout", seen=2, on_limit="end").then is Then.END
    assert follow("network", seen=2).status is Status.FAILED


@pytest.mark.parametrize("kind", ["network", "failed", "context_too_long", "timeout", "rate_limit"])
def test_nothing_is_tried_again_without_a_paid_call_left(kind: str) -> None:
    found = follow(kind, calls_left=0)
    assert found.then is Then.ASK
    assert "paid_call_budget" in found.reason
    assert follow(kind, calls_left=0, on_limit="end").then is Then.END
    assert follow(kind, calls_left=None).then not in (Then.ASK, Then.END)


def test_a_person_is_asked_to_log_in_even_where_limits_end_the_task() -> None:
    assert follow("auth", on_limit="end").then is Then.ASK


@pytest.mark.parametrize(
    ("outcome", "action"),
    [
        ("spawn_failed", "install_tool"),
        ("usage_error", "install_tool"),
        ("prepare_failed", "fix_setup"),
        ("preflight_failed", "fix_setup"),
        ("compose_failed", "fix_setup"),
        ("gate_broken", "fix_setup"),
        ("model_not_found", "fix_setup"),
    ],
)
def test_only_where_a_program_is_missing_is_one_to_be_installed(outcome: str, action: str) -> None:
    found = module.triage(module.Failure(stage="codex_impl", outcome=outcome))
    assert (found.failure_class, found.next_action) == ("tooling", action)
    assert f"`{outcome}`" in page()


def test_a_missing_program_is_known_as_one_and_not_by_the_words_of_the_reason() -> None:
    failure = module.Failure(stage="codex_impl", outcome="preflight_failed", detail="no such program")
    assert module.triage(failure.evolve(missing_program="codex")).next_action == "install_tool"
    quoted = failure.evolve(detail="the bootstrap 'is not installed' cannot be read")
    assert module.triage(quoted).next_action == "fix_setup"


# ── the page ──


def page() -> str:
    return pages.read("docs/reference/triage.md")


def rows(heading: str) -> dict[str, list[str]]:
    part = page().split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^\| `([a-z_]+)` \|(.*)\|$", part, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in found}


def test_the_page_has_every_class_with_its_outcomes_and_its_rule() -> None:
    table = rows("Classes")
    assert list(table) == list(FailureClass)
    for name, (outcomes, first, tries, at_last, action) in table.items():
        rule = RULES[FailureClass(name)]
        assert set(re.findall(r"`(\w+)`", outcomes)) == {
            kind for kind, found in module.BY_OUTCOME.items() if found == name
        }, name
        assert first == f"`{rule.then}`", name
        assert tries == ("retry_budget" if rule.tries is None else str(rule.tries)), name
        assert at_last == f"`{rule.at_last}`", name
        assert action == f"`{module.REMEDIES[FailureClass(name)][0]}`", name


def test_the_page_has_every_next_action_with_its_commands() -> None:
    table = rows("Next action")
    assert list(table) == list(ACTIONS)
    for name, (means, command, then) in table.items():
        assert means == ACTIONS[name].means, name
        commands = [f"`{step.command}`" for step in ACTIONS[name].steps]
        assert [cell for cell in (command, then) if cell] == commands, name


def test_the_page_names_everything_that_a_signature_leaves_out() -> None:
    from holdfast.pipeline.signature import NORMALISED

    for name, _ in NORMALISED:
        assert name in page(), name
