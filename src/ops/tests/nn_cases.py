"""Cases of products, convolutions, pools and normalisations, by onnxruntime and numpy; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import Numbers, case, error, run_onnx
from packed_cases import last
from scipy import special

numbers = Numbers(15)
data, ints = numbers.data, numbers.ints


def add_products() -> None:
    x, w = data(3, 5), data(4, 5)
    case("dense", "nn.dense(%0, %1)", [x, w], [x @ w.T])
    x = data(2, 3, 5)
    case("dense of 3", "nn.dense(%0, %1, units=4)", [x, w], [x @ w.T])
    halves = [t.astype("float16") for t in (x[0], w)]
    case("dense float16", 'nn.dense(%0, %1, out_dtype="float32")', halves, [x[0] @ w.T])
    i, j = ints(3, 6, low=-128, high=128, dtype="int8"), ints(2, 6, low=-128, high=128, dtype="int8")
    sums = i.astype("int32") @ j.astype("int32").T
    case("dense int8 to int32", 'nn.dense(%0, %1, out_dtype="int32")', [i, j], [sums])
    case("dense int8", "nn.dense(%0, %1)", [i, j], [sums.astype("int8")])
    error("dense", "nn.dense(%0, %1)", [x, data(4, 6)], "the summed dimensions 5 and 6 differ")
    error("dense units", "nn.dense(%0, %1, units=5)", [x, w], "units is 5, but")
    for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
        a, b = data(3, 5), data(5, 2)
        flags = f"transpose_a={ta}, transpose_b={tb}"
        inputs = [a.T if ta else a, b.T if tb else b]
        case(f"matmul {ta} {tb}", f"nn.matmul(%0, %1, {flags})", inputs, [a @ b])
        a, b = data(2, 3, 4), data(1 if ta else 2, 4, 3)
        inputs = [np.swapaxes(a, 1, 2) if ta else a, np.swapaxes(b, 1, 2) if tb else b]
        case(f"batch_matmul {ta} {tb}", f"nn.batch_matmul(%0, %1, {flags})", inputs, [a @ b])
    case("matmul int32", "nn.matmul(%0, %1)", [sums, sums.T], [sums @ sums.T])
    error("matmul", "nn.matmul(%0, %1)", [x, x], "the second operand must be a matrix")
    error("batch_matmul", "nn.batch_matmul(%0, %1)", [x, data(3, 4, 5)], "batch sizes must agree or be 1")


def add_mixed_products() -> None:
    """Products of uint8 by int8 and of int8 by uint8, whose sums no int8 or uint8 holds."""
    own = Numbers(16)
    for one, two in (("uint8", "int8"), ("int8", "uint8")):
        low = {"uint8": 0, "int8": -128}

        def factor(dtype: str, *shape: int, low: dict[str, int] = low) -> np.ndarray:
            return own.ints(*shape, low=low[dtype], high=low[dtype] + 256, dtype=dtype)

        words = 'out_dtype="int32"'
        x, w = factor(one, 3, 40), factor(two, 5, 40)
        y = x.astype("int32") @ w.astype("int32").T
        case(f"dense {one} by {two}", f"nn.dense(%0, %1, {words})", [x, w], [y])
        a, b = factor(one, 2, 3, 20), factor(two, 2, 4, 20)
        y = a.astype("int32") @ b.astype("int32").transpose(0, 2, 1)
        case(f"batch_matmul {one} by {two}", f"nn.batch_matmul(%0, %1, {words})", [a, b], [y])
        a, b = factor(one, 1, 3, 5, 6), factor(two, 4, 3, 3, 3)
        y = run_onnx("Conv", [a.astype("float32"), b.astype("float32")], pads=[1, 1, 1, 1]).astype("int32")
        case(f"conv2d {one} by {two}", f"nn.conv2d(%0, %1, padding=[1], {words})", [a, b], [y])
    case("dense uint8 by int8 in uint8", "nn.dense(%0, %1)", [x.view("uint8"), w.view("int8")], [_wrapped(x, w)])
    error("dense float by int8", "nn.dense(%0, %1)", [own.data(3, 40), w.view("int8")], "must have dtype float32")


def _wrapped(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The product of x as uint8 by w as int8, in uint8."""
    return (x.view("uint8").astype("int32") @ w.view("int8").astype("int32").T).astype("uint8")


def add_convolutions() -> None:
    x, w = data(2, 4, 6, 5), data(6, 2, 3, 2)
    window = "strides=[2, 1], padding=[1, 0, 0, 1], dilation=[1, 2]"
    y = run_onnx("Conv", [x, w], group=2, strides=[2, 1], pads=[1, 0, 0, 1], dilations=[1, 2])
    case("conv2d", f"nn.conv2d(%0, %1, groups=2, {window})", [x, w], [y])
    call = f'nn.conv2d(%0, %1, groups=2, {window}, data_layout="NHWC", kernel_layout="HWIO", out_layout="NCHW")'
    case("conv2d NHWC", call, [last(x), w.transpose(2, 3, 1, 0)], [y])
    w = data(8, 1, 3, 3)
    y = run_onnx("Conv", [x, w], group=4, pads=[1, 1, 1, 1])
    case("conv2d depthwise", "nn.conv2d(%0, %1, groups=4, padding=[1], kernel_size=[3, 3])", [x, w], [y])
    i, k = ints(1, 3, 4, 5, dtype="int8", high=99), ints(2, 3, 2, 2, dtype="int8")
    y = run_onnx("Conv", [i.astype("float32"), k.astype("float32")]).astype("int32")
    case("conv2d int8", 'nn.conv2d(%0, %1, out_dtype="int32")', [i, k], [y])
    error("conv2d channels", "nn.conv2d(%0, %1)", [x, w], "weight must have 4 input channels, got 1")
    error("conv2d window", "nn.conv2d(%0, %1, groups=4, dilation=[3])", [x, w], "reaches over 7, but spatial axis")
    x, w = data(1, 4, 3, 4), data(4, 3, 3, 2)
    y = run_onnx("ConvTranspose", [x, w], group=2, strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 2])
    window = "groups=2, strides=[2, 3], padding=[1, 0, 0, 1], output_padding=[1, 2]"
    case("conv2d_transpose", f"nn.conv2d_transpose(%0, %1, {window})", [x, w], [y])
    y = run_onnx("ConvTranspose", [x, w], dilations=[2, 1])
    layouts = 'data_layout="NHWC", kernel_layout="HWOI"'
    call = f"nn.conv2d_transpose(%0, %1, dilation=[2, 1], {layouts})"
    case("conv2d_transpose NHWC", call, [last(x), w.transpose(2, 3, 1, 0)], [last(y)])
    error("conv2d_transpose", "nn.conv2d_transpose(%0, %1)", [x, w[:3]], "weight must have 4 input channels, got 3")
    # As many elements as are asked for, also beyond the stride: what the padding cuts off, and zeros.
    whole = np.pad(run_onnx("ConvTranspose", [x, w]), [(0, 0), (0, 0), (0, 1), (0, 4)])
    call = "nn.conv2d_transpose(%0, %1, padding=[1, 0, 0, 2], output_padding=[1, 6])"
    case("conv2d_transpose output_padding", call, [x, w], [whole[:, :, 1:]])


def add_pools() -> None:
    x = np.arange(-9, 9, dtype="float32").reshape(1, 2, 3, 3)  # every window holds all of it
    y = np.broadcast_to(x.max((2, 3), keepdims=True), (1, 2, 4, 4))
    case("max_pool2d far", "nn.max_pool2d(%0, pool_size=[40, 40], padding=[20, 20])", [x], [y])
    for rank, layout in ((1, "NWC"), (2, "NHWC"), (3, "NDHWC")):
        x = data(2, 3, *(9, 8, 7)[:rank])
        size, strides = [3, 2, 2][:rank], [2, 2, 1][:rank]
        pads = [1, 0, 1][:rank] + [0, 1, 1][:rank]
        window = f"pool_size={size}, strides={strides}, padding={pads}"
        onnx = {"kernel_shape": size, "strides": strides, "pads": pads}
        call = f"nn.max_pool{rank}d(%0, {window}"
        y = run_onnx("MaxPool", [x], **onnx)
        case(f"max_pool{rank}d", f"{call})", [x], [y])
        case(f"max_pool{rank}d {layout}", f'{call}, layout="{layout}")', [last(x)], [last(y)])
        case(f"max_pool{rank}d float16", f"{call})", [x.astype("float16")], [y.astype("float16")])
        small = (x * 8).astype("int8")
        case(f"max_pool{rank}d int8", f"{call})", [small], [(y * 8).astype("int8")])
        dilation, steps = [2, 1, 1][:rank], [3] * rank
        y = run_onnx("MaxPool", [x], kernel_shape=size, strides=steps, ceil_mode=1, dilations=dilation)
        call = f"nn.max_pool{rank}d(%0, pool_size={size}, strides={steps}, dilation={dilation}, ceil_mode=True)"
        case(f"max_pool{rank}d ceil", call, [x], [y])
        call = f"nn.avg_pool{rank}d(%0, {window}"
        for counts in (False, True):
            y = run_onnx("AveragePool", [x], opset=17, count_include_pad=int(counts), **onnx)
            case(f"avg_pool{rank}d {counts}", f"{call}, count_include_pad={counts})", [x], [y], 1e-6)
        y = run_onnx("AveragePool", [x], opset=17, **onnx)
        case(f"avg_pool{rank}d {layout}", f'{call}, layout="{layout}")', [last(x)], [last(y)], 1e-6)
        for kind in ("max", "avg"):
            name = f"nn.{kind}_pool{rank}d"
            error(name, f"{name}(%0, pool_size=[99])", [x], "a kernel of 99 taps with dilation 1 reaches over 99")
            error(f"{name} bool", f"{name}(%0)", [x > 0], "data must be numbers")
    x = data(2, 3, 4, 5)
    for kind, function in {"max": np.max, "avg": np.mean}.items():
        y = function(x.astype("float64"), (2, 3), keepdims=True).astype("float32")
        call = f'nn.global_{kind}_pool2d(%0, layout="NHWC")'
        case(f"global_{kind}_pool2d NHWC", call, [last(x)], [last(y)], 1e-6)


def add_batch_norm() -> None:
    x, g, b, m, v = data(2, 3, 4, 2), data(3), data(3), data(3), data(3, low=0.25)
    y = run_onnx("BatchNormalization", [x, g, b, m, v], opset=15, epsilon=0.125)
    case("batch_norm", "nn.batch_norm(%0, %1, %2, %3, %4, epsilon=0.125f)", [x, g, b, m, v], [y, m, v], 2e-6)
    unit = ((last(x) - m) / np.sqrt(v.astype("float64") + 1e-5)).astype("float32")
    for center, scale in ((True, False), (False, True)):
        y = unit * (g if scale else 1) + (b if center else 0)
        call = f"nn.batch_norm(%0, %1, %2, %3, %4, axis=-1, center={center}, scale={scale})"
        case(f"batch_norm last {center}", call, [last(x), g, b, m, v], [y.astype("float32"), m, v], 5e-6)
    error("batch_norm", "nn.batch_norm(%0, %1, %2, %3, %4)", [x, g, b, m[:2], v], "moving_mean must have shape (3)")


def add_layer_norm() -> None:
    x, g, b = data(2, 3, 6), data(6), data(6)
    y = run_onnx("LayerNormalization", [x, g, b], opset=17, epsilon=1e-3)
    case("layer_norm", "nn.layer_norm(%0, %1, %2, epsilon=0.001f)", [x, g, b], [y], 5e-6)
    turned = np.swapaxes(x, 1, 2)
    y = run_onnx("LayerNormalization", [x, np.ones(6, "float32"), b], opset=17)
    call = "nn.layer_norm(%0, %1, %2, axis=1, scale=False)"
    case("layer_norm axis", call, [turned, g, b], [np.swapaxes(y, 1, 2)], 5e-6)
    error("layer_norm", "nn.layer_norm(%0, %1, %2)", [x, g, b[:5]], "beta must have shape (6), axis 2 of data")


def add_softmax() -> None:
    functions: dict[str, Callable[..., np.ndarray]] = {"softmax": special.softmax, "log_softmax": special.log_softmax}
    for name, function in functions.items():
        x = data(2, 3, 4, low=-20, high=20)
        for dtype, axis, tolerance in (("float32", -1, 2e-6), ("float32", 1, 2e-6), ("float64", 0, 1e-13)):
            y = function(x.astype("float64"), axis).astype(dtype)
            case(f"{name} {dtype} {axis}", f"nn.{name}(%0, axis={axis})", [x.astype(dtype)], [y], tolerance)
        half = data(2, 9).astype("float16")
        y = function(half.astype("float64"), 1).astype("float16")
        case(f"{name} float16", f"nn.{name}(%0)", [half], [y], 2e-3)
        huge = np.array([1e4, -1e4, 9999], "float32")
        y = function(huge.astype("float64")).astype("float32")
        case(f"{name} huge", f"nn.{name}(%0)", [huge], [y], 2e-6)
        error(name, f"nn.{name}(%0, axis=-4)", [x], "axis -4 is out of range")
        error(f"{name} int", f"nn.{name}(%0)", [ints(3)], "data must be floating point")


def add_lrn() -> None:
    x = data(2, 7, 2, 3)
    for size, others in ((5, {}), (3, {"alpha": 0.5, "beta": 0.5, "bias": 1.0})):
        y = run_onnx("LRN", [x], **{"size": size, "alpha": 1e-4, "beta": 0.75, "bias": 2.0, **others})
        words = "".join(f", {name}={value}f" for name, value in others.items())
        case(f"lrn {size}", f"nn.lrn(%0, size={size}{words})", [x], [y], 2e-6)
        case(f"lrn {size} last", f"nn.lrn(%0, size={size}, axis=3{words})", [last(x)], [last(y)], 2e-6)
    error("lrn", "nn.lrn(%0, size=0)", [x], "size must be 1 or more, got 0")


def add_nn_cases() -> None:
    add_products()
    add_mixed_products()
    add_convolutions()
    add_pools()
    add_batch_norm()
    add_layer_norm()
    add_softmax()
    add_lrn()
