"""The classes of Relay's nodes and types by name."""

from __future__ import annotations

from typing import Any as _AnyValue

from headrace import _node, _operands, _public, ir

__all__ = ["Any", "RelayExpr", "ShapeVar", "TupleWrapper", "TypeKind", "scalar_type"]

for _key in _node.all_keys("relay"):
    _class = _node.class_of(_key)
    globals()[_class.__name__] = _class
    __all__.append(_class.__name__)

Any = ir.Any
RelayExpr = Expr = _node.class_of("relay.Expr")
TupleWrapper = _operands.TupleWrapper
Op = ir.Op
Attrs = ir.Attrs
Span = ir.Span
SourceName = ir.SourceName
PrimType = ir.PrimType
Type = ir.Type
TypeConstraint = ir.TypeConstraint
TypeKind = ir.TypeKind
IRModule = ir.IRModule
__all__ += ["Attrs", "IRModule", "Op", "PrimType", "SourceName", "Span", "Type", "TypeConstraint"]


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
        The dtype of the element.

    Returns
    -------
    TensorType
    """
    return _node.class_of("relay.TensorType").Scalar(dtype)


_public.publish(__name__, "headrace.relay")
