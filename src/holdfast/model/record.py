"""Record: a frozen value with named fields.

Like `dataclass(frozen=True, kw_only=True)`, but without the import time of dataclasses (20 ms) or msgspec
(24 ms), which every command and every cold start would pay (docs/decisions/0002-lean-core.md). Type checkers
see a dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):  # noqa: D103
        return lambda cls: cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """Base of all records. Annotations are the fields; class attributes are their defaults."""

    if TYPE_CHECKING:
        fields: ClassVar[tuple[str, ...]]
        all_fields: ClassVar[dict[str, Any]]
        must_have: ClassVar[frozenset[str]]
        nested: ClassVar[dict[str, type[Record]]]

    fields = ()
    #: All fields in order, with their defaults (None without one). A new record starts as a copy.
    all_fields = {}
    #: Fields without a default.
    must_have = frozenset()
    #: Fields that are themselves records, for `from_json`.
    nested = {}

    def __init_subclass__(cls) -> None:
        # Runs about eighty times in every command, so it uses a single loop.
        space, filled, missing = cls.__dict__, cls.all_fields.copy(), set(cls.must_have)
        for name, kind in cls.__annotations__.items():
            if kind.startswith("ClassVar"):
                continue
            filled[name] = space.get(name)
            if name in space:
                missing.discard(name)
            else:
                missing.add(name)
        cls.fields, cls.all_fields, cls.must_have = tuple(filled), filled, frozenset(missing)

    if not TYPE_CHECKING:

        def __init__(self, **values):
            store = self.__dict__
            store.update(self.all_fields)
            store.update(values)
            if len(store) != len(self.all_fields) or not self.must_have <= values.keys():
                missing = [name for name in self.fields if name in self.must_have and name not in values]
                unknown = [name for name in values if name not in self.fields]
                raise TypeError(f"{type(self).__name__}: missing {missing}, unknown {unknown}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.__dict__.values())))

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{type(self).__name__}({inner})"

    def evolve(self, **changes: object) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self.__dict__, **changes})

    def to_json(self) -> dict[str, Any]:
        """Plain data, ready for `json.dumps`."""
        out: dict[str, Any] = {}
        store = self.__dict__
        for name in self.fields:
            value = out[name] = store[name]
            if isinstance(value, (Record, list, tuple)):
                out[name] = _plain(value)  # pyright: ignore[reportUnknownArgumentType]
        return out

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The record that `data` describes. Unknown keys are ignored.

        Raises ValueError if a field without a default is missing.
        """
        values: dict[str, Any] = {}
        for name in cls.fields:
            if name not in data:
                if name in cls.must_have:
                    raise ValueError(f"{cls.__name__}: missing {name!r}")
                continue
            value = data[name]
            inner = cls.nested.get(name)
            if inner is not None and isinstance(value, dict):
                value = inner.from_json(value)  # pyright: ignore[reportUnknownArgumentType]
            elif inner is not None and isinstance(value, list):
                value = tuple(inner.from_json(item) for item in value)  # pyright: ignore
            elif isinstance(value, list) and isinstance(cls.all_fields[name], tuple):
                value = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            values[name] = value
        return cls(**values)


def _plain(value: Record | list[Any] | tuple[Any, ...]) -> Any:
    if isinstance(value, Record):
        return value.to_json()
    return [item.to_json() if isinstance(item, Record) else item for item in value]
