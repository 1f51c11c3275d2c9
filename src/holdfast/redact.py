"""Redaction: what leaves a process goes through here.

Three kinds of secret are masked: the exact values of environment variables that look secret (they catch what
no pattern can), well-known token shapes, and the patterns that a packet adds. A Redactor is made once per
runner and sees every line of output, nearly all of which hold nothing: so a shape is searched for (and
compiled) only in a text that has its hint.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.patterns import Pattern

MASK = "***"
#: How the names of variables end that hold a secret; in lower case, and with an s too.
_SECRET_ENDS = ("key", "token", "secret", "password", "passwd", "pass", "pwd", "credential")
#: Names behind which a secret stands, wherever a longer name ends with them (`DB_PASSWORD`,
#: `SecretAccessKey`). Behind the file /etc/passwd stands what is wrong with it.
_NAME = (
    r"(?:pass(?:word|phrase)|(?<!/)passwd|secret(?:[ _-]?(?:access[ _-]?)?key)?|(?:api|access|private|account|encryption)[ _-]?key"
    r"|(?:access|auth|refresh|session|(?<![a-z])id)[_-]?token)"
)
#: What stands behind such a name in code and is none: a type, a constant, a call, the path of another such
#: name.
_NO_VALUE = (
    r"(?!(?:str|string|bytes|int|bool|boolean|any|none|null|nil|true|false|undefined|optional|required)(?![^\s,;:)\]}])"
    r"|[a-z_][\w.]*(?:\([^()\n]*\)|\[[^\[\]\n]*\])|(?:[a-z_]\w*\.)+\w*(?:pass(?:word|wd)?|secret|key|token)(?![^\s,;:)\]}]))"
)
#: Without what ends it in code: `(password=hunter2)` keeps its bracket.
_VALUE = r"(?=[^\s&\"']{4})(?:[,;)}\]]*[^\s&\"',;)}\]]+)+"
#: In lower case. It says quickly that there is no such name with something behind it, as for most lines with
#: a `key` in them.
_ASSIGNED = r"(?:pass(?:word|wd|phrase)|secret|key|token)[\\\"']*[ \t]{0,8}[:=]"
#: A character and hints, and the shape. A text can match only if it has the character and, in lower case, one
#: of the hints; the character stands first because it is found, or not, ten times as fast. A first group
#: stays, the rest is masked.
_SHAPES = (
    ("-", ("sk-",), r"(?:(?<![A-Za-z0-9])sk-|sk-(?:ant|proj)-)[A-Za-z0-9_-]{16,}"),
    ("_", ("k_live_",), r"[sr]k_live_[A-Za-z0-9]{16,}"),
    ("_", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    ("_", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    ("-", ("glpat-",), r"glpat-[A-Za-z0-9_-]{16,}"),
    ("-", ("xox",), r"xox[abprs]-[A-Za-z0-9-]{10,}"),
    ("_", ("npm_",), r"npm_[A-Za-z0-9]{36}"),
    ("A", ("akia", "asia"), r"A[KS]IA[0-9A-Z]{16}"),
    ("A", ("aiza",), r"AIza[0-9A-Za-z_-]{35}"),
    ("J", ("eyj",), r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    (
        "-",
        ("private key-----",),
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    ),
    ("@", ("://",), r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"),
    ("", ("bearer",), r"(?i)(bearer[ \t]+)[A-Za-z0-9._~+/-]{12,}=*"),
    (
        "",
        ("authorization",),
        r"(?i)(authorization\\*[\"']?[ \t]*[:=][ \t]*\\*[\"']?(?:basic|token|apikey|negotiate)[ \t]+)[^\s\"'\\,]{6,}",
    ),
)
#: The same by their character, of which most texts have none or one.
_BY_CHARACTER = tuple(
    (character, tuple((hints, shape) for first, hints, shape in _SHAPES if first == character))
    for character in dict.fromkeys(character for character, _, _ in _SHAPES)
)
#: Compiled when a key is met: few tasks ever see one, and every command and runner loads this.
_KEY_BEGIN = r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?!.*-----END )"
_KEY_END = r"-----END [A-Z ]*PRIVATE KEY-----"
#: A line of a key, bare or quoted, with a number or a sign before it as editors and diffs have; or a header
#: of one.
_KEY_BODY = (
    r"[^A-Za-z0-9+/=]*+(?:\d++[^A-Za-z0-9+/=]++)?([A-Za-z0-9+/=]*+)\W*+|\W*+(?:Proc-Type|DEK-Info): .*"
)
#: The longest key has some 200.
_KEY_LINES = 300
#: The one shape that is too slow to be tried on a mere hint.
_ASSIGNMENT = (
    rf"(?i)({_NAME}\\*[\"']?[ \t]{{0,8}}(?::=|=>|[:=])(?!=)[ \t]{{0,8}}(?:(?P<dq>\\*\")|(?P<sq>\\*')|))"
    rf"(?(dq)(?:[^\"\\\n]|\\(?!\"))+|(?(sq)(?:[^'\\\n]|\\(?!'))+|{_NO_VALUE}{_VALUE}))"
)
#: What is read of a file beyond the part that is kept: a secret at its edge is whole then, and masked.
MARGIN = 4096
#: `://a:b@`: nothing shorter can hold anything, and names of tools are many.
_SHORTEST_MATCH = 7
#: A shorter value would mask ordinary words.
_SHORTEST = 8
#: Of a value of several lines (a key, a file of credentials), a line of this length counts by itself: output
#: comes in lines.
_SHORTEST_LINE = 16


class Redactor:
    """Masks the secrets of one task."""

    def __init__(
        self, env: dict[str, str], secret_names: Iterable[str] = (), patterns: Iterable[str] = ()
    ) -> None:
        """`secret_names` are variables that were declared for the task: whoever names one means to hand over
        something of their own. Raises InvalidPattern for one of `patterns` that cannot be used: nothing
        passes half redacted."""
        self._env = env
        self._secret_names = frozenset(secret_names)
        self._values: list[str] | None = None
        self._own = _compiled(patterns)

    def __call__(self, text: str) -> str:
        """`text` without secrets."""
        if len(text) < _SHORTEST_MATCH and not self._own:
            return text
        if self._values is None:
            self._values = self._exact()
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        lower = text.lower()
        for character, shapes in _BY_CHARACTER:
            if character not in text:
                continue
            for hints, shape in shapes:
                for hint in hints:
                    if hint in lower:
                        text = re.sub(shape, rf"\1{MASK}" if "(?i)" in shape else MASK, text)
                        break
        if _may_assign(lower):
            text = re.sub(_ASSIGNMENT, rf"\1{MASK}", text)
        # Last: a pattern that masks a name must not hide from us what stands behind it.
        for pattern in self._own:
            text = pattern.mask(text, MASK)
        return text

    def _exact(self) -> list[str]:
        secrets = [
            value for name, value in self._env.items() if name in self._secret_names or _is_secret(name)
        ]
        values = {value for value in secrets if len(value) >= _SHORTEST}
        for value in secrets:
            # As it stands in the arguments of a tool.
            values.update(_escaped(value) if len(value) >= _SHORTEST else ())
            if "\n" in value:
                values.update(line for line in value.splitlines() if len(line) >= _SHORTEST_LINE)
        # Longest first: a secret that contains another one is masked whole.
        return sorted(values, key=len, reverse=True)


def _compiled(patterns: Iterable[str]) -> list[Pattern]:
    if not patterns:
        return []
    from holdfast.patterns import Pattern  # few packets have patterns

    return [Pattern(pattern) for pattern in patterns]


class LineRedactor:
    """Masks what comes line by line: of a private key, also the lines between its first and its last."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        #: How many lines of a key may still come; 0 outside of one.
        self._left = 0

    @property
    def is_inside(self) -> bool:
        """Whether a key has begun and not ended."""
        return self._left > 0

    def __call__(self, line: str) -> str:
        """The line without secrets, knowing those before it."""
        if self._left:
            end = re.search(_KEY_END, line)
            if end is not None:
                self._left = 0
                return self._redact(MASK + line[end.end() :])
            if self._is_within(line):
                return MASK
            self._left = 0
        if "PRIVATE KEY-----" in line and re.search(_KEY_BEGIN, line):
            self._left = _KEY_LINES
        return self._redact(line)

    def remember(self, text: str) -> None:
        """What came before the first line that we are asked about."""
        if "PRIVATE KEY-----" not in text:
            return
        for line in text.split("\n")[-_KEY_LINES:]:
            self(line)

    def _is_within(self, line: str) -> bool:
        found = re.fullmatch(_KEY_BODY, line)
        if found is None or not found[1]:
            return found is not None
        # A word behind a key's first line alone is no key; a key's last line may be short.
        is_body = len(found[1]) >= _SHORTEST_LINE or self._left < _KEY_LINES
        self._left -= is_body
        return is_body


def _is_secret(name: str) -> bool:
    """Whether a variable looks as if it held a secret.

    No pattern: to compile one would cost every runner a millisecond.
    """
    lower = name.casefold()
    words = lower.split("_")
    return (
        lower.removesuffix("s").endswith(_SECRET_ENDS)
        or lower.endswith(_SECRET_ENDS)
        or "auth" in words
        or lower == "database_url"
        or words[-1] == "dsn"
    )


def _escaped(value: str) -> set[str]:
    import json

    return {json.dumps(value, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)}


def _may_assign(lower: str) -> bool:
    """Whether one of the names is there with something behind it.

    Most texts do not even hold a name's last word.
    """
    return ("key" in lower or "token" in lower or "pass" in lower or "secret" in lower) and re.search(
        _ASSIGNED, lower
    ) is not None


def begin_of(data: bytes, redact: Redactor, limit: int) -> str:
    """At most `limit` characters of a file's begin, of which `limit` + MARGIN bytes were read.

    Masked before it is cut: half a secret looks like none.
    """
    text = redact(data.decode("utf-8", "replace"))
    is_cut = len(data) >= limit + MARGIN
    return text[: max(0, min(limit, len(text) - MARGIN))] if is_cut else text[:limit]


def end_of(data: bytes, redact: Redactor, limit: int) -> str:
    """The same of a file's end."""
    text = redact(data.decode("utf-8", "replace"))
    is_cut = len(data) >= limit + MARGIN
    return text[max(MARGIN, len(text) - limit) :] if is_cut else text[max(0, len(text) - limit) :]
