"""Cases of gradients of convolutions and pools, worked out by hand, and of checkpoints; see make_op_cases.py."""

from collections.abc import Callable, Iterator

import numpy as np
from op_case_format import case, error


def windows(
    x: np.ndarray, count: tuple[int, int], taps: tuple[int, int], stride: int, dilation: int, pads: list[int]
) -> Iterator[tuple[int, int, list[tuple[int, int, int, int]]]]:
    """Yields each window's place in an [N, C, H, W], and the row and column of each tap that lies in the data."""
    for p in range(count[0]):
        for q in range(count[1]):
            rows = [p * stride - pads[0] + r * dilation for r in range(taps[0])]
            columns = [q * stride - pads[1] + s * dilation for s in range(taps[1])]
            yield (
                p,
                q,
                [(r, s, h, w) for r, h in enumerate(rows) for s, w in enumerate(columns) if inside(x, h, w)],
            )


def inside(x: np.ndarray, h: int, w: int) -> bool:
    return 0 <= h < x.shape[2] and 0 <= w < x.shape[3]


def weight_gradient(
    g: np.ndarray, x: np.ndarray, taps: tuple[int, int], stride: int, dilation: int, pads: list[int], groups: int
) -> np.ndarray:
    inputs, outputs = x.shape[1] // groups, g.shape[1] // groups
    result = np.zeros((g.shape[1], inputs, *taps), x.dtype)
    for p, q, reads in windows(x, g.shape[2:], taps, stride, dilation, pads):
        for r, s, h, w in reads:
            for k in range(g.shape[1]):
                first = k // outputs * inputs
                result[k, :, r, s] += np.sum(g[:, k : k + 1, p, q] * x[:, first : first + inputs, h, w], axis=0)
    return result


def max_gradient(
    g: np.ndarray, x: np.ndarray, taps: tuple[int, int], stride: int, dilation: int, pads: list[int]
) -> np.ndarray:
    result = np.zeros_like(x)
    for p, q, reads in windows(x, g.shape[2:], taps, stride, dilation, pads):
        for n, c in np.ndindex(x.shape[:2]):
            if reads:
                best = np.argmax([x[n, c, h, w] for _, _, h, w in reads])  # the first; NaN is the greatest
                result[n, c, reads[best][2], reads[best][3]] += g[n, c, p, q]
    return result


def avg_gradient(
    g: np.ndarray, x: np.ndarray, taps: tuple[int, int], stride: int, dilation: int, pads: list[int], counts_pads: bool
) -> np.ndarray:
    """Windows do not reach past the padding."""
    result = np.zeros_like(x)
    for p, q, reads in windows(x, g.shape[2:], taps, stride, dilation, pads):
        for _, _, h, w in reads:
            result[:, :, h, w] += g[:, :, p, q] / (taps[0] * taps[1] if counts_pads else len(reads))
    return result


def add_convolutions(data: Callable[..., np.ndarray]) -> None:
    op = "nn.conv2d_backward_weight(%0, %1, "
    x, g = data(2, 3, 7, 6), data(2, 4, 4, 4)
    y = weight_gradient(g, x, (3, 2), 2, 1, [1, 1], 1)
    window = "kernel_size=[3, 2], strides=[2, 2], padding=[1, 1, 1, 1], channels=4"
    case("conv2d_backward_weight", f"{op}{window})", [g, x], [y])
    last = 'grad_layout="NHWC", data_layout="NHWC", kernel_layout="HWIO"'
    args = [g.transpose(0, 2, 3, 1), x.transpose(0, 2, 3, 1)]
    case("conv2d_backward_weight NHWC", f"{op}{window}, {last})", args, [y.transpose(2, 3, 1, 0)])
    half = [g.astype("float16"), x.astype("float16")]
    case("conv2d_backward_weight float16", f'{op}{window}, out_dtype="float32")', half, [y])
    x, g = data(2, 4, 8, 9), data(2, 6, 4, 7)
    y = weight_gradient(g, x, (3, 2), 1, 2, [0, 0], 2)
    case("conv2d_backward_weight groups", f"{op}kernel_size=[3, 2], dilation=[2], groups=2)", [g, x], [y])
    case("conv2d_backward_weight without a size", f"{op}dilation=[2], groups=2)", [g, x], [y])
    x, g = data(1, 3, 5, 5), data(1, 6, 3, 3)
    y = weight_gradient(g, x, (3, 3), 1, 1, [0, 0], 3)
    case("conv2d_backward_weight depthwise", f"{op}kernel_size=[3, 3], groups=3)", [g, x], [y])
    case(
        "conv2d_backward_weight plain",
        "nn.conv2d_backward_weight(%0, %1)",
        [g, x],
        [weight_gradient(g, x, (3, 3), 1, 1, [0, 0], 1)],
    )
    message = "kernel_size must be given: along H, 2 to 3 taps fit the sizes of grad and data"
    error("conv2d_backward_weight size", f"{op}strides=[2, 2], padding=[1])", [g, x], message)
    message = "no kernel_size gives grad's 3 elements along H, where data has 5"
    error("conv2d_backward_weight no size", f"{op}strides=[3, 1])", [g, x], message)
    message = "grad_layout must be an order of the letters NCHW"
    error("conv2d_backward_weight layout", f'{op}grad_layout="OIHW")', [g, x], message)
    error("conv2d_backward_weight grad", f"{op}kernel_size=[2, 3])", [g, x], "grad must have 4 elements")
    wrong = f"{op}kernel_size=[3, 3], channels=5)"
    error("conv2d_backward_weight channels", wrong, [g, x], "channels is 5, but grad has 6")
    wrong = f"{op}kernel_size=[3, 3], groups=2)"
    error("conv2d_backward_weight groups", wrong, [g, x], "input channels (3) must be a multiple")
    wrong = f"{op}kernel_size=[3, 3])"
    error("conv2d_backward_weight dtype", wrong, [g.astype("float64"), x], "grad must have dtype float32")


def add_pools(data: Callable[..., np.ndarray]) -> None:
    window = "pool_size=[3, 2], strides=[2, 2], padding=[1, 0, 1, 1]"
    x, g = data(2, 3, 7, 6), data(2, 3, 4, 3)
    y = max_gradient(g, x, (3, 2), 2, 1, [1, 0])
    case("max_pool2d_grad", f"nn.max_pool2d_grad(%0, %1, {window})", [g, x], [y])
    half = [g.astype("float16"), x.astype("float16")]
    case("max_pool2d_grad float16", f"nn.max_pool2d_grad(%0, %1, {window})", half, [y.astype("float16")])
    call = f'nn.max_pool2d_grad(%0, %1, {window}, layout="NHWC", out_layout="NCHW")'
    case("max_pool2d_grad NHWC", call, [g, x.transpose(0, 2, 3, 1)], [y.transpose(0, 2, 3, 1)])
    # Windows that overlap, elements that are equal, NaN and infinities.
    x, g = np.round(data(1, 2, 6, 6) / 2), data(1, 2, 4, 4)
    x[0, 0, 2, 2], x[0, 0, 2, 4], x[0, 1, 0:3, 0:3], x[0, 1, 4, 4] = np.nan, np.nan, -np.inf, np.inf
    y = max_gradient(g, x, (3, 3), 1, 1, [0, 0])
    case("max_pool2d_grad ties", "nn.max_pool2d_grad(%0, %1, pool_size=[3])", [g, x], [y])
    x, g = data(1, 1, 6, 7), data(1, 1, 2, 2)
    call = "nn.max_pool2d_grad(%0, %1, pool_size=[2, 2], strides=[2, 2], dilation=[3, 3])"
    y = max_gradient(g, x, (2, 2), 2, 3, [0, 0])
    case("max_pool2d_grad dilated", call, [g, x], [y])
    x, g = data(1, 2, 5, 5), data(1, 2, 3, 3)
    y = max_gradient(g, x, (2, 2), 2, 1, [0, 0])
    call = "nn.max_pool2d_grad(%0, %1, pool_size=[2, 2], strides=[2, 2], ceil_mode=True)"
    case("max_pool2d_grad ceil", call, [g, x], [y])
    x, g = data(2, 3, 7, 6), data(2, 3, 4, 3)
    for counts in (False, True):
        y = avg_gradient(g, x, (3, 2), 2, 1, [1, 0], counts)
        call = f"nn.avg_pool2d_grad(%0, %1, {window}, count_include_pad={counts})"
        case(f"avg_pool2d_grad {counts}", call, [g, x], [y], 1e-6)
    call = f'nn.avg_pool2d_grad(%0, %1, {window}, layout="NHWC")'
    y = avg_gradient(g, x, (3, 2), 2, 1, [1, 0], False)
    case("avg_pool2d_grad NHWC", call, [v.transpose(0, 2, 3, 1) for v in (g, x)], [y.transpose(0, 2, 3, 1)], 1e-6)
    x, g = data(1, 4, 5, 5).astype("float64"), data(1, 4, 3, 3).astype("float64")
    y = avg_gradient(g, x, (3, 3), 1, 1, [0, 0], False)
    packed = [v.reshape(1, 2, 2, *v.shape[2:]).transpose(0, 1, 3, 4, 2) for v in (g, x, y)]
    call = 'nn.avg_pool2d_grad(%0, %1, pool_size=[3, 3], layout="NCHW2c")'
    case("avg_pool2d_grad NCHW2c", call, packed[:2], packed[2:], 1e-12)
    for name in ("max", "avg"):
        call = f"nn.{name}_pool2d_grad(%0, %1, pool_size=[2, 2])"
        error(f"{name}_pool2d_grad shape", call, [g, x], "out_grad must be Tensor[(1, 4, 4, 4), float64]")
        error(f"{name}_pool2d_grad dtype", call, [v.astype("int32") for v in (g, x)], "data must be floating point")
        error(f"{name}_pool2d_grad of two", call, [g.astype("float32"), x], "out_grad must have dtype float64")


def add_window_gradient_cases(data: Callable[..., np.ndarray]) -> None:
    x = data(2, 3)
    case("checkpoint", "fast_exp(annotation.checkpoint(%0))", [x], [np.exp(x)], 1e-6)
    call = "%9 = annotation.checkpoint((fast_exp(%0), %0)); (%9.0, %9.1)"
    case("checkpoint of a tuple", call, [x], [np.exp(x), x], 1e-6)
    error("checkpoint", "annotation.checkpoint(%0, %0)", [x], "takes 1 argument")
    add_convolutions(data)
    add_pools(data)
