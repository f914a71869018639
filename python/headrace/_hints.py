"""Hints for names that TVM has and Headrace has not: each says what there is instead."""

from __future__ import annotations

from collections.abc import Mapping

_AS_PYTHON = 'relay.create_executor("debug") runs a program; none is written as Python'
_CONTEXT = "a context says it: with hr.transform.PassContext(opt_level=3, config={...})"
_CPU = 'programs run on the CPU: the device is hr.cpu(), the target "llvm"'
_CPS = "there is no continuation-passing form"
_FIXTURES = "its tests ran in a pytest of TVM's; pytest.fixture and pytest.mark.parametrize do the same"
_FROM_ONNX = "there is no such network; export one to ONNX and read that by frontend.from_onnx"
_INTERPRETED = 'relay.create_executor("debug") runs control flow, and relay.build compiles programs without any'
_QUANTIZED = "floats are not replaced by integers; write qnn.op.quantize and qnn.op.dequantize"
_LAYOUTS = "relay.op.register_convert_op_layout says how an op takes a layout"
_PLAIN = "relay.transform.QnnCanonicalize() makes plain ops of quantized ones, and builds run it"
_REQUANTIZE = "requantize(..., rounding=..., compute_dtype=...) says it of each call"
_SCHEDULES = "the compiler chooses; schedules are not written by hand"
_TENSOR_ARRAYS = "there are no tensor arrays; a List of prelude.rly holds tensors of one type"


def _all(place: str, names: str, instead: str) -> dict[str, str]:
    """Several names of a place, for which there is one thing instead."""
    return {f"{place}{name}": instead for name in names.split()}


_INSTEAD = {
    **_all("", "cuda gpu metal opencl rocm vulkan", _CPU),
    **_all("nd.", "cuda gpu metal opencl rocm vulkan", _CPU),
    **_all("runtime.", "cuda gpu metal opencl rocm vulkan", _CPU),
    **_all("target.", "cuda gpu metal opencl rocm vulkan", _CPU),
    **_all("", "auto_scheduler autotvm meta_schedule", _SCHEDULES),
    "build": "relay.build compiles a program; tir.interpret runs a loop function",
    "context": 'hr.device("cpu", 0) is its name now',
    "driver": "`headrace compile`, `run` and `bench` are the program for the command line",
    "lower": "te.create_prim_func makes the plainest loops, and relay.build the fast ones",
    "micro": "there is no runtime for bare microcontrollers; static main programs are the nearest",
    "rpc": "there is no remote device; load the artifact where it runs",
    "script": "tir.parse reads a loop function, and func.script() prints one",
    "topi": "te.compute says what an op computes, and the compiler makes the loops; "
    "topi.utils.get_const_tuple(shape) is tuple(int(dim) for dim in shape)",
    **_all("contrib.", "debug_executor debugger", "`headrace bench --steps` times each step"),
    "contrib.download": "files are got without the package, as by urllib.request.urlretrieve",
    "contrib.graph_runtime": "hr.contrib.graph_executor is its name now",
    "contrib.relay_viz": "mod.show() prints a program; `headrace inspect --steps` shows what it is compiled to",
    "ir.DictAttrs": 'attributes of functions and modules are given as a dict, attrs={"Primitive": 1}, and read as one',
    "ir.Range": "the pair (begin, end) says it, as in te.reduce_axis((0, n))",
    "relay.analysis.AnnotatedRegionSet": "relay.transform.PartitionGraph() shows the regions, each as a function",
    "relay.analysis.get_calibration_data": "let the program return the values that you want to see; "
    'relay.create_executor("debug") runs any program',
    "relay.analysis.list_fake_quantized_op_freqs": _QUANTIZED,
    "relay.analysis.search_fc_transpose": "analysis.post_order_visit finds the calls of nn.dense; FoldConstant "
    "transposes constant weights",
    "relay.backend": "relay.build and relay.create_executor are all there is of it",
    "relay.backend.te_compiler": "relay.build compiles a function to kernels, and lib.get_source() shows them; "
    "te.create_prim_func makes the loops of a tensor expression",
    "relay.build_config": _CONTEXT,
    "relay.build_module.BuildModule": "relay.build compiles a module",
    "relay.collage": "one compiler takes the whole program",
    **_all("relay.", "MixedModeVisitor expr_functor.MixedModeVisitor", "relay.ExprVisitor goes as deep"),
    **_all(
        "relay.",
        "MixedModeMutator expr_functor.MixedModeMutator",
        "relay.ExprMutator goes as deep, and calls visit_call once for each call; super().visit_call(call) is the call "
        "with its operands rewritten",
    ),
    **_all(
        "relay.frontend.from_",
        "caffe caffe2 coreml darknet keras mxnet oneflow paddle pytorch tensorflow tflite",
        "export the model to ONNX and use from_onnx",
    ),
    "relay.frontend.common": "relay.testing.run_infer_type(expr).checked_type tells shapes; there is one frontend, "
    "from_onnx",
    "relay.op.register_external_compiler": 'hr.register_func("relay.ext.NAME") takes the functions that a program '
    'marks Compiler="NAME", and compiles them; relay.op.register_packed_func lets a function compute an op',
    **_all(
        "relay.op.register_",
        "broadcast_schedule injective_schedule reduce_schedule schedule strategy",
        f"{_SCHEDULES}; relay.op.register_compute says what an op computes",
    ),
    **_all("relay.", "op.register_infer_correct_layout transform.infer_layout_utils", _LAYOUTS),
    "relay.op.register_shape_func": "the type relation of an op, op.add_type_rel, tells the shapes, symbolic ones too",
    **_all("relay.prelude.", "StaticTensorArrayOps TensorArrayOps", _TENSOR_ARRAYS),
    **_all(
        "relay.prelude.Prelude.",
        "get_ctor_static get_name get_name_static get_tensor_ctor get_tensor_ctor_static get_var get_var_static",
        _TENSOR_ARRAYS,
    ),
    "relay.qnn.transform": _PLAIN,
    **_all("relay.qnn.", "requantize_config op.requantize_config", _REQUANTIZE),
    "relay.quantize": "quantization of floats is not supported; programs with qnn ops are",
    "relay.setrecursionlimit": "programs may nest as deep as they like, and run in the interpreter with calls and "
    "branches nested 50,000 deep; Python's own limit is sys.setrecursionlimit",
    **_all(
        "relay.testing.",
        "darknet lenet tf tflite tlstm yolo_detection",
        _FROM_ONNX,
    ),
    "relay.testing.ctx_list": "testing.enabled_targets() gives the same pairs",
    "relay.testing.config": "testing.enabled_targets() gives pairs of a target and a device",
    **_all("relay.testing.", "py_converter run_as_python to_python", _AS_PYTHON),
    "relay.transform.FoldConstantExpr": "FoldConstant() folds a module; IRModule.from_expr makes one of an expression",
    "relay.transform.ToANormalFormExpr": "ToANormalForm() is over a module; IRModule.from_expr makes one of an "
    "expression",
    "relay.transform.build_config": _CONTEXT,
    **_all("relay.transform.", "to_cps un_cps", _CPS),
    "relay.vision.proposal": "compute the boxes of the anchors and sort them with other ops, then use "
    "vision.all_class_non_max_suppression",
    "relay.vm": _INTERPRETED,
    "runtime.vm": _INTERPRETED,
    "target.arm_cpu": 'hr.Target("llvm -mcpu=...") names the processor; code is made for this machine\'s kind',
    **_all("te.", "create_schedule thread_axis", _SCHEDULES),
    "te.extern": "te.compute says elements; relay.op.register_packed_func lets a function compute an op",
    **_all("testing.", "exclude_targets fixture known_failing_targets parameters", _FIXTURES),
    **_all(
        "testing.requires_",
        "cublas cudnn hexagon micro nvptx rpc tensorcore",
        "there is nothing of it here; testing.requires_gpu skips a test",
    ),
    "tir.Schedule": _SCHEDULES,
}


# Keys of Relay's PassContext that are none here, with the reason; by the longest beginning.
_CONFIGS = {
    "relay.FuseOps.link_params": "parameters that relay.build is given are constants of the code always",
    "relay.backend.use_auto_scheduler": _SCHEDULES,
    "relay.backend.use_meta_schedule": _SCHEDULES,
    "relay.backend.": "relay.build chooses how kernels are made",
    "relay.collage.": "one compiler takes the whole program",
    "relay.ext.": "relay.ext.NAME.options is a key once there is the backend, or the function relay.ext.NAME",
    "relay.fallback_device_type": "programs run on the CPU",
    "relay.frontend.": "relay.frontend.from_onnx takes no options of this kind",
    "tir.": "lowering chooses how loops are made",
    "te.": "lowering chooses how loops are made",
}


# Attributes of TVM's ops that nothing here asks for, with the reason.
_OP_ATTRS = {
    **_all(
        "",
        "FTVMFakeQuantizationToInteger FTVMOptionalFakeQuantizationToInteger FQAnnotateRewrite FQRealizeRewrite",
        _QUANTIZED,
    ),
    **_all("", "FTVMSchedule FTVMStrategy", f"{_SCHEDULES}; relay.op.register_compute says what an op computes"),
    "FInferCorrectLayout": _LAYOUTS,
    "FShapeFunc": "the type relation, op.add_type_rel, tells the shapes, symbolic ones too",
}


def op_attr_hint(key: str) -> str | None:
    """The reason why an attribute of TVM's ops has no effect here; None when the attribute is not one of TVM's."""
    return f"the attribute '{key}' would change nothing: {_OP_ATTRS[key]}; leave it out" if key in _OP_ATTRS else None


def config_hint(key: str) -> str | None:
    """The reason why a key of Relay's PassContext does not exist here; None when the key is not one of Relay's."""
    found = [start for start in _CONFIGS if key.startswith(start)]
    return f"there is no configuration '{key}': {_CONFIGS[max(found, key=len)]}; leave it out" if found else None


def instead(place: str) -> str | None:
    """The replacement for a name of Relay's ("relay.vm"), as a sentence; None when none is known."""
    return _INSTEAD.get(place) or _INSTEAD.get(place.rpartition(".")[0])


def hint(module: str, name: str) -> str | None:
    """A sentence that says what to write instead of a name (`headrace.relay`, "vm"); None when no replacement is known.

    Parameters
    ----------
    module : str
        The module's full name.
    name : str
        What it does not have.

    Returns
    -------
    str or None
        A sentence.
    """
    found = instead(f"{module}.{name}".removeprefix("headrace."))
    return found and f"{module} has no '{name}': {found}"


def add(module: str, instead: Mapping[str, str]) -> None:
    """Makes more names of a module known, each with what there is instead."""
    _INSTEAD.update({f"{module}.{name}".removeprefix("headrace."): told for name, told in instead.items()})
