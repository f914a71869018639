"""Scalar expressions, tensors computed from them, and loop programs."""

from __future__ import annotations

from headrace import _node, _public
from headrace.ir import Any, FloatImm, IntImm, PrimExpr, StringImm
from headrace.tir import _dtypes, _functions, _operators, _tensors
from headrace.tir._dtypes import *  # noqa: F403
from headrace.tir._functions import *  # noqa: F403
from headrace.tir._operators import *  # noqa: F403
from headrace.tir._programs import interpret, parse, parse_module, raise_compute
from headrace.tir._tensors import *  # noqa: F403

_node.constructor("tir.Var", "name_hint dtype", "A scalar variable, such as a symbolic dimension.")
_node.default("tir.Var", dtype="int64")
_node.constructor("tir.Not", "a dtype", "Whether a condition does not hold.")
_node.default("tir.Not", dtype="bool")

for _key in _node.all_keys("tir"):
    globals()[_key.rpartition(".")[2]] = _node.class_of(_key)

Var = SizeVar = _node.class_of("tir.Var")

__all__ = [
    *_dtypes.__all__,
    *_functions.__all__,
    *_operators.__all__,
    *_tensors.__all__,
    "interpret",
    "parse",
    "parse_module",
    "raise_compute",
    *(_key.rpartition(".")[2] for _key in _node.all_keys("tir")),
    "Any",
    "FloatImm",
    "IntImm",
    "PrimExpr",
    "SizeVar",
    "StringImm",
]

bool = vars(_dtypes)["bool"]  # `import *` leaves out what would hide Python's

_public.facade(__name__, {}, unlisted="transform")
_public.settle(__name__)
