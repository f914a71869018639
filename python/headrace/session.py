"""InferenceSession: the shape of onnxruntime's, so that a port is a change of import."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from headrace import _core
from headrace.compiler import CompiledModel, compile

_KEPT_COMPILES = 8
_ORT_TYPES = {"float32": "float", "float64": "double"}


class NodeArg:
    """An input or output as the model declares it: a dimension is an int, a name, or None."""

    def __init__(self, port: _core.ModelPort) -> None:
        self.name: str = port.name
        self.shape: list[int | str | None] = port.shape
        self.type: str = f"tensor({_ORT_TYPES.get(port.dtype, port.dtype)})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """Runs a model file. Open dimensions are fixed by the first run's inputs (or by `shapes`).

    Each set of shapes is compiled once and the last eight are kept.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
        threads: int = 0,
        **options: Any,
    ) -> None:
        self._path = fspath(path)
        self._shapes = {name: tuple(dims) for name, dims in (shapes or {}).items()}
        self._options = {"threads": threads, **options}
        inputs, outputs = _core.read_ports(self._path)
        self._inputs = [NodeArg(port) for port in inputs]
        self._outputs = [NodeArg(port) for port in outputs]
        self._compiled: OrderedDict[tuple, CompiledModel] = OrderedDict()
        unknown = self._shapes.keys() - {arg.name for arg in self._inputs}
        if unknown:
            raise _core.UserError(f"shapes: the model has no input {', '.join(sorted(unknown))}")
        if not self._open_inputs():
            self._model_for({})

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the model's order."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return self._outputs

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: None = None
    ) -> list[Any]:
        """The outputs of those names (None: all) as numpy arrays."""
        names = [arg.name for arg in self._inputs]
        missing = [name for name in names if name not in input_feed]
        unknown = [name for name in input_feed if name not in names]
        if missing or unknown:
            raise _core.UserError(
                f"the inputs are {', '.join(names)}; missing: {', '.join(missing) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}"
            )
        tensors = {name: _core.array(value) for name, value in input_feed.items()}
        results = self._model_for(tensors).run([tensors[name] for name in names])
        known = [arg.name for arg in self._outputs]
        wanted = known if output_names is None else list(output_names)
        for name in wanted:
            if name not in known:
                raise _core.UserError(f"the model has no output '{name}'; it has {', '.join(known)}")
        return [results[known.index(name)].numpy() for name in wanted]

    def _open_inputs(self) -> list[str]:
        return [
            arg.name
            for arg in self._inputs
            if arg.name not in self._shapes and any(not isinstance(dim, int) for dim in arg.shape)
        ]

    def _model_for(self, tensors: Mapping[str, _core.NDArray]) -> CompiledModel:
        shapes = {name: tensors[name].shape for name in self._open_inputs()} | self._shapes
        key = tuple(sorted(shapes.items()))
        if key in self._compiled:
            self._compiled.move_to_end(key)
        else:
            self._compiled[key] = compile(self._path, shapes=shapes, **self._options)
            if len(self._compiled) > _KEPT_COMPILES:
                self._compiled.popitem(last=False)
        return self._compiled[key]
