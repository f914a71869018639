"""As `headrace.transform`."""

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
