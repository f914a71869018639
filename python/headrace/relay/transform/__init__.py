"""Every pass of Headrace, by its Relay name: `relay.transform.FoldConstant()(mod)`."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any

from headrace import _arguments, _hints, _node, _public
from headrace._core import UserError
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay._extern_ops import find_checks
from headrace.transform import (
    ModulePass,
    Pass,
    PassContext,
    PassInfo,
    PrintIR,
    Sequential,
    function_pass,
    module_pass,
    pass_registry,
    prim_func_pass,
)

__all__ = [
    "FunctionPass",
    "InferTypeLocal",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "function_pass",
    "gradient",
    "module_pass",
    "pass_registry",
    "prim_func_pass",
]

FunctionPass = _node.class_of("transform.FunctionPass")

# Passes of Relay's that are not here, by the compiler's table.
_hints.add(__name__, {str(name): str(instead) for name, instead in api("transform.PassesNotHere")().items()})


def _pattern_table(table: Any) -> Any:
    """A table of patterns as C++ takes it: checks give bools, whatever the user's give."""
    if isinstance(table, str) or not isinstance(table, Iterable):
        return table

    def entry(row: Any) -> Any:
        if not isinstance(row, (list, tuple)) or len(row) != 3 or not callable(row[2]):
            return row
        check = row[2]
        return [row[0], row[1], lambda root: bool(check(root))]

    return [entry(row) for row in table]


def _compilers(names: Any) -> Any:
    """Names of compilers as they are; their checks may stand in modules that nobody imported yet."""
    for name in [names] if isinstance(names, str) else names if isinstance(names, (list, tuple)) else ():
        if isinstance(name, str):
            find_checks(name)
    return names


# What makes an option of what users give for it, by the option's kind, or its key where only that one is meant.
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "pattern table": _pattern_table,
    "relay.AnnotateTarget.targets": _compilers,
}


def _presence(default: Any) -> str:
    return "optional" if default is None else f"default {default!r}"


def _factory(info: Any) -> Callable[..., Any]:
    name = info.name
    configs = PassContext.list_configs()
    keys = {str(option): configs[f"relay.{name}.{option}"] for option in info.options}
    converters = {
        key: _CONVERT.get(f"relay.{name}.{key}") or _CONVERT.get(row["type"], lambda value: value)
        for key, row in keys.items()
    }

    def make(*args: Any, **options: Any) -> Pass:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError as error:
            takes = f"takes {len(keys)} arguments ({', '.join(keys)})" if keys else "takes no arguments"
            raise UserError(f"pass {name} {takes}: {error}") from None
        made = {key: converters[key](value) for key, value in given.items() if value is not None}
        return api("relay._transform.GetPass")(name, made)

    lines = [f"{info.summary[:1].upper()}{info.summary[1:]} (level {info.opt_level}).", ""]
    if keys:
        lines += ["Parameters", "----------"]
        for key, row in keys.items():
            lines += [f"{key} : {row['type']}, {_presence(row['default'])}", f"    {row['doc']}"]
        lines.append("")
    make.__doc__ = "\n".join([*lines, "Returns", "-------", "Pass"])
    make.__name__ = make.__qualname__ = name
    parameters = [
        inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=row["default"])
        for key, row in keys.items()
    ]
    make.__signature__ = signature = inspect.Signature(parameters, return_annotation="Pass")
    make.__module__ = __name__
    make.makes_pass = True
    return make


for _info in pass_registry().values():
    _names = (_info.name, *_info.aliases)
    globals().update(dict.fromkeys(_names, _factory(_info)))
    __all__ += _names


def InferTypeLocal(expr: Any) -> Any:
    """The type of an expression whose variables are typed.

    Parameters
    ----------
    expr : RelayExpr
        The expression.

    Returns
    -------
    Type
    """
    expr = _arguments.expression(expr, "InferTypeLocal: expr")
    return api("relay.analysis.infer_type_expr")(expr, IRModule()).checked_type


def gradient(expr: Any, mod: IRModule | None = None, mode: str = "higher_order") -> Any:
    """A function that returns the result of `expr` and the gradients by its parameters.

    Parameters
    ----------
    expr : Function or GlobalVar
        The function; or the name of one of `mod`.
    mod : IRModule, optional
        Functions that it may call. Calls are inlined.
    mode : str
        "first_order" or "higher_order", which give the same: FirstOrderGradient's result, which has gradients itself.

    Returns
    -------
    Function
        The parameters -> the result, and a tuple of gradients.

    Raises
    ------
    UserError
        For another mode, and for what FirstOrderGradient refuses: branches, matches, references and recursion.
    """
    if mode not in ("first_order", "higher_order"):
        raise UserError(f"gradient: mode is {mode!r}; it is first_order or higher_order")
    module = IRModule() if mod is None else mod.copy()
    expr = _arguments.expression(expr, "gradient: expr")
    function = module[expr] if expr.type_key == "relay.GlobalVar" else expr
    name = "gradient"
    while name in module:
        name += "_"
    module[name] = function
    passes = sys.modules[__name__]  # which has its passes by their names, from the registry
    return passes.FirstOrderGradient()(passes.InferType()(module))[name]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "mixed_precision":
        import headrace.relay.transform.mixed_precision as module

        return module
    near = difflib.get_close_matches(name, __all__, n=3)
    told = f"did you mean {' or '.join(near)}?" if near else "hr.transform.pass_registry() lists the passes"
    raise AttributeError(f"there is no pass '{name}'; {told}")


_public.settle(__name__)
