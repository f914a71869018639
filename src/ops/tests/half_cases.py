"""The cases of sums that pass what a float16 holds (65504) or resolves, of results that it does; see make_op_cases.py.

Sums, products, means and norms of float16 and bfloat16 are accumulated in float32 and rounded once, at the end. In each
case here an accumulator of the data's own dtype would give infinity, NaN, 0 or a number that is far off. The expected
results are computed in float64.
"""

import numpy as np
from op_case_format import case

HALF = 1e-3  # one unit in the last place of a float16


def half(*values: float, shape: tuple[int, ...] | None = None) -> np.ndarray:
    x = np.array(values, "float16")
    return x if shape is None else x.reshape(shape)


def rounded(x: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(x, "float64").astype("float16")


def normal(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    x = x.astype("float64")
    return rounded((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon))


# Its sum passes 65504 on the way and comes back; its mean and its norm are of the size of its elements.
SWING = half(40000, 40000, -50000, 24)
# Its squares pass 65504.
LARGE = half(300, -600, 900, 1200)
# Each square is below the least float16, 2^-24; their sum is not.
SMALL = np.full(64, 1.5e-4, "float16")


def add_half_reduction_cases() -> None:
    wide = SWING.astype("float64")
    case("sum past float16", "sum(%0, axis=[0])", [SWING], [rounded(wide.sum())], HALF)
    ones = np.full(1000, 61, "float16")
    case("sum finer than float16", "sum(%0, axis=[0])", [ones], [rounded(np.float64(61000))])
    case("mean past float16", "mean(%0, axis=[0])", [np.full(8, 60000, "float16")], [half(60000)[0]])
    factors = half(300, 300, 1 / 256, 1 / 512)
    case("prod past float16", "prod(%0)", [factors], [rounded(factors.astype("float64").prod())], HALF)
    x = half(-200, 200, -250, 250)
    for unbiased in (False, True):
        y = rounded(x.astype("float64").var(ddof=int(unbiased)))
        call = f"variance(%0, %1, axis=[0], keepdims=True, unbiased={unbiased})"
        case(f"variance past float16 {unbiased}", call, [x, half(0)], [y.reshape(1)], HALF)
    case(
        "collapse_sum_to past float16",
        "collapse_sum_to(%0, shape=[1])",
        [SWING],
        [rounded(wide.sum()).reshape(1)],
        HALF,
    )
    like = np.zeros(1, "float16")
    y = rounded(wide.sum()).reshape(1)
    case("collapse_sum_like past float16", "collapse_sum_like(%0, %1)", [SWING, like], [y], HALF)
    case("cumsum past float16", "cumsum(%0, axis=0)", [SWING], [rounded(wide.cumsum())], HALF)
    exclusive = rounded(wide.cumsum() - wide)
    case("cumsum exclusive past float16", "cumsum(%0, axis=0, exclusive=True)", [SWING], [exclusive], HALF)
    case("cumprod past float16", "cumprod(%0, axis=0)", [factors], [rounded(factors.astype("float64").cumprod())], HALF)
    ones = np.ones(1000, "float32")
    for name, result in (("sum", 1000), ("mean", 1)):
        call = f'cast({name}(cast(%0, dtype="bfloat16"), axis=[0]), dtype="float32")'
        case(f"{name} finer than bfloat16", call, [ones], [np.float32(result)])


def add_half_scatter_cases() -> None:
    wide = SWING[:3].astype("float64")
    x, y = half(24, 1), rounded([24 + wide.sum(), 1])
    to_first = np.zeros(3, "int32")
    case(
        "scatter_elements add past float16",
        'scatter_elements(%0, %1, %2, reduction="add")',
        [x, to_first, SWING[:3]],
        [y],
        HALF,
    )
    case("scatter_nd add past float16", 'scatter_nd(%0, %1, %2, mode="add")', [x, to_first[None], SWING[:3]], [y], HALF)
    factors = half(300, 300, 1 / 256)
    product = rounded(factors.astype("float64").prod())
    y = np.array([product, 1], "float16")
    one = np.ones(2, "float16")
    call = 'scatter_elements(%0, %1, %2, reduction="mul")'
    case("scatter_elements mul past float16", call, [one, to_first, factors], [y], HALF)
    case("scatter_nd mul past float16", 'scatter_nd(%0, %1, %2, mode="mul")', [one, to_first[None], factors], [y], HALF)
    # Each 1 is below what the sum resolves: 2048 + 1 + 1 ... stays 2048 in float16.
    many, ones = np.zeros(100, "int64"), np.ones(100, "float16")
    call = 'scatter_elements(%0, %1, %2, reduction="add")'
    case("scatter_elements add finer than float16", call, [half(2048), many, ones], [half(2148)])
    starts = np.array([0, 100], "int32")
    call = "nn.sparse_add(%0, %1, %2, %3)"
    args = [half(2048, shape=(1, 1)), ones, many.astype("int32"), starts]
    case("sparse_add finer than float16", call, args, [half(2148, shape=(1, 1))])


def add_half_norm_cases() -> None:
    one, none = np.ones(4, "float16"), np.zeros(4, "float16")
    case("layer_norm past float16", "nn.layer_norm(%0, %1, %2)", [LARGE, one, none], [normal(LARGE, (0,), 1e-5)], HALF)
    tiny = np.tile(half(1e-4, -1e-4), 2)
    y = normal(tiny, (0,), 1e-12)
    case("layer_norm below float16", "nn.layer_norm(%0, %1, %2, epsilon=1e-12f64)", [tiny, one, none], [y], HALF)
    x = LARGE.reshape(1, 2, 2)
    vectors = [one[:2], none[:2]]
    case(
        "group_norm past float16",
        "nn.group_norm(%0, %1, %2, num_groups=1)",
        [x, *vectors],
        [normal(x, (1, 2), 1e-5)],
        HALF,
    )
    case("instance_norm past float16", "nn.instance_norm(%0, %1, %2)", [x, *vectors], [normal(x, (2,), 1e-5)], HALF)
    for name, t, eps in (("past", LARGE, 1e-5), ("below", SMALL, 1e-12)):
        w = t.astype("float64")
        y = rounded(w / np.sqrt(np.maximum((w**2).sum(), eps)))
        case(f"l2_normalize {name} float16", f"nn.l2_normalize(%0, eps={eps}f64, axis=[0])", [t], [y], HALF)
    w = x.astype("float64")
    y = rounded(w / (1 + 1e-4 / 3 * (w**2).sum(1, keepdims=True)) ** 0.75)
    case("lrn past float16", "nn.lrn(%0, size=3, bias=1f64)", [x], [y], HALF)
    args = [half(60000, -60000).reshape(1, 1, 2), half(2), half(1), half(-50000), half(40000)]
    d, g, b, mean, var = (a.astype("float64") for a in args)
    y = rounded((d - mean) / np.sqrt(var + 1e-5) * g + b)
    case("batch_norm past float16", "nn.batch_norm(%0, %1, %2, %3, %4)", args, [y, args[3], args[4]], HALF)
    # One large term, and so many small ones that each is below what the sum resolves.
    x = np.array([0] + [-8] * 600, "float16")
    e = np.exp(x.astype("float64"))
    for op in ("softmax", "fast_softmax"):
        case(f"{op} finer than float16", f"nn.{op}(%0)", [x], [rounded(e / e.sum())], HALF)
    case("log_softmax finer than float16", "nn.log_softmax(%0)", [x], [rounded(x - np.log(e.sum()))], HALF)


def add_half_pool_cases() -> None:
    for rank in (1, 2, 3):
        x = np.full((1, 1, *[2] * rank), 40000, "float16")
        y = x[(..., *[slice(0, 1)] * rank)]
        case(f"avg_pool{rank}d past float16", f"nn.avg_pool{rank}d(%0, pool_size={[2] * rank})", [x], [y])
        call = f"nn.adaptive_avg_pool{rank}d(%0, output_size={[1] * rank})"
        case(f"adaptive_avg_pool{rank}d past float16", call, [x], [y])
    x = np.full((1, 1, 2, 2), 40000, "float16")
    case("global_avg_pool2d past float16", "nn.global_avg_pool2d(%0)", [x], [x[:, :, :1, :1]])
    # One element has the gradients of all three windows; 40000 + 40000 - 50000.
    data, gradient = half(0, 0, 9, 0, 0, shape=(1, 1, 1, 5)), SWING[:3].reshape(1, 1, 1, 3)
    y = half(0, 0, 30000, 0, 0, shape=(1, 1, 1, 5))
    case("max_pool2d_grad past float16", "nn.max_pool2d_grad(%0, %1, pool_size=[1, 3])", [gradient, data], [y], HALF)
    thirds = SWING[:3].astype("float64") / 3
    y = rounded(np.convolve(thirds, np.ones(3))).reshape(1, 1, 1, 5)
    case(
        "avg_pool2d_grad finer than float16",
        "nn.avg_pool2d_grad(%0, %1, pool_size=[1, 3])",
        [gradient, data],
        [y],
        HALF,
    )
    boxes = half(0, 0, 0, 2, 2, shape=(1, 5))
    call = 'vision.roi_align(%0, %1, pooled_size=[1, 1], spatial_scale=1f64, sample_ratio=2, layout="NCHW", mode="avg")'
    case("roi_align past float16", call, [np.full((1, 1, 4, 4), 40000, "float16"), boxes], [x[:, :, :1, :1]])


def add_half_product_cases() -> None:
    a, b, y = half(300, 300, 7), half(300, -300, 5), half(35)
    case("dense past float16", "nn.dense(%0, %1)", [a[None], b[None]], [y[None]])
    case("matmul past float16", "nn.matmul(%0, %1)", [a[None], b[:, None]], [y[None]])
    case("batch_matmul past float16", "nn.batch_matmul(%0, %1)", [a[None, None], b[None, None]], [y[None, None]])
    case("einsum past float16", 'einsum((%0, %1), equation="i,i->")', [a, b], [y[0]])
    call = 'einsum((%0, %1, %2), equation="i,i,i->i")'
    case(
        "einsum of three past float16",
        call,
        [a, b, half(1 / 128, 1 / 128, 1)],
        [rounded([703.125, -703.125, 35])],
        HALF,
    )
    for rank in (1, 2, 3):
        shape = (1, 3, *[1] * rank)
        call = f"nn.conv{rank}d(%0, %1)"
        case(f"conv{rank}d past float16", call, [a.reshape(shape), b.reshape(shape)], [y.reshape(1, 1, *[1] * rank)])
        weight = b.reshape(3, 1, *[1] * rank)
        call = f"nn.conv{rank}d_transpose(%0, %1)"
        case(f"conv{rank}d_transpose past float16", call, [a.reshape(shape), weight], [y.reshape(1, 1, *[1] * rank)])
    g, x = a.reshape(1, 1, 1, 3), b.reshape(1, 1, 1, 3)
    call = "nn.conv2d_backward_weight(%0, %1, kernel_size=[1, 1])"
    case("conv2d_backward_weight past float16", call, [g, x], [y.reshape(1, 1, 1, 1)])
    case("cross_entropy_with_logits past float16", "nn.cross_entropy_with_logits(%0, %1)", [a[None], b[None]], [-y[0]])
    p, t = np.full((1, 4), np.e**-2, "float16"), half(30000, 30000, -30000, -29990)
    loss = rounded(-(np.log(p[0].astype("float64")) * t.astype("float64")).sum())
    case("cross_entropy past float16", "nn.cross_entropy(%0, %1)", [p, t[None]], [loss], HALF)
    scores, targets, weights = half(-300, 0, -500, 0, shape=(2, 2)), np.array([0, 0], "int64"), half(300, 1)
    case("nll_loss past float16", "nn.nll_loss(%0, %1, %2)", [scores, targets, weights], [half(400)[0]], HALF)


def add_half_cases() -> None:
    add_half_reduction_cases()
    add_half_scatter_cases()
    add_half_norm_cases()
    add_half_pool_cases()
    add_half_product_cases()
