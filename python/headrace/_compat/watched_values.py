"""The op by which old programs look at a value while a program runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from headrace import _arguments, _core, _public
from headrace.relay._op_registration import register, register_packed_func, register_stateful

__all__ = ["debug"]

_NUMBERS = itertools.count()


def debug(expr: Any, debug_func: Callable[[Any], Any] | None = None) -> Any:
    """The tensor itself; a function sees it whenever it is computed.

    Each call makes an op of its own, "debug.watch_0" and so on, which has an effect: no pass drops, doubles or moves
    it. The op and the function stay for as long as the process.

    Parameters
    ----------
    expr : RelayExpr
        The tensor.
    debug_func : function, optional
        Called with a copy, an NDArray; without it the value is printed.

    Returns
    -------
    Call
    """
    expr = _arguments.expression(expr, "debug: expr")
    watch = print if debug_func is None else debug_func
    if not callable(watch):
        raise _core.UserError(f"debug: debug_func: expected a function, got {_arguments.kind(watch)}")
    name = f"debug.watch_{next(_NUMBERS)}"
    op = register(name, "Its operand, at which a function looks.").add_argument("data").add_type_rel("Identity")
    register_stateful(name)

    @register_packed_func(name)
    def look(data: Any, out: Any) -> None:
        watch(data.copyto(data.device))
        out.copyfrom(data)

    return op(expr)


_public.publish(__name__, "headrace.relay.op")
