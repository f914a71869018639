"""The backend `onnxruntime`: nodes of ONNX models for which Headrace has no op; README.md beside it says how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace import _node, _public
from headrace._core import UserError
from headrace.backend import Backend, OnnxNode, Region
from headrace.backends.onnxruntime import _model

if TYPE_CHECKING:
    import numpy as np

__all__ = ["OnnxRuntimeBackend"]

_FORMAT = "1"


class _Session:
    """A region that is loaded: a model of ONNX with inputs and outputs in the region's order."""

    def __init__(self, data: bytes) -> None:
        self._session = _model.open_session(data)
        self._inputs = [one.name for one in self._session.get_inputs()]

    def run(self, name: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Computes the region."""
        if len(inputs) != len(self._inputs):
            raise UserError(f"it has {len(self._inputs)} inputs and got {len(inputs)}")
        results = self._session.run(None, dict(zip(self._inputs, inputs, strict=True)))
        for i, (output, result) in enumerate(zip(outputs, results, strict=True)):
            if result.shape != output.shape or result.dtype != output.dtype:
                raise UserError(
                    f"result {i} of onnxruntime is {result.dtype}{list(result.shape)}, and the model was compiled for "
                    f"{output.dtype}{list(output.shape)}"
                )
            output[...] = result


class OnnxRuntimeBackend(Backend):
    """Computes calls of extern.onnx by onnxruntime."""

    name = "onnxruntime"

    @property
    def version(self) -> str:  # type: ignore[override]
        """That of the package onnxruntime."""
        return f"{_FORMAT} on onnxruntime {_model.onnxruntime().__version__}"

    def supports(self, call: Any) -> bool | str:
        """Takes the calls of extern.onnx whose node onnxruntime opens and computes with the types of the call."""
        if call.op.name != "extern.onnx":
            return _model.ONLY_NODES
        return _model.refusal_of_call(call) or True

    def claim(self, node: OnnxNode) -> list[Any] | str:
        """Takes the nodes that onnxruntime opens a model of."""
        verdict = _model.verdict_of_node(node.message, node.opset, node.inputs)
        if verdict.refusal:
            return verdict.refusal
        types = [
            declared if shape is None else _node.class_of("relay.TensorType")(shape, dtype)
            for dtype, shape, declared in zip(verdict.dtypes, verdict.shapes, node.results, strict=True)
        ]
        if None in types:
            return "neither onnxruntime nor the model gives the sizes of its results"
        return types

    def compile(self, regions: list[Region], options: dict[str, Any]) -> list[bytes | str]:
        """Writes each region as a model of ONNX; there are no options."""
        if options:
            raise UserError(f"the backend 'onnxruntime' has no option '{next(iter(options))}', and no other")
        return [_model.model_of_region(region.function) for region in regions]

    def load(self, data: bytes) -> _Session:
        """Opens the model."""
        return _Session(data)

    def accepts_version(self, recorded: str) -> bool | str:
        """Reads what this backend wrote with any onnxruntime: one that lacks an operator says so when it is opened."""
        return recorded.startswith(f"{_FORMAT} on ") or f"its models are of the form {_FORMAT}"


_public.settle(__name__)
