"""Triage: the class of a failure, and the signature that recognizes it again. Pure; the tables are the rules.

Three sources are used in this order: the outcome of the attempt, which its adapter derived from everything it
saw; the gate, which judges an attempt that reported success; and, for a bare exit status, the words on
stderr. If none of them matches, the failure is `unknown`, which is not `transient`.
"""

from __future__ import annotations

import re

from holdfast.model.names import Names
from holdfast.model.record import Record
from holdfast.pipeline.signature import signature


class FailureClass(Names):
    """What kind of failure it was."""

    TRANSIENT = "transient"
    PROMPT_TOO_LARGE = "prompt_too_large"
    AUTH = "auth"
    TOOLING = "tooling"
    SCOPE_VIOLATION = "scope_violation"
    CONTRACT_VIOLATION = "contract_violation"
    BUDGET = "budget"
    TIMEOUT = "timeout"
    UNKNOWN = "unknown"


class Failure(Record):
    """What is known of a failure."""

    stage: str
    role: str = ""
    agent: str = ""
    #: As in model/outcome.py, or one of ours: `timeout`, `budget`, `preflight_failed`, `prepare_failed`,
    #: `compose_failed`, `gate_broken`, `cannot_start` (a command of the gate)
    outcome: str
    detail: str = ""
    exit_code: int | None = None
    #: The beginning of stderr, redacted.
    stderr_excerpt: str = ""
    #: The check that did not pass; empty if there was no gate.
    gate_failed: str = ""
    gate_reasons: tuple[str, ...] = ()
    #: The program that the stage needs and that is not installed.
    missing_program: str = ""
    #: Taken out of the text before it is hashed.
    task_id: str = ""


class Triage(Record):
    """What a failure is, and what can be done about it."""

    failure_class: str
    signature: str
    #: The outcome that was judged: some of a class only have to wait.
    outcome: str = ""
    suggested_actions: tuple[str, ...] = ()
    #: A name of next_action.ACTIONS: what a person does when nothing more is tried.
    next_action: str = "read_log"


_C = FailureClass
#: Outcomes that determine the class. `failed`, `crashed` and outcomes of later versions do not.
BY_OUTCOME: dict[str, FailureClass] = {
    "rate_limit": _C.TRANSIENT,
    "quota": _C.TRANSIENT,
    "overloaded": _C.TRANSIENT,
    "network": _C.TRANSIENT,
    "server_error": _C.TRANSIENT,
    "empty_reply": _C.TRANSIENT,
    "truncated": _C.TRANSIENT,
    "hung": _C.TRANSIENT,
    "killed": _C.TRANSIENT,
    "interrupted": _C.TRANSIENT,
    "unknown_session": _C.TRANSIENT,
    "lost": _C.TRANSIENT,
    "void": _C.TRANSIENT,
    "context_too_long": _C.PROMPT_TOO_LARGE,
    "auth": _C.AUTH,
    "no_auth": _C.AUTH,
    "not_trusted": _C.AUTH,
    "spawn_failed": _C.TOOLING,
    "usage_error": _C.TOOLING,
    "invalid_request": _C.TOOLING,
    "model_not_found": _C.TOOLING,
    "prepare_failed": _C.TOOLING,
    "preflight_failed": _C.TOOLING,
    "compose_failed": _C.TOOLING,
    "gate_broken": _C.TOOLING,
    "cannot_start": _C.TOOLING,
    "max_turns": _C.BUDGET,
    "max_budget": _C.BUDGET,
    "budget": _C.BUDGET,
    "timeout": _C.TIMEOUT,
}

#: Checks of a gate; every other one is a broken contract.
BY_CHECK: dict[str, FailureClass] = {"scope": _C.SCOPE_VIOLATION}

#: Words on stderr, in this order. A number counts only if it is called a status: "line 401" is no reply of a
#: server.
BY_TEXT: tuple[tuple[FailureClass, str], ...] = (
    (
        _C.AUTH,
        r"(?:HTTP|status|code|error)\W{0,3}(?:code\W{0,3})?40[13]\b"
        r"|\b40[13] (?:unauthorized|forbidden)|\bunauthori[sz]ed\b"
        r"|invalid[_ ](?:x-)?api[_ -]?key|(?:incorrect|missing|no) api[_ -]?key"
        r"|authentication (?:failed|error|required)"
        r"|not logged in|please (?:log|sign) in|token (?:has |is )?expired",
    ),
    (
        _C.PROMPT_TOO_LARGE,
        r"prompt (?:is )?too (?:long|large)|(?:input|request) (?:is )?too (?:long|large)|request_too_large"
        r"|context[_ ](?:length|window)[_ ]?(?:limit )?exceed|maximum (?:context|prompt) length"
        r"|too many tokens"
        r"|token limit exceeded|exceeds? (?:the )?(?:model'?s )?(?:maximum )?(?:context|number of tokens)"
        r"|argument list too long|\bE2BIG\b",
    ),
    (
        _C.TRANSIENT,
        r"\bECONN(?:REFUSED|RESET|ABORTED)\b|\bETIMEDOUT\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bEPIPE\b"
        r"|connection (?:refused|reset|closed|aborted|timed out)|network (?:error|is unreachable|timeout)"
        r"|temporary failure in name resolution|could not resolve host|socket hang up|fetch failed"
        r"|premature close|(?:HTTP|status|code|error)\W{0,3}(?:code\W{0,3})?(?:429|5[0-3]\d)\b"
        r"|rate[_ -]?limit|too many requests|overloaded"
        r"|service unavailable|bad gateway|gateway time-?out|internal server error|tls handshake timeout",
    ),
    (
        _C.TOOLING,
        r"command not found|: not found$|no such file or directory|cannot find module|module ?not ?found"
        r"|modulenotfounderror"
        r"|is not recognized as|executable file not found|permission denied|\bENOENT\b|\bEACCES\b"
        r"|unknown (?:option|argument|flag|command)|unrecognized (?:option|argument)"
        r"|invalid (?:option|argument)"
        r"|unknown model|model[_ ]not[_ ]found",
    ),
)

#: What a person can do about each class, most likely first; and the name of it.
REMEDIES: dict[FailureClass, tuple[str, tuple[str, ...]]] = {
    _C.TRANSIENT: (
        "retry",
        (
            "Try again later: the service or the network failed, not the work.",
            "Check the network and the status of the service.",
        ),
    ),
    _C.PROMPT_TOO_LARGE: (
        "split_task",
        (
            "Split the task into smaller ones.",
            "Shorten inputs/context_pack.md and the attachments, or set context.digest_policy to aggressive.",
            "Choose a model with a larger context.",
        ),
    ),
    _C.AUTH: (
        "login",
        ("Log in to the agent, or renew its key.", "Then go on: nothing of the work is lost."),
    ),
    _C.TOOLING: (
        "install_tool",
        (
            "Install or repair the program that is missing or refuses its arguments.",
            "Check that the model's name is one the agent knows.",
        ),
    ),
    _C.SCOPE_VIOLATION: (
        "fix_scope",
        (
            "Look at the paths outside the scope: add them to scope.allow, or undo the changes.",
            "Say in the request which files may be changed.",
        ),
    ),
    _C.CONTRACT_VIOLATION: (
        "fix_contract",
        (
            "Read the gate's reasons: something that the stage owes is missing or does not hold.",
            "Tell the agent what is missing and run the stage again.",
        ),
    ),
    _C.BUDGET: ("raise_budget", ("Raise the budget that was used up.", "Or make the task smaller.")),
    _C.TIMEOUT: (
        "raise_time",
        (
            "Give the call more time (budgets.max_wallclock_sec).",
            "Or split the task, so that each call has less to do.",
        ),
    ),
    _C.UNKNOWN: (
        "read_log",
        (
            "Read the end of its output: no rule knows this failure.",
            "Try again if it looks like an accident.",
        ),
    ),
}
#: Failures of `tooling` in which no program is missing, but something else that the stage needs.
_OF_SETUP = frozenset(
    {
        "invalid_request",
        "model_not_found",
        "preflight_failed",
        "prepare_failed",
        "compose_failed",
        "gate_broken",
        "cannot_start",
    }
)
_SETUP = (
    "fix_setup",
    (
        "Read the reason: a file, a setting, the workspace or a model's name is not as the stage needs it.",
        "Put it right and go on: nothing of the work is lost.",
    ),
)


def remedy(
    failure_class: FailureClass, outcome: str, *, missing_program: str = ""
) -> tuple[str, tuple[str, ...]]:
    """What a person can do about a failure: the name of it, and sentences."""
    # The preflight finds missing programs, too.
    is_of_setup = outcome in _OF_SETUP and not missing_program
    is_of_setup = is_of_setup and failure_class is FailureClass.TOOLING
    return _SETUP if is_of_setup else REMEDIES[failure_class]


_BY_TEXT: list[tuple[FailureClass, re.Pattern[str]]] = []


def triage(facts: Failure) -> Triage:
    """The class, the signature and the remedies of a failure."""
    found = classify(facts)
    action, suggested = remedy(found, facts.outcome, missing_program=facts.missing_program)
    return Triage(
        failure_class=found,
        signature=_signature(facts),
        outcome=facts.outcome,
        suggested_actions=suggested,
        next_action=action,
    )


def classify(facts: Failure) -> FailureClass:
    """The class alone."""
    if facts.outcome in BY_OUTCOME:
        return BY_OUTCOME[facts.outcome]
    if facts.gate_failed:
        return BY_CHECK.get(facts.gate_failed, FailureClass.CONTRACT_VIOLATION)
    return _by_text(f"{facts.detail}\n{facts.stderr_excerpt}")


def _by_text(text: str) -> FailureClass:
    if not _BY_TEXT:  # compiled for the first failure, not for every start
        flags = re.IGNORECASE | re.MULTILINE
        _BY_TEXT.extend((found, re.compile(pattern, flags)) for found, pattern in BY_TEXT)
    return next((found for found, pattern in _BY_TEXT if pattern.search(text)), FailureClass.UNKNOWN)


def _signature(facts: Failure) -> str:
    """For a failed gate, from its reasons: the stderr of an agent that reported success has no part in it."""
    if facts.gate_failed and facts.outcome not in BY_OUTCOME:
        return signature(
            "\n".join(facts.gate_reasons),
            kind=f"gate {facts.stage} {facts.gate_failed}",
            task_id=facts.task_id,
        )
    text = facts.stderr_excerpt if facts.stderr_excerpt.strip() else facts.detail
    kind = facts.outcome if facts.exit_code is None else f"{facts.outcome} {facts.exit_code}"
    return signature(text, kind=kind, task_id=facts.task_id)
