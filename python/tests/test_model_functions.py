"""Models with functions of their own (ModelProto.functions), against onnxruntime, and those that are refused."""

import headrace as hr
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
from onnx import helper  # noqa: E402

F32 = onnx.TensorProto.FLOAT
LOCAL = "local"
node = helper.make_node


def opsets(default=17, *domains):
    return [helper.make_opsetid("", default), *(helper.make_opsetid(domain, 1) for domain in domains)]


def function(name, inputs, outputs, nodes, *, domain=LOCAL, default=17, attributes=(), defaults=(), overload=""):
    made = helper.make_function(
        domain,
        name,
        inputs,
        outputs,
        nodes,
        opsets(default, LOCAL),
        attributes=list(attributes),
        attribute_protos=list(defaults),
    )
    made.overload = overload
    return made


def refers(made, **references):
    """The node with attributes whose values are those of the function's: refers(node, alpha=("slope", FLOAT))."""
    for name, (source, kind) in references.items():
        made.attribute.add(name=name, ref_attr_name=source, type=kind)
    return made


def model(tmp_path, nodes, functions, outputs=("y",), inputs=None, initializers=(), default=17):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, F32, shape) for name, shape in (inputs or {"x": [2, 3]}).items()],
        [helper.make_tensor_value_info(name, F32, None) for name in outputs],
        [onnx.numpy_helper.from_array(np.asarray(data), name) for name, data in initializers],
    )
    made = helper.make_model(graph, opset_imports=opsets(default, LOCAL), ir_version=10, functions=functions)
    onnx.save(made, tmp_path / "m.onnx")
    return str(tmp_path / "m.onnx")


def check(path, **inputs):
    """Compares with onnxruntime, which inlines the functions by itself."""
    want = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)
    got = hr.compile(path)(**inputs)
    got = got if isinstance(got, (list, tuple)) else [got]
    assert len(got) == len(want)
    for one, reference in zip(got, want, strict=True):
        np.testing.assert_allclose(one.numpy(), reference, rtol=1e-5, atol=1e-6)
    return want


X = np.array([[-2, -1, 0], [1, 2, 3]], "float32")
FLOAT, INT, INTS = onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT, onnx.AttributeProto.INTS


def test_attributes_come_from_the_call_or_from_defaults(tmp_path):
    leaky = function(
        "Leaky",
        ["a"],
        ["b"],
        [refers(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", FLOAT))],
        defaults=[helper.make_attribute("slope", 0.25)],
    )
    # An attribute that no call gives is as if the node did not have it: LeakyRelu's own default.
    bare = function(
        "Bare", ["a"], ["b"], [refers(node("LeakyRelu", ["a"], ["b"]), alpha=("slope", FLOAT))], attributes=["slope"]
    )
    nodes = [
        node("Leaky", ["x"], ["y"], domain=LOCAL),
        node("Leaky", ["x"], ["z"], domain=LOCAL, slope=0.5),
        node("Bare", ["x"], ["v"], domain=LOCAL),
        node("Bare", ["x"], ["w"], domain=LOCAL, slope=0.125),
    ]
    y, z, v, w = check(model(tmp_path, nodes, [leaky, bare], "yzvw"), x=X)
    assert (y[0, 0], z[0, 0], w[0, 0]) == (-0.5, -1, -0.25)
    assert v[0, 0] == pytest.approx(-0.02)


def test_functions_call_functions_and_keep_their_names_apart(tmp_path):
    # The names `a`, `t` and `b` stand for other values in each function and in the graph.
    scale = function("Scale", ["a"], ["b"], [
        refers(node("Constant", [], ["t"]), value_float=("by", FLOAT)),
        node("Mul", ["a", "t"], ["b"]),
    ], attributes=["by"])  # fmt: skip
    twice = function("Twice", ["a"], ["b"], [
        refers(node("Scale", ["a"], ["t"], domain=LOCAL), by=("by", FLOAT)),
        node("Scale", ["t"], ["a2"], domain=LOCAL, by=3.0),
        node("Add", ["t", "a2"], ["b"]),
    ], attributes=["by"])  # fmt: skip
    nodes = [
        node("Twice", ["x"], ["t"], domain=LOCAL, by=2.0),
        node("Twice", ["t"], ["a"], domain=LOCAL, by=-1.0),
        node("Sub", ["a", "t"], ["y"]),
    ]
    (y,) = check(model(tmp_path, nodes, [twice, scale]), x=X)
    np.testing.assert_array_equal(y, X * 8 * -4 - X * 8)


def test_inputs_and_outputs_that_a_call_leaves_out(tmp_path):
    gemm = function("Affine", ["a", "w", "c"], ["b", "p"], [
        node("Gemm", ["a", "w", "c"], ["b"]),
        node("MatMul", ["a", "w"], ["p"]),
    ])  # fmt: skip
    outer = function("Outer", ["a", "w", "c"], ["b"], [node("Affine", ["a", "w", "c"], ["b", ""], domain=LOCAL)])
    weights = [("w", np.arange(6, dtype="float32").reshape(3, 2)), ("c", np.float32([10, 20]))]
    nodes = [
        node("Affine", ["x", "w", "c"], ["y", ""], domain=LOCAL),
        node("Affine", ["x", "w"], ["", "z"], domain=LOCAL),
        node("Outer", ["x", "w"], ["v"], domain=LOCAL),
    ]
    y, z, v = check(model(tmp_path, nodes, [gemm, outer], "yzv", initializers=weights), x=X)
    np.testing.assert_array_equal(y, z + np.float32([10, 20]))
    np.testing.assert_array_equal(v, z)


def test_a_function_uses_its_own_version_of_the_operators(tmp_path):
    # Up to opset 12 Softmax takes the axes from 1 on together; from opset 13 on the last one alone.
    old = function("Old", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], default=12)
    new = function("New", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], default=17)
    nodes = [node("Old", ["x"], ["y"], domain=LOCAL), node("New", ["x"], ["z"], domain=LOCAL)]
    x = np.arange(8, dtype="float32").reshape(1, 2, 4)
    got = hr.compile(model(tmp_path, nodes, [old, new], "yz", {"x": [1, 2, 4]}))(x=x)
    each = np.exp(x - 7)
    np.testing.assert_allclose(got[0].numpy(), each / each.sum(), rtol=1e-5)
    np.testing.assert_allclose(got[1].numpy(), each / each.sum(-1, keepdims=True), rtol=1e-5)


def test_overloads_and_functions_in_the_domain_of_operators(tmp_path):
    half = function("Scale", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], overload="double")
    third = function("Scale", ["a"], ["b"], [node("Neg", ["a"], ["b"])], overload="minus")
    # Not an operator that Headrace has: the function counts.
    made = function("Swoosh", ["a"], ["b"], [node("Exp", ["a"], ["b"])], domain="")
    # An operator that it has: the operator counts, as in onnxruntime.
    relu = function("Relu", ["a"], ["b"], [node("Neg", ["a"], ["b"])], domain="")
    nodes = [
        node("Scale", ["x"], ["y"], domain=LOCAL, overload="double"),
        node("Scale", ["x"], ["z"], domain=LOCAL, overload="minus"),
        node("Relu", ["x"], ["w"]),
    ]
    y, z, w = check(model(tmp_path, nodes, [half, third, relu], "yzw"), x=X)
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(z, -X)
    np.testing.assert_array_equal(w, np.maximum(X, 0))
    got = hr.compile(model(tmp_path, [node("Swoosh", ["x"], ["y"])], [made]))(x=X)
    np.testing.assert_allclose(got.numpy(), np.exp(X), rtol=1e-5)
    path = model(tmp_path, [node("Scale", ["x"], ["y"], domain=LOCAL, overload="other")], [half])
    with pytest.raises(hr.UserError, match="calls the overload 'other' of a function, which the model does not define"):
        hr.compile(path)


def test_subgraphs_of_a_function_see_its_values(tmp_path):
    branches = {
        key: helper.make_graph([node(op, ["a", "c"], ["r"])], key, [], [helper.make_tensor_value_info("r", F32, None)])
        for key, op in (("then_branch", "Add"), ("else_branch", "Sub"))
    }
    choose = function("Choose", ["a", "c"], ["b"], [
        refers(node("Constant", [], ["n"]), value_int=("plus", INT)),
        node("Cast", ["n"], ["is"], to=onnx.TensorProto.BOOL),
        node("If", ["is"], ["b"], **branches),
    ], attributes=["plus"])  # fmt: skip
    nodes = [
        node("Choose", ["x", "k"], ["y"], domain=LOCAL, plus=1),
        node("Choose", ["x", "k"], ["z"], domain=LOCAL, plus=0),
    ]
    y, z = check(model(tmp_path, nodes, [choose], "yz", initializers=[("k", np.float32(5))]), x=X)
    np.testing.assert_array_equal(y, X + 5)
    np.testing.assert_array_equal(z, X - 5)


def test_a_small_export_with_a_function_for_each_layer(tmp_path):
    """The form that exporters write: a function for each module, weights as inputs, constants inside."""
    linear = function("Linear", ["h", "weight", "bias"], ["out"], [
        node("Transpose", ["weight"], ["wt"], perm=[1, 0]),
        node("MatMul", ["h", "wt"], ["m"]),
        node("Add", ["m", "bias"], ["out"]),
    ], domain="pkg.layers")  # fmt: skip
    gelu = function("aten_gelu", ["self"], ["return_val"], [
        node("Constant", [], ["root"], value_float=float(np.sqrt(0.5))),
        node("Constant", [], ["one"], value_float=1.0),
        node("Constant", [], ["half"], value_float=0.5),
        node("Mul", ["self", "root"], ["s"]),
        node("Erf", ["s"], ["e"]),
        node("Add", ["e", "one"], ["p"]),
        node("Mul", ["self", "p"], ["sp"]),
        node("Mul", ["sp", "half"], ["return_val"]),
    ], domain="pkg.layers")  # fmt: skip
    block = function("Block", ["h", "w1", "b1", "w2", "b2"], ["out"], [
        node("Linear", ["h", "w1", "b1"], ["u"], domain="pkg.layers"),
        node("aten_gelu", ["u"], ["v"], domain="pkg.layers"),
        node("Linear", ["v", "w2", "b2"], ["d"], domain="pkg.layers"),
        node("Add", ["h", "d"], ["out"]),
    ], domain="pkg.layers")  # fmt: skip
    block.opset_import.append(helper.make_opsetid("pkg.layers", 1))
    rng = np.random.default_rng(0)
    weights = []
    for i in range(2):
        for name, shape in (("w1", (8, 3)), ("b1", (8,)), ("w2", (3, 8)), ("b2", (3,))):
            weights.append((f"{name}.{i}", (rng.standard_normal(shape) / 3).astype("float32")))
    names = [[name for name, _ in weights[4 * i : 4 * i + 4]] for i in range(2)]
    nodes = [
        node("Block", ["x", *names[0]], ["h1"], domain="pkg.layers", name="block0"),
        node("Block", ["h1", *names[1]], ["y"], domain="pkg.layers", name="block1"),
    ]
    path = model(tmp_path, nodes, [linear, gelu, block], initializers=weights)
    made = onnx.load(path)
    made.opset_import.append(helper.make_opsetid("pkg.layers", 1))
    onnx.save(made, path)
    check(path, x=X)


def test_random_numbers_of_two_calls_differ(tmp_path):
    noise = function("Noise", ["a"], ["b"], [node("RandomUniformLike", ["a"], ["b"])])
    nodes = [node("Noise", ["x"], [name], domain=LOCAL) for name in "yz"]
    y, z = (one.numpy() for one in hr.compile(model(tmp_path, nodes, [noise], "yz"))(x=X))
    assert not np.array_equal(y, z)


def refusal(tmp_path, nodes, functions, **kwargs):
    with pytest.raises(hr.UserError) as caught:
        hr.compile(model(tmp_path, nodes, functions, **kwargs))
    return str(caught.value)


def call(name, inputs=("x",), outputs=("y",), **attributes):
    return node(name, list(inputs), list(outputs), domain=LOCAL, name="c", **attributes)


def test_functions_that_call_themselves_are_refused(tmp_path):
    a = function("A", ["a"], ["b"], [node("B", ["a"], ["b"], domain=LOCAL)])
    b = function("B", ["a"], ["b"], [node("A", ["a"], ["b"], domain=LOCAL)])
    message = refusal(tmp_path, [call("A")], [a, b])
    assert "node 'c' (local.A): the functions of the model must not call themselves: " in message
    assert "local.A calls local.B calls local.A" in message


def test_growth_is_bounded(tmp_path):
    """Each function calls the next one twice: 2 to the power of 40 nodes."""
    chain = []
    for i in range(40):
        inner = f"F{i + 1}"
        chain.append(function(f"F{i}", ["a"], ["b"], [
            node(inner, ["a"], ["t"], domain=LOCAL),
            node(inner, ["t"], ["b"], domain=LOCAL),
        ]))  # fmt: skip
    chain.append(function("F40", ["a"], ["b"], [node("Neg", ["a"], ["b"])]))
    message = refusal(tmp_path, [call("F0")], chain)
    assert "inline too much" in message
    assert "call functions fewer times, or split the model" in message
    deep = [function(f"F{i}", ["a"], ["b"], [node(f"F{i + 1}", ["a"], ["b"], domain=LOCAL)]) for i in range(80)]
    deep.append(function("F80", ["a"], ["b"], [node("Neg", ["a"], ["b"])]))
    assert "functions call each other more than 64 levels deep" in refusal(tmp_path, [call("F0")], deep)
    got = hr.compile(model(tmp_path, [call("F20")], deep))(x=X)
    np.testing.assert_array_equal(got.numpy(), -X)


def test_calls_within_subgraphs_are_bounded(tmp_path):
    """A call within two subgraphs within a call, 40 times: 120 levels."""

    def branches(then):
        other = [node("Neg", ["a"], ["r"])]
        return {
            key: helper.make_graph(nodes, key, [], [helper.make_tensor_value_info("r", F32, None)])
            for key, nodes in (("then_branch", then), ("else_branch", other))
        }

    chain = []
    for i in range(40):
        inner = node("If", ["c"], ["r"], **branches([node(f"F{i + 1}", ["a", "c"], ["r"], domain=LOCAL)]))
        chain.append(function(f"F{i}", ["a", "c"], ["b"], [node("If", ["c"], ["b"], **branches([inner]))]))
    chain.append(function("F40", ["a", "c"], ["b"], [node("Neg", ["a"], ["b"])]))
    nodes = [call("F0", ["x", "yes"])]
    message = refusal(tmp_path, nodes, chain, initializers=[("yes", np.bool_(True))])
    assert "calls and subgraphs are nested deeper than 96 levels" in message


def test_mistakes_name_the_node_and_the_function(tmp_path):
    odd = function("Odd", ["a"], ["b"], [node("Unheard", ["a"], ["b"], name="inner")])
    message = refusal(tmp_path, [call("Odd"), call("Odd", outputs=["z"])], [odd])
    assert "node 'c/inner' (Unheard): the operator is not supported (in the function local.Odd)" in message
    assert message.count("Unheard") == 1
    unknown = function("Bad", ["a"], ["b"], [node("Neg", ["nothing"], ["b"], name="inner")])
    message = refusal(tmp_path, [call("Bad")], [unknown])
    assert "node 'c/inner' (Neg) of the function local.Bad uses 'nothing', which nothing defines" in message


def test_calls_that_do_not_fit(tmp_path):
    one = function("One", ["a"], ["b"], [node("Neg", ["a"], ["b"])])
    message = refusal(tmp_path, [call("One", ["x", "x"])], [one])
    assert "it has 2 inputs and 1 outputs; the function takes up to 1 and gives up to 1" in message
    message = refusal(tmp_path, [call("One", axis=3)], [one])
    assert "attribute 'axis' is not an attribute of the function" in message
    message = refusal(tmp_path, [call("One", [""])], [one])
    assert "input 0 is left out, but the operator needs it (in the function local.One)" in message
    old = function("One", ["a"], ["b"], [node("Neg", ["a"], ["b"])], default=3)
    assert "the function uses version 3 of the default operator set" in refusal(tmp_path, [call("One")], [old])
    assert "defines the function 'local.One' several times" in refusal(tmp_path, [call("One")], [one, one])
    passing = function("Pass", ["a"], ["a"], [])
    message = refusal(tmp_path, [call("Pass", [""])], [passing])
    assert "needs 'a', an input of the function that the call leaves out" in message
    constant = refers(node("Constant", [], ["b"]), value_float=("by", FLOAT))
    valued = function("Valued", ["a"], ["b"], [constant], attributes=["by"])
    message = refusal(tmp_path, [call("Valued")], [valued])
    assert "its value is an attribute of the function that the call does not give" in message
    leaky = function("Leaky", ["a"], ["b"], [node("Neg", ["a"], ["b"])], attributes=["by"])
    repeated = call("Leaky", by=1.0)
    repeated.attribute.append(helper.make_attribute("by", 2.0))
    assert "attribute 'by' is given twice" in refusal(tmp_path, [repeated], [leaky])
    graph = helper.make_graph([], "g", [], [])
    taking = function("Take", ["a"], ["b"], [node("Neg", ["a"], ["b"])], attributes=["body"])
    message = refusal(tmp_path, [call("Take", body=graph)], [taking])
    assert "attribute 'body' is a graph, which functions of the model cannot take" in message


def test_a_reference_outside_of_functions(tmp_path):
    nodes = [refers(node("LeakyRelu", ["x"], ["y"], name="n"), alpha=("slope", FLOAT))]
    message = refusal(tmp_path, nodes, [])
    assert "attribute 'alpha' refers to the attribute 'slope' of a function, but the node is in no function" in message
