"""Every pass of Headrace, by its Relay name: `relay.transform.FoldConstant()(mod)`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headrace._core import UserError
from headrace._ffi import api
from headrace.transform import (
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

# Other spellings that users know.
_SPELLINGS = {"PartialEval": "PartialEvaluate", "DeFuseOps": "DefuseOps"}

__all__ = [
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "function_pass",
    "module_pass",
    "pass_registry",
    "prim_func_pass",
]


def _factory(info: Any) -> Callable[..., Any]:
    name = info.name

    prefix = f"relay.{name}."
    keys = {key[len(prefix) :]: row for key, row in PassContext.list_configs().items() if key.startswith(prefix)}

    def make(*args: Any, **options: Any) -> Pass:
        if len(args) > len(keys):
            raise UserError(f"pass {name} takes {len(keys)} arguments ({', '.join(keys)}), got {len(args)}")
        given = {**dict(zip(keys, args, strict=False)), **options}
        return api("relay._transform.GetPass")(name, {key: value for key, value in given.items() if value is not None})

    lines = [f"{info.summary[:1].upper()}{info.summary[1:]} (level {info.opt_level}).", ""]
    if keys:
        lines += ["Parameters", "----------"]
        for key, row in keys.items():
            lines += [f"{key} : {row['type']}, optional", f"    {row['doc']}"]
        lines.append("")
    make.__doc__ = "\n".join([*lines, "Returns", "-------", "Pass"])
    make.__name__ = make.__qualname__ = name
    make.__signature__ = inspect.Signature(
        [inspect.Parameter(key, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for key in keys],
        return_annotation="Pass",
    )
    make.__module__ = __name__
    return make


for _info in pass_registry().values():
    globals()[_info.name] = _factory(_info)
    __all__.append(_info.name)
for _spelling, _name in _SPELLINGS.items():
    if _name in globals():
        globals()[_spelling] = globals()[_name]
        __all__.append(_spelling)


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
    from headrace.ir import IRModule

    return api("relay.analysis.infer_type_expr")(expr, IRModule()).checked_type


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"there is no pass '{name}'; the passes are {', '.join(pass_registry())}")
