"""Which ops a compiler supports, and its patterns: `relay.op.contrib`."""

from __future__ import annotations

import functools
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

from headrace import _answers, _expr, _node, _public
from headrace._core import UserError
from headrace._ffi import register_func
from headrace._op import register_op_attr

__all__ = [
    "contrib",
    "find_checks",
    "get_extern_op",
    "get_pattern_table",
    "register_extern_op",
    "register_pattern_table",
]

_Op = _node.class_of("ir.Op")
_PATTERN_TABLES: dict[str, Any] = {}


def register_pattern_table(compiler: str, table: Any = None) -> Any:
    """Registers the patterns of a compiler, for `relay.transform.MergeComposite` and for compiles that name it.

    A compile takes the patterns of a compiler that is a function relay.ext.COMPILER, and asks for them by the function
    relay.ext.COMPILER.patterns, which this registers. Their names begin with the compiler's and a dot there.

    Parameters
    ----------
    compiler : str
        The compiler.
    table : function or list, optional
        A function without arguments that gives the patterns, or the list itself: (name, pattern) or
        (name, pattern, check), whose check gives True or False, or why not as a str or a `headrace.backend.Refusal`.
        Without it, a decorator for such a function is returned.

    Returns
    -------
    The table, or the decorator

    Examples
    --------
    >>> @relay.op.contrib.register_pattern_table("mychip")
    ... def patterns():
    ...     return [("mychip.bias", is_op("add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))]
    """

    def register(given: Any) -> Any:
        table = _PATTERN_TABLES[compiler] = given() if callable(given) else given
        register_func(f"relay.ext.{compiler}.patterns", lambda: _answers.checked_table(table), override=True)
        return given

    return register if table is None else register(table)


def get_pattern_table(compiler: str) -> Any:
    """Gives the patterns that `register_pattern_table` registered; None where there are none.

    Parameters
    ----------
    compiler : str
        The compiler.

    Returns
    -------
    list of tuple, or None
    """
    return _PATTERN_TABLES.get(compiler)


def register_extern_op(op_name: str, compiler: str, check: Any = True) -> Any:
    """Says which calls of an op a compiler supports; `relay.transform.AnnotateTarget` asks.

    Parameters
    ----------
    op_name : str
        The op, such as "nn.conv2d".
    compiler : str
        The compiler.
    check : bool or function
        True: all calls, False: none. A function of the typed call gives True or False, or why not as a str or a
        `headrace.backend.Refusal`, which `headrace explain` shows; it may also be one of the attributes and the
        arguments.

    Returns
    -------
    function
        What was registered. Its result says so for a call.

    Raises
    ------
    UserError
        For an unknown op, and for a check that is neither a bool nor a function.
    """
    if isinstance(check, bool):
        answer = check
        return register_op_attr(op_name, f"target.{compiler}", lambda call: answer)
    if not callable(check):
        raise UserError(f"register_extern_op: {op_name}: check is {check!r}; it is a bool or a function of the call")
    return register_op_attr(op_name, f"target.{compiler}", check)


def get_extern_op(compiler: str, op_name: str) -> Callable[[Any, Any], bool]:
    """Gives the check of an op for a compiler.

    It is what `register_extern_op` registered, for the op or for nn.`op_name`; before, the module
    `relay.op.contrib.COMPILER` is imported, as `find_checks` says.

    Parameters
    ----------
    compiler : str
        The compiler.
    op_name : str
        The op, such as "conv2d" or "nn.conv2d".

    Returns
    -------
    function
        Of the attributes and the arguments of a call: whether the compiler supports it. It says False where nothing
        was registered.
    """
    find_checks(compiler)
    for op in _ops_called(op_name):
        check = op.get_attr(f"target.{compiler}")
        if check is not None:
            return lambda attrs, args, op=op, check=check: _is_yes(check(_expr.Call(op, args, attrs)))
    return lambda attrs, args: False


def _is_yes(answer: Any) -> bool:
    return _answers.read_answer(answer) is True


def find_checks(compiler: str) -> None:
    """Imports the module `relay.op.contrib.COMPILER`, if there is one in a folder of `relay.op.contrib.__path__`.

    It may register checks and patterns. A function of it with the name of an op, as `conv2d(attrs, args)`, is the check
    of that op, or of the op in nn, where none is registered. `relay.transform.AnnotateTarget` calls this, and so does
    each compile that names the compiler.

    Parameters
    ----------
    compiler : str
        The compiler.
    """
    name = f"{contrib.__name__}.{compiler}"
    spec = None if not compiler.isidentifier() or name in sys.modules else importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    for function_name, check in vars(module).items():
        if not isinstance(check, types.FunctionType) or check.__module__ != name or function_name.startswith("_"):
            continue
        for op in _ops_called(function_name):
            if op.get_attr(f"target.{compiler}") is None:
                register_extern_op(op.name, compiler, check)


def _ops_called(name: str) -> list[Any]:
    known = _known_ops()
    return [_Op.get(one) for one in (name, f"nn.{name}") if one in known]


@functools.cache
def _known_ops() -> frozenset[str]:
    return frozenset(_Op.list_op_names())


def _module(name: str, doc: str, members: dict[str, Callable[..., Any]]) -> types.ModuleType:
    module = types.ModuleType(name, doc)
    vars(module).update(members, __all__=sorted(members), __dir__=lambda: sorted(module.__all__))
    sys.modules[name] = module
    return module


_MEMBERS: dict[str, Callable[..., Any]] = {
    "find_checks": find_checks,
    "get_extern_op": get_extern_op,
    "get_pattern_table": get_pattern_table,
    "register_extern_op": register_extern_op,
    "register_pattern_table": register_pattern_table,
}
# Users of Relay import these from either of the two modules.
contrib = _module("headrace.relay.op.contrib", "The ops and patterns that other compilers support.", dict(_MEMBERS))
contrib.register = _module("headrace.relay.op.contrib.register", "Registers patterns of compilers.", dict(_MEMBERS))  # type: ignore[attr-defined]

contrib.__path__ = []  # type: ignore[attr-defined]  # folders that modules of compilers are imported from
contrib.__all__ += ["register"]  # type: ignore[attr-defined]

_public.publish(__name__, "headrace.relay.op.contrib")
