"""Cases of convolutions and pools in layouts whose channels lie in parts; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import case, error, run_onnx


def pack(t: np.ndarray, *parts: tuple[int, int]) -> np.ndarray:
    """Splits off a part of so many elements for each (axis, elements), as the last dimension."""
    for axis, size in parts:
        t = t.reshape(*t.shape[:axis], t.shape[axis] // size, size, *t.shape[axis + 1 :])
        t = np.moveaxis(t, axis + 1, -1)
    return t


def last(t: np.ndarray) -> np.ndarray:
    """Channels last."""
    return np.moveaxis(t, 1, -1)


def conv(layouts: str, *rest: str, op: str = "nn.conv2d") -> str:
    """The call in those layouts: of the data, the kernel and perhaps the result."""
    names = ("data_layout", "kernel_layout", "out_layout")
    given = [f'{name}="{layout}"' for name, layout in zip(names, layouts.split(), strict=False)]
    return f"{op}(%0, %1, {', '.join([*rest, *given])})"


def add_convolutions(data: Callable[..., np.ndarray]) -> None:
    x, w = data(2, 8, 5, 6), data(12, 8, 3, 2)
    window = "strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2]"
    y = run_onnx("Conv", [x, w], strides=[2, 1], pads=[1, 0, 2, 1], dilations=[1, 2])
    w4 = pack(w, (1, 4), (0, 4))
    case("conv2d NCHW4c", conv("NCHW4c OIHW4i4o", window), [pack(x, (1, 4)), w4], [pack(y, (1, 4))])
    args = [pack(x, (1, 4)), pack(w, (1, 8), (0, 6))]
    case("conv2d blocks that differ", conv("NCHW4c OIHW8i6o NHWC3c", window), args, [pack(last(y), (3, 3))])
    args = [pack(x, (0, 2), (1, 4)), w4]
    case("conv2d NCHW2n4c", conv("NCHW2n4c OIHW4i4o", window), args, [pack(y, (0, 2), (1, 4))])
    # An input channel i lies at I = i / 4, 2i = i / 2 % 2, the last dimension i % 2.
    twice = np.moveaxis(pack(w, (1, 2), (0, 4)).reshape(3, 2, 2, 3, 2, 2, 4), (2, 6), (4, 5))
    case("conv2d OIHW2i4o2i", conv("NCHW4c OIHW2i4o2i", window), [pack(x, (1, 4)), twice], [pack(y, (1, 4))])
    case("conv2d into parts", conv("NCHW OIHW4o NCHW4c", window), [x, pack(w, (0, 4))], [pack(y, (1, 4))])
    args = [pack(last(x), (3, 2)), pack(w.transpose(2, 3, 1, 0), (2, 2))]
    case("conv2d out of parts", conv("NHWC2c HWIO2i NCHW", window), args, [y])
    small, taps = [np.round(t).astype("int8") for t in (x, w)]
    sums = run_onnx("Conv", [small.astype("float32"), taps.astype("float32")]).astype("int32")
    args = [pack(small, (1, 8)), pack(taps, (1, 8), (0, 2))]
    call = conv("NCHW8c OIHW8i2o NCHW2c", 'out_dtype="int32"')
    case("conv2d NCHW8c int8", call, args, [pack(sums, (1, 2))])

    w = data(8, 4, 3, 3)
    y = pack(run_onnx("Conv", [x, w], group=2), (1, 4))
    case("conv2d NCHW4c groups", conv("NCHW4c OIHW4i4o", "groups=2"), [pack(x, (1, 4)), pack(w, (1, 4), (0, 4))], [y])
    args = [pack(x, (1, 8)), pack(w, (1, 2), (0, 8))]
    y = pack(run_onnx("Conv", [x, w], group=2), (1, 8))
    case("conv2d parts over groups", conv("NCHW8c OIHW2i8o", "groups=2"), args, [y])
    for outputs in (8, 16):
        w = data(outputs, 1, 3, 3)
        y = pack(run_onnx("Conv", [x, w], group=8, pads=[1, 1, 1, 1]), (1, 4))
        call = conv("NCHW4c OIHW1i4o", "padding=[1]", "groups=8")
        case(f"conv2d depthwise NCHW4c {outputs}", call, [pack(x, (1, 4)), pack(w, (1, 1), (0, 4))], [y])

    x, w = data(2, 4, 9), data(6, 4, 3)
    y = pack(run_onnx("Conv", [x, w], pads=[1, 1]), (1, 2))
    call = conv("NCW2c OIW2i2o", "padding=[1]", op="nn.conv1d")
    case("conv1d NCW2c", call, [pack(x, (1, 2)), pack(w, (1, 2), (0, 2))], [y])
    x, w = data(1, 4, 3, 4, 3), data(2, 4, 2, 2, 2)
    y = pack(run_onnx("Conv", [x, w]), (1, 2))
    call = conv("NCDHW2c OIDHW4i2o", op="nn.conv3d")
    case("conv3d NCDHW2c", call, [pack(x, (1, 2)), pack(w, (1, 4), (0, 2))], [y])


def add_refusals(data: Callable[..., np.ndarray]) -> None:
    x, w = data(1, 2, 5, 5, 4), data(3, 2, 3, 3, 4, 4)
    calls = {
        "block": ("NCHW0c OIHW4i4o", "the factor 0 is not between 1 and 2^31 - 1"),
        "letters": ("NCXW4c OIHW4i4o", "data_layout must be an order of the letters NCHW, got 'NCXW4c'"),
        "width": ("NCHW4w OIHW4i4o", "its axis W cannot lie in parts"),
        "kernel's block": ("NCHW4c OIHW8i4o", "dimension 4 of layout OIHW8i4o is 4, but its part 8i says 8"),
        "data's block": ("NCHW2c OIHW4i4o", "dimension 4 of layout NCHW2c is 4, but its part 2c says 2"),
        "kernel's dimensions": ("NCHW4c OIHW4o", "weight must have 5 dimensions (OIHW4o)"),
        "data's dimensions": ("NCHW OIHW4i4o", "data must have 4 dimensions (NCHW)"),
        "channels": ("NCHW4c OIHW4i4o NCHW8c", "the axis C of 12 elements does not split into parts of 8"),
    }
    for name, (layouts, message) in calls.items():
        error(f"conv2d packed, {name}", conv(layouts), [x, w], message)
    message = "weight must have 8 input channels, got 12"
    error("conv2d packed, inputs", conv("NCHW4c OIHW4i4o"), [x, data(3, 3, 3, 3, 4, 4)], message)
    call = conv("NCW4c IOW", op="nn.conv1d_transpose")
    error("conv1d_transpose packed", call, [data(1, 2, 5, 4), data(8, 3, 3)], "its axis C cannot lie in parts")
    call = 'image.resize2d(%0, size=[3, 3], layout="NCHW4c")'
    error("resize2d packed", call, [x], "its axis C cannot lie in parts")


def add_pools(data: Callable[..., np.ndarray]) -> None:
    x = data(2, 8, 7, 6)
    packed = pack(x, (1, 4))
    window = "pool_size=[3, 2], strides=[2, 1], padding=[1, 0, 1, 1]"
    y = run_onnx("MaxPool", [x], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1])
    case("max_pool2d NCHW4c", f'nn.max_pool2d(%0, {window}, layout="NCHW4c")', [packed], [pack(y, (1, 4))])
    call = f'nn.max_pool2d(%0, {window}, layout="NCHW4c", out_layout="NHWC2c")'
    case("max_pool2d to other parts", call, [packed], [pack(last(y), (3, 2))])
    for name, counts in (("", 0), (" counted", 1)):
        y = run_onnx(
            "AveragePool",
            [x],
            kernel_shape=[3, 2],
            strides=[2, 1],
            pads=[1, 0, 1, 1],
            count_include_pad=counts,
        )
        call = f'nn.avg_pool2d(%0, {window}, count_include_pad={bool(counts)}, layout="NCHW4c")'
        case(f"avg_pool2d NCHW4c{name}", call, [packed], [pack(y, (1, 4))], 1e-6)
    for name, reduce in (("max", np.max), ("avg", np.mean)):
        y = reduce(x, axis=(2, 3), keepdims=True)
        call = f'nn.global_{name}_pool2d(%0, layout="NCHW4c")'
        case(f"global_{name}_pool2d NCHW4c", call, [packed], [pack(y, (1, 4))], 1e-6)
        y = np.stack([reduce(x[:, :, :, i : i + 3], axis=(2, 3)) for i in (0, 3)], -1)[:, :, None]
        call = f'nn.adaptive_{name}_pool2d(%0, output_size=[1, 2], layout="NCHW4c", out_layout="NCHW8c")'
        case(f"adaptive_{name}_pool2d NCHW4c", call, [packed], [pack(y, (1, 8))], 1e-6)
    for op in ("max_pool2d", "avg_pool2d"):
        call = f'nn.{op}(%0, pool_size=[2], layout="NCHW8c")'
        error(f"{op} packed", call, [packed], "dimension 4 of layout NCHW8c is 4, but its part 8c says 8")
    for op in ("global_max_pool2d", "global_avg_pool2d"):
        call = f'nn.{op}(%0, layout="NCHW4c", out_layout="NCHW3c")'
        error(f"{op} packed", call, [packed], "the axis C of 8 elements does not split into parts of 3")
    call = 'nn.adaptive_avg_pool2d(%0, layout="NCHW4h")'
    error("adaptive_avg_pool2d packed", call, [packed], "its axis H cannot lie in parts")


def add_packed_cases(data: Callable[..., np.ndarray]) -> None:
    add_convolutions(data)
    add_refusals(data)
    add_pools(data)
