"""What tests of passes are written with."""

from __future__ import annotations

from typing import Any

from headrace import _elsewhere
from headrace._arguments import kind
from headrace._core import UserError
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay.testing.temp_op_attr import TempOpAttr
from headrace.relay.transform import InferType
from headrace.transform import Pass

__all__ = ["TempOpAttr", "run_infer_type", "run_opt_pass"]


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
    """The expression with its types, as `run_opt_pass`."""
    return run_opt_pass(expr, InferType())


def __getattr__(name: str) -> Any:
    raise _elsewhere.attribute_error(__name__, name)
