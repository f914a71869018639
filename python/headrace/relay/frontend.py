"""Models from elsewhere, as programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from headrace import _arguments, _public
from headrace._core import UserError
from headrace._ffi import api
from headrace._model_source import ModelSource

__all__ = ["from_onnx"]


def from_onnx(
    model: Any,
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: Any = "float32",
    opset: int | None = None,
    freeze_params: bool = True,
) -> tuple[Any, dict[str, Any]]:
    """An ONNX model as a module.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        The model. One that keeps weights in other files is given as a path, beside those files.
    shape : dict of str to sequence of int, optional
        The shapes of the inputs that the model leaves open; an error lists those that stay so.
    dtype : str
        "float32", for the sake of old programs: the model says the dtypes of its inputs.
    opset : int, optional
        The opset of the ModelProto, for the sake of old programs: the model says its own. With a path, leave it out.
    freeze_params : bool
        The weights are constants of the program: there is no other way.

    Returns
    -------
    (IRModule, dict)
        The module, whose "main" takes the model's inputs, and no parameters.

    Raises
    ------
    UserError
        For what is not a model or cannot be read, with the reason; a size of `shape` that is not a number; another
        dtype than the default; another opset than the model's.
    """
    if not freeze_params:
        raise UserError("from_onnx: weights are constants of the program; freeze_params=False is not supported")
    if dtype not in (None, "float32"):
        raise UserError(f"from_onnx: dtype is {dtype!r}; leave it out: the model says the dtypes of its inputs")
    _check_opset(opset, model)
    example = 'shape={"x": (1, 3, 224, 224)}'
    shapes = {name: _sizes(name, dims) for name, dims in _arguments.mapping(shape, "shape", example).items()}
    source = ModelSource(model, "model")
    with source.named():
        return _load(source.path, shapes)


def _check_opset(opset: Any, model: Any) -> None:
    """UserError for an opset that is not the one of the standard's operators in a ModelProto."""
    if opset is None:
        return
    rows = getattr(model, "opset_import", ())
    own = [row.version for row in rows if row.domain in ("", "ai.onnx")]
    if isinstance(opset, bool) or opset not in own:
        found = f", which is {', '.join(map(str, own))}" if own else ""
        raise UserError(f"from_onnx: opset is {opset!r}; leave it out: the model says its own{found}")


def _sizes(name: str, dims: Any) -> tuple[int, ...]:
    """A shape that is given for an input: numbers only."""
    if isinstance(dims, (str, bytes)) or not isinstance(dims, Iterable):
        raise UserError(f"shape: input '{name}': expected a tuple of ints, got {dims!r}")
    sizes = tuple(dims)
    for i, size in enumerate(sizes):
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
            raise UserError(
                f"shape: input '{name}': dimension {i} is {size!r}; sizes are known when a model is read: give a number"
            )
    return tuple(int(size) for size in sizes)


def _load(path: str, shapes: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    return api("relay.frontend.LoadONNX")(path, shapes), {}


_public.settle(__name__)
