"""Every pass of Headrace, by its Relay name: `relay.transform.FoldConstant()(mod)`."""

from __future__ import annotations

import difflib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from headrace import _answers, _arguments, _hints, _node, _public
from headrace._core import UserError
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay._build_ir import bind
from headrace.relay._extern_ops import find_checks
from headrace.relay.transform._recast import recast
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
    "ChangeBatch",
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
    "recast",
]

FunctionPass = _node.class_of("transform.FunctionPass")

# Passes of Relay's that are not here, by the compiler's table.
_hints.add(__name__, {str(name): str(instead) for name, instead in api("transform.PassesNotHere")().items()})


def _compilers(names: Any) -> Any:
    """Names of compilers as they are; their checks may stand in modules that nobody imported yet."""
    for name in [names] if isinstance(names, str) else names if isinstance(names, (list, tuple)) else ():
        if isinstance(name, str):
            find_checks(name)
    return names


# Functions that convert a user's argument to an option, by the option's kind, or by its key to convert only that one.
_CONVERT: dict[str, Callable[[Any], Any]] = {
    "pattern table": _answers.checked_table,
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
        if name == "Defunctionalization" and args:
            return _defunctionalized(*args, **options)
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


def ChangeBatch(data: Mapping[Any, int], batch_size: int = 16) -> Pass:
    """Gives inputs another size along one axis, and types the program again (level 0).

    Parameters
    ----------
    data : dict of Var to int
        Parameters of functions of the module, and the axis of each that changes.
    batch_size : int
        The size that these axes get.

    Returns
    -------
    Pass
    """
    changed = {
        var: _arguments.integer(axis, "ChangeBatch: an axis of data")
        for var, axis in _arguments.entries(data, "ChangeBatch: data").items()
    }
    if _arguments.integer(batch_size, "ChangeBatch: batch_size") < 0:
        raise UserError(f"ChangeBatch: batch_size is {batch_size}; give 0 or more")

    def with_size(var: Any) -> Any:
        shape = list(getattr(var.type_annotation, "shape", ()))
        axis = changed[var]
        if not 0 <= axis < len(shape):
            raise UserError(f"ChangeBatch: %{var.name_hint} is a {var.type_annotation}, which has no axis {axis}")
        shape[axis] = batch_size
        return nodes.Var(var.name_hint, nodes.TensorType(shape, var.type_annotation.dtype))

    def transform(function: Any, mod: Any, context: Any) -> Any:
        found = {param: with_size(param) for param in function.params if param in changed}
        if not found:
            return function
        params = [found.get(param, param) for param in function.params]
        # The former result's type has the former size.
        return nodes.Function(params, bind(function.body, found), None, function.type_params, function.attrs)

    def typed(mod: Any, context: Any) -> Any:
        passes = sys.modules[__name__]
        return passes.InferType()(function_pass(transform, 0, name="ChangeBatch")(mod))

    return module_pass(typed, 0, name="ChangeBatch")


def _defunctionalized(function: Any, mod: Any = None) -> Any:
    """The function without functions as values; the module gets the types and functions that it then needs."""
    function = _arguments.expression(function, "Defunctionalization: func")
    mod = _arguments.module(mod, "Defunctionalization: mod")
    module = mod.copy()
    name = next((name for name, known in mod.functions.items() if known.same_as(function)), None)
    if name is None:
        raise UserError("Defunctionalization: func is not a function of the module; give mod['main']")
    made = api("relay._transform.GetPass")("Defunctionalization", {})(module)
    mod.update(made)
    return made[name]


for _info in pass_registry().values():
    _names = (_info.name, *_info.aliases)
    globals().update(dict.fromkeys(_names, _factory(_info)))
    __all__ += _names

_partition_graph = globals()["PartitionGraph"]


def PartitionGraph(*args: Any, extern_target: Any = None, **options: Any) -> Pass:
    """Makes functions for other compilers of the parts that compiler_begin and compiler_end enclose (level 0).

    Parameters
    ----------
    mod_name : str
        Part of the names of the functions.
    bind_constants : bool
        Whether constants are inside of the functions.
    extern_target : str or list of str, optional
        By name only. Compilers in the order of their priority: AnnotateTarget and MergeCompilerRegions run for them
        before.

    Returns
    -------
    Pass
    """
    partition = _partition_graph(*args, **options)
    if extern_target is None:
        return partition
    passes = sys.modules[__name__]
    steps = [passes.InferType(), passes.AnnotateTarget(extern_target), passes.MergeCompilerRegions(), partition]
    return Sequential(steps, name="PartitionGraph")


PartitionGraph.makes_pass = True  # type: ignore[attr-defined]
_signature = inspect.signature(_partition_graph)
_extern_target = inspect.Parameter("extern_target", inspect.Parameter.KEYWORD_ONLY, default=None)
PartitionGraph.__signature__ = _signature.replace(  # type: ignore[attr-defined]
    parameters=[*_signature.parameters.values(), _extern_target]
)


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
