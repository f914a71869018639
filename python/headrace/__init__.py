"""Headrace: compiles neural networks to native code and runs them.

One call compiles a model; what it gives is called with tensors:

    import headrace as hr
    f = hr.compile("model.onnx", shapes={"x": (1, 3, 224, 224)})
    y = f(x)
"""

from headrace import (
    _public,
    cc,
    contrib,
    error,
    graph_executor,
    instrument,
    ir,
    nd,
    parser,
    relay,
    runtime,
    target,
    te,
    testing,
    tir,
    transform,
)
from headrace._container import Array, Map
from headrace._core import Device, InternalError, MissingError, Module, NDArray, PackedFunc, UserError, __version__
from headrace._ffi import convert, get_global_func, list_global_func_names, register_func, register_object
from headrace._node import Object
from headrace.compiler import CompiledModel, compile, load
from headrace.error import TVMError
from headrace.ir import IRModule
from headrace.ir import container as _ir_container  # noqa: F401
from headrace.ir import instrument as _ir_instrument  # noqa: F401
from headrace.ir import transform as _ir_transform  # noqa: F401
from headrace.nd import cpu, device
from headrace.runtime import DataType
from headrace.session import InferenceSession
from headrace.target import Target
from headrace.tir import transform as _tir_transform  # noqa: F401

__all__ = [
    "Array",
    "CompiledModel",
    "DataType",
    "Device",
    "IRModule",
    "InferenceSession",
    "InternalError",
    "Map",
    "MissingError",
    "Module",
    "NDArray",
    "Object",
    "PackedFunc",
    "TVMError",
    "Target",
    "UserError",
    "__version__",
    "cc",
    "compile",
    "contrib",
    "convert",
    "cpu",
    "device",
    "error",
    "get_global_func",
    "graph_executor",
    "instrument",
    "ir",
    "list_global_func_names",
    "load",
    "nd",
    "parser",
    "register_func",
    "register_object",
    "relay",
    "runtime",
    "target",
    "te",
    "testing",
    "tir",
    "transform",
]

_public.settle(__name__)
