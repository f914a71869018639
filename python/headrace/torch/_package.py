"""PyTorch itself, which is imported when something of `headrace.torch` first needs it, and what its modules share."""

from __future__ import annotations

from types import ModuleType

from headrace import _public
from headrace._core import MissingError

__all__ = ["FallbackWarning"]


class FallbackWarning(UserWarning):
    """Says that PyTorch runs a graph of torch.compile itself, and why.

    `warnings.simplefilter("error", headrace.torch.FallbackWarning)` makes it an error.
    """


def torch_package() -> ModuleType:
    """Returns the module `torch`.

    Raises
    ------
    MissingError
        With the command that installs them, where PyTorch or what its ONNX exporter needs is not installed.
    """
    try:
        import onnxscript  # noqa: F401  # torch.onnx imports it, and says less clearly that it is missing
        import torch
    except ImportError as error:
        raise MissingError(
            f"headrace.torch needs PyTorch and onnxscript, and an import failed ({error}); install both by "
            "pip install '.[torch]' in Headrace's folder"
        ) from None
    return torch


_public.publish(__name__, "headrace.torch")
