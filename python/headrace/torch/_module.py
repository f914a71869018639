"""from_torch: a module of PyTorch to a CompiledModel."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace import _arguments, _core, _public
from headrace._core import UserError
from headrace.compiler import CompiledModel
from headrace.torch._axes import named_axes
from headrace.torch._exporting import Refused, compile_module
from headrace.torch._options import COMMON, check_values, known_options
from headrace.torch._package import torch_package

__all__ = ["from_torch"]


def from_torch(
    module: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic: Any = None,
    dims: Mapping[str, int] | None = None,
    **options: Any,
) -> CompiledModel:
    """Compiles a module of PyTorch for inference, through torch's own ONNX exporter.

    Parameters
    ----------
    module : torch.nn.Module
        The module, in eval mode. Its parameters and buffers become constants.
    args : tuple of tensors, or tensor
        Example inputs, in the order of `forward`; their shapes and dtypes are compiled.
    kwargs : dict of str to tensor, optional
        Example inputs that `forward` takes by name.
    dynamic : dict or tuple, optional
        Dimensions that the exported model leaves open, in the form of torch.export's `dynamic_shapes`; a str names a
        dimension: {"x": {0: "batch"}}. Inputs that share a name share the size.
    dims : dict of str to int, optional
        The sizes that these dimensions are compiled for. One that is left out keeps the size that it has in `args`.
    **options
        headrace.compile's: threads, target, opt_level, backends, backend_options, output and others.

    Returns
    -------
    CompiledModel
        It takes the tensors of `args` and `kwargs` in order, and gives those of the module's outputs in order, without
        the tuples and dicts around them.

    Raises
    ------
    UserError
        For a module that torch's exporter or Headrace does not support, that draws random numbers or that writes to
        its buffers (both as in training mode), and for a bad option. MissingError, which is one, where PyTorch or
        onnxscript is not installed.
    """
    torch = torch_package()
    if not isinstance(module, torch.nn.Module):
        raise UserError(f"module: expected a torch.nn.Module, got {_arguments.kind(module)}")
    given = known_options(options, [*COMMON, "output", "plan"])
    check_values({name: value for name, value in given.items() if name in COMMON})
    inputs = (args,) if isinstance(args, torch.Tensor) else args
    if isinstance(inputs, str) or not isinstance(inputs, Sequence):
        raise UserError(f"args: expected a tuple of tensors, got {_arguments.kind(args)}")
    named = _arguments.mapping(kwargs, "kwargs", 'kwargs={"mask": mask}')
    sizes = _arguments.dims(dims)
    named = _in_order(named, module)
    tensors = [value for value in _leaves((tuple(inputs), named)) if isinstance(value, torch.Tensor)]
    axes = named_axes(dynamic)

    def options_for(path: Path) -> Mapping[str, Any]:
        return {**given, "dims": {**_example_sizes(path, tensors), **sizes}}

    try:
        model, _ = compile_module(module, tuple(inputs), named, axes, options_for)
    except Refused as refused:
        raise UserError(f"from_torch: {type(module).__name__} cannot be compiled: {refused}") from refused
    return model


def _in_order(kwargs: Mapping[str, Any], module: Any) -> dict[str, Any]:
    """The arguments in the order in which `forward` names them, which is the one of the exported inputs."""
    known = list(inspect.signature(module.forward).parameters)
    return dict(sorted(kwargs.items(), key=lambda item: known.index(item[0]) if item[0] in known else len(known)))


def _leaves(value: Any) -> Iterator[Any]:
    """The values in a tree of dicts, lists and tuples."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _example_sizes(path: Path, tensors: Sequence[Any]) -> dict[str, int]:
    """The sizes that the example inputs have in dimensions that the exported model names."""
    ports, _ = _core.read_ports(str(path), "")
    sizes: dict[str, int] = {}
    for port, tensor in zip(ports, tensors, strict=True):
        for dim, size in zip(port.shape, tensor.shape, strict=True):
            if isinstance(dim, str):
                sizes.setdefault(dim, int(size))
    return sizes


_public.publish(__name__, "headrace.torch")
