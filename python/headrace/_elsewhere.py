"""Names of Relay that are not here, with what there is instead: for attributes and for imports alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

_QUANTIZED = "quantized ops are not there"
_SCHEDULES = "the compiler chooses; schedules are not written by hand"
_NETWORKS = (
    "densenet",
    "dcgan",
    "dqn",
    "inception_v3",
    "layers",
    "lstm",
    "mlp",
    "mobilenet",
    "resnet",
    "resnet_3d",
    "squeezenet",
    "synthetic",
    "tf",
    "vgg",
    "yolo_detection",
)
_FROM_ONNX = "there are no networks made by functions; export one to ONNX and read that by frontend.from_onnx"

_CPU = 'programs run on the CPU: the device is hr.cpu(), the target "llvm"'

_INSTEAD = {
    **{f"{place}{name}": _CPU for place in ("", "target.") for name in ("cuda", "metal", "opencl", "rocm", "vulkan")},
    "gpu": _CPU,
    "auto_scheduler": _SCHEDULES,
    "autotvm": _SCHEDULES,
    "meta_schedule": _SCHEDULES,
    "topi": "te.compute says what an op computes, and the compiler makes the loops",
    "rpc": "there is no remote device; load the artifact where it runs",
    "micro": "there is no runtime for bare microcontrollers; static main programs are the nearest",
    "contrib.debugger": "`headrace bench --steps` times each step",
    "relay.analysis.CallGraph": "mod.functions and analysis.post_order_visit tell who calls whom",
    "relay.analysis.get_calibration_data": "backends of users are not there yet",
    "relay.analysis.list_fake_quantized_op_freqs": _QUANTIZED,
    "relay.collage": "one compiler takes the whole program",
    "relay.dataflow_pattern": "there are no patterns; relay.ExprMutator rewrites programs",
    "relay.loops": 'a recursive function is the loop; relay.create_executor("debug") runs it',
    "relay.qnn": _QUANTIZED,
    "relay.quantize": "quantization is not there",
    **{f"relay.testing.{name}": _FROM_ONNX for name in _NETWORKS},
    "relay.testing.check_grad": "transform.FirstOrderGradient() makes a gradient; compare it to differences of results",
    "relay.testing.create_workload": "IRModule.from_expr(f) makes a module, and numpy its parameters",
    "relay.testing.init": "numpy makes parameters",
    "relay.build_module.BuildModule": "relay.build compiles a module",
    "relay.optimize": "relay.build runs the passes; `headrace-opt --passes canonical` shows what they make",
    "ir.DictAttrs": 'attributes of functions and modules are given as a dict, attrs={"Primitive": 1}, and read as one',
    "target.arm_cpu": 'hr.Target("llvm -mcpu=...") names the processor; code is made for this machine\'s kind',
    "relay.backend": "relay.build and relay.create_executor are all there is of it",
    "relay.vm": 'relay.create_executor("debug") runs control flow, and relay.build compiles programs without any',
}


# Keys of Relay's PassContext that are none here, with the reason; by the longest beginning.
_CONFIGS = {
    "relay.FuseOps.link_params": "parameters that relay.build is given are constants of the code always",
    "relay.backend.use_auto_scheduler": _SCHEDULES,
    "relay.backend.use_meta_schedule": _SCHEDULES,
    "relay.backend.": "relay.build chooses how kernels are made",
    "relay.collage.": "one compiler takes the whole program",
    "relay.ext.": "backends of users are not there yet",
    "relay.fallback_device_type": "programs run on the CPU",
    "relay.frontend.": "relay.frontend.from_onnx takes no options of this kind",
    "tir.": "lowering chooses how loops are made",
    "te.": "lowering chooses how loops are made",
}


def config_hint(key: str) -> str | None:
    """Why a key of Relay's PassContext is none here; None when nothing is known of it."""
    found = [start for start in _CONFIGS if key.startswith(start)]
    return f"there is no configuration '{key}': {_CONFIGS[max(found, key=len)]}; leave it out" if found else None


def hint(module: str, name: str) -> str | None:
    """What to write instead of a name of a module (`headrace.relay`, "vm"); None when nothing is known of it.

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
    place = f"{module}.{name}".removeprefix("headrace.")
    found = _INSTEAD.get(place) or _INSTEAD.get(place.rpartition(".")[0])
    return found and f"{module} has no '{name}': {found}"


def attribute_error(module: str, name: str) -> AttributeError:
    """What a module raises for a name that it does not have."""
    return AttributeError(hint(module, name) or f"module '{module}' has no attribute '{name}'")


class _Finder:
    """Asked by `import` when nobody else knows a module: `from headrace.relay import vm` loses an attribute's hint."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        module, _, name = fullname.rpartition(".")
        told = hint(module, name) if module.partition(".")[0] == "headrace" and not name.startswith("_") else None
        if told:
            raise ImportError(told, name=fullname)


sys.meta_path.append(_Finder)
