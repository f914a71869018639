"""Random models of recurrent layers, compiled, against onnxruntime."""

import headrace as hr
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
ACTIVATIONS = ["Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softsign", "Tanh"]
WITH_ALPHA, WITH_BETA = (
    {"Affine", "Elu", "HardSigmoid", "LeakyRelu", "ScaledTanh"},
    {"Affine", "HardSigmoid", "ScaledTanh"},
)


def save_model(path, nodes, outputs, inputs, weights):
    def info(name, x):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)

    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, x) for name, x in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(data, name) for name, data in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    return str(path)


def run_here(path, inputs):
    got = hr.compile(path)(*inputs.values())
    return [x.numpy() for x in (got if isinstance(got, (list, tuple)) else [got])]


def check_near_onnxruntime(path, inputs):
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    for got, want in zip(run_here(path, inputs), session.run(None, inputs), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def random_attributes(rng, cell, directions):
    """Attributes that each of the three operators has."""
    attributes = {}
    if directions == 2 or rng.random() < 0.5:
        attributes["direction"] = "bidirectional" if directions == 2 else "reverse"
    if rng.random() < 0.3:
        attributes["clip"] = float(rng.uniform(0.3, 1))
    if rng.random() < 0.6:
        count = directions * {"LSTM": 3, "GRU": 2, "RNN": 1}[cell]
        names = [str(name) for name in rng.choice(ACTIVATIONS, count)]
        attributes["activations"] = names
        alpha = [float(rng.uniform(0.1, 0.9)) for name in names if name in WITH_ALPHA]
        beta = [float(rng.uniform(0.1, 0.9)) for name in names if name in WITH_BETA]
        attributes |= ({"activation_alpha": alpha} if alpha else {}) | ({"activation_beta": beta} if beta else {})
    if cell == "LSTM" and rng.random() < 0.3:
        attributes["input_forget"] = 1
    if cell == "GRU" and rng.random() < 0.5:
        attributes["linear_before_reset"] = 1
    return attributes


def random_weights(rng, cell, directions, inputs, hidden):
    def data(*shape):
        return (rng.uniform(-1, 1, shape) / np.sqrt(hidden)).astype("float32")

    rows = GATES[cell] * hidden
    return {"w": data(directions, rows, inputs), "r": data(directions, rows, hidden), "b": data(directions, 2 * rows)}


@pytest.mark.parametrize("cell", list(GATES))
@pytest.mark.parametrize("seed", range(5))
def test_layers(cell, seed, tmp_path):
    """Sizes that fill vectors and that do not; operands and results that are left out; weights and data of the run."""
    rng = np.random.default_rng(100 * seed + len(cell))
    steps, batch, width = (int(n) for n in rng.integers(1, 9, 3))
    hidden, directions = int(rng.choice([1, 5, 16, 37, 64])), int(rng.integers(1, 3))
    weights = random_weights(rng, cell, directions, width, hidden)
    inputs = {"x": rng.standard_normal([steps, batch, width]).astype("float32")}
    state = [directions, batch, hidden]
    if rng.random() < 0.5:
        inputs["l"] = rng.integers(1, steps + 1, batch).astype("int32")
    if rng.random() < 0.5:
        inputs["h"] = rng.uniform(-1, 1, state).astype("float32")
    if cell == "LSTM" and rng.random() < 0.5:
        inputs["c"] = rng.uniform(-1, 1, state).astype("float32")
    if cell == "LSTM" and rng.random() < 0.5:
        weights["p"] = rng.uniform(-1, 1, [directions, 3 * hidden]).astype("float32")
    if rng.random() < 0.3:
        del weights["b"]
    if rng.random() < 0.3:
        inputs["r"] = weights.pop("r")
    known = inputs | weights
    names = ["x", "w", "r", "b", "l", "h"] + (["c", "p"] if cell == "LSTM" else [])
    results = ["y", "yh", "yc"] if cell == "LSTM" else ["y", "yh"]
    chosen = [name for name in results if rng.random() < 0.6] or ["yh"]
    node = helper.make_node(
        cell,
        [name if name in known else "" for name in names],
        [name if name in chosen else "" for name in results],
        hidden_size=hidden,
        **random_attributes(rng, cell, directions),
    )
    path = save_model(tmp_path / "m.onnx", [node], chosen, inputs, weights)
    check_near_onnxruntime(path, inputs)


@pytest.mark.parametrize("cell", list(GATES))
def test_layers_that_follow_each_other(cell, tmp_path):
    rng = np.random.default_rng(5)
    weights, nodes, data = {}, [], "x"
    for k, width in enumerate((6, 20)):
        own = {f"{name}{k}": x for name, x in random_weights(rng, cell, 2, width, 10).items()}
        weights |= own
        nodes.append(helper.make_node(cell, [data, *own], [f"y{k}"], hidden_size=10, direction="bidirectional"))
        nodes.append(helper.make_node("Transpose", [f"y{k}"], [f"t{k}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{k}", "shape"], [f"z{k}"]))
        data = f"z{k}"
    weights["shape"] = np.array([0, 0, 20])
    inputs = {"x": rng.standard_normal([7, 3, 6]).astype("float32")}
    check_near_onnxruntime(save_model(tmp_path / "m.onnx", nodes, [data], inputs, weights), inputs)


@pytest.mark.parametrize("cell", list(GATES))
def test_batches_first(cell, tmp_path):
    """onnxruntime has no layout 1: the layout 0 of it gives the same numbers in another order."""
    rng = np.random.default_rng(9)
    weights = random_weights(rng, cell, 2, 3, 5)
    x, h = rng.standard_normal([4, 2, 3]).astype("float32"), rng.uniform(-1, 1, [2, 2, 5]).astype("float32")

    def run(name, layout, inputs):
        names = ["x", "w", "r", "b", "", "h"]
        node = helper.make_node(cell, names, ["y", "yh"], hidden_size=5, direction="bidirectional", layout=layout)
        return run_here(save_model(tmp_path / name, [node], ["y", "yh"], inputs, weights), inputs)

    y, last = run("steps.onnx", 0, {"x": x, "h": h})
    turned = {"x": x.transpose(1, 0, 2).copy(), "h": h.transpose(1, 0, 2).copy()}
    y_of_batch, last_of_batch = run("batch.onnx", 1, turned)
    np.testing.assert_array_equal(y_of_batch, y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(last_of_batch, last.transpose(1, 0, 2))


def test_a_thousand_steps_are_one_kernel(tmp_path):
    """The code does not grow with the steps, and lengths past them stop the run."""
    rng = np.random.default_rng(2)
    weights = random_weights(rng, "GRU", 1, 4, 8)
    inputs = {"x": rng.standard_normal([1000, 2, 4]).astype("float32"), "l": np.array([1000, 17], "int32")}
    node = helper.make_node("GRU", ["x", "w", "r", "b", "l"], ["y", "yh"], hidden_size=8)
    path = save_model(tmp_path / "m.onnx", [node], ["y", "yh"], inputs, weights)
    check_near_onnxruntime(path, inputs)
    with pytest.raises(hr.UserError, match=r"a sequence length is not in \[0, 1000\]"):
        hr.compile(path)(inputs["x"], np.array([1001, 17], "int32"))


def test_gradients_are_refused():
    import headrace.relay as relay

    params = [relay.var(name, shape=shape) for name, shape in (("x", (2, 1, 3)), ("w", (1, 4, 3)), ("r", (1, 4, 4)))]
    rest = [relay.const(np.zeros(shape, "float32")) for shape in ((1, 8), (1, 1, 4))]
    lengths = relay.const(np.array([2], "int32"))
    layer = relay.nn.rnn(*params, rest[0], lengths, rest[1])[0]
    module = hr.IRModule.from_expr(relay.Function(params, layer))
    with pytest.raises(hr.UserError, match=r"nn\.rnn"):
        relay.transform.FirstOrderGradient()(relay.transform.InferType()(module))
