"""Models from elsewhere, as programs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments
from headrace._core import UserError
from headrace._ffi import api

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
    model : path or onnx.ModelProto
        The model. One that keeps weights in other files is given as a path, beside those files.
    shape : dict of str to sequence of int, optional
        Of the inputs whose shape the model leaves open; an error lists those that stay so.
    dtype : str or dict
        Taken for the sake of old programs: the model says its own.
    opset : int, optional
        As `dtype`.
    freeze_params : bool
        The weights are constants of the program: there is no other way.

    Returns
    -------
    (IRModule, dict)
        The module, whose "main" takes the model's inputs, and no parameters.
    """
    if not freeze_params:
        raise UserError("from_onnx: weights are constants of the program; freeze_params=False is not there")
    shapes = {_arguments.text(name, "shape"): tuple(dims) for name, dims in dict(shape or {}).items()}
    if isinstance(model, (str, PathLike)):
        return _load(_arguments.path(model, "model"), shapes)
    if not hasattr(model, "SerializeToString"):
        raise UserError(f"model: expected a path or an onnx.ModelProto, got {_arguments.kind(model)}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        file.write_bytes(model.SerializeToString())
        return _load(str(file), shapes)


def _load(path: str, shapes: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    return api("relay.frontend.LoadONNX")(path, shapes), {}


def __getattr__(name: str) -> Any:
    if name.startswith("from_"):
        raise AttributeError(f"headrace.relay.frontend has no '{name}': export the model to ONNX and use from_onnx")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
