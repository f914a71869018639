"""The classes of Relay's nodes and types by name."""

from __future__ import annotations

from enum import IntEnum
from typing import Any as _AnyValue

from headrace import _expr, _node, ir

__all__ = ["Any", "RelayExpr", "ShapeVar", "TupleWrapper", "TypeKind", "scalar_type"]

for _key in _node.all_keys("relay"):
    _class = _node.class_of(_key)
    globals()[_class.__name__] = _class
    __all__.append(_class.__name__)

Any = ir.Any
RelayExpr = _node.class_of("relay.Expr")
TupleWrapper = _expr.TupleWrapper
Op = ir.Op
Attrs = ir.Attrs
Span = ir.Span
SourceName = ir.SourceName
PrimType = ir.PrimType
Type = ir.Type
TypeConstraint = _node.class_of("relay.TypeRelation")  # the one kind of constraint
IRModule = ir.IRModule
__all__ += ["Attrs", "IRModule", "Op", "PrimType", "SourceName", "Span", "Type", "TypeConstraint"]


class TypeKind(IntEnum):
    """Kinds of types."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Shape = 3
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


def ShapeVar(name: str) -> _AnyValue:
    """A type parameter that stands for a shape.

    Parameters
    ----------
    name : str
        What it is printed as.

    Returns
    -------
    TypeVar
        Of kind ShapeVar.
    """
    return _node.class_of("relay.TypeVar")(name, TypeKind.ShapeVar)


def scalar_type(dtype: str) -> _AnyValue:
    """The type of a tensor without dimensions.

    Parameters
    ----------
    dtype : str
        Of its element.

    Returns
    -------
    TensorType
    """
    return _node.class_of("relay.TensorType").Scalar(dtype)
