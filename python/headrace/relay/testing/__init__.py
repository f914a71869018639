"""What tests of passes are written with."""

from __future__ import annotations

from typing import Any

from headrace import _elsewhere
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay.transform import InferType
from headrace.transform import Pass

__all__ = ["run_infer_type", "run_opt_pass"]


def run_opt_pass(expr: Any, opt_pass: Pass, import_prelude: bool = False) -> Any:
    """What a pass makes of an expression.

    Parameters
    ----------
    expr : RelayExpr
        A function; or an expression, whose free variables may have types.
    opt_pass : Pass
        The pass.
    import_prelude : bool
        Whether the expression uses types of prelude.rly.

    Returns
    -------
    RelayExpr
        A function for a function, an expression for another.
    """
    mod = IRModule.from_expr(expr)
    if import_prelude:
        mod.import_from_std("prelude.rly")
    main = opt_pass(mod)["main"]
    return main if isinstance(expr, nodes.Function) else main.body


def run_infer_type(expr: Any) -> Any:
    """The expression with its types, as `run_opt_pass`."""
    return run_opt_pass(expr, InferType())


def __getattr__(name: str) -> Any:
    raise _elsewhere.attribute_error(__name__, name)
