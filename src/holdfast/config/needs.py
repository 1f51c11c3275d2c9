"""What a project asks for that needs trust: values for `store.trust` to judge. Pure."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    #: Whether the user trusts a part of a project.
    Judge = Callable[["Part"], bool]


class Need:
    """One value that needs trust."""

    def __init__(self, kind: str, name: str, text: str, data: bytes | None = None) -> None:
        #: One of `classes.CLASSES`.
        self.kind = kind
        #: The setting or the path in the file.
        self.name = name
        #: The value, in one line. Of an environment file only the names: its values may be secrets.
        self.text = text
        #: The content of the file that the value names. Only its digest is kept.
        self.data = data


class Part:
    """One file of a project: the unit of trust."""

    def __init__(self, name: str, needs: Iterable[Need]) -> None:
        #: Relative to `.holdfast/`, such as `config.toml`.
        self.name = name
        self.needs = tuple(needs)


def text(value: Any) -> str:
    """A value as one line; equal values give equal lines."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def nothing(part: Part) -> bool:
    """A judge that trusts nothing that needs trust."""
    return not part.needs
