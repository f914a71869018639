"""Cases of image.dilation2d, by scipy and numpy, of nn.correlation and nn.deformable_conv2d, by numpy; see
make_op_cases.py.
"""

import numpy as np
from op_case_format import Numbers, case, error, run_onnx
from scipy import ndimage

numbers = Numbers(57)
data, ints = numbers.data, numbers.ints


def dilation(
    x: np.ndarray,
    w: np.ndarray,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
) -> np.ndarray:
    """Dilates x[N, C, H, W] by w[C, R, S], each tap as a slice of the padded data."""
    x = np.pad(x, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    reach = [(size - 1) * step for size, step in zip(w.shape[1:], dilations, strict=True)]
    height, width = (size - r for size, r in zip(x.shape[2:], reach, strict=True))
    taps = []
    for r in range(w.shape[1]):
        for s in range(w.shape[2]):
            top, left = r * dilations[0], s * dilations[1]
            plane = x[:, :, top : top + height : strides[0], left : left + width : strides[1]]
            taps.append(plane + w[None, :, r, s, None, None])
    return np.max(taps, axis=0)


def add_dilation() -> None:
    x, w = data(2, 3, 6, 5), data(3, 3, 3)
    same = dilation(x, w, pads=(1, 1, 1, 1))
    planes = [
        [ndimage.grey_dilation(x[n, c], structure=w[c, ::-1, ::-1], mode="constant", cval=0) for c in range(3)]
        for n in range(2)
    ]
    assert np.array_equal(same, np.array(planes))
    case("dilation2d", "image.dilation2d(%0, %1)", [x, w], [dilation(x, w)])
    case("dilation2d same", "image.dilation2d(%0, %1, padding=[1])", [x, w], [same])
    w = data(3, 2, 3)
    call = "image.dilation2d(%0, %1, strides=[2, 1], padding=[1, 0, 2, 1], dilations=[1, 2])"
    case("dilation2d all", call, [x, w], [dilation(x, w, (2, 1), (1, 0, 2, 1), (1, 2))])
    nhwc = [np.moveaxis(x, 1, 3), np.moveaxis(w, 0, 2)]
    call = 'image.dilation2d(%0, %1, padding=[1, 1], data_layout="NHWC", kernel_layout="HWI")'
    case("dilation2d NHWC", call, nhwc, [np.moveaxis(dilation(x, w, pads=(1, 1, 1, 1)), 1, 3)])
    i, j = ints(1, 2, 4, 4, low=-100, high=100, dtype="int8"), ints(2, 2, 2, low=-100, high=100, dtype="int8")
    wide = dilation(i.astype("int32"), j.astype("int32"))
    case("dilation2d int8 to int32", 'image.dilation2d(%0, %1, out_dtype="int32")', [i, j], [wide])
    halves = [t.astype("float16") for t in (x, w)]
    case("dilation2d float16", "image.dilation2d(%0, %1)", halves, [dilation(x, w).astype("float16")])
    low = -10 - np.abs(x)
    case(
        "dilation2d pads zeros", "image.dilation2d(%0, %1, padding=[1, 1])", [low, w], [dilation(low, w, pads=(1,) * 4)]
    )
    hole = x.copy()
    hole[0, 0, 2, 2] = np.nan
    case("dilation2d NaN", "image.dilation2d(%0, %1)", [hole, w], [dilation(hole, w)])
    error("dilation2d channels", "image.dilation2d(%0, %1)", [x, data(2, 3, 3)], "weight must have 3 channels")
    error("dilation2d rank", "image.dilation2d(%0, %1)", [x, data(3, 3, 3, 1)], "weight must have 3 dimensions (IHW)")
    error("dilation2d layout", 'image.dilation2d(%0, %1, kernel_layout="OIHW")', [x, w], "kernel_layout")
    error("dilation2d dilations", "image.dilation2d(%0, %1, dilations=[0, 1])", [x, w], "dilations")
    error("dilation2d reach", "image.dilation2d(%0, %1, dilations=[9, 1])", [x, w], "image.dilation2d")


def correlation(
    x: np.ndarray, y: np.ndarray, size: int, most: int, stride: int, step: int, pads: tuple[int, ...], products: bool
) -> np.ndarray:
    """Correlates x and y [N, C, H, W]: shifts both planes for each displacement, then takes neighbourhoods' means."""
    around = ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3]))
    x, y = np.pad(x, around).astype("float64"), np.pad(y, around).astype("float64")
    border, steps = most + size // 2, most // step
    height, width = x.shape[2] - 2 * most, x.shape[3] - 2 * most
    planes = []
    for down in range(-steps, steps + 1):
        for across in range(-steps, steps + 1):
            top, left = most + down * step, most + across * step
            a = x[:, :, most : most + height, most : most + width]
            b = y[:, :, top : top + height, left : left + width]
            terms = a * b if products else np.abs(a - b)
            windows = np.lib.stride_tricks.sliding_window_view(terms.mean(axis=1), (size, size), axis=(1, 2))
            planes.append(windows.mean(axis=(3, 4))[:, ::stride, ::stride])
    result = np.stack(planes, axis=1)
    assert result.shape[2] == -(-(x.shape[2] - 2 * border) // stride)
    return result


def add_correlation() -> None:
    x, y = data(2, 3, 7, 8), data(2, 3, 7, 8)
    for name, attrs, wanted in (
        ("correlation", "", (1, 1, 1, 1, (0,) * 4, True)),
        ("correlation differences", "is_multiply=False, padding=[1]", (1, 1, 1, 1, (1,) * 4, False)),
        (
            "correlation neighbourhoods",
            "kernel_size=3, max_displacement=2, stride1=2, stride2=2, padding=[2, 2]",
            (3, 2, 2, 2, (2,) * 4, True),
        ),
        (
            "correlation sides",
            "kernel_size=3, max_displacement=3, stride2=2, padding=[2, 1, 3, 4]",
            (3, 3, 1, 2, (2, 1, 3, 4), True),
        ),
        ("correlation in place", "kernel_size=1, max_displacement=0", (1, 0, 1, 1, (0,) * 4, True)),
    ):
        call = f"nn.correlation(%0, %1{', ' if attrs else ''}{attrs})"
        case(name, call, [x, y], [correlation(x, y, *wanted).astype("float32")], 1e-6)
    halves = [t.astype("float16") for t in (x, y)]
    result = correlation(x, y, 1, 1, 1, 1, (0,) * 4, True).astype("float16")
    case("correlation float16", "nn.correlation(%0, %1)", halves, [result], 1e-3)
    error("correlation even", "nn.correlation(%0, %1, kernel_size=2)", [x, y], "kernel_size is 2; it is odd")
    error("correlation shapes", "nn.correlation(%0, %1)", [x, data(2, 3, 7, 7)], "data2 must have the shape of data1")
    error("correlation of int32", "nn.correlation(%0, %1)", [ints(1, 1, 4, 4), ints(1, 1, 4, 4)], "must be floats")
    error("correlation layout", 'nn.correlation(%0, %1, layout="NHWC")', [x, y], "layout")
    error("correlation stride", "nn.correlation(%0, %1, stride2=0)", [x, y], "stride2")
    error("correlation small", "nn.correlation(%0, %1, max_displacement=4)", [x, y], "nn.correlation")


def sampled(plane: np.ndarray, row: float, column: float) -> float:
    """Linearly between the four elements around; those past the end are the last ones; zero outside."""
    height, width = plane.shape
    if not (0 <= row < height and 0 <= column < width):
        return 0.0
    edged = np.pad(plane.astype("float64"), ((0, 1), (0, 1)), mode="edge")
    top, left = int(row), int(column)
    corner = edged[top : top + 2, left : left + 2]
    return float(np.array([top + 1 - row, row - top]) @ corner @ np.array([left + 1 - column, column - left]))


def deformable(
    x: np.ndarray,
    offset: np.ndarray,
    w: np.ndarray,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    parts: int = 1,
    groups: int = 1,
) -> np.ndarray:
    """Convolves x[N, C, H, W] at displaced taps, as a sum of products; `parts` are the deformable groups."""
    (batch, channels), (height, width) = x.shape[:2], offset.shape[2:]
    r, s = w.shape[2:]
    pairs = offset.reshape(batch, parts, r, s, 2, height, width)
    taps = np.zeros((batch, channels, r, s, height, width))
    for n, c, i, j, p, q in np.ndindex(*taps.shape):
        down, across = pairs[n, c * parts // channels, i, j, :, p, q]
        row = p * strides[0] - pads[0] + i * dilation[0] + float(down)
        column = q * strides[1] - pads[1] + j * dilation[1] + float(across)
        taps[n, c, i, j, p, q] = sampled(x[n, c], row, column)
    taps = taps.reshape(batch, groups, channels // groups, r, s, height, width)
    kernels = w.reshape(groups, -1, channels // groups, r, s).astype("float64")
    sums = np.einsum("ngcrspq,gkcrs->ngkpq", taps, kernels)
    return sums.reshape(batch, -1, height, width).astype("float32")


def add_deformable() -> None:
    x, w = data(2, 4, 5, 6), data(3, 4, 3, 2)
    still = np.zeros((2, 12, 3, 5), "float32")
    plain = deformable(x, still, w)
    assert np.allclose(plain, run_onnx("Conv", [x, w]), rtol=1e-5, atol=1e-5)
    case("deformable_conv2d of nothing", "nn.deformable_conv2d(%0, %1, %2)", [x, still, w], [plain], 1e-5)
    # Offsets reach past every border, and past the last element by less than one.
    moved = data(2, 12, 3, 5, low=-4, high=4)
    moved[0, 0, 2, 4] = np.float32(2.75)
    case("deformable_conv2d", "nn.deformable_conv2d(%0, %1, %2)", [x, moved, w], [deformable(x, moved, w)], 1e-5)
    far = moved.copy()
    far[1, 3, 1, 1], far[0, 5, 0, 2], far[1, 7, 2, 3] = np.nan, 1e30, -np.inf
    case("deformable_conv2d far", "nn.deformable_conv2d(%0, %1, %2)", [x, far, w], [deformable(x, far, w)], 1e-5)


def add_deformable_forms() -> None:
    x, w, moved = data(2, 4, 5, 6), data(4, 2, 3, 2), data(2, 24, 3, 5, low=-2, high=2)
    attrs = "strides=[2, 1], padding=[1, 0], dilation=[1, 1], deformable_groups=2, groups=2"
    result = deformable(x, moved, w, (2, 1), (1, 0), (1, 1), 2, 2)
    call = f"nn.deformable_conv2d(%0, %1, %2, {attrs}, channels=4, kernel_size=[3, 2])"
    case("deformable_conv2d groups", call, [x, moved, w], [result], 1e-5)
    last = [np.moveaxis(x, 1, 3), np.moveaxis(moved, 1, 3), np.transpose(w, (2, 3, 1, 0))]
    call = f'nn.deformable_conv2d(%0, %1, %2, {attrs}, data_layout="NHWC", kernel_layout="HWIO")'
    case("deformable_conv2d NHWC", call, last, [np.moveaxis(result, 1, 3)], 1e-5)
    call = 'nn.deformable_conv2d(%0, %1, %2, out_layout="NHWC", dilation=[2, 1])'
    w, moved = data(3, 4, 2, 2), data(2, 8, 3, 5, low=-1, high=1)
    result = deformable(x, moved, w, dilation=(2, 1))
    case("deformable_conv2d out_layout", call, [x, moved, w], [np.moveaxis(result, 1, 3)], 1e-5)
    halves = [t.astype("float16") for t in (x, moved, w)]
    result = deformable(x, moved, w, dilation=(2, 1)).astype("float16")
    call = "nn.deformable_conv2d(%0, %1, %2, dilation=[2, 1])"
    case("deformable_conv2d float16", call, halves, [result], 2e-3)
    for name, wrong, message in (
        ("offset", [x, moved[:, :6], w], "the channels of offset, two a tap, must be 8, got 6"),
        ("plane", [x, moved[:, :, :2], w], "a plane's size of offset must be 3, got 2"),
        ("batch", [x, moved[:1], w], "the batch of offset must be 2, got 1"),
        ("inputs", [x, moved, w[:, :3]], "the input channels of weight must be 4, got 3"),
        ("int32", [x.astype("int32"), moved, w], "data must be floats"),
    ):
        error(f"deformable_conv2d {name}", call, wrong, message)
    call = "nn.deformable_conv2d(%0, %1, %2, deformable_groups=3)"
    error(
        "deformable_conv2d groups", call, [x, moved, w], "deformable_groups is 3, which does not divide the 4 channels"
    )


def add_matching_cases() -> None:
    add_dilation()
    add_correlation()
    add_deformable()
    add_deformable_forms()
