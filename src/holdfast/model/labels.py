"""Labels: `key=value` pairs that a person or program gives a task, to find it again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

#: Labels are shown in lists and sent to agents, so they are short.
_KEY_CHARS, _VALUE_CHARS, _MAX_LABELS = 63, 200, 32
_IN_KEYS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")


def parse(texts: Iterable[str]) -> dict[str, str]:
    """The labels that `key=value` texts give; the last one of a key counts. Raises ValueError."""
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{text!r} is not KEY=VALUE")
        if not key or len(key) > _KEY_CHARS or not _IN_KEYS.issuperset(key):
            raise ValueError(f"{key!r}: a key has 1 to {_KEY_CHARS} letters, digits, '.', '_', '-' or '/'")
        if len(value) > _VALUE_CHARS or not value.isprintable():
            raise ValueError(f"{key}: a value has at most {_VALUE_CHARS} printable characters")
        labels[key] = value
    if len(labels) > _MAX_LABELS:
        raise ValueError(f"more than {_MAX_LABELS} labels")
    return labels


def match(row: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a manifest has all these labels."""
    if not wanted:
        return True
    labels: Any = row.get("labels")
    return isinstance(labels, dict) and wanted.items() <= labels.items()
