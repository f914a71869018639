"""Operators: `op.get(name)`, registering ops, and the functions of ops and all else of `relay` as attributes."""

from __future__ import annotations

import sys
import types
from typing import Any

from headrace import _public, relay
from headrace._op import Op
from headrace.relay import (
    _extern_ops,
    _op_functions,
    _padding,
    _root_ops,
    annotation,
    image,
    memory,
    nn,
    qnn,
    random,
    vision,
)


def _function(name: str) -> Any:
    """The function of an op of no family, as `relay` has it; None when there is no such op."""
    if name.startswith("__"):
        return None
    if name in _root_ops.__all__:
        return getattr(_root_ops, name)
    return _op_functions.find_user_op("", name)


def _function_names() -> list[str]:
    """The names that `_function` knows."""
    return sorted({*_root_ops.__all__, *(op for op in Op.list_op_names() if "." not in op)})


def _functions_module(name: str) -> types.ModuleType:
    """A module of Relay's by which its op functions are known too: each has those of all ops without a family."""
    module = types.ModuleType(f"{__name__}.{name}", "The functions of the ops without a family.")

    def __getattr__(function: str) -> Any:
        found = _function(function)
        if found is None:
            raise _op_functions.no_such_op(module, function)
        return found

    module.__getattr__ = __getattr__
    module.__all__ = _function_names()
    module.__dir__ = _function_names
    sys.modules[module.__name__] = module
    return module


def _find(name: str) -> Any:
    found = _function(name)
    return getattr(relay, name) if found is None else found


def _show_families() -> None:
    """Shows the modules of the families here too, where users of Relay import them from: `headrace.relay.op.nn`."""
    for module in (annotation, image, memory, nn, qnn, random, vision):
        sys.modules[f"{__name__}.{module.__name__.rpartition('.')[2]}"] = module
    sys.modules[f"{__name__}.nn.utils"] = _padding
    sys.modules[f"{__name__}.op"] = sys.modules[__name__]


__all__ = _public.facade(
    __name__,
    {
        "headrace._compat.watched_values": "debug",
        "headrace.relay._op_registration": (
            "MIXED_PRECISION_ALWAYS MIXED_PRECISION_FOLLOW MIXED_PRECISION_NEVER Op OpPattern get register "
            "register_alter_op_layout register_bounded_form register_commuting_factors register_compute "
            "register_convert_op_layout register_gradient register_keep_layout register_keeps_elements "
            "register_legalize "
            "register_mixed_precision_conversion register_op_attr register_packed_func register_pattern "
            "register_prim_func register_stateful register_treats_apart reset_legalize why_opaque"
        ),
    },
    find=_find,
    more=lambda: {*_function_names(), *_op_functions.names_within("")},
)
__all__ += ["algorithm", "contrib", "reduce", "tensor", "transform"]
contrib = _extern_ops.contrib
algorithm, reduce, tensor, transform = map(_functions_module, ("algorithm", "reduce", "tensor", "transform"))
_show_families()
_public.settle(__name__)
