"""The security lens: a review that looks for nothing but holes, added beside the others where it is wanted. Pure.

`security_lens: auto` reads what people wrote of the task, its paths and the paths of attached diffs, and looks for the words
below. It is a sieve, not a judgement: a word too many costs a call, so the list has no words that stand in every request.
"""

from __future__ import annotations

import re

from holdfast.model.roles import split
from holdfast.pipeline.define.catalog_file import Wave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

ROLE = "security_review"
#: Words, and in the second list how words begin. Parts of a name count as words: `loginForm`, `auth_token.py`.
WORDS = (
    "acl", "auth", "authn", "authz", "cors", "csrf", "eval", "exec", "hmac", "jwt", "ldap", "rbac", "saml", "setuid", "shell",
    "sql", "ssh", "ssl", "sso", "sudo", "tls", "token", "tokens", "xss",
)  # fmt: skip
BEGINNINGS = (
    "authenti", "authoriz", "authoris", "certificate", "cookie", "credential", "crypt", "decrypt", "deserial", "encrypt", "escap",
    "injection", "login", "oauth", "parser", "parsing", "passphrase", "passwd", "password", "permission", "pickle", "privilege",
    "sandbox", "sanitis", "sanitiz", "secret", "secur", "signature", "subprocess", "symlink", "traversal", "untrusted", "upload",
    "vulnerab",
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
#: Lines of a diff that name its files.
_DIFF_LINE = re.compile(r"^(?:diff --git|---|\+\+\+) \S.*$", re.MULTILINE)


def touched(text: str) -> tuple[str, ...]:
    """The words in a text for which a lens is wanted, each once, in their order."""
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(text))
    return tuple(word for word in words if word in WORDS or word.startswith(BEGINNINGS))


def paths_of(diff: str) -> str:
    """The lines of a diff that name files: what it changes is code, and code is full of such words."""
    return "\n".join(_DIFF_LINE.findall(diff))


def arranged(waves: Sequence[Wave], agents: Collection[str], *, wanted: bool) -> tuple[Wave, ...]:
    """The waves with the lens, or without it. A profile's own is kept where it stands; else the agent of the first review
    plays it, side by side with the last one."""
    roles = {stage: found for wave in waves for stage in wave.stages if (found := split(stage, agents))}
    if any(role == ROLE for _, role in roles.values()):
        return tuple(waves) if wanted else tuple(_without(waves, roles))
    reviewers = [agent for agent, role in roles.values() if role == "review"]
    if not wanted or not reviewers:
        return tuple(waves)
    last = max(
        at for at, wave in enumerate(waves) if any(roles.get(stage, ("", ""))[1] == "review" for stage in wave.stages)
    )  # fmt: skip
    beside = waves[last].evolve(stages=(*waves[last].stages, f"{reviewers[0]}_{ROLE}"), is_parallel=True)
    return (*waves[:last], beside, *waves[last + 1 :])


def _without(waves: Sequence[Wave], roles: dict[str, tuple[str, str]]) -> list[Wave]:
    left: list[Wave] = []
    for wave in waves:
        stages = tuple(stage for stage in wave.stages if roles.get(stage, ("", ""))[1] != ROLE)
        left += [wave.evolve(stages=stages)] if stages else []
    return left
