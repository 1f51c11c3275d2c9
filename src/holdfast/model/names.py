"""Names: a fixed set of texts, such as the states of a task.

Like `enum.StrEnum`, but importing enum takes a third as long as starting the interpreter, which every command
would pay (docs/decisions/0002-lean-core.md). Type checkers see a StrEnum.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from enum import StrEnum as Names
else:

    class _NamesType(type):
        """Knows the members: iterates over them, and returns the one for a text or a name."""

        def __new__(cls, name, bases, space):
            made = super().__new__(cls, name, bases, {"__slots__": (), **space})
            made._by_text = {}
            for key, text in space.items():
                if not key.startswith("_") and isinstance(text, str):
                    member = made._by_text[text] = str.__new__(made, text)
                    member.name = key
                    setattr(made, key, member)
            return made

        def __call__(cls, text):
            try:
                return cls._by_text[text]
            except (KeyError, TypeError):
                raise ValueError(f"{text!r} is not a valid {cls.__name__}") from None

        def __getitem__(cls, name):
            return next(member for member in cls if member.name == name)

        def __iter__(cls):
            return iter(cls._by_text.values())

        def __len__(cls):
            return len(cls._by_text)

        def __contains__(cls, text):
            return text in cls._by_text

    class Names(str, metaclass=_NamesType):  # noqa: D101
        __slots__ = ("name",)

        @property
        def value(self):
            """The text."""
            return str(self)

        def __repr__(self):
            return f"<{type(self).__name__}.{self.name}: {str(self)!r}>"

        def __reduce__(self):
            return type(self), (str(self),)


__all__ = ["Names"]
