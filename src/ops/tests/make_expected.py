"""Writes the expected results of the op families' tests, computed by numpy in float64 and onnxruntime in float32.

    python3 src/ops/tests/make_expected.py > src/ops/tests/expected.h

Needs numpy, onnx, onnxruntime. Inputs are fixed: a seeded generator, rounded to multiples of 1/8, so that they are
exact in float16 and sums of products are exact in float32.
"""

import math
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

rng = np.random.default_rng(20)


def data(*shape: int, low: float = -3.0, high: float = 3.0) -> np.ndarray:
    return np.round(rng.uniform(low, high, shape) * 8) / 8


def run(op: str, inputs: list[np.ndarray], opset: int = 13, **attrs: object) -> np.ndarray:
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in zip(names, inputs, strict=True)],
        [helper.make_empty_tensor_value_info("y")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {n: x.astype(np.float32) for n, x in zip(names, inputs, strict=True)})[0]


def literal(number: float) -> str:
    v = float(number)
    if math.isnan(v):
        return "kNan"
    if math.isinf(v):
        return "kInfinity" if v > 0 else "-kInfinity"
    return repr(v)


def array(values: np.ndarray) -> str:
    x = np.asarray(values, dtype=np.float64)
    shape = ", ".join(str(d) for d in x.shape)
    items = ", ".join(literal(v) for v in x.ravel())
    return f"{{{{{shape}}}, {{{items}}}}}"


def case(name: str, inputs: list[np.ndarray], output: np.ndarray) -> None:
    print(f"inline const Case k{name}{{")
    print("    {" + ",\n     ".join(array(x) for x in inputs) + "},")
    print("    " + array(output) + "};")


versions = f"numpy {np.__version__} and onnxruntime {onnxruntime.__version__}"
print(f"""// Written by src/ops/tests/make_expected.py from {versions}; see there for the command.
// clang-format off
#pragma once

#include <limits>

#include "object/shape_tuple.h"

namespace headrace::ops::testing {{

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Tensor {{
  Shape shape;
  std::vector<double> data;
}};
struct Case {{
  std::vector<Tensor> inputs;
  Tensor output;
}};
""")

# Unary functions: one grid, and one for those whose domain is narrower.
grid = np.array([-3.0, -2.5, -1.5, -1.0, -0.5, -0.125, 0.0, 0.125, 0.5, 1.0, 1.5, 2.5, 3.0])
positive = np.array([0.125, 0.5, 1.0, 1.5, 2.0, 8.0, 100.0])
unit = np.array([-0.875, -0.5, 0.0, 0.25, 0.875])
erf = np.vectorize(math.erf)
for name, f, x in [
    ("exp", np.exp, grid),
    ("log", np.log, positive),
    ("log2", np.log2, positive),
    ("log10", np.log10, positive),
    ("sqrt", np.sqrt, positive),
    ("rsqrt", lambda v: 1 / np.sqrt(v), positive),
    ("sigmoid", lambda v: 1 / (1 + np.exp(-v)), grid),
    ("erf", erf, grid),
    ("sin", np.sin, grid),
    ("cos", np.cos, grid),
    ("tan", np.tan, grid),
    ("asin", np.arcsin, unit),
    ("acos", np.arccos, unit),
    ("atan", np.arctan, grid),
    ("sinh", np.sinh, grid),
    ("cosh", np.cosh, grid),
    ("tanh", np.tanh, grid),
    ("asinh", np.arcsinh, grid),
    ("acosh", np.arccosh, positive + 1),
    ("atanh", np.arctanh, unit),
    ("floor", np.floor, grid),
    ("ceil", np.ceil, grid),
    ("round", lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v), grid),  # the sums are exact
    ("trunc", np.trunc, grid),
    ("abs", np.abs, grid),
    ("negative", np.negative, grid),
    ("sign", np.sign, grid),
    ("relu", lambda v: np.maximum(v, 0), grid),
]:
    case("Unary_" + name, [x], f(x))
x, alpha = data(2, 3, 2), np.array([0.5, 0.25, -1.0])
case("PRelu", [x, alpha], run("PRelu", [x, alpha.reshape(3, 1)]))

# Binary functions over [2,3] by [3] and [2,1].
a, b = data(2, 3), np.array([-2.0, 0.5, 1.5])
for name, f in [
    ("add", np.add),
    ("subtract", np.subtract),
    ("multiply", np.multiply),
    ("divide", np.divide),
    ("mod", np.fmod),
    ("floor_mod", np.mod),
    ("floor_divide", np.floor_divide),
    ("maximum", np.maximum),
    ("minimum", np.minimum),
    ("equal", np.equal),
    ("less", np.less),
    ("less_equal", np.less_equal),
    ("greater", np.greater),
    ("greater_equal", np.greater_equal),
    ("not_equal", np.not_equal),
]:
    case("Binary_" + name, [a, b], f(a, b))
case("Binary_power", [np.abs(a) + 0.5, b], (np.abs(a) + 0.5) ** b)
i, j = np.array([[-7, 7, -8, 5]]), np.array([[2], [-2], [3]])
for name, f in [
    ("add", np.add),
    ("floor_divide", np.floor_divide),
    ("floor_mod", np.mod),
    ("mod", np.fmod),
    ("divide", lambda p, q: np.trunc(p / q)),
    ("bitwise_and", np.bitwise_and),
    ("bitwise_or", np.bitwise_or),
    ("bitwise_xor", np.bitwise_xor),
]:
    case("Int_" + name, [i, j], f(i, j))

# Reductions.
x = data(2, 3, 4)
for name, f in [("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min), ("prod", np.prod)]:
    case("Reduce_" + name, [x], f(x, axis=(0, 2)))
    case("ReduceAll_" + name, [x], f(x))
case("ReduceKeep_sum", [x], np.sum(x, axis=1, keepdims=True))
mean = x.mean(axis=2, keepdims=True)
case("Variance", [x, mean], x.var(axis=2))
case("VarianceUnbiased", [x, mean], x.var(axis=2, ddof=1))
ties = np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 0.0, 0.0]])
case("ArgMax", [ties], run("ArgMax", [ties], axis=1, keepdims=0))
case("ArgMaxLast", [ties], run("ArgMax", [ties], axis=1, keepdims=0, select_last_index=1))
case("ArgMin", [ties], run("ArgMin", [ties], axis=1, keepdims=0))
case("ArgMinLast", [ties], run("ArgMin", [ties], axis=1, keepdims=0, select_last_index=1))

# Normalisations.
x = data(2, 3, 2, 2)
vectors = [data(3), data(3), data(3), data(3, low=0.5, high=2)]
case("BatchNorm", [x, *vectors], run("BatchNormalization", [x, *vectors], epsilon=1e-3))
x, g, b = data(2, 3, 4), data(4), data(4)
case("LayerNorm", [x, g, b], run("LayerNormalization", [x, g, b], opset=17, epsilon=1e-5))
case("Softmax", [x], run("Softmax", [x], axis=1))
case("LogSoftmax", [x], run("LogSoftmax", [x], axis=2))
x = data(1, 6, 2, 2)
case("Lrn", [x], run("LRN", [x], size=3, alpha=0.5, beta=0.75, bias=2.0))
# onnxruntime has odd windows only; in the ONNX specification, LRN-13, an even one's extra channel is after the centre.
squares = np.stack([np.sum(x[:, max(0, c - 1) : c + 3] ** 2, axis=1) for c in range(6)], axis=1)
case("LrnEven", [x], x / (1.0 + 0.5 / 4 * squares) ** 0.5)

# Convolutions.
x, w = data(2, 4, 6, 5), data(6, 4, 3, 2)
case("Conv", [x, w], run("Conv", [x, w]))
case("ConvAsymmetric", [x, w], run("Conv", [x, w], pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2]))
w = data(4, 2, 3, 3)
case("ConvGroups", [x, w], run("Conv", [x, w], group=2, pads=[1, 1, 1, 1], strides=[2, 2]))
w = data(4, 1, 3, 3)
case("ConvDepthwise", [x, w], run("Conv", [x, w], group=4, pads=[1, 1, 1, 1]))
x, w = data(1, 4, 3, 3), data(4, 2, 3, 3)
case("ConvTranspose", [x, w], run("ConvTranspose", [x, w], strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]))
case(
    "ConvTransposeGroups",
    [x, w],
    run("ConvTranspose", [x, w], group=2, strides=[2, 1], pads=[1, 0, 0, 1], dilations=[1, 2]),
)

# Matrix products.
a, b = data(2, 3, 4), data(5, 4)
case("Dense", [a, b], a @ b.T)
p, q = data(4, 3), data(4, 5)
case("MatmulTransposeA", [p, q], p.T @ q)
p, q = data(1, 3, 4), data(2, 5, 4)
case("BatchMatmul", [p, q], p @ q.transpose(0, 2, 1))

# Pools.
x = data(1, 2, 6, 5)
case("MaxPool", [x], run("MaxPool", [x], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 0, 1]))
case("MaxPoolDilated", [x], run("MaxPool", [x], kernel_shape=[2, 2], dilations=[2, 3]))
case("MaxPoolCeil", [x], run("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1))
case("AvgPool", [x], run("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))
case(
    "AvgPoolCountPad",
    [x],
    run("AveragePool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1),
)
case("AvgPoolCeil", [x], run("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1))
case("GlobalAvg", [x], run("GlobalAveragePool", [x]))
case("GlobalMax", [x], run("GlobalMaxPool", [x]))
x = data(1, 2, 7)
case("MaxPool1D", [x], run("MaxPool", [x], kernel_shape=[3], strides=[2]))
x = data(1, 1, 4, 3, 4)
case("AvgPool3D", [x], run("AveragePool", [x], kernel_shape=[2, 2, 2], strides=[2, 1, 2]))

print("}  // namespace headrace::ops::testing")
sys.stdout.flush()
