"""Functions of image, nn, qnn, random and vision that take what Relay's do, where the op's parameters are others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import _arguments, _core, _node
from headrace._numpy import np
from headrace._operands import TupleWrapper, const, operand, shape_of
from headrace.relay._op_functions import deferred

_SUPPRESS = deferred("vision.all_class_non_max_suppression")
_UNIFORM = deferred("random.uniform")
_NORMAL = deferred("random.normal")
_NO_LIMIT = 2**31 - 1


def _global_pool(kind: str, spatial: int) -> Callable[..., Any]:
    pool = deferred(f"nn.adaptive_{kind}_pool{spatial}d")
    usual = {1: "NCW", 3: "NCDHW"}[spatial]

    def function(data: Any, layout: str = usual, out_layout: str = "", *, span: Any = None) -> Any:
        return pool(data, [1] * spatial, layout, out_layout, span=span)

    what = {"max": "The greatest element", "avg": "The mean"}[kind]
    size = ", 1" * spatial
    function.__name__ = function.__qualname__ = f"global_{kind}_pool{spatial}d"
    function.__doc__ = f"""{what} of each channel: `adaptive_{kind}_pool{spatial}d` with an output_size of 1.

    Parameters
    ----------
    data : RelayExpr
        T[{", ".join(usual)}], numbers, or in another layout: what is pooled.
    layout : str
        Data's.
    out_layout : str
        The result's; empty: data's.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
        T[N, C{size}].
    """
    return function


global_avg_pool1d, global_avg_pool3d = _global_pool("avg", 1), _global_pool("avg", 3)
global_max_pool1d, global_max_pool3d = _global_pool("max", 1), _global_pool("max", 3)


def _resize(spatial: int) -> Callable[..., Any]:
    op = deferred(f"image.resize{spatial}d")
    usual = {1: "NCW", 2: "NCHW", 3: "NCDHW"}[spatial]
    name = f"image.resize{spatial}d"

    def function(
        data: Any,
        size: Any,
        roi: Any = None,
        layout: str = "",
        method: str = "linear",
        coordinate_transformation_mode: str = "half_pixel",
        rounding_method: str = "",
        cubic_alpha: float = -0.5,
        cubic_exclude: int = 0,
        extrapolation_value: float = 0.0,
        out_dtype: str | None = None,
        *,
        span: Any = None,
    ) -> Any:
        if coordinate_transformation_mode == "tf_crop_and_resize":
            raise _core.UserError(
                f"{name}: there is no mode 'tf_crop_and_resize'; relay.image.crop_and_resize resamples parts of images"
            )
        size, roi = (
            list(v.data.numpy()) if isinstance(v, _node.class_of("relay.Constant")) else v for v in (size, roi)
        )
        if isinstance(roi, _core.Object):  # operands stand in their order
            size = size if isinstance(size, _core.Object) else const(np.array(_sizes(size, name, spatial), "int64"))
        elif roi is not None:
            roi = _corners(roi, name)
        how = (method, coordinate_transformation_mode, rounding_method, cubic_alpha, cubic_exclude, out_dtype or "")
        return op(data, size, [] if roi is None else roi, layout, *how, span=span)

    function.__name__ = function.__qualname__ = f"resize{spatial}d"
    function.__doc__ = f"""An image resampled to another size.

    Parameters
    ----------
    data : RelayExpr
        T[{", ".join(usual)}], numbers, or in another layout: the image.
    size : tuple of int, int or RelayExpr
        The result's spatial axes; an expression is int[{spatial}].
    roi : tuple of float or RelayExpr, optional
        Accepted for the sake of old programs: only tf_crop_and_resize reads it, which is not here.
    layout : str
        Data's, and the result's; empty: {usual}.
    method : str
        "nearest_neighbor", "linear" or "cubic".
    coordinate_transformation_mode : str
        "half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel" or "tf_half_pixel_for_nn".
    rounding_method : str
        The rounding of nearest_neighbor: "round" (ties away from zero), "round_prefer_floor", "round_prefer_ceil",
        "floor" or "ceil"; empty: "round" for align_corners, else "floor".
    cubic_alpha : float
        The cubic's coefficient.
    cubic_exclude : int
        1: weights outside the image count nothing.
    extrapolation_value : float
        Accepted for the sake of old programs, as roi.
    out_dtype : str, optional
        The result's; data's when it is left out.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
        T[N, C, size].
    """
    return function


def _sizes(size: Any, name: str, spatial: int) -> list[int]:
    items = list(size) if isinstance(size, (list, tuple, np.ndarray)) else [size] * spatial
    return [_arguments.integer(item, f"{name}: size", 64) for item in items]


def _corners(roi: Any, name: str) -> list[float]:
    try:
        return [float(item) for item in roi]
    except (TypeError, ValueError):
        raise _core.UserError(f"{name}: roi: expected a list of numbers or an expression, got {roi!r}") from None


resize1d, resize2d, resize3d = _resize(1), _resize(2), _resize(3)


def _packed_conv2d(name: str) -> Callable[..., Any]:
    conv2d = deferred("nn.conv2d")

    def function(
        data: Any,
        kernel: Any,
        strides: Any = (1, 1),
        padding: Any = (0, 0),
        dilation: Any = (1, 1),
        groups: int = 1,
        channels: int | None = None,
        kernel_size: Any = None,
        data_layout: str = "NCHW8c",
        kernel_layout: str = "OIHW",
        out_layout: str = "",
        out_dtype: str = "",
        *,
        span: Any = None,
    ) -> Any:
        sizes = (strides, padding, dilation, groups, channels, kernel_size)
        return conv2d(data, kernel, *sizes, data_layout, kernel_layout, out_layout, out_dtype, span=span)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = """A convolution of planes whose channels lie in parts: `conv2d` with packed layouts.

    Parameters
    ----------
    data : RelayExpr
        T[N, C / 8, H, W, 8], or in data_layout: the image.
    kernel : RelayExpr
        T[K / 8, C / groups / 8, R, S, 8, 8] for the layout OIHW8i8o, or in kernel_layout: the kernel.
    strides, padding, dilation, groups, channels, kernel_size
        As of `conv2d`.
    data_layout, kernel_layout, out_layout : str
        Such as "NCHW8c" and "OIHW8i8o"; out_layout empty: data_layout.
    out_dtype : str
        The result's; empty: data's.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        Of `nn.conv2d`.
    """
    return function


contrib_conv2d_nchwc = _packed_conv2d("contrib_conv2d_nchwc")
contrib_depthwise_conv2d_nchwc = _packed_conv2d("contrib_depthwise_conv2d_nchwc")

_CONV3D = deferred("nn.conv3d")
_RESHAPE = deferred("reshape")


def conv3d(
    data: Any,
    weight: Any,
    strides: Any = (1, 1, 1),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Any = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: Any = None,
    *,
    span: Any = None,
) -> Any:
    """nn.conv2d over 3 spatial axes: data T[N,C,D,H,W], weight T[K,C/groups,O,R,S].

    Parameters
    ----------
    data : RelayExpr
        T[N, C, ...], numbers, or in data_layout: the image.
    weight : RelayExpr
        T[K, C / groups, ...], or in kernel_layout: the kernel. With a group for each channel, also T[C, K / C, ...]
        in the layout OIDHW: the call then reads it reshaped to T[K, 1, ...]. Its type must be known here, and
        `channels` given.
    strides, padding, dilation : shape
        Per spatial axis; padding also as all begins, then all ends.
    groups : int
        Groups of channels, each convolved by itself.
    channels : int, optional
        K, the output channels.
    kernel_size : shape, optional
        Taps per spatial axis.
    data_layout, kernel_layout, out_layout : str
        Orders of these letters, channels perhaps in parts: "NCDHW16c"; out_layout empty: data_layout.
    out_dtype : str, optional
        The result's; data's when it is left out.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        Of `nn.conv3d`.
    """
    weight = operand(weight, "conv3d: weight")
    shape = shape_of(weight) or ()
    is_by_channel = len(shape) == 5 and None not in shape and shape[0] == groups != 1 and kernel_layout == "OIDHW"
    if is_by_channel and shape[1] > 1 and channels == groups * shape[1]:
        weight = _RESHAPE(weight, (channels, 1, *shape[2:]), span=span)
    sizes = (strides, padding, dilation, groups, channels, kernel_size)
    return _CONV3D(data, weight, *sizes, data_layout, kernel_layout, out_layout, out_dtype, span=span)


def all_class_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_boxes_per_class: Any = -1,
    iou_threshold: Any = -1.0,
    score_threshold: Any = -1.0,
    output_format: str = "onnx",
    *,
    span: Any = None,
) -> TupleWrapper:
    """Selects, in each class, the boxes that no better box of the class overlaps too much.

    Parameters
    ----------
    boxes : RelayExpr
        f[B, N, 4]: two corners of each box.
    scores : RelayExpr
        f[B, K, N]: the score of each box in each class.
    max_output_boxes_per_class : RelayExpr or int
        How many boxes of a class are kept at most; a number below 0: all.
    iou_threshold : RelayExpr or float
        Kept boxes of a class overlap by no more, as a part of what they cover together; below 0: not at all.
    score_threshold : RelayExpr or float
        A kept box has a higher score.
    output_format : str
        "onnx".
    span : Span, optional
        Where it comes from.

    Returns
    -------
    TupleWrapper
        int64[B * K * N, 3]: batch, class and box of those that are kept, -1 behind them; int64[1]: how many.
    """
    if isinstance(max_output_boxes_per_class, (int, np.integer)) and max_output_boxes_per_class < 0:
        max_output_boxes_per_class = _NO_LIMIT
    what = "vision.all_class_non_max_suppression"
    most = operand(max_output_boxes_per_class, f"{what}: max_output_boxes_per_class", "int32")
    overlap = operand(iou_threshold, f"{what}: iou_threshold", "float32")
    least = operand(score_threshold, f"{what}: score_threshold", "float32")
    return _SUPPRESS(boxes, scores, most, overlap, least, output_format, span=span)


def uniform(
    key: Any, shape: Any, dtype: str = "float32", low: Any = 0.0, high: Any = 1.0, *, span: Any = None
) -> TupleWrapper:
    """Numbers in [low, high), all as likely. Rounding may give `high` where few numbers lie between the two.

    Parameters
    ----------
    key : RelayExpr
        uint64[10], as `threefry_key` makes it.
    shape : tuple of int
        The shape of the numbers.
    dtype : str
        The dtype of the numbers.
    low, high : RelayExpr or number
        The bounds, scalars; high - low is finite.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    TupleWrapper
        The next key, and the numbers.
    """
    least, limit = operand(low, "random.uniform: low", dtype), operand(high, "random.uniform: high", dtype)
    return _UNIFORM(key, least, limit, shape, dtype, span=span)


def normal(
    key: Any, shape: Any, dtype: str = "float32", mean: Any = 0.0, scale: Any = 1.0, *, span: Any = None
) -> TupleWrapper:
    """Normally distributed numbers.

    Parameters
    ----------
    key, shape, dtype
        As of `uniform`.
    mean, scale : RelayExpr or number
        Mean and standard deviation, scalars.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    TupleWrapper
        The next key, and the numbers.
    """
    middle, spread = operand(mean, "random.normal: mean", dtype), operand(scale, "random.normal: scale", dtype)
    return _NORMAL(key, middle, spread, shape, dtype, span=span)


def threefry_key(seed: int) -> Any:
    """A key for random numbers.

    Parameters
    ----------
    seed : int
        From 0 to 2^256 - 1.

    Returns
    -------
    Constant
        uint64[10].

    Raises
    ------
    UserError
        For another seed.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 256:
        raise _core.UserError(f"threefry_key: the seed is {seed!r}; it is a whole number from 0 to 2^256 - 1")
    words = [seed >> 64 * i & (1 << 64) - 1 for i in range(4)]
    return const(np.array([*words, 0, 0, 0, 0, 1 << 63, 0], "uint64"))


_SPARSE_DENSE, _SPARSE_ADD, _SPARSE_TRANSPOSE = map(
    deferred, ("nn.sparse_dense", "nn.sparse_add", "nn.sparse_transpose")
)


def _compressed_rows(matrix: Any, what: str) -> list[Any]:
    """Data, indices and indptr: of a matrix of scipy's, an object with these fields, or a tuple."""
    if all(hasattr(matrix, name) for name in ("data", "indices", "indptr")):
        parts = [matrix.data, matrix.indices, matrix.indptr]
    elif isinstance(matrix, (tuple, list)) and len(matrix) == 3:
        parts = list(matrix)
    else:
        raise _core.UserError(
            f"{what}: expected a matrix in compressed rows: data, indices and indptr; got {_arguments.kind(matrix)}"
        )
    return [const(part, str(part.dtype)) if isinstance(part, np.ndarray) else part for part in parts]


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False, *, span: Any = None) -> Any:
    """The product of a matrix by the transpose of one in compressed rows, or the other way round.

    Parameters
    ----------
    dense_mat : RelayExpr
        T[m, k], numbers: a matrix.
    sparse_mat : scipy.sparse matrix, or (data, indices, indptr)
        [n, k]: the other, in compressed rows of elements or of blocks.
    sparse_lhs : bool
        Whether the sparse matrix is the left one.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        T[m, n]; with `sparse_lhs` T[n, m].
    """
    return _SPARSE_DENSE(dense_mat, *_compressed_rows(sparse_mat, "sparse_dense: sparse_mat"), sparse_lhs, span=span)


def sparse_add(dense_mat: Any, sparse_mat: Any, *, span: Any = None) -> Any:
    """A matrix plus one in compressed rows.

    Parameters
    ----------
    dense_mat : RelayExpr
        T[n, k], numbers: a matrix.
    sparse_mat : scipy.sparse matrix, or (data, indices, indptr)
        [n, k]: the other, in compressed rows.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        T[n, k].
    """
    return _SPARSE_ADD(dense_mat, *_compressed_rows(sparse_mat, "sparse_add: sparse_mat"), span=span)


def sparse_transpose(x: Any, *, span: Any = None) -> TupleWrapper:
    """The transpose of a square matrix in compressed rows.

    Parameters
    ----------
    x : scipy.sparse matrix, or (data, indices, indptr)
        The matrix.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    TupleWrapper
        Data, indices and indptr.
    """
    return _SPARSE_TRANSPOSE(*_compressed_rows(x, "sparse_transpose: x"), span=span)


_DENSE_PACK, _SIMULATED_QUANTIZE, _SIMULATED_DEQUANTIZE = map(
    deferred, ("qnn.contrib_dense_pack", "qnn.simulated_quantize", "qnn.simulated_dequantize")
)
_DTYPE_CODES = {"disable": 0, "int8": 1, "uint8": 2, "int32": 3}


def contrib_dense_pack(
    data: Any,
    weight: Any,
    input_zero_point: Any,
    kernel_zero_point: Any,
    input_scale: Any,
    kernel_scale: Any,
    kernel_layout: str = "NC",
    units: int | None = None,
    out_dtype: str = "int32",
    *,
    span: Any = None,
) -> Any:
    """The product of quantized rows by a matrix whose rows lie in blocks: `dense` with a packed weight.

    Parameters
    ----------
    data : RelayExpr
        int8 or uint8[..., k]: the rows.
    weight : RelayExpr
        int8 or uint8[n / b, k, b] or [n / b, k / c, b, c]: the matrix.
    input_zero_point, kernel_zero_point : RelayExpr or int
        The integers that stand for 0; the kernel's may be int32[n].
    input_scale, kernel_scale : RelayExpr or float
        What one step is worth, which changes nothing; the kernel's may be float32[n].
    kernel_layout : str
        Of weight: "NC" or such as "NC8n" for three dimensions, such as "NC32n4c" for four.
    units : int, optional
        n, which the shape of weight tells as well.
    out_dtype : str
        "int32".
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        int32[..., n].
    """
    steps = (input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return _DENSE_PACK(data, weight, *steps, kernel_layout, units, out_dtype, span=span)


def _dtype_code(dtype: Any, what: str) -> Any:
    """The operand that chooses a simulated dtype: of its name, or as it is given."""
    if not isinstance(dtype, str):
        return dtype
    if dtype not in _DTYPE_CODES:
        raise _core.UserError(f"{what} is {dtype!r}; it is {', '.join(_DTYPE_CODES)} or an expression of their codes")
    return const(_DTYPE_CODES[dtype], "int32")


def simulated_quantize(
    data: Any, output_scale: Any, output_zero_point: Any, axis: int = -1, out_dtype: Any = "int8", *, span: Any = None
) -> Any:
    """The integers that `quantize` gives, as float32, of a dtype that the program may choose as it runs.

    Parameters
    ----------
    data : RelayExpr
        float32[...]: what is quantized.
    output_scale : RelayExpr or float
        float32[], [1] or [data's dimension along axis]: what one step of the result is worth.
    output_zero_point : RelayExpr or int
        int32 or float32, as the scale: the integer that stands for 0.
    axis : int
        The axis of data that a scale or zero point of more than one number has.
    out_dtype : str or RelayExpr
        "int8", "uint8", "int32", or "disable", which gives data itself; or int32[]: the code 1, 2, 3 or 0 of these.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        float32[...].

    Raises
    ------
    UserError
        For another dtype.
    """
    code = _dtype_code(out_dtype, "simulated_quantize: out_dtype")
    return _SIMULATED_QUANTIZE(data, code, output_scale, output_zero_point, axis, span=span)


def simulated_dequantize(
    data: Any, input_scale: Any, input_zero_point: Any, axis: int = -1, in_dtype: Any = "int8", *, span: Any = None
) -> Any:
    """The numbers that `dequantize` gives for integers which are held as float32.

    Parameters
    ----------
    data : RelayExpr
        float32[...]: the integers.
    input_scale : RelayExpr or float
        float32[], [1] or [data's dimension along axis]: what one step of data is worth.
    input_zero_point : RelayExpr or int
        int32 or float32, as the scale: the integer that stands for 0.
    axis : int
        The axis of data that a scale or zero point of more than one number has.
    in_dtype : str or RelayExpr
        As the out_dtype of `simulated_quantize`.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        float32[...].

    Raises
    ------
    UserError
        For another dtype.
    """
    code = _dtype_code(in_dtype, "simulated_dequantize: in_dtype")
    return _SIMULATED_DEQUANTIZE(data, code, input_scale, input_zero_point, axis, span=span)


# By family, what stands in its module in place of the ops' own functions.
FAMILIES: dict[str, dict[str, Any]] = {
    "image": {"resize1d": resize1d, "resize2d": resize2d, "resize3d": resize3d},
    "nn": {
        function.__name__: function
        for function in (
            contrib_conv2d_nchwc,
            contrib_depthwise_conv2d_nchwc,
            conv3d,
            global_avg_pool1d,
            global_avg_pool3d,
            global_max_pool1d,
            global_max_pool3d,
            sparse_add,
            sparse_dense,
            sparse_transpose,
        )
    },
    "qnn": {function.__name__: function for function in (contrib_dense_pack, simulated_dequantize, simulated_quantize)},
    "random": {"normal": normal, "threefry_key": threefry_key, "uniform": uniform},
    "vision": {"all_class_non_max_suppression": all_class_non_max_suppression},
}

for _family, _functions in FAMILIES.items():
    for _function in _functions.values():
        _function.__module__ = f"headrace.relay.{_family}"
