"""Values of the reference interpreter that are neither tensors nor tuples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace import _core, _node, _public
from headrace._ffi import api

__all__ = ["ConstructorValue", "RefValue"]


@_node.mixin("interp.ConstructorValue")
class _ConstructorValue:
    """A value of a data type: `constructor` made it, of `fields`.

    Parameters
    ----------
    tag : int, optional
        The constructor's number in its type.
    fields : list
        What the value is made of.
    constructor : Constructor
        What makes it.
    """

    __slots__ = ()

    def __init__(self, tag: Any = None, fields: Any = (), constructor: Any = None) -> None:
        made = _node.make("interp.ConstructorValue", {"constructor": constructor, "fields": fields})
        if tag is not None and tag != constructor.tag:
            raise _core.UserError(
                f"ConstructorValue: tag is {tag}, and that of {constructor.name_hint} {constructor.tag}"
            )
        _core.Object.__init__(self, made)

    @property
    def tag(self) -> int:
        """The constructor's number in its type."""
        return self.constructor.tag

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: Any) -> Any:
        return self.fields[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fields)


@_node.mixin("interp.RefValue")
class _RefValue:
    """A mutable cell.

    Parameters
    ----------
    value : value
        What it holds: an NDArray, a tuple, a value of a data type, another cell.
    """

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        _core.Object.__init__(self, api("relay.backend.MakeRef")(value))

    @property
    def value(self) -> Any:
        """The value that the reference holds now."""
        return api("relay.backend.ReadRef")(self)


ConstructorValue = _node.class_of("interp.ConstructorValue")
RefValue = _node.class_of("interp.RefValue")


_public.settle(__name__)
