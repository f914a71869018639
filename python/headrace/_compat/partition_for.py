"""`relay.op.contrib.partition_for_BACKEND`: programs whose regions for one backend are functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace import _core, backend
from headrace._compat import relay_build
from headrace._ffi import api
from headrace.target import Target, chosen_target
from headrace.transform import PassContext

# Those that come with Headrace, and other names of onednn.
_BACKENDS = "ccompiler dnnl examplejson mkldnn null numpy onednn onnxruntime"


def _partition_for(name: str) -> Callable[..., Any]:
    def partition(mod: Any, params: Mapping[str, Any] | None = None) -> Any:
        if not _core.has_backend(name):
            backend.find(name)  # registers it
        chosen = chosen_target(None) or Target("llvm")
        module, _ = relay_build.with_params(mod, params)
        level = PassContext.current().opt_level if PassContext.is_active() else 3
        return api("relay.build_module.Partition")(module, chosen, [Target(name)], level)

    partition.__doc__ = f"""Makes functions of the parts of `main` that the backend {name} computes.

    The parts are those of `relay.build(mod, ["llvm", "{name}"])`, which first runs the canonical passes. `relay.build`
    of the result needs no list of backends, also after the program was saved as text or JSON and read again. A part
    that the backend refuses to compile is an error of that build.

    Parameters
    ----------
    mod : IRModule or Function
        The program.
    params : dict of str to tensor, optional
        Tensors for parameters of `main`, which become constants.

    Returns
    -------
    IRModule
        Functions with the attribute `Compiler`, and `main`, which calls them.

    Raises
    ------
    UserError
        For a program that cannot be compiled, and a backend that is not in this build.

    Notes
    -----
    Within a PassContext its level, passes, config and instruments hold; without one, the level is 3.
    """
    partition.__name__ = partition.__qualname__ = f"partition_for_{name}"
    partition.__module__ = "headrace.relay.op.contrib"
    return partition


FUNCTIONS = {f"partition_for_{name}": _partition_for(name) for name in _BACKENDS.split()}
