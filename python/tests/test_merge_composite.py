"""MergeComposite: what becomes a function of a backend's patterns, and what does not."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay  # noqa: E402
from headrace.relay.dataflow_pattern import is_constant, is_op, is_tuple, is_tuple_get_item, wildcard  # noqa: E402


def merged(function, table):
    mod = hr.IRModule.from_expr(function)
    return relay.transform.InferType()(relay.transform.MergeComposite(table)(mod))["main"]


def typed(function):
    return relay.transform.InferType()(hr.IRModule.from_expr(function))["main"]


def composite(name, pattern_name, params, body):
    return relay.Function(params, body, attrs={"PartitionedFromPattern": pattern_name, "Composite": name})


def tensors(text, shape=(10, 10)):
    return [relay.var(name, shape=shape) for name in text.split()]


def becomes(before, table, after):
    result = merged(before, table)
    assert not relay.analysis.free_vars(result)
    ir.assert_structural_equal(result, typed(after))


def add_relu():
    return is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))


def add_sub_mul():
    a, b = wildcard(), wildcard()
    return is_op("multiply")(is_op("add")(a, b), is_op("subtract")(a, b))


def conv_bias_relu():
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    return is_op("nn.relu")(is_op("nn.bias_add")(conv, wildcard()))


def add_relu_function(name="add_relu", shape=(10, 10)):
    a, b = tensors("x y", shape)
    return composite(name, "add_nn.relu_", [a, b], relay.nn.relu(a + b))


def add_sub_mul_function():
    a, b = tensors("x y")
    return composite("add_sub_mul", "add_subtract_multiply_", [a, b], (a + b) * (a - b))


def test_one_pattern_becomes_a_function():
    a, b = tensors("a b")
    before = relay.Function([a, b], relay.nn.relu(a + b))
    becomes(before, [("add_relu", add_relu())], relay.Function([a, b], add_relu_function()(a, b)))
    function = merged(before, [("add_relu", add_relu())]).body.op
    assert [param.name_hint for param in function.params] == ["FunctionVar_0_0", "FunctionVar_0_1"]
    assert [str(param.type_annotation) for param in function.params] == ["Tensor[(10, 10), float32]"] * 2


def test_branches_merge_one_after_another():
    a, b, c = tensors("a b c")
    first = (a + b) * (a - b)
    before = relay.Function([a, b, c], relay.nn.relu((c + first) * (c - first)))
    call = add_sub_mul_function()(c, add_sub_mul_function()(a, b))
    becomes(before, [("add_sub_mul", add_sub_mul())], relay.Function([a, b, c], relay.nn.relu(call)))


def test_a_call_that_is_used_twice_is_merged():
    x, y = wildcard(), wildcard()
    inner = is_op("add")(x, y)
    pattern = is_op("add")(is_op("add")(x, inner), inner)
    a, b, p, q = tensors("a b p q")
    difference = a - b
    add = difference + b
    before = relay.Function([a, b], (difference + add) + add)
    sum_of = p + q
    function = composite("add_add_add", "add_add_add_", [p, q], (p + sum_of) + sum_of)
    becomes(before, [("add_add_add", pattern)], relay.Function([a, b], function(a - b, b)))


def conv_inputs():
    return [
        relay.var("data", shape=(1, 8, 6, 6)),
        relay.var("kernel", shape=(4, 8, 1, 1)),
        relay.var("bias", shape=(4,)),
    ]


def conv_of(data, kernel, bias, **attrs):
    conv = relay.nn.conv2d(data, kernel, kernel_size=(1, 1), **attrs)
    return relay.nn.relu(relay.nn.bias_add(conv, bias))


def conv_function(name="conv2d_bias_relu"):
    params = conv_inputs()
    return composite(name, "nn.conv2d_nn.bias_add_nn.relu_", params, conv_of(*params))


def test_several_patterns():
    inputs = [*conv_inputs(), *tensors("a b", (1, 4, 6, 6))]
    a, b = inputs[3:]
    before = relay.Function(inputs, relay.nn.relu(conv_of(*inputs[:3]) + a) * b)
    call = add_relu_function(shape=(1, 4, 6, 6))(conv_function()(*inputs[:3]), a)
    table = [("conv2d_bias_relu", conv_bias_relu()), ("add_relu", add_relu())]
    becomes(before, table, relay.Function(inputs, call * b))


def test_optional_patterns_take_the_largest():
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    pattern = conv.optional(lambda p: is_op("nn.bias_add")(p, wildcard())).optional(is_op("nn.relu"))
    params = conv_inputs()
    data, kernel, bias = params
    plain = relay.nn.conv2d(data, kernel, kernel_size=(1, 1))
    for body, name in (
        (plain, "nn.conv2d_"),
        (relay.nn.relu(plain), "nn.conv2d_nn.relu_"),
        (relay.nn.bias_add(plain, bias), "nn.conv2d_nn.bias_add_"),
        (conv_of(*params), "nn.conv2d_nn.bias_add_nn.relu_"),
    ):
        function = merged(relay.Function(params, relay.tanh(body)), [("conv", pattern)])
        assert function.body.op.name == "tanh"
        assert function.body.args[0].op.attrs["PartitionedFromPattern"] == name


def test_the_order_of_the_table_is_the_priority():
    add_abs = is_op("abs")(is_op("add")(wildcard(), wildcard()))
    abs_relu = is_op("nn.relu")(is_op("abs")(wildcard()))
    whole = is_op("nn.relu")(add_abs)
    a, b = tensors("a b")
    before = relay.Function([a, b], relay.nn.relu(relay.abs(a + b)))

    def found(*patterns):
        result = merged(before, [(f"p{i}", pattern) for i, pattern in enumerate(patterns)])
        calls = []
        relay.analysis.post_order_visit(
            result, lambda e: calls.append(e) if isinstance(e, relay.Function) and "Composite" in e.attrs else None
        )
        return [(str(f.attrs["Composite"]), str(f.attrs["PartitionedFromPattern"])) for f in calls]

    assert found(whole, add_abs, abs_relu) == [("p0", "add_abs_nn.relu_")]
    assert found(add_abs, whole, abs_relu) == [("p0", "add_abs_")]
    assert found(abs_relu, add_abs, whole) == [("p0", "abs_nn.relu_")]


def test_parallel_pieces_are_merged_alike():
    a, b = tensors("a b")
    before = relay.Function([a, b], ((a + b) * (a - b)) * ((a + b) * (a - b)))
    after = relay.Function([a, b], add_sub_mul_function()(a, b) * add_sub_mul_function()(a, b))
    becomes(before, [("add_sub_mul", add_sub_mul())], after)


def test_inputs_must_be_those_that_the_pattern_shares():
    table = [("add_sub_mul", add_sub_mul()), ("add_relu", add_relu())]
    inputs = tensors("a b c d e f g h")
    pairs = [relay.nn.relu(inputs[2 * i] + inputs[2 * i + 1]) for i in range(4)]
    calls = [add_relu_function()(inputs[2 * i], inputs[2 * i + 1]) for i in range(4)]
    before = relay.Function(inputs[:4], (pairs[0] + pairs[1]) * (pairs[0] - pairs[1]))
    becomes(before, table, relay.Function(inputs[:4], add_sub_mul_function()(calls[0], calls[1])))
    before = relay.Function(inputs, (pairs[0] + pairs[1]) * (pairs[2] - pairs[3]))
    becomes(before, table, relay.Function(inputs, (calls[0] + calls[1]) * (calls[2] - calls[3])))


def test_a_field_of_a_tuple_is_merged():
    norm = is_op("nn.batch_norm")(*(wildcard() for _ in range(5)))
    pattern = is_op("nn.relu")(is_tuple_get_item(norm, 0))

    def parts():
        return [relay.var("x", shape=(1, 8)), *tensors("gamma beta mean var", (8,))]

    def body(args):
        return relay.nn.relu(relay.nn.batch_norm(*args)[0])

    p, q = parts(), parts()
    function = composite("bn_relu", "nn.batch_norm_TupleGetItem0_nn.relu_", q, body(q))
    becomes(relay.Function(p, body(p)), [("bn_relu", pattern)], relay.Function(p, function(*p)))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_a_check_decides(layout):
    def check(root):
        return root.args[0].args[0].attrs.data_layout == layout

    data = relay.var("x", shape=(1, 10, 10, 10))
    inputs = [data, relay.var("w", shape=(10, 10, 1, 1)), relay.var("b", shape=(10,))]
    before = relay.Function(inputs, conv_of(*inputs, data_layout="NHWC", kernel_layout="OIHW"))
    result = merged(before, [("conv_bias_relu", conv_bias_relu(), check)])
    if layout == "NHWC":
        assert result.body.op.attrs["Composite"] == "conv_bias_relu"
    else:
        ir.assert_structural_equal(result, typed(before))


@pytest.mark.parametrize("batch", [1, 2])
def test_a_check_sees_types(batch):
    inputs = conv_inputs()
    before = relay.Function(inputs, conv_of(*inputs))

    def check(root):
        return root.args[0].args[0].checked_type.shape[0] == batch

    result = merged(before, [("conv_bias_relu", conv_bias_relu(), check)])
    assert (result.body.op.type_key == "relay.Function") == (batch == 1)


def test_a_check_that_refuses_leaves_smaller_matches():
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    pattern = conv.optional(lambda p: is_op("nn.bias_add")(p, wildcard())).optional(is_op("nn.relu"))
    inputs = conv_inputs()
    before = relay.Function(inputs, conv_of(*inputs))
    asked = []

    def no_relu(root):
        asked.append(root.op.name)
        return root.op.name != "nn.relu"

    result = merged(before, [("conv", pattern, no_relu)])
    assert asked == ["nn.relu", "nn.bias_add"]
    assert result.body.op.name == "nn.relu"
    assert result.body.args[0].op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_"
    table = [("whole", conv_bias_relu(), lambda root: False), ("conv", conv)]
    result = merged(before, table)
    assert result.body.args[0].args[0].op.attrs["Composite"] == "conv"


def test_a_check_that_refuses_leaves_the_other_alternative():
    x, y = tensors("x y")
    pattern = add_relu() | is_op("nn.relu")(wildcard())
    asked = []

    def no_add(root):
        asked.append(root.args[0])
        return not isinstance(root.args[0], relay.Call)

    result = merged(relay.Function([x, y], relay.nn.relu(relay.add(x, y))), [("relu", pattern, no_add)])
    assert result.body.op.attrs["PartitionedFromPattern"] == "nn.relu_"
    assert result.body.args[0].op.name == "add"
    # The check of the second match sees that match by itself.
    assert [type(one).__name__ for one in asked] == ["Call", "Var"]
    assert asked[1].checked_type.shape == asked[0].checked_type.shape


def test_a_value_that_is_used_outside_leaves_the_other_alternative():
    x, y = tensors("x y")
    pattern = is_op("add")(is_op("exp")(wildcard()) | wildcard(), wildcard())
    exp = relay.exp(x)
    result = merged(relay.Function([x, y], relay.Tuple([relay.add(exp, y), exp])), [("sum", pattern)])
    assert result.body.fields[0].op.attrs["PartitionedFromPattern"] == "add_"
    assert result.body.fields[1].op.name == "exp"


def test_a_diamond_with_another_way_is_not_merged():
    whole = conv_bias_relu()
    pattern = is_op("multiply")(whole, is_op("clip")(whole))
    inputs = conv_inputs()
    conv = conv_of(*inputs)
    before = relay.Function(inputs, conv * relay.clip(conv + relay.const(1.0), 0, 255))
    ir.assert_structural_equal(merged(before, [("pat", pattern)]), typed(before))
    before = relay.Function(inputs, conv * relay.clip(conv, 0, 255))
    assert merged(before, [("pat", pattern)]).body.op.attrs["Composite"] == "pat"


def test_a_call_of_a_tuple_is_merged():
    pattern = is_op("einsum")(is_tuple([wildcard(), wildcard()]))

    def einsum(a, b):
        return relay.einsum(relay.Tuple([a, b]), "ij,jk->ik")

    a, b, p, q = tensors("a b p q")
    function = composite("einsum", "Tuple_einsum_", [p, q], einsum(p, q))
    becomes(relay.Function([a, b], einsum(a, b)), [("einsum", pattern)], relay.Function([a, b], function(a, b)))


def test_constants_are_inside_or_arguments():
    a = relay.var("a", shape=(2,))
    weight = relay.const(np.array([1.0, 2.0], "float32"))
    before = relay.Function([a], relay.nn.relu(a + weight))
    for inner, count in ((is_constant(), 1), (wildcard(), 2)):
        table = [("add_relu", is_op("nn.relu")(is_op("add")(wildcard(), inner)))]
        assert len(merged(before, table).body.args) == count


def test_every_function_is_looked_into_that_is_not_a_unit():
    a, b = tensors("a b")

    def function(**attrs):
        x, y = tensors("x y")
        return relay.Function([x, y], relay.nn.relu(x + y), attrs=attrs)

    mod = hr.IRModule({})
    for name, attrs in (("f", {}), ("primitive", {"Primitive": 1}), ("region", {"Compiler": "x"})):
        mod[name] = function(**attrs)
    inner = relay.Var("inner")
    call = relay.Let(inner, function(), inner(a, b) + function(Composite="mine")(a, b))
    mod["main"] = relay.Function([a, b], call)
    result = relay.transform.InferType()(relay.transform.MergeComposite([("add_relu", add_relu())])(mod))
    assert result["f"].body.op.attrs["Composite"] == "add_relu"
    assert result["main"].body.value.body.op.attrs["Composite"] == "add_relu"
    assert result["main"].body.body.args[1].op.attrs["Composite"] == "mine"
    for name in ("primitive", "region"):
        ir.assert_structural_equal(result[name], relay.transform.InferType()(mod)[name])


def test_the_result_runs_and_compiles():
    inputs = conv_inputs()
    mod = hr.IRModule.from_expr(relay.Function(inputs, relay.tanh(conv_of(*inputs))))
    result = relay.transform.MergeComposite([("conv", conv_bias_relu())])(mod)
    rng = np.random.default_rng(0)
    values = [rng.standard_normal([int(d) for d in v.type_annotation.shape]).astype("float32") for v in inputs]
    want = relay.create_executor("debug", mod).evaluate()(*values).numpy()
    np.testing.assert_array_equal(relay.create_executor("debug", result).evaluate()(*values).numpy(), want)
    lib = relay.build(result, "llvm")
    run = hr.contrib.graph_executor.GraphModule(lib["default"](hr.cpu()))
    run.run(**dict(zip(("data", "kernel", "bias"), values, strict=True)))
    np.testing.assert_allclose(run.get_output(0).numpy(), want, rtol=1e-5, atol=1e-6)


def test_a_table_may_be_text():
    a, b = tensors("a b")
    before = relay.Function([a, b], relay.nn.relu(a + b))
    text = '{ "x.add_relu": { %0 = add(_, _); nn.relu(%0) }, x.exp: exp(_) }'
    assert merged(before, text).body.op.attrs["Composite"] == "x.add_relu"
    assert merged(before, [("x", "nn.relu(_ + _)")]).body.op.attrs["Composite"] == "x"


def test_wrong_tables_are_reported():
    for table, message in (
        (3, "pattern table"),
        ([3], "entry 0 of the pattern table is a int"),
        ([("a", add_relu()), ("b",)], "entry 1 of the pattern table has 1 items"),
        ([("", add_relu())], "entry 0 of the pattern table has no name"),
        ([("a", 3)], "entry 0 of the pattern table has a int for its pattern"),
        ([("a", add_relu(), 3)], "entry 0 of the pattern table has a int for its check"),
        ("{ a: nn.relo(_) }", "pattern_table:1:6"),
    ):
        with pytest.raises(hr.UserError, match=message):
            relay.transform.MergeComposite(table)


def test_what_a_check_raises_is_raised():
    a, b = tensors("a b")

    def check(root):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        merged(relay.Function([a, b], relay.nn.relu(a + b)), [("add_relu", add_relu(), check)])
