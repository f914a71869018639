"""Random models of quantized operators, compiled, against onnxruntime: integers are equal, not near."""

import headrace as hr
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

SEEDS = range(6)


def run_both(path, nodes, inputs, weights):
    """The results of a model whose last node's outputs are its own: compiled here, and by onnxruntime."""

    def kind(x):
        return helper.np_dtype_to_tensor_dtype(x.dtype)

    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind(x), x.shape) for name, x in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in nodes[-1].output],
        [numpy_helper.from_array(np.asarray(data), name) for name, data in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    # As the nodes say: onnxruntime's optimisations would join a float convolution with the quantization around it.
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    want = session.run(None, inputs)
    got = hr.compile(str(path))(*inputs.values())
    return [x.numpy() for x in (got if isinstance(got, (list, tuple)) else [got])], want


def check_equal(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def scale(rng, *shape):
    return rng.uniform(0.01, 0.2, shape).astype("float32")


def weights_of(rng, dtype, shape):
    """Random weights of seven bits: onnxruntime's products of uint8 and int8 saturate at 16 bits on some processors."""
    low, high = (-64, 64) if dtype == "int8" else (0, 128)
    return rng.integers(low, high, shape).astype(dtype)


@pytest.mark.parametrize("seed", SEEDS)
def test_convolutions_of_integers(seed, tmp_path):
    rng = np.random.default_rng(seed)
    groups, rank = int(rng.choice([1, 2, 4])), int(rng.choice([1, 2])) if seed % 2 else 2
    kernel = [int(k) for k in rng.integers(1, 4, rank)]
    attributes = {
        "group": groups,
        "pads": [int(p) for p in rng.integers(0, 3, 2 * rank)],
        "strides": [int(s) for s in rng.integers(1, 3, rank)],
    }
    x = rng.integers(0, 256, [2, 8, *rng.integers(5, 10, rank)]).astype("uint8")
    channels = 4 * int(rng.integers(1, 4))
    w_dtype = str(rng.choice(["int8", "uint8"]))
    w = weights_of(rng, w_dtype, [channels, 8 // groups, *kernel])
    per_channel = bool(seed % 3)
    weights = {
        "xs": scale(rng),
        "xz": np.uint8(rng.integers(0, 256)),
        "w": w,
        "ws": scale(rng, channels) if per_channel else scale(rng),
        "wz": np.full(channels if per_channel else (), 0 if w_dtype == "int8" else 77, w_dtype),
        "ys": np.float32(rng.uniform(1, 8)),
        "yz": np.uint8(rng.integers(90, 160)),
        "b": rng.integers(-5000, 5000, channels).astype("int32"),
    }
    node = helper.make_node("QLinearConv", ["x", *weights], ["y"], **attributes)
    got, want = run_both(tmp_path / "q.onnx", [node], {"x": x}, weights)
    check_equal(got, want)
    assert len(np.unique(got[0])) > 20
    zeros = {"w": w, "xz": weights["xz"], "wz": np.array(0 if w_dtype == "int8" else 77, w_dtype)}
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], **attributes)
    check_equal(*run_both(tmp_path / "i.onnx", [node], {"x": x}, zeros))


@pytest.mark.parametrize("seed", SEEDS)
def test_matrix_products_of_integers(seed, tmp_path):
    rng = np.random.default_rng(seed)
    batch = [[], [3], [2, 2]][seed % 3]
    m, k, n = (int(d) for d in rng.integers(2, 40, 3))
    a = rng.integers(0, 256, [*batch, m, k]).astype("uint8")
    b_dtype = str(rng.choice(["int8", "uint8"]))
    b = weights_of(rng, b_dtype, [k, n])
    columns = n if seed % 2 else ()
    weights = {
        "as": scale(rng),
        "az": np.uint8(rng.integers(0, 256)),
        "b": b,
        "bs": rng.uniform(0.01, 0.2, columns).astype("float32"),
        "bz": rng.integers(0, 9, columns).astype(b_dtype),
        "ys": np.float32(rng.uniform(0.5, 4)),
        "yz": np.uint8(rng.integers(90, 160)),
    }
    node = helper.make_node("QLinearMatMul", ["a", *weights], ["y"])
    check_equal(*run_both(tmp_path / "q.onnx", [node], {"a": a}, weights))
    zeros = {"b": b, "az": weights["az"], "bz": weights["bz"]}
    node = helper.make_node("MatMulInteger", ["a", *zeros], ["y"])
    check_equal(*run_both(tmp_path / "i.onnx", [node], {"a": a}, zeros))


@pytest.mark.parametrize("seed", SEEDS)
def test_quantization(seed, tmp_path):
    rng = np.random.default_rng(seed)
    dtype = ["int8", "uint8"][seed % 2]
    x = (rng.standard_normal([3, 5, 7]) * 20).astype("float32")
    x[0] = np.round(x[0]) / 2  # halves of a scale of 1
    axis = seed % 3
    size = x.shape[axis]
    weights = {
        "s": np.where(rng.random(size) < 0.4, 1, rng.uniform(0.05, 2, size)).astype("float32"),
        "z": rng.integers(0, 100, size).astype(dtype),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis),
    ]
    check_equal(*run_both(tmp_path / "q.onnx", nodes[:1], {"x": x}, weights))
    check_equal(*run_both(tmp_path / "d.onnx", nodes, {"x": x}, weights))
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    check_equal(*run_both(tmp_path / "u.onnx", [node], {"x": x}, {}))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_float_convolution_between_quantizations(seed, tmp_path):
    rng = np.random.default_rng(seed)
    weights = {
        "xs": scale(rng),
        "xz": np.uint8(rng.integers(0, 256)),
        "w": weights_of(rng, "int8", [6, 4, 3, 3]),
        "ws": scale(rng, 6),
        "wz": np.zeros(6, "int8"),
        "b": rng.standard_normal(6).astype("float32"),
        "ys": np.float32(rng.uniform(1, 4)),
        "yz": np.uint8(128),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=0),
        helper.make_node("Conv", ["xf", "wf", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    x = rng.integers(0, 256, [1, 4, 9, 9]).astype("uint8")
    (got,), (want,) = run_both(tmp_path / "m.onnx", nodes, {"x": x}, weights)
    # The sums are of float32 and in another order: a number close to a half may go to either side.
    steps = np.abs(got.astype(int) - want.astype(int))
    assert steps.max() <= 1
    assert (steps == 0).mean() > 0.99
    assert len(np.unique(got)) > 20


def test_the_ops_by_relays_names():
    from headrace import relay
    from headrace.relay.qnn import op

    assert relay.qnn.op.quantize is op.quantize
    assert relay.op.qnn.dequantize is op.dequantize
    x = relay.var("x", shape=(2, 3))
    scale, zero = relay.const([0.5, 1.0], "float32"), relay.const(3)
    q = relay.qnn.op.quantize(x, scale, zero, 0, "uint8")  # Relay's order: the axis, then the dtype
    y = relay.qnn.op.dequantize(q, scale, zero, axis=0)
    run = relay.create_executor("graph", hr.IRModule.from_expr(relay.Function([x], y))).evaluate()
    data = np.array([[0.3, -9, 1], [0.5, 1.5, 300]], "float32")
    np.testing.assert_array_equal(run(data).numpy(), [[0.5, -1.5, 1], [0, 2, 252]])
    w = relay.const(np.array([[1, 2, 3], [4, 5, 6]], "int8"))
    sums = relay.qnn.op.dense(q, w, zero, relay.const(1), relay.const(0.5), relay.const(0.5), units=2)
    run = relay.create_executor("graph", hr.IRModule.from_expr(relay.Function([x], sums))).evaluate()
    # Less the zero point, q is [[1, -3, 2], [0, 2, 252]] and w is [[0, 1, 2], [3, 4, 5]].
    np.testing.assert_array_equal(run(data).numpy(), [[1, 1], [506, 1268]])
    with pytest.raises(hr.UserError, match="output_scale must be as long as data"):
        relay.transform.InferType()(
            hr.IRModule.from_expr(relay.Function([x], relay.qnn.op.quantize(x, scale, zero, axis=1)))
        )


def test_a_network_of_relays_qnn_ops():
    """The interpreter, which the ops' own cases check, and compiled code give the same integers."""
    from headrace import relay
    from headrace.relay.qnn import op

    def number(value):
        return relay.const(value, "float32" if isinstance(value, float) else "int32")

    random = np.random.default_rng(5)
    x = relay.var("x", shape=(1, 3, 8, 8), dtype="uint8")
    w = relay.const(random.integers(-128, 128, (4, 3, 3, 3)).astype("int8"))
    scales = relay.const(np.array([0.01, 0.02, 0.03, 0.04], "float32"))
    each = relay.const(np.array([0.005, 0.01, 0.015, 0.02], "float32"))
    a, b, out = (number(0.5), number(128)), (number(4.0), number(120)), (number(3.0), number(100))
    wide, part = (number(80.0), number(128)), (number(1 / 256), number(0))
    y = op.conv2d(x, w, a[1], number(0), a[0], scales, (3, 3), 4, padding=1)
    assert (y.attrs.out_dtype, list(y.attrs.padding)) == ("int32", [1, 1, 1, 1])
    y = op.requantize(y, each, number(0), *b, 1, "TONEAREST", out_dtype="uint8")
    z = op.add(y, op.leaky_relu(y, 0.125, *b, *b), *b, *b, *out)
    z = op.mul(z, op.subtract(z, y, *out, *b, *out), *out, *out, *wide)
    z = op.concatenate([y, z], [b[0], wide[0]], [b[1], wide[1]], *b, axis=1)
    z = op.avg_pool2d(z, *b, *out, (2, 2), (2, 2), (0, 0), (1, 1), layout="NCHW")
    assert z.attrs.count_include_pad
    z = op.sigmoid(op.hardswish(z, *out, *out), number(1 / 32), out[1], *part)
    v = relay.const(random.integers(-9, 9, (8, 2, 2, 2)).astype("int8"))
    t = op.conv2d_transpose(z, v, part[1], number(0), part[0], number(0.5), (2, 2))
    rows = relay.reshape(z, (1, 8, 16))
    m = op.batch_matmul(rows, rows, part[1], part[1], part[0], part[0])
    assert m.attrs.out_dtype == "int32"
    mod = hr.IRModule.from_expr(relay.Function([x], relay.Tuple([z, t, m])))
    data = random.integers(0, 256, (1, 3, 8, 8)).astype("uint8")
    debug, graph = (relay.create_executor(kind, mod).evaluate()(data) for kind in ("debug", "graph"))
    for want, got in zip(debug, graph, strict=True):
        np.testing.assert_array_equal(got.numpy(), want.numpy())
        assert len(np.unique(want.numpy())) > 10
    text = relay.transform.QnnCanonicalize()(relay.transform.InferType()(mod)).astext()
    assert "qnn." not in text.replace("qnn.quantize", "").replace("qnn.dequantize", "")
