"""Relay: programs of tensors and functions, as users of Relay write them.

The functions of ops are Python text, a `def` each: `relay.nn` and the modules of the other families have theirs, and
`relay` has those of the ops without a family. `python/write_ops.py` writes them when the package is built.
"""

from __future__ import annotations

import sys
from typing import Any as _AnyValue  # relay.Any is a dimension

from headrace import _node, _public


def _find_op(name: str) -> _AnyValue:
    """The function of an op without a family, or the module of a family of ops that users registered."""
    from headrace.relay import _op_functions, _root_ops

    this = sys.modules[__name__]
    if name not in _root_ops.__all__:
        return _op_functions.find(this, "", name)
    setattr(this, name, getattr(_root_ops, name))
    return getattr(this, name)


def _op_names() -> set[str]:
    from headrace.relay import _op_functions

    return _op_functions.names_within("")


__all__ = _public.facade(
    __name__,
    {
        "headrace._operands": "TupleWrapper const",
        "headrace._params": "load_param_dict save_param_dict",
        "headrace.relay._build_ir": "ScopeBuilder bind var",
        "headrace.relay._classes": (
            "Any Attrs Expr IRModule Op PrimType RelayExpr ShapeVar SourceName Span Type TypeConstraint TypeKind "
            "scalar_type "
            + " ".join(key.removeprefix("relay.") for key in _node.all_keys("relay") if key != "relay.Expr")
        ),
        "headrace.relay._op_adapters": (
            "arange full gather_nd logsumexp matrix_set_diag mean_variance reverse_reshape std strided_set unique "
            "variance"
        ),
        "headrace.relay._run": "GraphExecutorFactoryModule bind_params_by_name build create_executor optimize",
        "headrace.relay._text": "astext fromtext parse parse_expr",
        "headrace._compat.with_fields": (
            "CallWithFields ConstantWithFields FunctionWithFields IfWithFields LetWithFields RefCreateWithFields "
            "RefReadWithFields RefWriteWithFields TupleGetItemWithFields TupleWithFields VarWithFields"
        ),
        "headrace.relay.expr_functor": "ExprFunctor ExprMutator ExprVisitor",
        "headrace.relay.type_functor": "TypeFunctor TypeMutator TypeVisitor",
    },
    modules=(
        "adt analysis annotation backend build_module dataflow_pattern expr frontend function loops op param_dict "
        "prelude scope_builder testing transform ty"
    ),
    unlisted="expr_functor extern image memory nn qnn random type_functor vision",
    find=_find_op,
    more=_op_names,
)
_public.settle(__name__)
