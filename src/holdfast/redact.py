"""Redaction of everything that leaves a process.

Three kinds of secrets are masked: the values of environment variables with secret names, well-known token
shapes, and matches of the packet's own patterns. Values are recognized as they are, in base64 (also twice),
in base32, in hexadecimal, in URLs, escaped any number of times as in JSON or `repr`, and with every
character escaped (`\\x73\\x33…`). A runner redacts every line of output, and most lines have no secret. So a
shape is compiled and searched for only in a text that contains its hint.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.patterns import Pattern

MASK = "***"
#: Endings of variable names that hold a secret, in lower case; also with a plural s.
_SECRET_ENDS = ("key", "token", "secret", "password", "passwd", "pass", "pwd", "credential")
#: Working directories, in spite of their ending.
_NOT_SECRET = ("pwd", "oldpwd")
#: Names that a secret is assigned to, also at the end of a longer name (`DB_PASSWORD`, `SecretAccessKey`).
#: Not the file /etc/passwd: after its name comes an error message.
_NAME = (
    r"(?:pass(?:word|phrase)|(?<!/)passwd|secret(?:[ _-]?(?:access[ _-]?)?key)?"
    r"|(?:api|access|private|account|encryption)[ _-]?key"
    r"|(?:access|auth|refresh|session|(?<![a-z])id)[_-]?token)"
)
#: Values of such a name in code that are no secrets: a type, a constant, a call, another such name.
_NO_VALUE = (
    r"(?!(?:str|string|bytes|int|bool|boolean|any|none|null|nil|true|false|undefined|optional|required)"
    r"(?![^\s,;:)\]}])"
    r"|[a-z_][\w.]*(?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|(?:[a-z_]\w*\.)+\w*(?:pass(?:word|wd)?|secret|key|token)(?![^\s,;:)\]}]))"
)
#: Without closing punctuation of code: `(password=hunter2)` keeps its bracket.
_VALUE = r"(?=[^\s&\"']{4})(?:[,;)}\]]*[^\s&\"',;)}\]]+)+"
#: For lower-case text: a quick check whether anything is assigned to such a name at all.
_ASSIGNED = r"(?:pass(?:word|wd|phrase)|secret|key|token)[\\\"']*[ \t]{0,8}[:=]"
#: (character, hints, shape). A text can match a shape only if it has the character and, in lower case, one of
#: the hints. Searching for the character is ten times as fast. The first group of a shape is kept, the rest
#: is masked.
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
        r"(?i)(authorization\\*[\"']?[ \t]*[:=][ \t]*\\*[\"']?(?:basic|token|apikey|negotiate)[ \t]+)"
        r"[^\s\"'\\,]{6,}",
    ),
)
#: The shapes by character; most texts have none or one of these.
_BY_CHARACTER = tuple(
    (character, tuple((hints, shape) for first, hints, shape in _SHAPES if first == character))
    for character in dict.fromkeys(character for character, _, _ in _SHAPES)
)
#: Compiled when a private key appears, which is rare: every command and runner loads this module.
_KEY_BEGIN = r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?!.*-----END )"
_KEY_END = r"-----END [A-Z ]*PRIVATE KEY-----"
#: A line or a header of a key, bare or quoted, perhaps after a line number or the sign of a diff.
_KEY_BODY = (
    r"[^A-Za-z0-9+/=]*+(?:\d++[^A-Za-z0-9+/=]++)?([A-Za-z0-9+/=]*+)\W*+|\W*+(?:Proc-Type|DEK-Info): .*"
)
#: The longest keys have about 200 lines.
_KEY_LINES = 300
#: This shape is too slow to try whenever a hint is present.
_ASSIGNMENT = (
    rf"(?i)({_NAME}\\*[\"']?[ \t]{{0,8}}(?::=|=>|[:=])(?!=)[ \t]{{0,8}}(?:(?P<dq>\\*\")|(?P<sq>\\*')|))"
    rf"(?(dq)(?:[^\"\\\n]|\\(?!\"))+|(?(sq)(?:[^'\\\n]|\\(?!'))+|{_NO_VALUE}{_VALUE}))"
)
#: Bytes to read beyond the part of a file that is kept, so that a secret at its edge is complete and masked.
MARGIN = 4096
#: `://a:b@` is the shortest match; most tool names are shorter.
_SHORTEST_MATCH = 7
#: Shorter values would mask ordinary words.
_SHORTEST = 8
#: Characters of values in base64, hexadecimal and tokens, the rarest in logs first.
_RARE = "QZXJVKYWGHUBFOLDPNMRCAISTE97864352" + "qzxjvkw10bfy"
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
#: Longer values are recognized in URLs and escaped only in the usual forms, not in every mixture of them.
_LONGEST_MIXED = 512
#: What a backslash before a character may become when a text is escaped again and again. Bounded: a line of
#: backslashes must not take quadratic time.
_SLASHES = r"\\{1,15}"
#: Escaped characters and nothing else, and one of them: in hexadecimal, or in octal as in a shell.
_ALL_ESCAPED = rf"(?:{_SLASHES}(?:x[0-9A-Fa-f]{{2}}|u[0-9A-Fa-f]{{4}}|0?[0-7]{{3}})){{{_SHORTEST},}}"
_ESCAPE = r"\\(?:[xu]([0-9A-Fa-f]+)|([0-7]+))"
#: Of a value with several lines (a key, a credentials file), each line of this length is masked by itself.
_SHORTEST_LINE = 16


class Redactor:
    """Masks the secrets of one task."""

    #: Why secrets cannot be recognized; None if they can.
    problem: str | None = None

    def __init__(
        self, env: dict[str, str], secret_names: Iterable[str] = (), patterns: Iterable[str] = ()
    ) -> None:
        """`secret_names` are the variables declared for the task; all of them are taken for secrets.

        Raises InvalidPattern if one of `patterns` cannot be used.
        """
        self._env = env
        self._secret_names = frozenset(secret_names)
        #: Texts to look for, longest first.
        self._values: list[str] | None = None
        self._by_rarest: list[tuple[str, list[tuple[str, list[str]]]]] = []
        #: Values that are recognized in every mixture of escapes: in a text with a backslash, and with a `%`.
        self._short: list[str] = []
        self._escaped: list[re.Pattern[str]] | None = None
        self._in_urls: list[re.Pattern[str]] | None = None
        self._patterns = _compiled(patterns)

    @property
    def reads_short_texts(self) -> bool:
        """Whether even a text that is shorter than any known secret may be masked."""
        return bool(self._patterns) or self.problem is not None

    def __call__(self, text: str) -> str:
        """`text` without secrets."""
        if len(text) < _SHORTEST_MATCH and not self._patterns:
            return text
        if self._values is None:
            self._values = self._secret_values()
            self._by_rarest = _grouped(self._values)
        if self._has_value(text):
            for value in self._values:
                if value in text:
                    text = text.replace(value, MASK)
        if self._short:
            text = self._without_mixed(text)
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
        # Last: a pattern that masks a name must not hide the assignment after it.
        for pattern in self._patterns:
            text = pattern.mask(text, MASK)
        return text

    def _has_value(self, text: str) -> bool:
        """Whether any value is in a text. Most texts lack the rare characters that values have."""
        for char, groups in self._by_rarest:
            if char in text:
                for second, values in groups:
                    if second in text:
                        for value in values:
                            if value in text:
                                return True
        return False

    def _without_mixed(self, text: str) -> str:
        """A text without values that are escaped, or percent-encoded, in whatever way.

        Expressions are compiled when they are needed first: that takes milliseconds.
        """
        if "\\" in text:
            if self._escaped is None:
                odd = [value for value in self._short if not (value.isascii() and value.isalnum())]
                self._escaped = [re.compile("".join(map(_in_source, value))) for value in odd]
            for pattern in self._escaped:
                text = pattern.sub(MASK, text)
            # The letters and digits of a value begin with one of these.
            if "\\x" in text or "\\u00" in text or "\\1" in text or "\\0" in text:
                text = re.sub(_ALL_ESCAPED, self._without_value, text)
        if "%" in text and re.search(r"%[0-9A-Fa-f]{2}", text):
            if self._in_urls is None:
                self._in_urls = [re.compile("".join(map(_in_url, value))) for value in self._short]
            for pattern in self._in_urls:
                text = pattern.sub(MASK, text)
        return text

    def _without_value(self, run: re.Match[str]) -> str:
        """A run of escaped characters, or a mask if there is a value in it."""
        decoded = _decoded(run[0])
        return MASK if any(value in text for text in decoded for value in self._short) else run[0]

    def _secret_values(self) -> list[str]:
        secrets = [
            value for name, value in self._env.items() if name in self._secret_names or _is_secret(name)
        ]
        values: set[str] = set()
        for value in secrets:
            if len(value) >= _SHORTEST:
                values |= {value, *_escaped(value), *_encoded(value)}
                if len(value) <= _LONGEST_MIXED:
                    self._short.append(value)
            if "\n" in value:
                values.update(line for line in value.splitlines() if len(line) >= _SHORTEST_LINE)
        # Longest first: a secret that contains another one is masked completely.
        return sorted(values, key=len, reverse=True)


class WithholdingRedactor(Redactor):
    """Masks every text. Used if a pattern of the task cannot be applied: any text may have a match."""

    def __init__(self, problem: str) -> None:
        super().__init__({})
        self.problem = problem

    def __call__(self, text: str) -> str:
        """A mask, or the problem if the text reports it."""
        if self.problem is not None and self.problem in text:
            return self.problem
        return MASK if text else text


def _grouped(values: Iterable[str]) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Values by the rarest character that each contains, and then by the second rarest."""
    groups: dict[str, dict[str, list[str]]] = {}
    for value in values:
        rare = [char for char in _RARE if char in value] or [value[0]]
        groups.setdefault(rare[0], {}).setdefault(rare[min(1, len(rare) - 1)], []).append(value)
    return [(char, list(seconds.items())) for char, seconds in groups.items()]


def _compiled(patterns: Iterable[str]) -> list[Pattern]:
    if not patterns:
        return []
    from holdfast.patterns import Pattern  # few packets have patterns

    return [Pattern(pattern) for pattern in patterns]


class LineRedactor:
    """Masks output line by line, including all lines of a private key."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._reads_short_texts = redact.reads_short_texts
        #: How many lines of a key may follow; 0 outside a key.
        self._left = 0

    @property
    def reads_short_lines(self) -> bool:
        """Whether a short line may be a secret: in a key, or because of the task's own patterns."""
        return self._left > 0 or self._reads_short_texts

    def __call__(self, line: str) -> str:
        """The line without secrets."""
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
        """Take note of the text before the first line."""
        if "PRIVATE KEY-----" not in text:
            return
        for line in text.split("\n")[-_KEY_LINES:]:
            self(line)

    def _is_within(self, line: str) -> bool:
        match = re.fullmatch(_KEY_BODY, line)
        if match is None or not match[1]:
            return match is not None
        # A short word right after the first line is no key; the last line of a key may be short.
        is_body = len(match[1]) >= _SHORTEST_LINE or self._left < _KEY_LINES
        self._left -= is_body
        return is_body


def _is_secret(name: str) -> bool:
    """Whether the name of a variable looks secret.

    Without a pattern, whose compilation costs a millisecond.
    """
    lower = name.casefold()
    if lower in _NOT_SECRET:
        return False
    words = lower.split("_")
    return (
        lower.removesuffix("s").endswith(_SECRET_ENDS)
        or lower.endswith(_SECRET_ENDS)
        or "auth" in words
        or lower == "database_url"
        or words[-1] == "dsn"
    )


def _escaped(value: str) -> set[str]:
    """As in the arguments of a tool, once or twice escaped, and as Python prints it."""
    import json

    found = {repr(value)[1:-1], ascii(value)[1:-1]}
    for is_ascii in (True, False):
        once = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        found |= {once, json.dumps(once, ensure_ascii=is_ascii)[1:-1]}
    return found


def _encoded(value: str) -> set[str]:
    """In hexadecimal, base32 and base64, at each place that it can have in a longer text."""
    from binascii import b2a_base64

    data = value.encode("utf-8", "surrogatepass")
    found = {data.hex(), data.hex().upper(), *_in_base32(data), b2a_base64(data, newline=False).decode()}
    for each in _in_base64(data):
        # Twice as in the secrets of Kubernetes.
        found |= {each, each.replace("+", "-").replace("/", "_"), *_in_base64(each.encode())}
    return found


def _in_base64(data: bytes) -> set[str]:
    """The characters that depend on nothing but the data, at each of the three places."""
    from binascii import b2a_base64

    found: set[str] = set()
    for before in range(3):
        text = b2a_base64(b"\0" * before + data, newline=False).decode()
        found.add(text[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6])
    return found


def _in_base32(data: bytes) -> set[str]:
    """The characters that depend on nothing but the data, at each of the five places.

    Without the module base64, which loads others.
    """
    found: set[str] = set()
    for before in range(5):
        padded = b"\0" * before + data + b"\0" * (-(before + len(data)) % 5)
        blocks = [int.from_bytes(padded[at : at + 5]) for at in range(0, len(padded), 5)]
        text = "".join(_BASE32[block >> shift & 31] for block in blocks for shift in range(35, -1, -5))
        found.add(text[(before * 8 + 4) // 5 : (before + len(data)) * 8 // 5])
    return found


def _decoded(run: str) -> tuple[str, ...]:
    """What escaped characters mean: as UTF-16, and as bytes of UTF-8 if they can be."""
    codes = [int(code, 16) if code else int(octal, 8) for code, octal in re.findall(_ESCAPE, run)]
    wide = b"".join(code.to_bytes(2) for code in codes).decode("utf-16-be", "replace")
    if max(codes) > 0xFF:
        return (wide,)
    return wide, bytes(codes).decode("utf-8", "replace")


def _in_url(char: str) -> str:
    """A character of a value, as it is or percent-encoded."""
    codes = "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
    plus = r"|\+" if char == " " else ""
    return f"(?:{re.escape(char)}|(?i:{codes}){plus})"


_LETTERS = {"\n": "n", "\r": "r", "\t": "t", "\b": "b", "\f": "f"}


def _in_source(char: str) -> str:
    """A character of a value, as it is or escaped, however often."""
    if char.isascii() and char.isalnum():
        return char
    if char == "\\":
        return _SLASHES
    units = char.encode("utf-16-be", "surrogatepass")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    forms = [re.escape(char), "(?i:" + "".join(f"{_SLASHES}u{pair}" for pair in pairs) + ")"]
    forms.append(
        "(?i:" + "".join(f"{_SLASHES}x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass")) + ")"
    )
    if ord(char) < 0x100:
        forms.append(f"(?i:{_SLASHES}x{ord(char):02x})")
    if char in _LETTERS:
        forms.append(_SLASHES + _LETTERS[char])
    elif char.isascii() and char.isprintable():
        forms.append(_SLASHES + re.escape(char))
    return f"(?:{'|'.join(forms)})"


def _may_assign(lower: str) -> bool:
    """Whether something is assigned to a secret name. Most texts do not contain any of these words."""
    return ("key" in lower or "token" in lower or "pass" in lower or "secret" in lower) and re.search(
        _ASSIGNED, lower
    ) is not None


def begin_of(data: bytes, redact: Redactor, limit: int) -> str:
    """At most `limit` characters of a file's beginning, of which `limit` + MARGIN bytes were read.

    It is masked before it is cut: half a secret would not be recognized.
    """
    text = redact(data.decode("utf-8", "replace"))
    is_cut = len(data) >= limit + MARGIN
    return text[: max(0, min(limit, len(text) - MARGIN))] if is_cut else text[:limit]


def end_of(data: bytes, redact: Redactor, limit: int) -> str:
    """As `begin_of`, for the end of a file."""
    text = redact(data.decode("utf-8", "replace"))
    is_cut = len(data) >= limit + MARGIN
    return text[max(MARGIN, len(text) - limit) :] if is_cut else text[max(0, len(text) - limit) :]
