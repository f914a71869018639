"""What passes called by Relay's names give where Relay's own tests look: types of results, forms, precision."""

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
    let = relay.Let(exp, relay.exp(x), exp + exp)  # what a let binds is as its value is
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
