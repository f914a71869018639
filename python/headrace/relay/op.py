"""Operators: `op.get(name)`, and the functions of ops as attributes."""

from __future__ import annotations

from typing import Any

from headrace.ir import Op
from headrace.relay import _op_functions as _ops

get = Op.get


def __getattr__(name: str) -> Any:
    function = None if name.startswith("__") else _ops.find_function("", name)
    if function is None:
        from headrace import relay

        return getattr(relay, name)
    return function
