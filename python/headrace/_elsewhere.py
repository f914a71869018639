"""Names of Relay that are not here, with what there is instead: for attributes and for imports alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

_QUANTIZED = "quantized ops are not there"
_SCHEDULES = "the compiler chooses; schedules are not written by hand"
_NETWORKS = "there are no networks made by functions; export one to ONNX and read that by frontend.from_onnx"

_INSTEAD = {
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
    "relay.testing": _NETWORKS,
    "relay.backend": "relay.build and relay.create_executor are all there is of it",
    "relay.vm": 'relay.create_executor("debug") runs control flow, and relay.build compiles programs without any',
}


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
