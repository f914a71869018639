"""Properties of Relay that programs rely on: dtypes, equality, forms and texts."""

import headrace as hr
import numpy as np
import pytest
from headrace import relay, tir

HEAD = '#[version = "0.0.5"]\n'


def result_type(expr):
    return relay.transform.InferType()(hr.IRModule.from_expr(expr))["main"].checked_type.ret_type


def test_indices_and_sizes_are_int32_unless_told_otherwise():
    x = relay.var("x", shape=(2, 3, 4))
    assert result_type(relay.argmax(x, 1)) == relay.TensorType((2, 4), "int32")
    assert result_type(relay.argmin(x)) == relay.TensorType((), "int32")
    assert result_type(relay.argmin(x, axis=[1], dtype="int64")) == relay.TensorType((2, 4), "int64")
    assert result_type(relay.shape_of(x)) == relay.TensorType((3,), "int32")
    assert result_type(relay.shape_of(x, dtype="int64")) == relay.TensorType((3,), "int64")
    assert result_type(relay.ndarray_size(x)) == relay.TensorType((), "int32")
    data = np.array([[3, 9, 9], [4, 1, 2]], "float32")
    got = relay.create_executor("graph").evaluate(relay.Function([], relay.argmax(relay.const(data), 1)))().numpy()
    assert got.dtype == np.int32 and got.tolist() == [1, 0]
    with pytest.raises(hr.UserError, match='elements have positions that int32 does not hold; ask for dtype="int64"'):
        result_type(relay.argmax(relay.var("x", shape=(2**16, 2**16), dtype="int8")))


def test_bool_and_uint1_are_one_dtype():
    assert relay.TensorType((2,), "uint1") == relay.TensorType((2,), "bool")
    assert relay.TensorType((2,), "uint1").dtype == "bool"
    x = relay.var("x", shape=(2,), dtype="uint1")
    assert result_type(relay.logical_and(x, relay.var("y", shape=(2,), dtype="bool"))).dtype == "bool"


@pytest.mark.parametrize(("data", "weight"), [("uint8", "int8"), ("int8", "uint8")])
def test_products_of_signed_and_unsigned_bytes(data, weight):
    rng = np.random.default_rng(1)
    a = rng.integers(np.iinfo(data).min, np.iinfo(data).max, (3, 64)).astype(data)
    b = rng.integers(np.iinfo(weight).min, np.iinfo(weight).max, (5, 64)).astype(weight)
    x, w = relay.var("x", shape=(3, 64), dtype=data), relay.var("w", shape=(5, 64), dtype=weight)
    product = relay.Function([x, w], relay.nn.dense(x, w, out_dtype="int32"))
    for kind in ("debug", "graph"):
        got = relay.create_executor(kind).evaluate(product)(a, b).numpy()
        np.testing.assert_array_equal(got, a.astype("int32") @ b.astype("int32").T)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_dimensions_of_any_integer_dtype(dtype):
    n = tir.Var("n", dtype)
    x = relay.var("x", shape=(n, tir.IntImm(dtype, 4)))
    got = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], relay.reshape(x, (-1, 2)))))["main"]
    assert got.checked_type == relay.FuncType([relay.TensorType((n, 4))], relay.TensorType((n * 2, 2)))
    shape = relay.const(np.array([4, 2]), dtype)
    y = relay.var("y", shape=(8,))
    assert result_type(relay.reshape(y, shape)) == relay.TensorType((4, 2))
    assert result_type(relay.broadcast_to(relay.var("z", shape=(2,)), shape)) == relay.TensorType((4, 2))
    assert result_type(relay.full(relay.const(1.0), shape, "float32")) == relay.TensorType((4, 2))


def test_an_int_imm_is_the_integer_as_an_attribute():
    x = relay.var("x", shape=(2,))
    plain = relay.Function([x], x).with_attr("Primitive", 1)
    imm = relay.Function([x], x).with_attr("Primitive", tir.IntImm("int32", 1))
    assert hr.ir.structural_equal(plain, imm) and imm.attrs["Primitive"] == 1
    assert hr.ir.structural_hash(plain) == hr.ir.structural_hash(imm)
    mod = hr.IRModule()
    mod["f"] = relay.Function([x], relay.negative(x)).with_attr("Inline", tir.IntImm("int32", 1))
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], mod.get_global_var("f")(y))
    assert relay.analysis.list_op_freqs(relay.transform.Inline()(relay.transform.InferType()(mod))) == {"negative": 1}


def test_a_shape_equals_the_list_of_its_sizes():
    shape = relay.TensorType((10, 3)).shape
    assert shape == [10, 3]
    for sizes in ([10, 3], (10, 3), shape):
        assert hr.ir.structural_equal(shape, sizes) and hr.ir.structural_equal(sizes, shape)
        assert hr.ir.structural_hash(shape) == hr.ir.structural_hash(sizes)
        assert hr.ir.structural_equal({"a": [shape]}, {"a": [sizes]})
    hr.ir.assert_structural_equal(shape[0], 10)
    for sizes in ([3, 10], [10], [10, 3.0], [True, 3], [tir.IntImm("int32", 10), 3]):
        assert not hr.ir.structural_equal(shape, sizes)
    found = hr.ir.get_first_structural_mismatch(shape, [10, 4])
    assert (found["path"], found["left"], found["right"]) == ("[1].value", "3", "4")
    with pytest.raises(hr.UserError, match=r"values differ at \[1\].value"):
        hr.ir.assert_structural_equal([10, 4], shape)


def function_with_a_parameter_as_a_key(number=1):
    x = relay.var("x", shape=(10,))
    return relay.Function([x], x).with_attr("dict", {x: number})


def test_an_attribute_of_a_function_may_mention_its_parameter():
    function = function_with_a_parameter_as_a_key()
    for same in (
        function_with_a_parameter_as_a_key(),
        relay.parse_expr(function.astext()),
        hr.ir.load_json(hr.ir.save_json(function)),
    ):
        hr.ir.assert_structural_equal(function, same)
        assert hr.ir.structural_hash(function) == hr.ir.structural_hash(same)
        assert list(same.attrs["dict"]) == [same.params[0]]
    assert not hr.ir.structural_equal(function, function_with_a_parameter_as_a_key(2))
    assert "dict={%x: 1}" in function.astext()


@pytest.mark.parametrize("level", [0, 3])
def test_a_checkpoint_of_any_value(level):
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4,))
    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.ones(4, "float32")
    pair = relay.annotation.checkpoint(relay.Tuple([x * x, y]))
    assert result_type(pair) == relay.TupleType([x.type_annotation, y.type_annotation])
    nested = relay.annotation.checkpoint(relay.Tuple([relay.Tuple([x * x, y]), y]))
    inner = relay.TupleGetItem(relay.TupleGetItem(nested, 0), 0)
    split = relay.annotation.checkpoint(relay.split(x, 3, axis=1).astuple())
    nothing = relay.Tuple([relay.annotation.checkpoint(relay.Tuple([])), x])
    with hr.transform.PassContext(opt_level=level):
        for kind in ("debug", "graph"):
            run = relay.create_executor(kind).evaluate
            first, second = run(relay.Function([x, y], pair))(a, b)
            np.testing.assert_array_equal(first.numpy(), a * a)
            np.testing.assert_array_equal(second.numpy(), b)
            np.testing.assert_array_equal(
                run(relay.Function([x, y], inner + relay.const(1.0)))(a, b).numpy(), a * a + 1
            )
            np.testing.assert_array_equal(run(relay.Function([x], relay.TupleGetItem(split, 2)))(a).numpy(), a[:, 2:])
            empty, same = run(relay.Function([x], nothing))(a)
            assert len(empty) == 0 and (same.numpy() == a).all()
    identity = relay.Function([y], y)
    called = relay.Function([y], relay.Call(relay.annotation.checkpoint(identity), [y]))
    np.testing.assert_array_equal(relay.create_executor("debug").evaluate(called)(b).numpy(), b)


def test_the_gradient_of_a_checkpoint_of_a_tuple():
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    pair = relay.annotation.checkpoint(relay.Tuple([x * y, y]))
    function = relay.Function([x, y], relay.TupleGetItem(pair, 0) * relay.TupleGetItem(pair, 1))
    mod = relay.transform.FirstOrderGradient()(relay.transform.InferType()(hr.IRModule.from_expr(function)))
    a, b = np.array([1, 2, 3], "float32"), np.array([4, 5, 6], "float32")
    _, (by_x, by_y) = relay.create_executor("debug", mod).evaluate()(a, b)
    np.testing.assert_allclose(by_x.numpy(), b * b)
    np.testing.assert_allclose(by_y.numpy(), 2 * a * b)


def test_the_type_of_a_result_is_filled_in():
    x = relay.var("x", shape=(2, 3))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], relay.sum(x, 1))))
    assert mod["main"].ret_type == relay.TensorType((2,))
    assert "-> Tensor[(2), float32] {" in str(mod)
    assert relay.transform.InferType()(mod)["main"].same_as(mod["main"])
    n = relay.var("x", shape=(relay.Any(),))
    sizes = relay.transform.InferType()(hr.IRModule.from_expr(relay.reshape(n, relay.const(np.array([2]), "int32"))))
    assert relay.transform.DynamicToStatic()(sizes)["main"].checked_type.ret_type == relay.TensorType((2,))


def test_dimensions_of_one_value_are_equal_in_types():
    t, n = tir.Var("t"), tir.Var("n")
    twice, double = relay.TensorType((n, t + t)), relay.TensorType((n, t * 2))
    assert twice == double and hash(twice) == hash(double)
    assert twice != relay.TensorType((n, t * 3))
    assert relay.TupleType([twice]) == relay.TupleType([double])
    assert not hr.ir.structural_equal(twice, double)
    x = relay.var("x", shape=(n, t))
    assert result_type(relay.concatenate([x, x], axis=1)) == twice


def test_a_variable_without_a_type_is_one_whose_type_is_inferred():
    plain, open_ = relay.Var("x"), relay.Var("x", relay.IncompleteType())
    assert hr.ir.structural_equal(relay.Function([plain], plain), relay.Function([open_], open_))
    assert hr.ir.structural_equal(relay.parse_expr("fn (%x) { %x }"), relay.parse_expr("fn (%x: _) { %x }"))


def test_a_shared_node_is_not_two_equal_nodes():
    x = relay.var("x", shape=(2,))
    once = relay.negative(x)
    shared, apart = relay.Tuple([once, once]), relay.Tuple([relay.negative(x), relay.negative(x)])
    assert not hr.ir.structural_equal(shared, apart) and not hr.ir.structural_equal(apart, shared)
    unit = relay.Tuple([])
    assert hr.ir.structural_equal(relay.Tuple([unit, unit]), relay.Tuple([relay.Tuple([]), relay.Tuple([])]))


def test_functions_that_are_arguments_are_inlined():
    mod = hr.IRModule()
    first = relay.Function([], relay.const(1)).with_attr("Inline", 1)
    second = relay.Function([], relay.const(2)).with_attr("Inline", 1)
    mod["first"], mod["second"] = first, second
    p = relay.var("p", shape=(), dtype="bool")
    names = [mod.get_global_var("first"), mod.get_global_var("second")]
    mod["main"] = relay.Function([p], relay.Call(relay.If(p, *names), []))
    got = relay.transform.Inline()(mod)
    assert [var.name_hint for var in got.get_global_vars()] == ["main"]
    q = relay.var("p", shape=(), dtype="bool")
    want = relay.Function([q], relay.Call(relay.If(q, first, second), []))
    hr.ir.assert_structural_equal(got["main"], want)


def test_fold_scale_axis_is_a_sequence():
    x, w, s = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)), relay.var("s", shape=(4,))
    mod = hr.IRModule.from_expr(relay.multiply(relay.nn.dense(x, w), s))
    seen = []

    def note(module, info, before):
        if before:
            seen.append(info.name)

    with hr.transform.PassContext(opt_level=3, trace=note):
        hr.transform.Sequential([relay.transform.FoldScaleAxis()])(mod)
    assert seen[1:] == ["BackwardFoldScaleAxis", "ForwardFoldScaleAxis", "FoldConstant"]
    with hr.transform.PassContext(opt_level=3, disabled_pass=["BackwardFoldScaleAxis"]):
        kept = hr.transform.Sequential([relay.transform.FoldScaleAxis()])(mod)
    dense = kept["main"].body.args[0]
    assert dense.op.name == "nn.dense" and isinstance(dense.args[1], relay.Var)


def test_convert_layout_writes_layout_transforms():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 1, 1))
    mod = hr.IRModule.from_expr(relay.Function([x, w], relay.nn.conv2d(x, w, kernel_size=(1, 1), channels=4)))
    got = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"]})(relay.transform.InferType()(mod))
    assert relay.analysis.list_op_freqs(got) == {"layout_transform": 3, "nn.conv2d": 1}
    simple = relay.transform.SimplifyExpr()(relay.transform.InferType()(got))
    assert relay.analysis.list_op_freqs(simple) == {"transpose": 3, "nn.conv2d": 1}


def test_texts_show_types_where_they_were_inferred():
    one = relay.const(1)
    mod = hr.IRModule.from_expr(relay.add(one, one))
    assert "ty=" not in str(mod)
    text = relay.transform.InferType()(mod).astext()
    assert text.count("/* ty=int32 */") == 3
    hr.ir.assert_structural_equal(relay.parse(text), relay.transform.InferType()(mod))
    assert "ty=" not in relay.transform.InferType()(mod).astext(show_types=False)
    assert "ty=" not in relay.transform.InferType()(mod).astext(annotate=lambda expr: "mine")


def test_sequences_literals_and_meta_in_texts():
    unit, one = relay.Tuple([]), relay.const(1)
    hr.ir.assert_structural_equal(relay.parse_expr("(); ()"), relay.Let(relay.Var("_"), unit, unit), map_free_vars=True)
    hr.ir.assert_structural_equal(relay.parse_expr("%0 = (); %1 = 1; (%0, %0, %1)"), relay.Tuple([unit, unit, one]))
    assert relay.parse_expr("2147483648").data.dtype == "int64"
    assert relay.parse_expr("---10").data.numpy() == -10
    with pytest.raises(hr.UserError, match=r"32768 does not fit int16.*\n  32768i16\n  \^\^\^\^\^\^\^\^"):
        relay.parse_expr("32768i16")
    n = tir.Var("n")
    text = HEAD + "def @main(%x: Tensor[(meta[tir.SizeVar][0], 2), float32]) { %x }"
    assert relay.parse(text, init_meta_table={"tir.SizeVar": [n]})["main"].params[0].type_annotation.shape[0].same_as(n)


@pytest.mark.parametrize(
    ("name", "types", "functions"),
    [
        ("gradient.rly", ["GradCell"], ["AddGradCell", "FromGradCell", "MultiplyGradCell"]),
        ("core.rly", ["Storage"], []),
    ],
)
def test_the_texts_that_come_with_relay(name, types, functions):
    mod = hr.IRModule()
    mod.import_from_std(name)
    assert [var.name_hint for var in mod.get_global_type_vars()] == types
    assert sorted(var.name_hint for var in mod.get_global_vars()) == functions
    imported = relay.parse(f'{HEAD}import "{name}"\ndef @main() {{ 1 }}')
    assert [var.name_hint for var in imported.get_global_type_vars()] == types


def test_while_loop_is_a_recursive_function():
    """`while_loop` of two variables: powers of 3 below 100, and their number."""
    power, count = relay.var("power", shape=(), dtype="int32"), relay.var("count", shape=(), dtype="int32")
    loop = relay.loops.while_loop(
        lambda p, n: relay.less(p, relay.const(100)),
        [power, count],
        lambda p, n: [p * relay.const(3), n + relay.const(1)],
    )
    assert isinstance(loop, relay.Let) and loop.var.name_hint == "while_loop"
    start = relay.var("start", shape=(), dtype="int32")
    program = relay.Function([start], loop(start, relay.const(0)))
    last = relay.create_executor("debug").evaluate(program)(np.int32(1))
    assert [item.numpy().item() for item in last] == [243, 5]
    half = relay.transform.ToMixedPrecision()(hr.IRModule.from_expr(program))
    assert hr.ir.structural_equal(half, relay.transform.InferType()(hr.IRModule.from_expr(program)))
    with pytest.raises(hr.UserError, match="an item of loop_vars"):
        relay.loops.while_loop(lambda p: p, ["p"], lambda p: [p])
    with pytest.raises(hr.UserError, match="while_loop: cond: expected a function, got int"):
        relay.loops.while_loop(1, [power], lambda p: [p])
    with pytest.raises(hr.UserError, match="while_loop: loop_bodies gave 2 values for 1 variables"):
        relay.loops.while_loop(lambda p: relay.less(p, relay.const(3)), [power], lambda p: [p, p])
    with pytest.raises(hr.UserError, match="while_loop: loop_types has 2 types for 1 variables"):
        relay.loops.while_loop(lambda p: p, [power], lambda p: [p], [relay.TensorType(())] * 2)


def test_an_evaluator_takes_parameters_by_name_as_relays():
    """Names that no parameter has are left out; parameters of one name get one value; missing ones are told."""
    x, y = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
    run = relay.create_executor("debug").evaluate(relay.Function([x, y], x * relay.const(3.0) + y))
    assert run(x=np.float32([1, 2]), unused=0).numpy().tolist() == [4, 8]
    with pytest.raises(hr.UserError, match="missing: x, x, given twice: none, unknown: z"):
        run(z=np.float32([1, 2]))
    with pytest.raises(hr.UserError, match="given twice: x"):
        run(np.float32([1, 2]), x=np.float32([1, 2]))


def test_the_context_of_a_thread_takes_instruments_again():
    """An object that `current()` gave sets the instruments more than once."""
    left = []

    @hr.instrument.pass_instrument
    class Leaves:
        def __init__(self, name):
            self.name_ = name

        def exit_pass_ctx(self):
            left.append(self.name_)

    context = hr.transform.PassContext.current()
    for name in "ab":
        context.override_instruments([Leaves(name)])
    context.override_instruments(None)
    assert left == ["a", "b"] and not hr.transform.PassContext.current().instruments


def test_tensors_are_equal_if_they_are_one_memory():
    a = hr.nd.array(np.arange(3, dtype="float32"))
    constant = relay.Constant(a)
    assert constant.data == a and hash(constant.data) == hash(a)
    assert a != hr.nd.array(np.arange(3, dtype="float32")) and a != "3"
    assert a != hr.nd.from_dlpack(a.numpy().view("int32")) and a != hr.nd.from_dlpack(a.numpy()[:2])
    assert len({a, constant.data}) == 1


def test_the_kind_of_a_name_that_no_module_defines():
    kinds = relay.TypeKind
    for kind in (kinds.AdtHandle, kinds.Type):
        assert relay.analysis.check_kind(relay.GlobalTypeVar("pair", kind)) == kind
    pair = relay.GlobalTypeVar("pair")
    mod = hr.IRModule()
    mod[pair] = relay.TypeData(pair, [], [])
    assert relay.analysis.check_kind(pair, mod) == kinds.Type
    with pytest.raises(hr.UserError, match="the type 'pair' is not defined in the module"):
        relay.analysis.check_kind(relay.TupleType([relay.TypeCall(pair, [])]))


def test_yolo_reorg_of_symbolic_sizes():
    n, c, h, w = (tir.Var(name, "int64") for name in "nchw")
    reorg = relay.vision.yolo_reorg(relay.var("x", shape=(n, c, 12, w)), stride=3)
    assert result_type(reorg) == relay.TensorType((n, c * 9, 4, w // 3))
    x = relay.var("x", shape=(1, c, h, 4))
    f = relay.Function([x], relay.vision.yolo_reorg(x, stride=2))
    data = np.arange(32, dtype="float32").reshape(1, 4, 2, 4)
    fixed = relay.Function([y := relay.var("y", shape=(1, 4, 2, 4))], relay.vision.yolo_reorg(y, stride=2))
    got, same = (relay.create_executor().evaluate(each)(data).numpy() for each in (f, fixed))
    np.testing.assert_array_equal(got, same)
    with pytest.raises(hr.UserError, match="must be a multiple of 4"):
        relay.create_executor().evaluate(f)(data[:, :3])


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_suppression_without_indices_reads_none(kind):
    boxes = np.array([[[0, 0.5, 0, 0, 2, 2], [1, 0.9, 0, 0, 2, 2], [0, 0.7, 0, 0, 2, 1.9]]], "float32")
    x, count = relay.var("x", shape=(1, 3, 6)), relay.var("count", shape=(1,), dtype="int32")
    f = relay.Function([x, count], relay.vision.non_max_suppression(x, count, x, return_indices=False))
    got = relay.create_executor(kind).evaluate(f)(boxes, np.array([3], "int32")).numpy()
    np.testing.assert_array_equal(got[0], [boxes[0, 1], boxes[0, 2], [-1] * 6])
    with pytest.raises(hr.UserError, match="indices must be int32"):
        result_type(relay.vision.non_max_suppression(x, count, x).astuple())


def test_full_like_casts_its_value():
    x, value = relay.var("x", shape=(2,), dtype="int32"), relay.var("v", shape=())
    f = relay.Function([x, value], relay.full_like(x, value))
    got = relay.create_executor().evaluate(f)(np.zeros(2, "int32"), np.float32(2.75)).numpy()
    assert (got.dtype, got.tolist()) == (np.int32, [2, 2])
    same = relay.full_like(x, relay.var("w", shape=(), dtype="int32"))
    assert [arg.type_key for arg in same.args] == ["relay.Var"] * 2
    assert relay.full_like(x, 7).args[1].data.dtype == "int32"


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_a_transposes_output_padding_may_reach_the_stride(kind):
    x, w = relay.var("x", shape=(1, 4, 5, 2)), relay.var("w", shape=(2, 3, 3, 2))
    call = relay.nn.conv2d_transpose(
        x, w, strides=(1, 2), padding=(0, 1, 1, 0), output_padding=(2, 5), channels=3, data_layout="NHWC"
    )
    assert result_type(call) == relay.TensorType((1, 7, 14, 3))
    rng = np.random.default_rng(1)
    data, weight = rng.normal(size=(1, 4, 5, 2)).astype("float32"), rng.normal(size=(2, 3, 3, 2)).astype("float32")
    whole = np.zeros((1, 8, 16, 3))
    for i in range(4):
        for j in range(5):
            whole[0, i : i + 3, 2 * j : 2 * j + 2] += np.einsum("c,ckrs->rsk", data[0, i, j], weight)
    got = relay.create_executor(kind).evaluate(relay.Function([x, w], call))(data, weight).numpy()
    np.testing.assert_allclose(got, whole[:, :7, 1:15], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_a_padding_of_elements_crops(kind, mode):
    n = tir.Var("n", "int64")
    crops = relay.nn.pad(relay.var("t", shape=(4, 6, 3, n)), ((-1, -1), (2, -2), (0, -3), (4, 4)), pad_mode=mode)
    assert result_type(crops) == relay.TensorType((2, 6, 0, n + 8))
    x = relay.var("x", shape=(4, 6, 5))
    call = relay.nn.pad(x, ((-1, -1), (2, -3), (-2, 4)), pad_mode=mode)
    data = np.random.default_rng(1).normal(size=(4, 6, 5)).astype("float32")
    got = relay.create_executor(kind).evaluate(relay.Function([x], call))(data).numpy()
    np.testing.assert_array_equal(got, np.pad(data, ((0, 0), (2, 0), (0, 4)), mode)[1:-1, :-3, 2:])


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_a_depthwise_convolution_with_a_multiplier(kind):
    x, w = relay.var("x", shape=(2, 3, 4, 5, 3)), relay.var("w", shape=(3, 4, 2, 1, 3))
    sizes = {"groups": 3, "channels": 12, "kernel_size": (2, 1, 3)}
    call = relay.nn.conv3d(x, w, **sizes)
    assert result_type(call) == relay.TensorType((2, 12, 3, 5, 1))
    rng = np.random.default_rng(1)
    data, weight = (
        rng.normal(size=(2, 3, 4, 5, 3)).astype("float32"),
        rng.normal(size=(3, 4, 2, 1, 3)).astype("float32"),
    )
    parts = [
        np.einsum("nchw,cm->ncmhw", data[:, :, r : r + 3, :, t : t + 1][..., 0], weight[:, :, r, 0, t])
        for r in range(2)
        for t in range(3)
    ]
    got = relay.create_executor(kind).evaluate(relay.Function([x, w], call))(data, weight).numpy()
    np.testing.assert_allclose(got, sum(parts).reshape(2, 12, 3, 5, 1), rtol=1e-4, atol=1e-5)
    plain = relay.nn.conv3d(x, relay.reshape(w, (12, 1, 2, 1, 3)), **sizes)
    assert hr.ir.structural_equal(call, plain)
    with pytest.raises(hr.UserError, match="weight must have 1 input channels, got 4"):
        result_type(relay.nn.conv3d(x, w, **{**sizes, "channels": None}))
