"""Tests the results of passes called by Relay's names where Relay's own tests look: types, forms, precision."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, transform  # noqa: E402


def test_function_passes_write_the_types_of_results():
    """Relay's function passes end in InferType."""
    x = relay.var("x", shape=(2, 3))
    want = relay.TensorType((2, 3))
    names = ("SimplifyExpr", "FoldConstant", "DeadCodeElimination", "ToGraphNormalForm", "DynamicToStatic", "FuseOps")
    for name in (*names, "ToMixedPrecision", "SimplifyInference", "EliminateCommonSubexpr"):
        mod = getattr(relay.transform, name)()(hr.IRModule.from_expr(relay.Function([x], relay.exp(x))))
        assert mod["main"].ret_type == want, name

    @relay.transform.function_pass(opt_level=0)
    def doubles(function, mod, ctx):
        return relay.Function(function.params, function.body + function.body)

    assert doubles(hr.IRModule.from_expr(relay.Function([x], relay.exp(x))))["main"].ret_type == want


def test_mixed_precision_at_relays_place():
    from headrace.relay.transform import mixed_precision

    assert relay.transform.mixed_precision is mixed_precision
    assert mixed_precision.MIXED_PRECISION_NEVER == relay.op.MIXED_PRECISION_NEVER == 2
    assert mixed_precision.register_mixed_precision_conversion is relay.op.register_mixed_precision_conversion


def test_mixed_precision_casts_parameters_for_what_follows():
    """`where` with a float condition, `take`, and batch_norm after a product; sums and means stay."""
    x, w, g = relay.var("x", shape=(1, 4)), relay.var("w", shape=(4, 4)), relay.var("g", shape=(4,))
    i = relay.var("i", shape=(1, 1), dtype="int32")

    def half(expr):
        return relay.transform.ToMixedPrecision("float16")(hr.IRModule.from_expr(expr))

    def typed(expr):
        return relay.transform.InferType()(hr.IRModule.from_expr(expr))

    def small(var):
        return relay.cast(var, "float16")

    xs, dense = small(x), relay.nn.dense(x, w)
    product = relay.nn.dense(xs, small(w), out_dtype="float16")
    hr.ir.assert_structural_equal(half(relay.where(x, dense, dense)), typed(relay.where(xs, product, product)))
    hr.ir.assert_structural_equal(half(relay.take(x, i, axis=0)), typed(relay.take(xs, i, axis=0)))
    norm = relay.nn.batch_norm(dense, g, g, g, g)[0]
    gs = small(g)
    hr.ir.assert_structural_equal(half(norm), typed(relay.nn.batch_norm(product, gs, gs, gs, gs)[0]))
    v, vs = relay.var("v", shape=(1, 4)), relay.var("v", shape=(1, 4), dtype="float16")
    hr.ir.assert_structural_equal(half(relay.Let(v, dense, v + v)), typed(relay.Let(vs, product, vs + vs)))
    exp = relay.var("e", shape=(1, 4))
    let = relay.Let(exp, relay.exp(x), exp + exp)  # a let variable has the dtype of its value
    hr.ir.assert_structural_equal(half(let), typed(let))
    image = relay.var("image", shape=(1, 2, 4, 4))
    for expr in (relay.sum(x), relay.mean(x), relay.nn.global_avg_pool2d(image), relay.nn.softmax(x)):
        hr.ir.assert_structural_equal(half(expr), typed(expr))


def test_mixed_precision_in_float64():
    x, w = relay.var("x", shape=(1, 4)), relay.var("w", shape=(4, 4))
    mod = relay.transform.ToMixedPrecision("float64")(hr.IRModule.from_expr(relay.nn.dense(x, w)))
    wide = relay.nn.dense(relay.cast(x, "float64"), relay.cast(w, "float64"), out_dtype="float64")
    hr.ir.assert_structural_equal(mod, relay.transform.InferType()(hr.IRModule.from_expr(wide)))
    rng = np.random.default_rng(1)
    data, weight = rng.random((1, 4), "float32"), rng.random((4, 4), "float32")
    got = relay.create_executor("debug", mod).evaluate()(data, weight).numpy()
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, data.astype("float64") @ weight.astype("float64").T, rtol=1e-14)


def test_simplify_expr_takes_all_laws_where_it_is_named():
    """At any level, as Relay's; a build takes those that round from level 3 on."""
    x = relay.var("x", shape=(3,))
    mod = hr.IRModule.from_expr((x + relay.const(1.0)) + relay.const(2.0))
    want = relay.transform.InferType()(hr.IRModule.from_expr(x + relay.const(3.0)))
    hr.ir.assert_structural_equal(relay.transform.SimplifyExpr()(mod), want)
    root = hr.IRModule.from_expr(relay.const(2.5) / relay.sqrt(x))
    product = relay.transform.InferType()(hr.IRModule.from_expr(relay.const(2.5) * relay.rsqrt(x)))
    hr.ir.assert_structural_equal(relay.transform.SimplifyExpr()(root), product)
    with transform.PassContext(opt_level=0):
        hr.ir.assert_structural_equal(transform.Sequential([relay.transform.SimplifyExpr()])(mod), want)


def test_slices_of_combined_products_have_all_axes_before_the_outputs():
    def combined(args, results, name, **options):
        made = getattr(relay.transform, name)(min_num_branches=2, **options)
        return made(hr.IRModule.from_expr(relay.Function(args, relay.Tuple(results))))

    def sliced(value, begins, sizes):
        outer = len(value[1]) - 1
        return [
            relay.strided_slice(
                value[0],
                begin=[0] * outer + [begin],
                end=[-1] * outer + [size],
                strides=[1] * (outer + 1),
                slice_mode="size",
            )
            for begin, size in zip(begins, sizes, strict=True)
        ]

    def check(args, results, parts, name, **options):
        want = hr.IRModule.from_expr(relay.Function(args, relay.Tuple(parts)))
        got = combined(args, results, name, **options)
        hr.ir.assert_structural_equal(got, relay.transform.InferType()(want))

    image = relay.var("image", shape=(1, 4, 8, 8))
    kernels = [relay.var("k0", shape=(4, 4, 1, 1)), relay.var("k1", shape=(7, 4, 1, 1))]
    wide = relay.nn.conv2d(image, relay.concatenate(kernels, axis=0), channels=11)
    parts = sliced((wide, "NC"), [0, 4], [4, 7])
    check([image, *kernels], [relay.nn.conv2d(image, k) for k in kernels], parts, "CombineParallelConv2D")

    x = relay.var("x", shape=(2, 3, 4))
    weights = [relay.var(f"w{i}", shape=(2, 5, 4)) for i in range(2)]
    biases = [relay.var(f"b{i}", shape=(5,)) for i in range(2)]
    wide = relay.nn.batch_matmul(x, relay.concatenate(weights, axis=1)) + relay.concatenate(biases, axis=-1)
    results = [relay.nn.batch_matmul(x, w) + b for w, b in zip(weights, biases, strict=True)]
    check([x, *weights, *biases], results, sliced((wide, "BMN"), [0, 5], [5, 5]), "CombineParallelBatchMatmul")

    rows = relay.var("rows", shape=(3, 4))
    weights = [relay.var("w0", shape=(5, 4)), relay.var("w1", shape=(10, 4))]
    scales = [relay.var(f"s{i}", shape=(1,)) for i in range(2)]
    wide = relay.nn.dense(rows, relay.concatenate(weights, axis=0), units=15)
    repeated = relay.concatenate([relay.repeat(scales[0], 5, 0), relay.repeat(scales[1], 10, 0)], axis=0)
    results = [relay.nn.dense(rows, w) * s for w, s in zip(weights, scales, strict=True)]
    parts = sliced((wide * repeated, "MN"), [0, 5], [5, 10])
    check([rows, *weights, *scales], results, parts, "CombineParallelDense", to_batch=False)


def optimized(expr, made, *, level=3):
    with transform.PassContext(opt_level=level):
        return made(relay.transform.InferType()(hr.IRModule.from_expr(expr)))["main"]


def assert_becomes(expr, made, want):
    hr.ir.assert_structural_equal(optimized(expr, made), optimized(want, relay.transform.InferType()))


def test_flatten_atrous_conv_of_one_and_of_two_axes():
    """Blocks along H alone, then along H and W; cropping at the begin takes from the padding before."""
    x, w = relay.var("x", shape=(1, 6, 5, 2)), relay.const(np.arange(8, dtype="float32").reshape((2, 1, 2, 2)))
    layouts = {"channels": 2, "kernel_size": (2, 1), "data_layout": "NHWC", "kernel_layout": "HWIO"}
    for blocks, pads, crops, padding, dilation in (
        ([3], [[2, 1]], [[1, 0]], (1, 0, 1, 0), (3, 1)),
        ([2, 3], [[1, 1], [1, 0]], [[0, 1], [0, 0]], (1, 1, 0, 0), (2, 3)),
    ):
        split = relay.nn.space_to_batch_nd(x, blocks, pads)
        joined = relay.nn.batch_to_space_nd(relay.nn.conv2d(split, w, **layouts), blocks, crops)
        whole = relay.nn.conv2d(x, w, padding=padding, dilation=dilation, **layouts)
        assert_becomes(joined, relay.transform.FlattenAtrousConv(), whole)
        data = np.arange(60, dtype="float32").reshape((1, 6, 5, 2))
        got, flat = (relay.create_executor("debug").evaluate(relay.Function([x], e))(data) for e in (joined, whole))
        np.testing.assert_array_equal(got.numpy(), flat.numpy())
    built = relay.build(hr.IRModule.from_expr(joined), "llvm").get_graph_json()
    assert "conv2d" in built and "space" not in built


def test_simplify_expr_by_name_is_relays():
    """SimplifyExpr by name applies Relay's own laws, and none of those that builds have beyond Relay."""
    simplify = relay.transform.SimplifyExpr()
    x, c, d = relay.var("x", shape=(1, 2, 3)), np.float32([1, 2, 4]), np.float32([2, 1, 3])
    assert_becomes(relay.const(0.0) - x, simplify, relay.const(0.0) - x)
    assert_becomes(relay.transpose(x, (1, 2, 0)), simplify, relay.transpose(x, (1, 2, 0)))
    assert_becomes(relay.collapse_sum_to(x, (2, 3)), simplify, relay.collapse_sum_to(x, (2, 3)))
    assert_becomes(x + x, simplify, x * relay.const(2.0))
    assert_becomes((relay.const(c) + x) * relay.const(d), simplify, x * relay.const(d) + relay.const(c * d))
    assert_becomes(relay.full(relay.const(3.0), (2, 3)) / x, simplify, relay.const(3.0) / x)
    n = relay.var("n", shape=(4,), dtype="int32")
    held = relay.clip(n, -128.0, 127.0)
    assert_becomes(relay.cast(relay.cast(held, "int8"), "int32"), simplify, held)
    assert_becomes(relay.clip(relay.cast(n, "uint8"), 0.0, 255.0), simplify, relay.cast(n, "uint8"))
    with transform.PassContext(config={"relay.SimplifyExpr.as_in_relay": False}):
        mod = simplify(relay.transform.InferType()(hr.IRModule.from_expr(relay.const(0.0) - x)))
    assert mod["main"].body.op.name == "negative"


def test_layouts_join_transposes():
    """NHWC to NCHW to NCHW2c, an op, and the way back: no transpose is left."""
    x = relay.var("x", shape=(1, 3, 5, 4))
    inner = relay.layout_transform(relay.transpose(x, (0, 3, 1, 2)), "NCHW", "NCHW2c")
    outer = relay.transpose(relay.layout_transform(relay.tanh(inner), "NCHW2c", "NCHW"), (0, 2, 3, 1))
    packed = relay.tanh(relay.layout_transform(x, "NHWC", "NCHW2c"))
    assert_becomes(outer, relay.transform.SimplifyExpr(), relay.layout_transform(packed, "NCHW2c", "NHWC"))


def test_combined_dense_products_are_relays():
    """In batches each reads a copy of the data; a wider product takes operands with more axes, and expand_dims."""
    x, v, w, b = (relay.var(n, shape=s) for n, s in (("x", (3, 4)), ("v", (5, 4)), ("w", (5, 4)), ("b", (5,))))
    branches = relay.Tuple([relay.nn.dense(x, v) + b, relay.nn.dense(x, w) + relay.exp(b)])
    rows = [relay.expand_dims(b, 0), relay.expand_dims(relay.exp(b), 0)]
    both = relay.nn.batch_matmul(relay.stack([x, x], 0), relay.stack([v, w], 0)) + relay.stack(rows, 0)
    parts = relay.Tuple([relay.squeeze(part, [0]) for part in relay.split(both, 2)])
    params = [x, v, w, b]
    assert_becomes(
        relay.Function(params, branches), relay.transform.CombineParallelDense(2), relay.Function(params, parts)
    )

    def columns(data, begin):
        return relay.strided_slice(data, [0, 0, begin, 0], [-1, -1, 5, -1], [1] * 4, slice_mode="size")

    k, m = relay.var("k", shape=(2, 3, 1)), relay.var("m", shape=(2, 3, 5))
    branches = relay.Tuple([relay.expand_dims(relay.nn.dense(x, u) * f, 3) for u, f in ((v, k), (w, m))])
    factors = relay.concatenate([relay.repeat(k, 5, 2), m], 2)
    wide = relay.expand_dims(relay.nn.dense(x, relay.concatenate([v, w], 0), units=10) * factors, 3)
    want = relay.Function([x, v, w, k, m], relay.Tuple([columns(wide, 0), columns(wide, 5)]))
    combine = relay.transform.CombineParallelDense(2, to_batch=False)
    assert_becomes(relay.Function(want.params, branches), combine, want)


def test_clips_to_bounds_beyond_float16_stay():
    x = relay.var("x", shape=(3,))
    wide = relay.clip(x / relay.const(5.0), -1e5, 1e5)
    half = relay.cast(x, "float16") / relay.cast(relay.const(5.0), "float16")
    mixing = relay.transform.ToMixedPrecision("float16")
    assert_becomes(wide, mixing, relay.clip(relay.cast(half, "float32"), -1e5, 1e5))
    assert_becomes(relay.clip(x, -9.0, 9.0), mixing, relay.clip(relay.cast(x, "float16"), -9.0, 9.0))


def test_optimize_runs_relays_passes_before_fusing():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    mod = hr.IRModule.from_expr(relay.Function([x, w], relay.exp(relay.nn.dense(x, w) + relay.const(0.0))))
    params = {"w": np.ones((4, 3), "float32")}
    plain, tensors = relay.optimize(mod, "llvm", params)
    assert [p.name_hint for p in plain["main"].params] == ["x"] and list(tensors) == ["w"]
    assert plain["main"].body.op.name == "exp" and plain["main"].body.args[0].op.name == "nn.dense"
    with transform.PassContext(opt_level=1, required_pass=["FastMath"]):
        fast, _ = relay.build_module.optimize(mod)
    assert fast["main"].body.op.name == "fast_exp"
    assert mod["main"].body.op.name == "exp" and len(mod["main"].params) == 2


def test_inline_makes_literals_of_functions_for_other_compilers():
    """Calls and names of a marked function with a Compiler; one with a global_symbol, and one without a use, stay."""

    def program(**attrs):
        mod = hr.IRModule()
        marked = relay.Function([], relay.const(1)).with_attr("Inline", 1).with_attr("Compiler", "npu")
        for name, value in attrs.items():
            marked = marked.with_attr(name, value)
        f, unused = relay.GlobalVar("f"), relay.GlobalVar("unused")
        mod[f], mod[unused] = marked, marked
        c = relay.var("c", shape=(), dtype="bool")
        mod["main"] = relay.Function([c], relay.Call(relay.If(c, f, relay.Function([], f())), []))
        return mod, marked

    mod, marked = program()
    after = relay.transform.Inline()(mod)
    assert sorted(var.name_hint for var in after.functions) == ["main", "unused"]
    chosen = after["main"].body.op
    for literal in (chosen.true_branch, chosen.false_branch.body.op):
        hr.ir.assert_structural_equal(literal, marked.copy_with(ret_type=literal.ret_type))
    named, _ = program(global_symbol="f")
    assert sorted(var.name_hint for var in relay.transform.Inline()(named).functions) == ["f", "main", "unused"]


@pytest.mark.parametrize("body", ["@b(%x)", "@a(%x)"])
def test_inline_keeps_functions_for_other_compilers_that_name_functions(body):
    """Keeps each function that a marked function for another compiler names, itself included."""
    marked = '(%x: float32, Compiler="npu", Inline=1) -> float32'
    mod = relay.parse(
        f'#[version = "0.0.5"]\ndef @b{marked} {{ exp(%x) }}\ndef @a{marked} {{ {body} }}\n'
        "def @main(%x: float32) -> float32 { @a(%x) + @b(%x) }"
    )
    after = relay.transform.Inline()(mod)
    kept = ["a", "b", "main"] if body == "@b(%x)" else ["a", "main"]
    assert sorted(var.name_hint for var in after.functions) == kept
    assert after["main"].body.args[0].op.name_hint == "a"
    assert isinstance(after["main"].body.args[1].op, relay.Function)


def test_a_normal_form_binds_constants():
    x = relay.var("x", shape=())
    lets = relay.transform.ToANormalForm()(hr.IRModule.from_expr(relay.Function([x], relay.const(1.0) + x)))[
        "main"
    ].body
    assert isinstance(lets.value, relay.Constant) and lets.body.value.args[0].same_as(lets.var)


def test_convert_layout_gives_relays_forms():
    """A bias becomes an addition, and a pool whose layout was asked for says that of its result."""
    x, w, b = relay.var("x", shape=(1, 2, 6, 6)), relay.var("w", shape=(3, 2, 3, 3)), relay.var("b", shape=(3,))
    pool = relay.nn.max_pool2d(relay.nn.bias_add(relay.nn.conv2d(x, w), b), (2, 2))
    with transform.PassContext(opt_level=3):
        convert = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NCHW"]})
    data, kernel = relay.layout_transform(x, "NCHW", "NHWC"), relay.layout_transform(w, "OIHW", "HWIO")
    column = relay.expand_dims(relay.expand_dims(b, 1, 2), 0)
    conv = relay.nn.conv2d(data, kernel, data_layout="NHWC", kernel_layout="HWIO")
    back = relay.layout_transform(conv + relay.layout_transform(column, "NCHW", "NHWC"), "NHWC", "NCHW")
    want = relay.nn.max_pool2d(back, (2, 2), out_layout="NCHW")
    assert_becomes(relay.Function([x, w, b], pool), convert, relay.Function([x, w, b], want))


def test_offsets_of_a_deformable_convolution_are_inferred():
    x, w, o = relay.var("x", shape=(1, 2, 5, 5)), relay.var("w", shape=(4, 2, 3, 3)), relay.var("o")
    call = relay.nn.deformable_conv2d(x, o, w, kernel_size=(3, 3), channels=4, deformable_groups=2)
    typed = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x, o, w], call)))["main"]
    assert typed.params[1].type_annotation == relay.TensorType((1, 36, 3, 3))


def test_operands_of_one_element_stay_where_layouts_change():
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    one, rows = relay.var("one", shape=(1, 1)), relay.var("rows", shape=(8, 1))
    scaled = relay.nn.conv2d(x, w, padding=(1, 1)) * one + rows
    mod = hr.IRModule.from_expr(relay.Function([x, w, one, rows], scaled))
    text = str(relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod))
    assert "multiply(" in text and "expand_dims(%one" not in text and "expand_dims(%rows" in text
