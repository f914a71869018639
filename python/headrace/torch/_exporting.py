"""Modules of PyTorch to compiled models, by torch's ONNX exporter."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace import compiler
from headrace._core import InternalError, UserError
from headrace.torch._axes import with_dims
from headrace.torch._package import torch_package

__all__: list[str] = []

# The opset that torch's exporter writes without a conversion between versions.
_OPSET = 18
_LONGEST_REASON = 600
# torch.export changes state of the process, so that one thread at a time may run it. An export may call a compiled
# module again, in the same thread.
_EXPORTING = threading.RLock()


class Refused(Exception):
    """The reason why a module cannot be compiled; part of a message to the user."""


def compile_module(
    module: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    axes: Any,
    options_for: Callable[[Path], Mapping[str, Any]],
) -> tuple[compiler.CompiledModel, list[str]]:
    """Compiles a torch.nn.Module for inference.

    Parameters
    ----------
    module : torch.nn.Module
        The module, whose parameters and buffers become constants.
    args, kwargs : tuple, dict
        Arguments of a call.
    axes : dict, tuple or None
        The dimensions that stay open, as `named_axes` gives them.
    options_for : function
        Gives the keyword arguments of headrace.compile for the exported file. It may raise UserError.

    Returns
    -------
    CompiledModel, list of str
        The model, and the names of the exported inputs in the order of the tensors in `args` and `kwargs`. The model
        may lack those that no op uses.

    Raises
    ------
    Refused
        If torch's exporter or Headrace's importer does not support the module, or the module has side effects.
    """
    with _EXPORTING, _quiet_exporter():
        program = _exported(module, args, kwargs, axes)
        _refuse_effects(program.exported_program)
    names = [str(value.name) for value in program.model.graph.inputs]
    dtypes = _output_dtypes(program.exported_program)
    with tempfile.TemporaryDirectory(prefix="headrace-torch-") as folder:
        path = Path(folder) / "model.onnx"
        program.save(str(path))
        del program
        options = options_for(path)
        try:
            model = compiler.compile(path, **options)
        except (UserError, InternalError) as error:
            told = str(error).replace(f"'{path}'", "the exported model").replace(str(path), "the exported model")
            raise Refused(f"Headrace cannot compile it: {told[:_LONGEST_REASON]}") from error
    _check_dtypes(model, dtypes)
    return model, names


def _exported(module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], axes: Any) -> Any:
    """The torch.onnx.ONNXProgram of a module."""
    torch = torch_package()
    step = "torch.export"
    try:
        with torch.inference_mode(False), torch.no_grad():
            program = torch.export.export(module, args, dict(kwargs), dynamic_shapes=with_dims(axes), strict=False)
            _refuse_ports(program)
            step = "torch's ONNX exporter"
            with warnings.catch_warnings():
                # Inputs that share a dimension share its name, which the exporter reports.
                warnings.filterwarnings("ignore", "# The axis name")
                return torch.onnx.export(program, dynamo=True, opset_version=_OPSET, verbose=False, dynamic_shapes=axes)
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"{step} refuses it: {_first_cause(error)}") from error


def _first_cause(error: BaseException) -> str:
    """The first paragraph of the error that caused the others."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines() or [""]
    return (lines[0] or type(error).__name__)[:_LONGEST_REASON]


def _refuse_ports(program: Any) -> None:
    """Raises Refused for a torch.export.ExportedProgram that takes complex numbers or gives anything but tensors."""
    torch = torch_package()
    taken = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    for name in program.graph_signature.user_inputs:
        value = taken.get(name)
        if isinstance(value, torch.Tensor) and value.is_complex():
            raise Refused(f"its input '{name}' is {value.dtype}, and Headrace has no complex numbers")
    for i, spec in enumerate(program.graph_signature.output_specs):
        if type(spec.arg).__name__ != "TensorArgument":
            value = f" ({spec.arg.value!r})" if hasattr(spec.arg, "value") else ""
            raise Refused(f"its output {i} is not a tensor{value}; return tensors only")


def _output_dtypes(program: Any) -> list[str]:
    """The dtypes of a program's outputs, such as "float32"."""
    values = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    return [str(values[spec.arg.name].dtype).partition(".")[2] for spec in program.graph_signature.output_specs]


def _check_dtypes(model: compiler.CompiledModel, dtypes: Sequence[str]) -> None:
    """Raises Refused for outputs of other dtypes than PyTorch's: the exporter makes pairs of complex numbers."""
    for i, (spec, dtype) in enumerate(zip(model.outputs, dtypes, strict=True)):
        if spec.dtype != dtype:
            raise Refused(f"its output {i} is {dtype}, and the exported model gives {spec.dtype}")


def _refuse_effects(program: Any) -> None:
    """Raises Refused for a torch.export.ExportedProgram whose calls do more than to compute their outputs."""
    torch = torch_package()
    kinds = torch.export.graph_signature.OutputKind
    written = [str(spec.target) for spec in program.graph_signature.output_specs if spec.kind != kinds.USER_OUTPUT]
    if written:
        raise Refused(
            f"it writes to its inputs or buffers ({', '.join(written[:3])}); if it is in training mode, call "
            "model.eval() first"
        )
    for node in _nodes(program.graph_module):
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _drops_nothing(node):
            raise Refused(
                f"it draws random numbers ({node.target}); if it is in training mode, call model.eval() first"
            )


def _drops_nothing(node: Any) -> bool:
    """Whether a node's op, as attention, would draw random numbers only for a dropout that is 0 here."""
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.name == "dropout_p":
            given = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name, argument.default_value)
            return bool(given == 0)
    return False


def _nodes(module: Any) -> Iterator[Any]:
    """The nodes of a graph and of the graphs in it."""
    for part in module.modules():
        if hasattr(part, "graph"):
            yield from part.graph.nodes


@contextlib.contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silences what torch's exporter logs about packages that are not installed and steps that it skips."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def positions_of(inputs: Sequence[Any], names: Sequence[str]) -> list[int]:
    """Returns which of the exported inputs each input of a compiled model is."""
    return [names.index(spec.name) for spec in inputs]
