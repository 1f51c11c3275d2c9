"""The security lens: a security review that runs in parallel to the other reviews. Pure.

With `security_lens: auto`, words in the goal, the request and the paths decide. A word too many costs one
call, so the list has no words that are in every request.
"""

from __future__ import annotations

import re

from holdfast.model.roles import split
from holdfast.pipeline.define.catalog_file import Batch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ROLE = "security_review"
#: Whole words, and beginnings of words. Parts of an identifier count as words: `loginForm`, `auth_token.py`.
WORDS = (
    "acl", "auth", "authn", "authz", "cors", "csrf", "eval", "exec", "hmac", "jwt", "ldap", "rbac", "saml",
    "setuid", "shell", "sql", "ssh", "ssl", "sso", "sudo", "tls", "token", "tokens", "xss",
)  # fmt: skip
BEGINNINGS = (
    "authenti", "authoriz", "authoris", "certificate", "cookie", "credential", "crypt", "decrypt", "deserial",
    "encrypt", "escap", "injection", "login", "oauth", "parser", "parsing", "passphrase", "passwd",
    "password", "permission", "pickle", "privilege",
    "sandbox", "sanitis", "sanitiz", "secret", "secur", "signature",
    "subprocess", "symlink", "traversal", "untrusted", "upload", "vulnerab",
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Lines of a diff that name its files.
_DIFF_LINE = re.compile(r"^(?:diff --git|---|\+\+\+) \S.*$", re.MULTILINE)


def security_words(text: str) -> tuple[str, ...]:
    """The words of a text that call for a security review, in order, without duplicates."""
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(text))
    return tuple(word for word in words if word in WORDS or word.startswith(BEGINNINGS))


def file_lines(diff: str) -> str:
    """The lines of a diff that name files. The rest is code, which is full of such words."""
    return "\n".join(_DIFF_LINE.findall(diff))


def arranged(batches: Sequence[Batch], agents: Collection[str], *, wanted: bool) -> tuple[Batch, ...]:
    """The batches with or without a security review.

    A security review of the profile stays where it is. Otherwise the agent of the first review plays it, in
    parallel to the last review.
    """
    parts = {stage: each for batch in batches for stage in batch.stages if (each := split(stage, agents))}
    roles = {stage: role for stage, (_, role) in parts.items()}
    if ROLE in roles.values():
        return tuple(batches) if wanted else tuple(_without(batches, roles))
    reviewers = [agent for agent, role in parts.values() if role == "review"]
    if not wanted or not reviewers:
        return tuple(batches)
    last = max(
        at for at, batch in enumerate(batches) if any(roles.get(stage) == "review" for stage in batch.stages)
    )
    joined = batches[last].evolve(stages=(*batches[last].stages, f"{reviewers[0]}_{ROLE}"), is_parallel=True)
    return (*batches[:last], joined, *batches[last + 1 :])


def _without(batches: Sequence[Batch], roles: dict[str, str]) -> list[Batch]:
    kept: list[Batch] = []
    for batch in batches:
        stages = tuple(stage for stage in batch.stages if roles.get(stage) != ROLE)
        kept += [batch.evolve(stages=stages)] if stages else []
    return kept
