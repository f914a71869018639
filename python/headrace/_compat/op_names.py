"""Names in `headrace.relay.op` beside the table in `places`: functions of ops, and other places of op modules."""

from __future__ import annotations

import sys
import types
from typing import Any

from headrace._compat import partition_for
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

_PLACE = "headrace.relay.op"
__all__ = ["algorithm", "contrib", "reduce", "tensor", "transform"]


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
    module = types.ModuleType(f"{_PLACE}.{name}", "The functions of the ops without a family.")

    def __getattr__(function: str) -> Any:
        found = _function(function)
        if found is None:
            raise _op_functions.no_such_op(module, function)
        return found

    module.__getattr__ = __getattr__
    module.__all__ = _function_names()
    module.__dir__ = _function_names
    return module


def find(_place: types.ModuleType, name: str) -> Any:
    """The function of an op of no family; None for other names, which `relay` may have."""
    return _function(name)


def names() -> set[str]:
    """The names that `find` knows."""
    return {*_function_names(), *_op_functions.names_within("")}


def prepare(place: types.ModuleType) -> None:
    """Lets `import` find modules within `place`, where users of Relay import them from: `headrace.relay.op.nn`."""
    for module in (annotation, image, memory, nn, qnn, random, vision):
        sys.modules[f"{place.__name__}.{module.__name__.rpartition('.')[2]}"] = module
    for module in (algorithm, reduce, tensor, transform):
        sys.modules[module.__name__] = module
    sys.modules[f"{place.__name__}.nn.utils"] = _padding
    sys.modules[f"{place.__name__}.op"] = place


contrib = _extern_ops.contrib
vars(contrib).update(partition_for.FUNCTIONS)
contrib.__all__ = sorted({*contrib.__all__, *partition_for.FUNCTIONS})
algorithm, reduce, tensor, transform = map(_functions_module, ("algorithm", "reduce", "tensor", "transform"))
