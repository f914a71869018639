"""Models for the tests of sessions, each made with onnx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
helper, TensorProto = onnx.helper, onnx.TensorProto

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
W = np.array([2, 3], np.float32)
B = np.array([1, 1], np.float32)


def model_of(nodes: list, inputs: list, outputs: list, initializers: Sequence = (), **fields: Any) -> onnx.ModelProto:
    """A ModelProto; inputs and outputs are (name, type, shape)."""
    ports = [[helper.make_tensor_value_info(*port) for port in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "the_graph", *ports, list(initializers), doc_string="about the graph")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, **fields)


def scaled(rows: str | int = "n", **fields: Any) -> onnx.ModelProto:
    """Y = X * W and Z = Y + B, where W is an input, too, and B is none."""
    return model_of(
        [helper.make_node("Mul", ["X", "W"], ["Y"]), helper.make_node("Add", ["Y", "B"], ["Z"])],
        [("X", TensorProto.FLOAT, [rows, 2]), ("W", TensorProto.FLOAT, [2])],
        [("Y", TensorProto.FLOAT, [rows, 2]), ("Z", TensorProto.FLOAT, [rows, 2])],
        [onnx.numpy_helper.from_array(W, "W"), onnx.numpy_helper.from_array(B, "B")],
        **fields,
    )


def identity(dtype: Any, shape: list) -> onnx.ModelProto:
    """Y = X."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model_of([helper.make_node("Identity", ["X"], ["Y"])], [("X", kind, shape)], [("Y", kind, shape)])
