"""Headrace: compiles neural networks to native code and runs them.

One call compiles a model; what it gives is called with tensors:

    import headrace as hr
    f = hr.compile("model.onnx", shapes={"x": (1, 3, 224, 224)})
    y = f(x)
"""

from headrace import graph_executor, nd, runtime
from headrace._core import Device, InternalError, MissingError, NDArray, UserError, __version__, cpu
from headrace.compiler import CompiledModel, compile, load
from headrace.session import InferenceSession

__all__ = [
    "CompiledModel",
    "Device",
    "InferenceSession",
    "InternalError",
    "MissingError",
    "NDArray",
    "UserError",
    "__version__",
    "compile",
    "cpu",
    "graph_executor",
    "load",
    "nd",
    "runtime",
]
