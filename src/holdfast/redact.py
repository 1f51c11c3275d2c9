"""Redaction: what leaves a process goes through here.

Two kinds of secret are masked: the exact values of environment variables that look secret (they catch what no pattern
can), and well-known token shapes. A Redactor is made once per runner. Its one pattern is cheap per line but takes
milliseconds to compile, so that waits for the first line: by then the agent runs.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"
_SECRET_NAME = (
    r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|CREDENTIAL)S?$|(^|_)AUTH(_|$)|^DATABASE_URL$|(^|_)DSN$"
)
_SHAPES = (
    r"sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"xox[abprs]-[A-Za-z0-9-]{10,}",
    r"AKIA[0-9A-Z]{16}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)",
    r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{12,}=*",
    r"(?i:(?<=password=)|(?<=passwd=)|(?<=secret=)|(?<=api_key=)|(?<=apikey=)|(?<=access_token=))[^\s&\"']{4,}",
)
#: A shorter value would mask ordinary words.
_SHORTEST = 8


class Redactor:
    """Masks the secrets of one task."""

    def __init__(self, env: dict[str, str], secret_names: Iterable[str] = ()) -> None:
        self._env = env
        #: Variables that were declared for the task: whoever names one means to hand over something of their own.
        self._secret_names = frozenset(secret_names)
        self._pattern: re.Pattern[str] | None = None

    def __call__(self, text: str) -> str:
        """`text` without secrets."""
        if self._pattern is None:
            self._pattern = self._compile()
        return self._pattern.sub(MASK, text)

    def _compile(self) -> re.Pattern[str]:
        names = re.compile(_SECRET_NAME, re.IGNORECASE)
        values = {
            value
            for name, value in self._env.items()
            if len(value) >= _SHORTEST and (name in self._secret_names or names.search(name))
        }
        # Longest first: a secret that contains another one is masked whole.
        exact = [re.escape(value) for value in sorted(values, key=len, reverse=True)]
        return re.compile("|".join([*exact, *_SHAPES]))
