"""How this build was made, as `tvm.support` says it."""

from __future__ import annotations

from headrace import _core, _public
from headrace._compat.pipeline.factory import pipeline_executor_enabled
from headrace.target import TargetKind

__all__ = ["libinfo"]

# The option of a build, and the backend that is there where it was on.
_BACKENDS = {"USE_CODEGENC": "ccompiler", "USE_DNNL": "onednn", "USE_EXAMPLE_JSON_RUNTIME": "examplejson"}


def libinfo() -> dict[str, str]:
    """The options of the build.

    Returns
    -------
    dict of str to str
        "ON" or "OFF" by TVM's name of an option, for those that mean something here; and "TVM_VERSION", the version of
        this package.
    """

    def has_backend(name: str) -> bool:
        try:
            TargetKind(name)
        except _core.UserError:
            return False
        return True

    options = {"USE_LLVM": True, "USE_GRAPH_EXECUTOR": True, "USE_PIPELINE_EXECUTOR": pipeline_executor_enabled()}
    options |= {option: has_backend(backend) for option, backend in _BACKENDS.items()}
    return {"TVM_VERSION": _core.__version__, **{name: "ON" if is_on else "OFF" for name, is_on in options.items()}}


_public.publish(__name__, "headrace.support")
