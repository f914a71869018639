"""Arrays and maps of C++, as Python's sequences and mappings. They are read in place and never change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from headrace import _core, _node


@_node.mixin("object.Array")
class _Array:
    """An immutable sequence that C++ and Python share. Equal to any sequence of equal items."""

    __slots__ = ()

    def __init__(self, items: Iterable[Any] = ()) -> None:
        _core.Object.__init__(self, _core.make_array(items))

    def __len__(self) -> int:
        return _core.array_size(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _core.array_items(self)[index]
        return _core.array_item(self, index)

    def __iter__(self) -> Iterator[Any]:
        return iter(_core.array_items(self))

    def __contains__(self, item: object) -> bool:
        return item in _core.array_items(self)

    def __eq__(self, other: object) -> bool:
        if self.same_as(other):
            return True
        if not isinstance(other, Sequence) or isinstance(other, (str, bytes)) or len(other) != len(self):
            return False
        return all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: Iterable[Any]) -> list[Any]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def index(self, item: Any) -> int:
        """Where `item` is first; ValueError when it is nowhere."""
        return _core.array_items(self).index(item)

    def count(self, item: Any) -> int:
        """How many items equal `item`."""
        return _core.array_items(self).count(item)

    def __repr__(self) -> str:
        return repr(_core.array_items(self))


@_node.mixin("object.Map")
class _Map:
    """An immutable mapping that C++ and Python share, in the order of insertion. Keys that are nodes count by identity.

    Equal to any mapping with equal items.
    """

    __slots__ = ()

    def __init__(self, items: Mapping[Any, Any] | None = None) -> None:
        _core.Object.__init__(self, _core.make_map(dict(items or {})))

    def __len__(self) -> int:
        return _core.map_size(self)

    def __getitem__(self, key: Any) -> Any:
        found = _core.map_get(self, key, _MISSING)
        if found is _MISSING:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return _core.map_get(self, key, _MISSING) is not _MISSING

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return _core.map_get(self, key, default)

    def __iter__(self) -> Iterator[Any]:
        return iter([key for key, _ in _core.map_items(self)])

    def items(self) -> list[tuple[Any, Any]]:
        """Pairs of key and value."""
        return _core.map_items(self)

    def keys(self) -> list[Any]:
        """The keys."""
        return [key for key, _ in _core.map_items(self)]

    def values(self) -> list[Any]:
        """The values."""
        return [value for _, value in _core.map_items(self)]

    def __eq__(self, other: object) -> bool:
        if self.same_as(other):
            return True
        if not isinstance(other, Mapping) or len(other) != len(self):
            return False
        return all(key in other and other[key] == value for key, value in self.items())

    def __hash__(self) -> int:
        return hash(frozenset(self.keys()))

    def __repr__(self) -> str:
        return repr(dict(self.items()))


@_node.mixin("object.ADT")
class _ADT:
    """A tuple of values; its tag is 0."""

    __slots__ = ()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    @property
    def fields(self) -> list[Any]:
        """The fields, as a list."""
        return list(self.items)


_MISSING = object()
Array = _node.class_of("object.Array")
Map = _node.class_of("object.Map")
ADT = _node.class_of("object.ADT")
Sequence.register(Array)
Mapping.register(Map)
