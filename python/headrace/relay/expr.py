"""Expressions, by the place where users of Relay look for them."""

from headrace._expr import TupleWrapper
from headrace.relay._build_ir import bind, const, var
from headrace.relay._classes import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    RelayExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from headrace.relay._with_fields import (
    CallWithFields,
    ConstantWithFields,
    IfWithFields,
    LetWithFields,
    RefCreateWithFields,
    RefReadWithFields,
    RefWriteWithFields,
    TupleGetItemWithFields,
    TupleWithFields,
    VarWithFields,
)

Expr = RelayExpr

__all__ = [
    "Call",
    "CallWithFields",
    "Constant",
    "ConstantWithFields",
    "Expr",
    "Function",
    "GlobalVar",
    "If",
    "IfWithFields",
    "Let",
    "LetWithFields",
    "RefCreate",
    "RefCreateWithFields",
    "RefRead",
    "RefReadWithFields",
    "RefWrite",
    "RefWriteWithFields",
    "RelayExpr",
    "Tuple",
    "TupleGetItem",
    "TupleGetItemWithFields",
    "TupleWithFields",
    "TupleWrapper",
    "Var",
    "VarWithFields",
    "bind",
    "const",
    "var",
]
