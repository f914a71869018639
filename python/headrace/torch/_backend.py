"""backend: what torch.compile calls with each graph that it finds in a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace import _public
from headrace._core import UserError
from headrace.torch._options import COMMON, check_values, known_options
from headrace.torch._package import torch_package
from headrace.torch._region import Region

__all__ = ["backend"]


def backend(
    module: Any,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compiles a graph for inference, as torch.compile's backend "headrace".

    An installed package offers it under that name; `torch.compile(model, backend=headrace.torch.backend)` is the same.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The graph.
    example_inputs : list
        Its arguments: tensors, and sizes that are symbols.
    options : dict of str to any, optional
        headrace.compile's threads, target, opt_level, backends, backend_options, cache and others, as in
        `torch.compile(model, backend="headrace", options={"threads": 2})`.
    mode : str, optional
        Only None or "default": modes are options of torch's own backend.

    Returns
    -------
    function
        Called with the arguments. It compiles in its first call, since parameters become constants. A graph that
        cannot be compiled runs in PyTorch, after a FallbackWarning that says why.

    Raises
    ------
    UserError
        For a bad option. MissingError, which is one, where PyTorch or onnxscript is not installed.
    """
    torch_package()
    if mode not in (None, "default"):
        raise UserError(f"mode: {mode!r} is for torch's own backend; this one takes options={{'threads': 2}}")
    given = known_options(options, COMMON)
    check_values(given)
    return Region(module, example_inputs, given)


_public.publish(__name__, "headrace.torch")
