"""What tests of passes are written with."""

from __future__ import annotations

from typing import Any

from headrace import _public, nd
from headrace._arguments import kind
from headrace._compat.natural_numbers import add_nat_definitions, count, make_nat_expr, make_nat_value
from headrace._compat.temporary_op_attr import TempOpAttr
from headrace._compat.testing import enabled_targets
from headrace._core import UserError
from headrace._numpy import np
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay.transform import InferType
from headrace.transform import Pass

__all__ = [
    "TempOpAttr",
    "add_nat_definitions",
    "count",
    "enabled_targets",
    "make_nat_expr",
    "make_nat_value",
    "rand",
    "run_infer_type",
    "run_opt_pass",
]


def rand(dtype: str, *shape: int) -> nd.NDArray:
    """A tensor of random elements in [0, 1), other ones each time.

    Parameters
    ----------
    dtype : str
        Its dtype.
    *shape : int
        Its dimensions.

    Returns
    -------
    NDArray
    """
    return nd.array(np.random.default_rng().random(shape).astype(dtype))


def run_opt_pass(expr: Any, opt_pass: Pass) -> Any:
    """What a pass makes of an expression.

    Parameters
    ----------
    expr : RelayExpr
        A function; or an expression, whose free variables may have types.
    opt_pass : Pass
        The pass.

    Returns
    -------
    RelayExpr
        A function for a function, an expression for another.
    """
    if not isinstance(opt_pass, Pass):
        raise UserError(f"run_opt_pass: opt_pass: expected a Pass, got {kind(opt_pass)}")
    main = opt_pass(IRModule.from_expr(expr))["main"]
    return main if isinstance(expr, nodes.Function) else main.body


def run_infer_type(expr: Any) -> Any:
    """The expression with its types, as `run_opt_pass` with InferType gives it.

    Parameters
    ----------
    expr : RelayExpr
        A function; or an expression, whose free variables may have types.

    Returns
    -------
    RelayExpr
    """
    return run_opt_pass(expr, InferType())


_public.publish(__name__, "headrace.relay.testing")
