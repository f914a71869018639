"""Operators that onnxruntime's optimiser writes into models (com.microsoft), and models that it wrote, against
onnxruntime; by numpy, where its CPU kernels lack a form."""

import headrace as hr
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper, numpy_helper  # noqa: E402

MS = "com.microsoft"
F32 = onnx.TensorProto.FLOAT


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, domain=MS, **attributes)


def save(path, nodes, inputs, weights=None):
    """A model whose outputs are all outputs of its nodes that no other node uses."""
    used = {name for one in nodes for name in one.input}
    outputs = [name for one in nodes for name in one.output if name and name not in used]
    # The type of `qk` cannot be inferred by onnxruntime.
    infos = [
        helper.make_tensor_value_info(name, F32, None)
        if name.startswith("qk")
        else helper.make_empty_tensor_value_info(name)
        for name in outputs
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in inputs.items()
        ],
        infos,
        [numpy_helper.from_array(np.asarray(data), name) for name, data in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return str(path)


def run(path, inputs):
    got = hr.compile(str(path))(**inputs)
    return [x.numpy() for x in (got if isinstance(got, (list, tuple)) else [got])]


def run_reference(path, inputs):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, inputs)


def close(got, want, rtol=1e-4, atol=1e-5):
    """The sums of float32 have another order than onnxruntime's."""
    assert len(got) == len(want)
    for one, reference in zip(got, want, strict=True):
        assert one.shape == reference.shape
        assert one.dtype == reference.dtype
        np.testing.assert_allclose(one, reference, rtol=rtol, atol=atol)


def check(tmp_path, nodes, inputs, weights=None, **tolerance):
    path = save(tmp_path / "m.onnx", nodes, inputs, weights)
    close(run(path, inputs), run_reference(path, inputs), **tolerance)


def refusal(tmp_path, nodes, inputs, weights=None):
    with pytest.raises(hr.UserError) as caught:
        hr.compile(save(tmp_path / "m.onnx", nodes, inputs, weights))
    return str(caught.value)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype("float32")


# ---- Conv, Gemm, MatMul


def test_fused_conv(tmp_path, rng):
    inputs = {"x": floats(rng, 1, 4, 7, 6), "z": floats(rng, 1, 6, 4, 6)}
    weights = {"w": floats(rng, 6, 2, 3, 3), "b": floats(rng, 6)}
    common = {"group": 2, "strides": [2, 1], "pads": [1, 1, 1, 1]}
    nodes = [node("FusedConv", ["x", "w"], ["plain"], **common)]
    nodes.append(node("FusedConv", ["x", "w", "b", "z"], ["sum"], activation="Relu", **common))
    nodes.append(node("FusedConv", ["x", "w", "", "z"], ["gap"], activation="Tanh", **common))
    for name, numbers in [
        ("Relu", None),
        ("Sigmoid", None),
        ("HardSwish", None),
        ("LeakyRelu", [0.2]),
        ("Clip", [-0.5, 0.75]),
        ("HardSigmoid", [0.3, 0.6]),
    ]:
        extra = {"activation": name} | ({"activation_params": numbers} if numbers else {})
        nodes.append(node("FusedConv", ["x", "w", "b"], [name], **common, **extra))
    nodes.append(node("FusedConv", ["x", "w"], ["same"], group=2, auto_pad="SAME_UPPER", strides=[2, 1]))
    check(tmp_path, nodes, inputs, weights)
    line = {"x": floats(rng, 2, 3, 9)}
    check(tmp_path, [node("FusedConv", ["x", "w"], ["y"], activation="Relu")], line, {"w": floats(rng, 2, 3, 3)})


def test_wrong_fused_convolutions(tmp_path, rng):
    inputs, weights = {"x": floats(rng, 1, 2, 4, 4)}, {"w": floats(rng, 2, 2, 3, 3)}
    message = refusal(tmp_path, [node("FusedConv", ["x", "w"], ["y"], activation="Bend")], inputs, weights)
    assert "the activation 'Bend' is not supported" in message
    message = refusal(tmp_path, [node("FusedConv", ["x", "w"], ["y"], activation="Clip")], inputs, weights)
    assert "the activation Clip needs 2 numbers, got 0" in message


def test_convolutions_with_channels_last(tmp_path, rng):
    """Against Conv of the transposed data, since onnxruntime has these operators for float16 alone."""
    x, w, b, z = floats(rng, 1, 7, 6, 4), floats(rng, 6, 4, 3, 3), floats(rng, 6), floats(rng, 1, 5, 4, 6)
    nodes = [
        node("NhwcConv", ["x", "w", "b"], ["a"], strides=[2, 2], pads=[1, 0, 1, 0]),
        node("NhwcFusedConv", ["x", "w", "b", "z"], ["c"], activation="Relu"),
    ]
    path = save(tmp_path / "n.onnx", nodes, {"x": x, "z": z}, {"w": w, "b": b})
    got = run(path, {"x": x, "z": z})
    plain = [
        helper.make_node("Conv", ["x", "w", "b"], ["a"], strides=[2, 2], pads=[1, 0, 1, 0]),
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
    ]
    first = {"x": np.ascontiguousarray(x.transpose(0, 3, 1, 2))}
    a, c = run_reference(save(tmp_path / "r.onnx", plain, first, {"w": w, "b": b}), first)
    close(got, [a.transpose(0, 2, 3, 1), np.maximum(c.transpose(0, 2, 3, 1) + z, 0)])
    message = refusal(tmp_path, [node("NhwcConv", ["x", "w"], ["y"], auto_pad="SAME_UPPER")], {"x": x}, {"w": w})
    assert "attribute 'auto_pad' is not supported; give explicit pads" in message


def test_fused_gemm(tmp_path, rng):
    inputs = {"a": floats(rng, 3, 5), "at": floats(rng, 5, 3)}
    weights = {"b": floats(rng, 5, 4), "bt": floats(rng, 4, 5), "c": floats(rng, 4)}
    activations = {
        "Relu": {},
        "Sigmoid": {},
        "Tanh": {},
        "Softplus": {},
        "Softsign": {},
        "LeakyRelu": {"alpha": 0.3},
        "Elu": {"alpha": 0.7},
        "Celu": {"alpha": 0.7},
        "ThresholdedRelu": {"alpha": 0.4},
        "HardSigmoid": {"alpha": 0.3, "beta": 0.6},
        "Selu": {"alpha": 1.5, "gamma": 0.6},
        "ScaledTanh": {"alpha": 0.4, "beta": 0.8},
        "ParametricSoftplus": {"alpha": 0.4, "beta": 0.8},
    }
    nodes = [node("FusedGemm", ["at", "bt", "c"], ["t"], transA=1, transB=1, alpha=0.5, beta=2.0, activation="Relu")]
    for name, numbers in activations.items():
        extra = {f"activation_{key}": value for key, value in numbers.items()}
        nodes.append(node("FusedGemm", ["a", "b", "c"], [name], activation=name, **extra))
    check(tmp_path, nodes, inputs, weights)
    message = refusal(
        tmp_path,
        [node("FusedGemm", ["a", "b"], ["y"], activation="Selu", activation_alpha=1.0)],
        {"a": inputs["a"]},
        {"b": weights["b"]},
    )
    assert "attribute 'activation_gamma' is missing, which the activation Selu needs" in message


def test_fused_matmul(tmp_path, rng):
    inputs = {
        "a": floats(rng, 2, 3, 4),
        "at": floats(rng, 2, 4, 3),
        "am": floats(rng, 3, 2, 4),
        "amt": floats(rng, 4, 2, 3),
        "q": floats(rng, 2, 2, 3, 4),
        "k": floats(rng, 2, 2, 5, 4),
        "v": floats(rng, 4),
    }
    weights = {"b": floats(rng, 4, 5), "bm": floats(rng, 5, 2, 4), "b3": floats(rng, 2, 4, 5)}
    nodes = [
        node("FusedMatMul", ["a", "b"], ["y0"], alpha=0.25),
        node("FusedMatMul", ["at", "b"], ["y1"], transA=1),
        node("FusedMatMul", ["q", "k"], ["y2"], transB=1, alpha=0.5),
        node("FusedMatMul", ["am", "b3"], ["y3"], transBatchA=1),
        node("FusedMatMul", ["amt", "b3"], ["y4"], transBatchA=1, transA=1),
        node("FusedMatMul", ["am", "bm"], ["y5"], transBatchA=1, transBatchB=1, transB=1),
        node("FusedMatMul", ["v", "b"], ["y6"], transA=1, alpha=2.0),
        node("TransposeMatMul", ["at", "b"], ["y7"], transA=1, alpha=3.0),
    ]
    check(tmp_path, nodes, inputs, weights)
    message = refusal(
        tmp_path, [node("FusedMatMul", ["v", "b"], ["y"], transBatchA=1)], {"v": inputs["v"]}, {"b": weights["b"]}
    )
    assert "input 0 has 1 dimensions and no batch to transpose" in message


# ---- Gelu


def test_gelu_in_all_forms(tmp_path, rng):
    inputs, weights = {"x": floats(rng, 2, 3, 8) * 3}, {"b": floats(rng, 8)}
    nodes = [
        node("Gelu", ["x"], ["gelu"]),
        node("BiasGelu", ["x", "b"], ["bias"]),
        node("FastGelu", ["x"], ["fast"]),
        node("FastGelu", ["x", "b"], ["fast_bias"]),
        node("QuickGelu", ["x"], ["quick"]),
        node("QuickGelu", ["x"], ["alpha"], alpha=0.7),
    ]
    check(tmp_path, nodes, inputs, weights)


# ---- Normalisation


def test_normalisation_of_sums(tmp_path, rng):
    inputs = {"x": floats(rng, 2, 3, 8), "s": floats(rng, 2, 3, 8), "s1": floats(rng, 1, 3, 8), "s2": floats(rng, 3, 8)}
    weights = {"g": floats(rng, 8), "b": floats(rng, 8), "c": floats(rng, 8)}
    nodes = [
        node("SkipLayerNormalization", ["x", "s", "g", "b", "c"], ["a0", "", "", "a1"], epsilon=1e-3),
        node("SkipLayerNormalization", ["x", "s1", "g"], ["a2", "", "", "a3"]),
        node("SkipLayerNormalization", ["x", "s2", "g", "", "c"], ["a4"]),
        node("SkipSimplifiedLayerNormalization", ["x", "s", "g", "c"], ["b0", "", "", "b1"], epsilon=1e-3),
        node("SkipSimplifiedLayerNormalization", ["x", "s2", "g"], ["b2"]),
        helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["c0", "c1"], epsilon=1e-3),
        helper.make_node("SimplifiedLayerNormalization", ["x", "s2"], ["c2"], axis=1),
    ]
    check(tmp_path, nodes, inputs, weights)


def test_the_statistics_of_a_sum(tmp_path, rng):
    """Which onnxruntime's CPU kernel leaves unset."""
    x, s = floats(rng, 2, 3, 8), floats(rng, 2, 3, 8)
    nodes = [
        node("SkipLayerNormalization", ["x", "s", "g"], ["y", "mean", "inverse"]),
        node("SkipSimplifiedLayerNormalization", ["x", "s", "g"], ["z", "", "root"]),
    ]
    path = save(tmp_path / "m.onnx", nodes, {"x": x, "s": s}, {"g": np.ones(8, "float32")})
    _, mean, inverse, _, root = run(path, {"x": x, "s": s})
    total = x + s
    close([mean], [total.mean(-1, keepdims=True)])
    close([inverse], [1 / total.std(-1, keepdims=True)])
    close([root], [1 / np.sqrt((total * total).mean(-1, keepdims=True))])
    message = refusal(
        tmp_path,
        [node("SkipSimplifiedLayerNormalization", ["x", "s", "g"], ["z", "mean"])],
        {"x": x, "s": s},
        {"g": np.ones(8, "float32")},
    )
    assert "its output 1 is not supported" in message
    message = refusal(
        tmp_path,
        [node("SkipLayerNormalization", ["x", "s", "g"], ["z"])],
        {"x": x, "s": s[:, :1]},
        {"g": np.ones(8, "float32")},
    )
    assert "its skip has the shape" in message


def test_embeddings(tmp_path, rng):
    inputs = {
        "ids": rng.integers(0, 7, (2, 3)).astype("int32"),
        "segments": rng.integers(0, 2, (2, 3)).astype("int32"),
        "mask": np.int32([[1, 1, 0], [2, 0, 1]]),
        "positions": np.int32([[2, 4, 1]]),
    }
    weights = {
        "words": floats(rng, 7, 8),
        "places": floats(rng, 5, 8),
        "kinds": floats(rng, 2, 8),
        "g": floats(rng, 8),
        "b": floats(rng, 8),
    }
    tables = ["words", "places", "kinds", "g", "b"]
    nodes = [
        node("EmbedLayerNormalization", ["ids", "segments", *tables, "mask"], ["a0", "a1", "a2"], mask_index_type=1),
        node("EmbedLayerNormalization", ["ids", "segments", *tables], ["b0", "b1"], epsilon=1e-2),
        node("EmbedLayerNormalization", ["ids", "", "words", "places", "", "g", "b"], ["c0", "c1"]),
        node("EmbedLayerNormalization", ["ids", "segments", *tables, "mask", "positions"], ["d0", "d1", "d2"]),
    ]
    check(tmp_path, nodes, inputs, weights)
    message = refusal(
        tmp_path,
        [node("EmbedLayerNormalization", ["ids", "segments", "words", "places", "", "g", "b"], ["y", "m"])],
        inputs,
        weights,
    )
    assert "one of segment_ids and segment_embedding is missing" in message


# ---- Attention, with 2 heads of 4 numbers

BATCH, LENGTH, HEADS, SIZE = 2, 3, 2, 4
WIDTH = HEADS * SIZE


def with_heads(x):
    return x.reshape(*x.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)


def attention(q, k, v, added=0.0):
    """By the definition: operands [batch, heads, positions, size]; `added` to the scaled products."""
    products = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1]) + added
    weights = np.exp(products - products.max(-1, keepdims=True))
    result = (weights / weights.sum(-1, keepdims=True)) @ v
    return result.transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1).astype("float32")


def test_multi_head_attention(tmp_path, rng):
    keys = 4
    inputs = {
        "q": floats(rng, BATCH, LENGTH, WIDTH),
        "k": floats(rng, BATCH, keys, WIDTH),
        "v": floats(rng, BATCH, keys, HEADS * 6),
        "ks": floats(rng, BATCH, LENGTH, WIDTH),
        "vs": floats(rng, BATCH, LENGTH, WIDTH),
        "k4": floats(rng, BATCH, HEADS, 5, SIZE),
        "v4": floats(rng, BATCH, HEADS, 5, SIZE),
        "pk": floats(rng, BATCH, HEADS, 2, SIZE),
        "pv": floats(rng, BATCH, HEADS, 2, SIZE),
        "lengths": np.int32([2, 3]),
        "padding": np.int32([[1, 1, 0, 0], [1, -1, 0, 5]]),
        "each": rng.integers(0, 2, (BATCH, LENGTH, keys)).astype("int32"),
        "all": np.int32([[1, 0, 1, 1, 0], [0, 1, 1, 1, 1]]),
        "ab": floats(rng, BATCH, HEADS, LENGTH, keys),
        "ab1": floats(rng, 1, 1, LENGTH, keys),
    }
    weights = {"b": floats(rng, 2 * WIDTH + HEADS * 6)}

    def mha(names, outputs, **attributes):
        return node("MultiHeadAttention", names, outputs, num_heads=HEADS, **attributes)

    three = ["q", "k", "v"]
    nodes = [
        mha(three, ["y0", "k0", "v0", "qk0"]),
        mha([*three, "b"], ["y1"], scale=0.3),
        mha([*three, "", "lengths"], ["y2"]),
        mha([*three, "", "padding"], ["y3"], mask_filter_value=-3.0),
        mha([*three, "", "each", "ab"], ["y4"]),
        mha([*three, "b", "", "ab1"], ["y5"]),
        mha(["q", "ks", "vs"], ["y6"], unidirectional=1),
        mha(["q", "ks", "vs", "", "", "", "pk", "pv"], ["y7", "k7", "v7"], unidirectional=1),
        mha(["q", "ks", "vs", "", "all", "", "pk", "pv"], ["y8", "k8", "v8"]),
        mha(["q", "k4", "v4"], ["y9"]),
    ]
    check(tmp_path, nodes, inputs, weights)


def test_packed_operands_of_attention(tmp_path, rng):
    """Which onnxruntime has in CUDA kernels alone."""
    x, q, kv = (
        floats(rng, BATCH, LENGTH, HEADS, 3, SIZE),
        floats(rng, BATCH, LENGTH, WIDTH),
        floats(rng, BATCH, 5, HEADS, 2, SIZE),
    )
    b = floats(rng, 3 * WIDTH)
    nodes = [
        node("MultiHeadAttention", ["x"], ["y0"], num_heads=HEADS),
        node("MultiHeadAttention", ["q", "kv"], ["y1"], num_heads=HEADS),
        node("MultiHeadAttention", ["x", "", "", "b"], ["y2"], num_heads=HEADS),
    ]
    inputs = {"x": x, "q": q, "kv": kv}
    got = run(save(tmp_path / "m.onnx", nodes, inputs, {"b": b}), inputs)
    parts = [x[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3)]
    pair = [kv[:, :, :, i].transpose(0, 2, 1, 3) for i in range(2)]
    biased = [part + b[i * WIDTH : (i + 1) * WIDTH].reshape(HEADS, 1, SIZE) for i, part in enumerate(parts)]
    close(got, [attention(*parts), attention(with_heads(q), *pair), attention(*biased)])


def test_attention_with_its_projection(tmp_path, rng):
    inputs = {
        "x": floats(rng, BATCH, LENGTH, 6),
        "past": floats(rng, 2, BATCH, HEADS, 4, SIZE),
        "lengths": np.int32([2, 1]),
        "ends": np.int32([3, 2, 1, 0]),
        "padding": np.int32([[1, 1, 0], [0, 1, 2]]),
        "each": rng.integers(0, 2, (BATCH, LENGTH, LENGTH)).astype("int32"),
        "nothing": np.int32([[0], [1]]),
        "long": np.int32([6, 5]),
        "ab": floats(rng, BATCH, HEADS, LENGTH, LENGTH),
    }
    weights = {"w": floats(rng, 6, 24), "b": floats(rng, 24), "w2": floats(rng, 6, 28), "b2": floats(rng, 28)}

    def att(rest, outputs, **attributes):
        return node("Attention", ["x", *rest], outputs, num_heads=HEADS, **attributes)

    nodes = [
        att(["w", "b"], ["y0", "p0"], scale=0.4),
        att(["w2", "b2"], ["y1"], qkv_hidden_sizes=[8, 8, 12]),
        att(["w", "b", "", "past"], ["y2", "p2"], unidirectional=1),
        att(["w", "b", "long", "past"], ["y3", "p3"]),
        att(["w", "b", "", "", "ab"], ["y4"]),
        att(["w", "b", "padding"], ["y5"], mask_filter_value=-2.0),
    ]
    nodes += [att(["w", "b", mask], [f"m_{mask}"]) for mask in ("lengths", "ends", "each", "nothing")]
    check(tmp_path, nodes, inputs, weights)


def test_forms_of_attention_that_cpus_lack_in_onnxruntime(tmp_path, rng):
    """A mask of all positions, for a past; no bias, on which onnxruntime ends."""
    x, w = floats(rng, BATCH, LENGTH, 6), floats(rng, 6, 24)
    past, mask = floats(rng, 2, BATCH, HEADS, 4, SIZE), rng.integers(0, 2, (BATCH, 1, 9, 9)).astype("int32")
    inputs = {"x": x, "past": past, "mask": mask}
    nodes = [
        node("Attention", ["x", "w"], ["y0"], num_heads=HEADS),
        node("Attention", ["x", "w", "", "mask", "past"], ["y1"], num_heads=HEADS),
    ]
    got = run(save(tmp_path / "m.onnx", nodes, inputs, {"w": w}), inputs)
    q, k, v = (with_heads(part) for part in np.split(x @ w, 3, -1))
    added = np.where(mask[:, :, 4:7, :7] > 0, 0, -10000)
    with_past = attention(q, np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2), added)
    close(got, [attention(q, k, v), with_past])


def test_attention_that_is_refused(tmp_path, rng):
    inputs = {
        "x": floats(rng, BATCH, LENGTH, 6),
        "k": floats(rng, BATCH, 4, 6),
        "n": np.int32([1]),
        "cuda": np.int32([3, 3, 0, 3, 6, 0, 3, 6]),
        "pk": floats(rng, BATCH, 2, 1, 3),
    }
    weights = {"w": floats(rng, 6, 18), "b": floats(rng, 18)}

    def message(op, names, heads=2, **attributes):
        return refusal(tmp_path, [node(op, names, ["y"], num_heads=heads, **attributes)], inputs, weights)

    own = ["x", "w", "b"]
    assert "attribute 'do_rotary' is not supported" in message("Attention", own, do_rotary=1)
    assert "'past_present_share_buffer' is not supported" in message("Attention", own, past_present_share_buffer=1)
    assert "its input 6 'past_sequence_length' is not supported" in message("Attention", [*own, "", "", "", "n"])
    assert "a mask of 8 numbers for a batch of 2" in message("Attention", [*own, "cuda"])
    assert "6 numbers a position do not make 4 heads" in message("Attention", own, heads=4)
    assert "the sizes [6, 6, 5] of Q, K and V" in message("Attention", own, qkv_hidden_sizes=[6, 6, 5])
    mha = "MultiHeadAttention"
    assert "input 1 is left out, but the operator needs it" in message(mha, ["x"])
    assert "one of past_key and past_value is missing" in message(mha, ["x", "x", "x", "", "", "", "pk"])
    assert "its input 9 'cache_indirection' is not supported" in message(mha, ["x"] * 3 + [""] * 6 + ["n"])
    assert "unidirectional attention of 3 queries to 4 keys" in message(mha, ["x", "k", "k"], unidirectional=1)
    assert "attribute 'num_heads' is 0, expected 1 or more" in message(mha, ["x", "x", "x"], heads=0)


def test_rotary_embedding(tmp_path, rng):
    inputs = {
        "x": floats(rng, 2, 3, 8),
        "x4": floats(rng, 2, 2, 3, 4),
        "from": np.int64([4]),
        "at": np.int64([[0, 1, 2], [3, 4, 5]]),
    }
    weights = {"cos": floats(rng, 10, 2), "sin": floats(rng, 10, 2)}

    def rotary(x, positions, output, **attributes):
        return node("RotaryEmbedding", [x, positions, "cos", "sin"], [output], **attributes)

    nodes = [
        rotary("x", "from", "y0"),
        rotary("x", "at", "y1", interleaved=1),
        rotary("x", "at", "y2", num_heads=2),
        rotary("x", "from", "y3", num_heads=1, rotary_embedding_dim=4),
        rotary("x4", "from", "y4"),
        rotary("x4", "at", "y5", interleaved=1),
    ]
    check(tmp_path, nodes, inputs, weights)

    def message(**attributes):
        return refusal(tmp_path, [rotary("x", "at", "y", **attributes)], inputs, weights)

    assert "attribute 'scale' is 2; only 1 is supported" in message(scale=2.0)
    assert "attribute 'is_packed_batching' is not supported" in message(is_packed_batching=1)
    assert "'num_heads' is missing, which 'rotary_embedding_dim' needs" in message(rotary_embedding_dim=4)


def test_16_bit_numbers(tmp_path, rng):
    """Against float32 by onnxruntime: a step of float16 is 1/1024 of a number."""
    inputs = {"x": floats(rng, 2, 3, 8), "s": floats(rng, 2, 3, 8)}
    weights = {"g": floats(rng, 8), "w": floats(rng, 8, 24) / 3, "b": floats(rng, 24)}
    nodes = [
        node("SkipLayerNormalization", ["x", "s", "g"], ["y0"]),
        node("FastGelu", ["x"], ["y1"]),
        node("Attention", ["x", "w", "b"], ["y2"], num_heads=2),
        node("FusedMatMul", ["x", "w"], ["y3"], alpha=0.125),
    ]
    want = run_reference(save(tmp_path / "w.onnx", nodes, inputs, weights), inputs)
    halves = {name: x.astype("float16") for name, x in inputs.items()}
    path = save(tmp_path / "h.onnx", nodes, halves, {name: x.astype("float16") for name, x in weights.items()})
    got = run(path, halves)
    assert all(one.dtype == np.float16 for one in got)
    close([one.astype("float32") for one in got], want, rtol=1e-2, atol=1e-2)


# ---- Models that onnxruntime optimised


def optimised(path, out, level):
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(out)
    ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {one.op_type for one in onnx.load(out).graph.node if one.domain == MS}


class Graph:
    """Collects the nodes and weights of a model."""

    def __init__(self, rng):
        self.rng, self.nodes, self.weights = rng, [], {}

    def weight(self, *shape):
        return self.constant((self.rng.standard_normal(shape) * 0.3).astype("float32"))

    def constant(self, data):
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(data)
        return name

    def add(self, op, inputs, **attributes):
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def linear(self, x, width, out):
        return self.add("Add", [self.add("MatMul", [x, self.weight(width, out)]), self.weight(out)])

    def norm(self, x, width):
        return self.add("LayerNormalization", [x, self.weight(width), self.weight(width)], epsilon=1e-12)


def bert(rng, length=6, width=16, heads=2):
    """One layer, as exporters write it: products of heads, a mask of -10000, a Gelu by Erf."""
    g = Graph(rng)
    words = g.add("Gather", [g.weight(20, width), "ids"])
    kinds = g.add("Gather", [g.weight(2, width), "kinds"])
    places = g.add("Gather", [g.weight(length, width), g.constant(np.arange(length)[None])])
    x = g.norm(g.add("Add", [g.add("Add", [words, kinds]), places]), width)
    mask = g.add("Cast", [g.add("Unsqueeze", ["mask", g.constant(np.int64([1, 2]))])], to=F32)
    hidden = g.add("Mul", [g.add("Sub", [g.constant(np.float32(1)), mask]), g.constant(np.float32(-10000))])
    shape = g.constant(np.int64([0, 0, heads, width // heads]))

    def turned(axes):
        return g.add("Transpose", [g.add("Reshape", [g.linear(x, width, width), shape])], perm=axes)

    q, k, v = turned([0, 2, 1, 3]), turned([0, 2, 3, 1]), turned([0, 2, 1, 3])
    scores = g.add("Div", [g.add("MatMul", [q, k]), g.constant(np.float32(np.sqrt(width // heads)))])
    mixed = g.add("MatMul", [g.add("Softmax", [g.add("Add", [scores, hidden])], axis=-1), v])
    joined = g.add("Transpose", [mixed], perm=[0, 2, 1, 3])
    joined = g.add("Reshape", [joined, g.constant(np.int64([0, 0, width]))])
    x = g.norm(g.add("Add", [g.linear(joined, width, width), x]), width)
    f = g.linear(x, width, 24)
    erf = g.add("Erf", [g.add("Div", [f, g.constant(np.float32(np.sqrt(2)))])])
    f = g.add("Mul", [f, g.add("Add", [erf, g.constant(np.float32(1))])])
    f = g.add("Mul", [f, g.constant(np.float32(0.5))])
    x = g.norm(g.add("Add", [g.linear(f, 24, width), x]), width)
    first = g.add("Gather", [x, g.constant(np.int64(0))], axis=1)
    g.add("Tanh", [g.add("Gemm", [first, g.weight(width, width), g.weight(width)], transB=1)])
    return g


def convolutions(rng):
    g = Graph(rng)
    x = g.add("Conv", ["x", g.weight(8, 3, 3, 3), g.weight(8)], pads=[1] * 4)
    moments = [g.weight(8), g.weight(8), g.weight(8), g.constant(np.abs(rng.standard_normal(8)).astype("float32"))]
    x = g.add("Relu", [g.add("BatchNormalization", [x, *moments])])
    x = g.add("Relu", [g.add("Add", [g.add("Conv", [x, g.weight(8, 8, 3, 3)], pads=[1] * 4), x])])
    for op, attributes in [("LeakyRelu", {"alpha": 0.2}), ("HardSigmoid", {"alpha": 0.3}), ("HardSwish", {})]:
        x = g.add(op, [g.add("Conv", [x, g.weight(8, 8, 1, 1)])], **attributes)
    bounds = [g.constant(np.float32(-0.1)), g.constant(np.float32(0.2))]
    x = g.add("Clip", [g.add("Conv", [x, g.weight(8, 8, 1, 1)]), *bounds])
    x = g.add("Flatten", [g.add("GlobalAveragePool", [x])])
    g.add("Relu", [g.add("Gemm", [x, g.weight(8, 4), g.weight(4)])])
    return g


LEVELS = ort.GraphOptimizationLevel


def test_a_transformer_that_onnxruntime_optimised(tmp_path, rng):
    g = bert(rng)
    inputs = {
        "ids": rng.integers(0, 20, (2, 6)),
        "kinds": rng.integers(0, 2, (2, 6)),
        "mask": np.int64([[1, 1, 1, 1, 0, 0], [1] * 6]),
    }
    path = save(tmp_path / "m.onnx", g.nodes, inputs, g.weights)
    want = run_reference(path, inputs)
    ops = optimised(path, tmp_path / "o.onnx", LEVELS.ORT_ENABLE_EXTENDED)
    assert ops >= {"SkipLayerNormalization", "FusedMatMul", "Gelu"}
    close(run(tmp_path / "o.onnx", inputs), want)


def test_convolutions_that_onnxruntime_optimised(tmp_path, rng):
    g = convolutions(rng)
    inputs = {"x": floats(rng, 1, 3, 8, 8)}
    path = save(tmp_path / "m.onnx", g.nodes, inputs, g.weights)
    ops = optimised(path, tmp_path / "o.onnx", LEVELS.ORT_ENABLE_EXTENDED)
    assert ops == {"FusedConv", "FusedGemm"}
    close(run(tmp_path / "o.onnx", inputs), run_reference(path, inputs))


def test_layouts_of_one_machine_are_refused(tmp_path, rng):
    inputs = {"x": floats(rng, 1, 16, 8, 8)}
    nodes = [helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", F32, inputs["x"].shape)],
        [helper.make_tensor_value_info("y", F32, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    with pytest.raises(hr.UserError, match="a layout that onnxruntime chose for one machine; save the model with"):
        hr.compile(str(tmp_path / "m.onnx"))
