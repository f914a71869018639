"""Some ops in another dtype than the program around them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from headrace import _arguments, _core, _public
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay.analysis import count_layers
from headrace.relay.expr_functor import ExprMutator

__all__ = ["recast"]


class _Recast(ExprMutator):
    """Rewrites the calls that have a dtype to come back to."""

    def __init__(self, former: dict[Any, str], dtype: str, out_dtype: str) -> None:
        super().__init__()
        self.former, self.dtype, self.out_dtype = former, dtype, out_dtype

    def visit_call(self, call: Any) -> Any:
        new = super().visit_call(call)
        if call not in self.former:
            return new
        attrs = new.attrs
        if _has_out_dtype(attrs):
            attrs = attrs.copy_with(out_dtype=self.out_dtype)
        args = [arg.astype(self.dtype) for arg in new.args]
        return new.copy_with(args=args, attrs=attrs).astype(self.former[call])


def _has_out_dtype(attrs: Any) -> bool:
    return attrs is not None and "out_dtype" in list(attrs.keys())


def _dtype_of(call: Any, mod: IRModule) -> str:
    if _has_out_dtype(call.attrs) and call.attrs.out_dtype:
        return str(call.attrs.out_dtype)
    typ = call.checked_type_ or api("relay.analysis.infer_type_expr")(call, mod).checked_type
    if not isinstance(typ, nodes.TensorType):
        raise _core.UserError(f"recast: {call.op.name} gives {typ}; only ops that give one tensor have another dtype")
    return str(typ.dtype)


def recast(
    expr: Any,
    dtype: str,
    out_dtype: str,
    ops: Sequence[str] = ("nn.conv2d",),
    skip_layers: Sequence[int] = (),
) -> Any:
    """Some ops on operands of another dtype, between casts: to time them there, since values are cut off.

    Parameters
    ----------
    expr : RelayExpr or IRModule
        The program; of a module its `main`.
    dtype : str
        What the operands are cast to.
    out_dtype : str
        The ops' `out_dtype`, where they have such an attribute. Results are cast back to the dtype that they had.
    ops : list of str
        The ops; each has tensors as operands and one as result.
    skip_layers : list of int
        Layers that stay as they are. A call's layer counts the ops on the longest chain from it to the result, so that
        0 is the first layer of the longest chain, and -1 the last.

    Returns
    -------
    RelayExpr or IRModule
        As `expr`, without types.

    Raises
    ------
    UserError
        For a call of one of the ops that does not give one tensor, and for arguments of other types.
    """
    mod = expr if isinstance(expr, IRModule) else IRModule()
    root = expr["main"] if isinstance(expr, IRModule) else _arguments.expression(expr, "recast: expr")
    ops = _arguments.names(ops, "recast: ops")
    depth = count_layers(root, ops)
    if not isinstance(skip_layers, Iterable):
        raise _core.UserError(f"recast: skip_layers: expected a list of int, got {_arguments.kind(skip_layers)}")
    layers = [_arguments.integer(layer, "recast: skip_layers") for layer in skip_layers]
    skipped = {layer + depth if layer < 0 else layer for layer in layers}
    above: dict[Any, int] = {}
    former = {}
    for node in reversed(list(api("relay.analysis.post_order")(root))):
        here = above.get(node, 0)
        if isinstance(node, nodes.Call) and isinstance(node.op, nodes.Op) and node.op.name in ops:
            here += 1
            if depth - here not in skipped:
                former[node] = _dtype_of(node, mod)
        for child in api("relay.ir.Children")(node):
            above[child] = max(above.get(child, 0), here)
    made = _Recast(former, dtype, out_dtype).visit(root)
    if isinstance(expr, IRModule):
        mod = expr.copy()
        mod["main"] = made
        return mod
    return made


_public.publish(__name__, "headrace.relay.transform")
