"""Headrace: compiles neural networks to native code and runs them.

One call compiles a model; what it gives is called with tensors:

    import headrace as hr
    f = hr.compile("model.onnx", shapes={"x": (1, 3, 224, 224)})
    y = f(x)

Importing the package loads the C++ side and little of Python's: a module is imported when one of its names is used.
"""

from headrace import _native  # noqa: I001  # chooses what the others import as _core
from headrace import _export, _node, _public, _timing  # noqa: F401

_core = _native.module  # an import sets it only where it is headrace._core

_node.extend_by(
    {
        "object": "headrace._container",
        "relay": "headrace._expr",
        "relay.attrs": "headrace._expr headrace.ir",
        "relay.dataflow_pattern": "headrace.relay.dataflow_pattern",
        "relay.attrs.UserAttrs": "headrace._op headrace.ir",
        "ir": "headrace.ir",
        "ir.BaseExpr": "",
        "ir.BaseFunc": "headrace._expr",
        "ir.Op": "headrace._op",
        "ir.Op FTVMCompute": "headrace.relay._op_registration",
        **dict.fromkeys(["ir.Any", "ir.FloatImm", "ir.IntImm", "ir.PrimExpr", "ir.StringImm"], "headrace._prim_expr"),
        "tir": "headrace.tir",
        "transform": "headrace.transform",
        "instrument": "headrace.instrument",
        "interp": "headrace.relay.backend.interpreter",
        "": "headrace.target",
    }
)

__all__ = _public.facade(
    __name__,
    {
        "headrace._container": "Array Map",
        "headrace._core": (
            "Device DiagnosticError InternalError MissingError Module NDArray PackedFunc UserError __version__"
        ),
        "headrace._ffi": "convert get_global_func list_global_func_names register_func",
        "headrace._node": "Object register_object",
        "headrace.compiler": "CompiledModel compile load load_backend",
        "headrace.error": "TVMError",
        "headrace.ir": "IRModule",
        "headrace.nd": "cpu device",
        "headrace.runtime": "DataType",
        "headrace.session": (
            "ExecutionMode GraphOptimizationLevel InferenceSession OrtValue RunOptions SessionOptions "
            "get_available_providers"
        ),
        "headrace.target": "Target",
        "headrace.torch": "from_torch",
    },
    modules=(
        "backend cc contrib error graph_executor instrument ir nd parser pipeline pipeline_executor relay runtime "
        "support target te testing tir transform"
    ),
    unlisted="backends cache compiler container ray session torch",
)
_public.settle(__name__)
