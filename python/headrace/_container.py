"""Arrays and maps of C++, as Python's sequences and mappings. They are read in place and never change."""

from __future__ import annotations

import operator
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
        return _are_equal(self, other)

    def __hash__(self) -> int:
        return _hash_of(self)

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
        return _text_of(self)


@_node.mixin("object.Map")
class _Map:
    """An immutable mapping that C++ and Python share, in the order of insertion. Keys that are nodes count by identity.

    Equal to any mapping with equal items. A value is also an attribute by its key, as `f.attrs.Primitive`.
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

    def __getattr__(self, name: str) -> Any:
        found = _core.map_get(self, name, _MISSING)
        if found is _MISSING:
            known = ", ".join(str(key) for key in self.keys()) or "none"
            raise AttributeError(f"the map has no '{name}'; its keys: {known}")
        return found

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
        return _are_equal(self, other)

    def __hash__(self) -> int:
        return _hash_of(self)

    def __repr__(self) -> str:
        return _text_of(self)


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


# Arrays and maps may nest deeper than Python's calls do: what follows keeps a stack of its own.


def _are_equal(lhs: Any, rhs: Any) -> bool:
    pairs = [(lhs, rhs)]
    while pairs:
        a, b = pairs.pop()
        if not isinstance(a, (Array, Map)):
            a, b = b, a
        if isinstance(a, Array):
            if a.same_as(b):
                continue
            if not isinstance(b, Sequence) or isinstance(b, (str, bytes)) or len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif isinstance(a, Map):
            if a.same_as(b):
                continue
            if not isinstance(b, Mapping) or len(a) != len(b):
                return False
            for key, value in a.items():
                if key not in b:
                    return False
                pairs.append((value, b[key]))
        elif a != b:
            return False
    return True


class _Hashed:
    """Stands for an item whose hash is known."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return self.value


def _hash_of(root: Any) -> int:
    """The hash of a tuple of an Array's items, or of the set of a Map's keys: equal values have equal hashes."""
    stack: list[tuple[Any, Iterator[Any], list[int]]] = [(root, iter(root), [])]
    while True:
        node, parts, hashes = stack[-1]
        for part in parts:
            if isinstance(part, (Array, Map)):
                stack.append((part, iter(part), []))
                break
            hashes.append(hash(part))
        else:
            stack.pop()
            is_array = isinstance(node, Array)
            result = hash(tuple(_Hashed(value) for value in hashes)) if is_array else hash(frozenset(hashes))
            if not stack:
                return result
            stack[-1][2].append(result)


class _Written(str):
    """Text that is written as it is."""

    __slots__ = ()


def _text_of(root: Any) -> str:
    """The text of an Array, written like a list, or of a Map, written like a dict."""
    texts: list[str] = []
    waiting: list[Any] = [root]
    while waiting:
        item = waiting.pop()
        if isinstance(item, _Written):
            texts.append(item)
        elif isinstance(item, (Array, Map)):
            waiting.extend(reversed(_pieces_of(item)))
        else:
            texts.append(repr(item))
    return "".join(texts)


def _pieces_of(node: Any) -> list[Any]:
    is_array = isinstance(node, Array)
    pieces: list[Any] = [_Written("[" if is_array else "{")]
    for number, entry in enumerate(node if is_array else node.items()):
        if number:
            pieces.append(_Written(", "))
        pieces.extend([entry] if is_array else [entry[0], _Written(": "), entry[1]])
    pieces.append(_Written("]" if is_array else "}"))
    return pieces


class _AsBuiltin(type):
    """The class of a class whose instances are, for `isinstance`, all values of the builtin type that it extends."""

    def __instancecheck__(cls, value: object) -> bool:
        return type.__instancecheck__(cls.__base__, value)


class String(str, metaclass=_AsBuiltin):
    """A text. Fields of nodes give Python's str, and so is this: every str is an instance.

    Parameters
    ----------
    content : str
        The text.
    """

    __slots__ = ()


class ShapeTuple(tuple, metaclass=_AsBuiltin):
    """The sizes of a tensor. Fields of nodes give Python's tuple, and so is this: every tuple is an instance.

    Parameters
    ----------
    shape : sequence of int
        The sizes.

    Raises
    ------
    UserError
        For what is not a sequence of whole numbers.
    """

    __slots__ = ()

    def __new__(cls, shape: Iterable[Any] = ()) -> ShapeTuple:
        sizes = list(shape) if isinstance(shape, Iterable) else [None]
        try:
            return super().__new__(cls, [operator.index(size) for size in sizes])
        except TypeError:
            raise _core.UserError(f"ShapeTuple: expected a sequence of whole numbers, got {shape!r}") from None


def tuple_object(fields: Sequence[Any] | None = None) -> Any:
    """A tuple of values, as programs take and give it.

    Parameters
    ----------
    fields : sequence, optional
        The values, which may be sequences themselves.

    Returns
    -------
    ADT
    """
    return ADT(0, [tuple_object(field) if isinstance(field, (list, tuple)) else field for field in fields or ()])


_MISSING = object()
Array = _node.class_of("object.Array")
Map = _node.class_of("object.Map")
ADT = _node.class_of("object.ADT")
Sequence.register(Array)
Mapping.register(Map)
__all__ = ["ADT", "Array", "Map", "ShapeTuple", "String", "tuple_object"]
for _name in ("ShapeTuple", "String"):
    globals()[_name].__module__ = "headrace.runtime"
tuple_object.__module__ = "headrace.runtime.container"
