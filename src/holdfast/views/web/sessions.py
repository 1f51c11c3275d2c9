"""Who may talk to the server: one-time tokens, and the bearers they are exchanged for.

A token is shown on the terminal, in the fragment of an address, which browsers do not send. A page exchanges
it for a bearer and keeps that in its tab. Both live in the memory of the server alone, as hashes, and are
compared in constant time. There is no cookie: those are shared between the ports of a machine, and agents
start servers of their own.
"""

from __future__ import annotations

import hmac
import secrets
from hashlib import sha256

from holdfast import clock

#: Tokens and bearers that are kept; of more, the oldest is forgotten.
MAX_TOKENS, MAX_BEARERS = 16, 64
#: Life of a token that a page asked for, for another tab.
TAB_TOKEN_S = 60.0
_BYTES = 32


class Sessions:
    """The tokens and bearers of one server."""

    def __init__(self) -> None:
        #: Hash and end of each token.
        self._tokens: list[tuple[bytes, float]] = []
        self._bearers: list[bytes] = []

    def new_token(self, *, life_s: float = float("inf")) -> str:
        """A token that can be exchanged once."""
        token = secrets.token_urlsafe(_BYTES)
        self._tokens = [*self._tokens[1 - MAX_TOKENS :], (_hash(token), clock.mono() + life_s)]
        return token

    def exchange(self, token: str) -> str | None:
        """A bearer for a token, which is worth nothing afterwards; None for a wrong, old or used one."""
        known = _find(token, [hashed for hashed, _ in self._tokens])
        if known is None:
            return None
        _, ends_mono = self._tokens.pop(known)
        if clock.mono() > ends_mono:
            return None
        bearer = secrets.token_urlsafe(_BYTES)
        self._bearers = [*self._bearers[1 - MAX_BEARERS :], _hash(bearer)]
        return bearer

    def is_known(self, bearer: str) -> bool:
        """Whether a bearer was given out."""
        return _find(bearer, self._bearers) is not None


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


def _find(secret: str, hashes: list[bytes]) -> int | None:
    """The place of a secret. All hashes are compared: the time tells nothing."""
    hashed, found = _hash(secret), None
    for at, known in enumerate(hashes):
        if hmac.compare_digest(hashed, known):
            found = at
    return found
