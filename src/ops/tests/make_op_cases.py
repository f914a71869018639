"""Writes cases of ops with their expected results, computed by numpy, scipy and onnxruntime.

    .venv/bin/python src/ops/tests/make_op_cases.py

Writes op_cases.txt beside itself, once all cases are made; numbers whose last bits alone differ stay (op_case_file.py).
Needs numpy, scipy, onnx, onnxruntime: `./dev setup` puts them into .venv. Read by src/ops/op_cases_test.cc (evaluation)
and src/lower/rules/op_cases_test.cc (compiled).
A case is the text of a call of %0, %1, ... in Relay's text form, its arguments and its results; an error is a call and
part of the sentence that refuses it.
"""

import numpy as np
from bit_cases import add_bit_cases
from broadcast_cases import add_broadcast_cases
from elementwise_cases import add_elementwise_cases
from fixed_point_cases import add_fixed_point_cases
from fourier_cases import add_fourier_cases
from half_cases import add_half_cases
from image_cases import add_image_cases
from index_cases import add_index_cases
from integer_cases import add_integer_cases
from matching_cases import add_matching_cases
from nn_cases import add_nn_cases
from op_case_format import Numbers, case, error, finish, run_onnx, scalar
from packed_cases import add_packed_cases
from qnn_cases import add_qnn_cases
from quantize_cases import add_quantize_cases, add_quantized_dense_cases, add_simulated_cases
from random_cases import add_random_cases
from recurrent_cases import add_recurrent_cases
from reduce_cases import add_reduce_cases
from scipy import ndimage, special
from select_cases import add_select_cases
from shape_cases import add_shape_cases
from sparse_cases import add_sparse_cases
from sum_cases import add_sum_cases
from window_gradient_cases import add_window_gradient_cases

numbers = Numbers(7)
data, ints, rng = numbers.data, numbers.ints, numbers.rng


# ---- running sums and products
x = data(3, 5, 2)
for axis in (0, 1, -1):
    case(f"cumsum {axis}", f"cumsum(%0, axis={axis})", [x], [np.cumsum(x, axis)])
case("cumsum flat", "cumsum(%0)", [x], [np.cumsum(x)])
case("cumsum exclusive", "cumsum(%0, axis=1, exclusive=True)", [x], [np.cumsum(x, 1) - x])
i = ints(2, 4)
case("cumsum int8 to int64", 'cumsum(%0, axis=1, dtype="int64")', [i.astype("int8")], [np.cumsum(i.astype("int64"), 1)])
case("cumsum bool", 'cumsum(%0, axis=0, dtype="int32")', [i > 0], [np.cumsum(i > 0, 0).astype("int32")])
case("cumprod", "cumprod(%0, axis=1)", [i], [np.cumprod(i, 1).astype("int32")])
case("cumprod exclusive", "cumprod(%0, exclusive=True)", [i[0]], [np.array([1, *np.cumprod(i[0])[:-1]], "int32")])
error("cumsum axis", "cumsum(%0, axis=3)", [x], "axis 3 is out of range")
error("cumsum of bool", "cumsum(%0)", [i > 0], "the result must be numbers")
error("cumprod axis", "cumprod(%0, axis=-4)", [x], "axis -4 is out of range")

# ---- sorts
x = data(3, 7, 4)
x[0, 2, 1] = x[0, 5, 1] = np.nan
for axis in (0, 1, 2):
    order = np.argsort(x, axis, kind="stable")
    case(f"argsort {axis}", f"argsort(%0, axis={axis})", [x], [order.astype("int32")])
    case(f"sort {axis}", f"sort(%0, axis={axis})", [x], [np.sort(x, axis)])
i = ints(4, 9)
down = np.argsort(-i, 1, kind="stable")
case("argsort down", 'argsort(%0, is_ascend=False, dtype="int64")', [i], [down])
case("sort down", "sort(%0, is_ascend=False)", [i], [np.take_along_axis(i, down, 1)])
top = down[:, :3]
case("topk", "topk(%0, k=3)", [i], [np.take_along_axis(i, top, 1), top.astype("int32")])
up = np.argsort(i, 0, kind="stable")[:2]
case("topk least", 'topk(%0, k=2, axis=0, is_ascend=True, ret_type="indices", dtype="int64")', [i], [up])
case("topk all", 'topk(%0, k=0, ret_type="values")', [i], [np.take_along_axis(i, down, 1)])
for shape, axis in (((0,), 0), ((0, 3), 0), ((2, 0), 1), ((2, 0), 0)):
    empty = np.zeros(shape, "float32")
    case(f"sort of none {shape} {axis}", f"sort(%0, axis={axis})", [empty], [empty])
    case(f"argsort of none {shape} {axis}", f"argsort(%0, axis={axis})", [empty], [empty.astype("int32")])
none = np.zeros((2, 0), "float32")
case("topk of none", "topk(%0, k=0, axis=1)", [none], [none, none.astype("int32")])
error("sort axis", "sort(%0, axis=2)", [i], "axis 2 is out of range")
error("argsort axis", "argsort(%0, axis=-3)", [i], "axis -3 is out of range")
error("topk k", "topk(%0, k=10)", [i], "k is 10")
error("topk ret_type", 'topk(%0, ret_type="all")', [i], "expected both, values or indices")
s, v = np.sort(data(6)), data(2, 5)
v[0, :2] = s[2], s[2]
case("searchsorted", "searchsorted(%0, %1)", [s, v], [np.searchsorted(s, v).astype("int32")])
case("searchsorted right", "searchsorted(%0, %1, right=True)", [s, v], [np.searchsorted(s, v, "right").astype("int32")])
rows = np.sort(ints(2, 7), 1)
w = ints(2, 5)
found = np.stack([np.searchsorted(rows[k], w[k]) for k in range(2)])
case("searchsorted rows", 'searchsorted(%0, %1, dtype="int64")', [rows, w], [found])
error("searchsorted rows", "searchsorted(%0, %1)", [rows, ints(3, 5)], "sorted_sequence must have one dimension")

# ---- scatters
x, u, i = data(3, 4), data(2, 4), np.array([[0, 2, -1, 1], [0, 1, -1, 0]], "int64")


def scatter(old: np.ndarray, axis: int, index: np.ndarray, new: np.ndarray, join: object) -> np.ndarray:
    y = old.copy()
    for place in np.ndindex(*index.shape):
        to = list(place)
        to[axis] = index[place]
        y[tuple(to)] = join(y[tuple(to)], new[place])
    return y


JOINS = {
    "update": lambda a, b: b,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "min": min,
    "max": max,
}
for name, join in JOINS.items():
    case(
        f"scatter_elements {name}",
        f'scatter_elements(%0, %1, %2, axis=0, reduction="{name}")',
        [x, i, u],
        [scatter(x, 0, i, u, join)],
    )
total, count = scatter(x, 0, i, u, JOINS["add"]), scatter(np.ones_like(x), 0, i, np.ones_like(u), JOINS["add"])
case("scatter_elements mean", 'scatter_elements(%0, %1, %2, reduction="mean")', [x, i, u], [total / count], 1e-6)
j, w = ints(3, 2, low=0, high=4), data(3, 2)
case(
    "scatter_elements axis 1", "scatter_elements(%0, %1, %2, axis=1)", [x, j, w], [scatter(x, 1, j, w, JOINS["update"])]
)
error("scatter_elements mode", 'scatter_elements(%0, %1, %2, reduction="sum")', [x, i, u], "expected update, add")
error("scatter_elements shape", "scatter_elements(%0, %1, %2)", [x, i, w], "updates must have the shape (2, 4)")
error(
    "scatter_elements index",
    "scatter_elements(%0, %1, %2)",
    [x, i + 3, u],
    "is out of range for an axis of 3",
    run=True,
)
k = np.array([[0, 2, 0], [1, -1, 1]], "int32")
for name, join in JOINS.items():
    y, new = x.copy(), data(3)
    for c in range(3):
        y[tuple(k[:, c])] = join(y[tuple(k[:, c])], new[c])
    case(f"scatter_nd {name}", f'scatter_nd(%0, %1, %2, mode="{name}")', [x, k, new], [y])
y, new = x.copy(), data(2, 4)
y[2], y[1] = new
case("scatter_nd rows", "scatter_nd(%0, %1, %2)", [x, np.array([[2, 1]], "int64"), new], [y])
error("scatter_nd depth", "scatter_nd(%0, %1, %2)", [x, ints(3, 2), data(2)], "indices name 3 axes")
error("scatter_nd index", "scatter_nd(%0, %1, %2)", [x, k + 2, data(3)], "is out of range for an axis of", run=True)
p = rng.permutation(9).astype("int32")
case("invert_permutation", "invert_permutation(%0)", [p], [np.argsort(p).astype("int32")])
error("invert_permutation twice", "invert_permutation(%0)", [p // 2], "not a permutation", run=True)
error("invert_permutation float", "invert_permutation(%0)", [data(3)], "must be integers of one dimension")

# ---- masks
i = np.array([[0, 3, 7], [-1, 2, 1]], "int32")
eye = np.where(np.arange(4) == i[..., None], 5, -1).astype("float32")
case("one_hot", "one_hot(%0, %1, %2, depth=4)", [i, scalar(5), scalar(-1)], [eye])
case("one_hot axis 0", "one_hot(%0, %1, %2, depth=4, axis=0)", [i, scalar(5), scalar(-1)], [np.moveaxis(eye, -1, 0)])
error("one_hot axis", "one_hot(%0, %1, %2, depth=4, axis=3)", [i, scalar(5), scalar(-1)], "axis 3 is out of range")
error("one_hot dtype", "one_hot(%0, %1, %2, depth=4)", [i, scalar(5, "int32"), scalar(-1)], "on_value must be a scalar")
x = data(2, 4, 5)
for k in (-2, 0, 1):
    case(f"triu {k}", "trilu(%0, %1)", [x, scalar(k, "int32")], [np.triu(x, k)])
    case(f"tril {k}", "trilu(%0, %1, upper=False)", [x, scalar(k, "int64")], [np.tril(x, k)])
error("trilu rank", "trilu(%0, %1)", [x[0, 0], scalar(0, "int32")], "2 dimensions or more")
lengths = np.array([1, 3], "int32")
steps = np.arange(4)
case(
    "sequence_mask",
    "sequence_mask(%0, %1, mask_value=-1f, axis=1)",
    [x, lengths],
    [np.where((steps < lengths[:, None])[..., None], x, -1).astype("float32")],
)
y = np.swapaxes(x, 0, 1)
case(
    "sequence_mask 0",
    "sequence_mask(%0, %1)",
    [y, lengths.astype("float32")],
    [np.where((steps[:, None] < lengths)[..., None], y, 0).astype("float32")],
)
error("sequence_mask lengths", "sequence_mask(%0, %1)", [x, lengths], "valid_length must be 4 numbers")
d = data(2, 4)
y = x.copy()
y[:, range(4), range(4)] = d
case("matrix_set_diag", "matrix_set_diag(%0, %1)", [x, d], [y])
# TensorFlow's MatrixSetDiagV3: the diagonals from 1 down to -1; here by its definition.
for right_above, right_below in ((True, False), (False, True)):
    band, y, longest = data(2, 3, 4), x.copy(), 4
    for row, column in np.ndindex(4, 5):
        d = column - row
        if -1 <= d <= 1:
            length = min(4 + min(d, 0), 5 - max(d, 0))
            push = longest - length if (right_above if d >= 0 else right_below) else 0
            y[:, row, column] = band[:, 1 - d, min(row, column) + push]
    flags = f"super_diag_right_align={right_above}, sub_diag_right_align={right_below}"
    case(f"matrix_set_diag band {right_above}", f"matrix_set_diag(%0, %1, k1=-1, k2=1, {flags})", [x, band], [y])
error("matrix_set_diag shape", "matrix_set_diag(%0, %1, k1=1, k2=1)", [x, data(2, 5)], "must have the shape (2, 4)")
error("matrix_set_diag k", "matrix_set_diag(%0, %1, k1=2, k2=1)", [x, data(2, 5)], "k1 (2) is above k2 (1)")
x = data(5, 6)
for name, s in {
    "plain": (slice(1, 4), slice(0, 6)),
    "steps": (slice(0, 5, 2), slice(5, None, -3)),
    "negative": (slice(-4, -1), slice(-2, 100)),
}.items():
    y, v = x.copy(), data(*x[s].shape)
    y[s] = v
    bounds = [
        np.array(b, "int64")
        for b in zip(*((p.start, p.stop if p.stop is not None else -100, p.step or 1) for p in s), strict=True)
    ]
    case(f"strided_set {name}", "strided_set(%0, %1, %2, %3, %4)", [x, v, *bounds], [y])
bounds = [np.array(b, "int64") for b in ((0, 0), (2, 2), (1, 1))]
error("strided_set v", "strided_set(%0, %1, %2, %3, %4)", [x, data(3, 2), *bounds], "axis 0 of the slice", run=True)
error("strided_set rank", "strided_set(%0, %1, %2, %3, %4)", [x, data(3), *bounds], "as many dimensions")

# ---- other places
x = data(2, 8, 3, 2)
packed = x.reshape(2, 2, 4, 3, 2).transpose(0, 1, 3, 4, 2)
transform = 'layout_transform(%0, src_layout="{}", dst_layout="{}")'
case("layout_transform", transform.format("NCHW", "NHWC"), [x], [x.transpose(0, 2, 3, 1)])
case("layout_transform pack", transform.format("NCHW", "NCHW4c"), [x], [packed])
eight = np.arange(8, dtype="float32")
case("layout_transform part first", transform.format("W", "4wW"), [eight], [eight.reshape(2, 4).T])
case("layout_transform unpack", transform.format("NCHW4c", "NHWC"), [packed], [x.transpose(0, 2, 3, 1)])
error("layout_transform factor", transform.format("NCHW", "NCHW3c"), [x], "layout_transform")
x = data(2, 7, 6)
windows = np.lib.stride_tricks.sliding_window_view(x, (3, 2), axis=(1, 2))[:, ::2, ::3]
case("sliding_window", "sliding_window(%0, axis=1, window_shape=[3, 2], strides=[2, 3])", [x], [windows])
error("sliding_window", "sliding_window(%0, axis=1, window_shape=[3], strides=[2])", [x], "window_shape must have 2")
lengths, y = np.array([7, 4], "int32"), x.copy()
for b in range(2):
    y[b, : lengths[b]] = y[b, : lengths[b]][::-1].copy()
case("reverse_sequence", "reverse_sequence(%0, %1)", [x, lengths], [y])
case(
    "reverse_sequence axes",
    "reverse_sequence(%0, %1, seq_axis=0, batch_axis=2)",
    [y.transpose(1, 2, 0).copy(), lengths.astype("int64")],
    [x.transpose(1, 2, 0)],
)
error("reverse_sequence", "reverse_sequence(%0, %1)", [x, ints(3)], "seq_lengths must be 2 integers")
a, b, c = data(2), data(3), data(4)
case("meshgrid", "meshgrid((%0, %1, %2))", [a, b, c], list(np.meshgrid(a, b, c, indexing="ij")))
case("meshgrid xy", 'meshgrid((%0, %1, %2), indexing="xy")', [a, b, c], list(np.meshgrid(a, b, c)))
error("meshgrid", 'meshgrid((%0, %1), indexing="yx")', [a, b], "expected ij or xy")
i, j = ints(2, 1, low=0, high=2), ints(3, low=-7, high=7, dtype="int64")
case("adv_index", "adv_index((%0, %1, %2))", [x, i, j], [x[i, j]])
case("adv_index one", "adv_index((%0, %1))", [x, i], [x[i]])
error("adv_index", "adv_index((%0, %1, %2))", [x, i, j + 9], "is out of range for an axis of 7", run=True)
error("adv_index rank", "adv_index((%0, %1, %1))", [a, i], "2 tensors of indices")
i = ints(2, 3, low=0, high=24, dtype="int64")
case("unravel_index", "unravel_index(%0, %1)", [i, np.array([2, 3, 4])], [np.stack(np.unravel_index(i, (2, 3, 4)))])
error("unravel_index", "unravel_index(%0, %1)", [i + 24, np.array([2, 3, 4])], "is out of range for", run=True)
error("unravel_index float", "unravel_index(%0, %1)", [a, np.array([2, 3, 4])], "indices must be integers")
case("slice_like", "slice_like(%0, %1)", [x, data(1, 5, 6)], [x[:1, :5]])
case("slice_like axes", "slice_like(%0, %1, axes=[-1, 0])", [x, data(2, 9, 4)], [x[:, :, :4]])
error("slice_like", "slice_like(%0, %1)", [x, data(3, 5, 6)], "axis 0 of shape_like")
case("reinterpret", 'reinterpret(%0, dtype="int32")', [x], [x.view("int32")])
error("reinterpret", 'reinterpret(%0, dtype="int64")', [x], "cannot be read as int64")

# ---- blocks
x = data(2, 12, 2, 3)
deep = x.reshape(2, 2, 2, 3, 2, 3).transpose(0, 3, 4, 1, 5, 2).reshape(2, 3, 4, 6)
case("depth_to_space", "nn.depth_to_space(%0, block_size=2)", [x], [deep])
crd = x.reshape(2, 3, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 4, 6)
case("depth_to_space CRD", 'nn.depth_to_space(%0, block_size=2, mode="CRD")', [x], [crd])
case("depth_to_space CDR", 'nn.depth_to_space(%0, block_size=2, mode="CDR")', [x], [crd])
case("space_to_depth", "nn.space_to_depth(%0, block_size=2)", [deep], [x])
last = lambda t: t.transpose(0, 2, 3, 1)  # noqa: E731
case("depth_to_space NHWC", 'nn.depth_to_space(%0, block_size=2, layout="NHWC")', [last(x)], [last(deep)])
case("space_to_depth NHWC", 'nn.space_to_depth(%0, block_size=2, layout="NHWC")', [last(deep)], [last(x)])
error("depth_to_space", "nn.depth_to_space(%0, block_size=5)", [x], "must be a multiple of 25")
error("space_to_depth", "nn.space_to_depth(%0, block_size=4)", [x], "must be a multiple of 4")
x = data(2, 3, 5, 2)
padded = np.pad(x, ((0, 0), (1, 0), (0, 1), (0, 0)), constant_values=0.5)
blocks = padded.reshape(2, 2, 2, 3, 2, 2).transpose(2, 4, 0, 1, 3, 5).reshape(8, 2, 3, 2)
to_batch = "nn.space_to_batch_nd(%0, block_shape=[2, 2], paddings=[[1, 0], [0, 1]], pad_value=0.5f)"
case("space_to_batch_nd", to_batch, [x], [blocks])
case("batch_to_space_nd", "nn.batch_to_space_nd(%0, block_shape=[2, 2], crops=[[1, 0], [0, 1]])", [blocks], [x])
error("space_to_batch_nd", to_batch, [x[:, :2]], "must be a multiple of 2")
error("batch_to_space_nd", "nn.batch_to_space_nd(%0, block_shape=[2], crops=[[4, 2]])", [blocks], "crops cut (4, 2)")
spread = np.full((2, 7, 5, 4), 9, "float32")
spread[:, ::3, :, ::3] = x
case("dilate", "nn.dilate(%0, strides=[1, 3, 1, 3], dilation_value=9f)", [x], [spread])
error("dilate", "nn.dilate(%0, strides=[1, 3])", [x], "strides must have 4 values")

# ---- likes and copies
x = data(2, 3, 4)
case("cast_like", "cast_like(%0, %1)", [x, ints(1)], [np.trunc(x).astype("int32")])
error("cast_like", "cast_like(%0)", [x], "takes 2 arguments")
case("collapse_sum_like", "collapse_sum_like(%0, %1)", [x, data(3, 1)], [x.sum((0, 2), keepdims=True)[0]])
case("collapse_sum_to", "collapse_sum_to(%0, shape=[4])", [x], [x.sum((0, 1))])
case("collapse_sum_to itself", "collapse_sum_to(%0, shape=[2, 3, 4])", [x], [x])
error("collapse_sum_to", "collapse_sum_to(%0, shape=[3])", [x], "cannot be summed up to")
error("collapse_sum_like", "collapse_sum_like(%0, %1)", [x, data(1, 2, 3, 4)], "cannot be summed up to")
x = np.linspace(-4, 4, 37, dtype="float32")
case("fast_exp", "fast_exp(%0)", [x], [np.exp(x.astype("float64")).astype("float32")], 1e-6)
case("fast_tanh", "fast_tanh(%0)", [x], [np.tanh(x.astype("float64")).astype("float32")], 1e-6)
case("fast_erf", "fast_erf(%0)", [x], [special.erf(x.astype("float64")).astype("float32")], 1e-6)
for name in ("fast_exp", "fast_tanh", "fast_erf"):
    error(name, f"{name}(%0)", [ints(3)], "must be floating point")

# ---- normalisations
x, g, b = data(2, 6, 3, 2), data(6), data(6)


def normal(t: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    t = t.astype("float64")
    return (t - t.mean(axes, keepdims=True)) / np.sqrt(t.var(axes, keepdims=True) + epsilon)


column = lambda t: t.reshape(-1, 1, 1)  # noqa: E731
y = normal(x.reshape(2, 3, 2, 3, 2), (2, 3, 4), 1e-5).reshape(x.shape) * column(g) + column(b)
case("group_norm", "nn.group_norm(%0, %1, %2, num_groups=3)", [x, g, b], [y.astype("float32")], 2e-6)
y = normal(last(x).reshape(2, 3, 2, 2, 3), (1, 2, 4), 1e-3).reshape(last(x).shape)
plain = "num_groups=2, axis=-1, epsilon=0.001f, center=False, scale=False"
case("group_norm last", f"nn.group_norm(%0, %1, %2, {plain})", [last(x), g, b], [y.astype("float32")], 2e-6)
y = run_onnx("InstanceNormalization", [x, g, b], epsilon=1e-5)
case("instance_norm", "nn.instance_norm(%0, %1, %2)", [x, g, b], [y], 3e-6)
y = normal(last(x), (1, 2), 1e-5) * g
args = "nn.instance_norm(%0, %1, %2, axis=3, center=False)"
case("instance_norm last", args, [last(x), g, b], [y.astype("float32")], 2e-6)
error("group_norm groups", "nn.group_norm(%0, %1, %2, num_groups=4)", [x, g, b], "must be a multiple of num_groups (4)")
error("group_norm gamma", "nn.group_norm(%0, %1, %2)", [x, data(5), b], "gamma must have shape (6)")
error("instance_norm axis", "nn.instance_norm(%0, %1, %2, axis=0)", [x, g, b], "axis 0 is the batch")
for name, axis in (("[1]", 1), ("[2, -1]", (2, 3)), ("[]", None)):
    y = x / np.sqrt(np.maximum((x.astype("float64") ** 2).sum(axis, keepdims=True), 0.5))
    case(f"l2_normalize {name}", f"nn.l2_normalize(%0, eps=0.5f, axis={name})", [x], [y.astype("float32")], 2e-6)
error("l2_normalize axis", "nn.l2_normalize(%0, eps=1f, axis=[1, -3])", [x], "named twice")
y = special.softmax(x.astype("float64"), 1).astype("float32")
case("fast_softmax", "nn.fast_softmax(%0, axis=1)", [x], [y], 2e-6)
error("fast_softmax", "nn.fast_softmax(%0, axis=4)", [x], "axis 4 is out of range")

# ---- losses
x, y = data(5, 3), data(5, 3)
p = special.softmax(x, 1)
loss = np.float32(-(np.log(p.astype("float64")) * y).sum() / 5)
case("cross_entropy", "nn.cross_entropy(%0, %1)", [p, y], [loss], 2e-6)
loss = np.float32(-(x * y).sum() / 5)
case("cross_entropy_with_logits", "nn.cross_entropy_with_logits(%0, %1)", [x, y], [loss], 2e-6)
error("cross_entropy", "nn.cross_entropy(%0, %1)", [p, data(5, 4)], "must have one shape")
error("cross_entropy_with_logits", "nn.cross_entropy_with_logits(%0, %1)", [p, data(5, 4)], "must have one shape")
x, c, w = data(2, 4, 3), np.array([[0, 3, 1], [2, 1, 1]], "int64"), data(4, low=0.5)
for name in ("mean", "sum", "none"):
    y = run_onnx("NegativeLogLikelihoodLoss", [x, c, w], opset=13, reduction=name)
    case(f"nll_loss {name}", f'nn.nll_loss(%0, %1, %2, reduction="{name}")', [x, c, w], [y], 2e-6)
y = run_onnx("NegativeLogLikelihoodLoss", [x, c, w], opset=13, ignore_index=1)
case("nll_loss ignore", "nn.nll_loss(%0, %1, %2, ignore_index=1)", [x, c, w], [y], 2e-6)
error("nll_loss class", "nn.nll_loss(%0, %1, %2)", [x, c + 1, w], "is out of range", run=True)
error("nll_loss shape", "nn.nll_loss(%0, %1, %2)", [x, c[:1], w], "do not agree")

# ---- convolutions of lines and volumes
x, w = data(2, 4, 11), data(6, 2, 3)
y = run_onnx("Conv", [x, w], group=2, strides=[2], pads=[1, 2], dilations=[2])
case("conv1d", "nn.conv1d(%0, %1, groups=2, strides=[2], padding=[1, 2], dilation=[2])", [x, w], [y])
args = 'nn.conv1d(%0, %1, groups=2, data_layout="NWC", kernel_layout="WIO")'
y = run_onnx("Conv", [x, w], group=2).transpose(0, 2, 1)
case("conv1d NWC", args, [x.transpose(0, 2, 1), w.transpose(2, 1, 0)], [y])
error("conv1d rank", "nn.conv1d(%0, %1)", [data(1, 2, 3, 4), w], "data must have 3 dimensions (NCW)")
x, w = data(2, 3, 4, 5, 4), data(2, 3, 2, 3, 2)
y = run_onnx("Conv", [x, w], strides=[1, 2, 1], pads=[1, 0, 1, 0, 1, 0])
case("conv3d", "nn.conv3d(%0, %1, strides=[1, 2, 1], padding=[1, 0, 1, 0, 1, 0])", [x, w], [y])
args = 'nn.conv3d(%0, %1, data_layout="NDHWC", kernel_layout="DHWIO")'
y = run_onnx("Conv", [x, w]).transpose(0, 2, 3, 4, 1)
case("conv3d NDHWC", args, [x.transpose(0, 2, 3, 4, 1), w.transpose(2, 3, 4, 1, 0)], [y])
error("conv3d channels", "nn.conv3d(%0, %1)", [x, data(2, 4, 2, 3, 2)], "weight must have 3 input channels")
x, w = data(2, 4, 5), data(4, 3, 4)
y = run_onnx("ConvTranspose", [x, w], group=2, strides=[3], pads=[1, 2], output_padding=[2])
args = "nn.conv1d_transpose(%0, %1, groups=2, strides=[3], padding=[1, 2], output_padding=[2])"
case("conv1d_transpose", args, [x, w], [y])
error("conv1d_transpose", args, [x, data(3, 3, 4)], "weight must have 4 input channels")
x, w = data(1, 2, 3, 2, 3), data(2, 3, 2, 3, 2)
y = run_onnx("ConvTranspose", [x, w], strides=[2, 1, 2], pads=[0, 1, 0, 1, 0, 0], dilations=[1, 2, 1])
args = "nn.conv3d_transpose(%0, %1, strides=[2, 1, 2], padding=[0, 1, 0, 1, 0, 0], dilation=[1, 2, 1])"
case("conv3d_transpose", args, [x, w], [y])
error("conv3d_transpose", "nn.conv3d_transpose(%0, %1, padding=[9])", [x, w], "cuts off more than")


# ---- adaptive pools
def adaptive(t: np.ndarray, size: tuple[int, ...], reduce: object) -> np.ndarray:
    """The definition of torch's adaptive pools."""
    y = np.empty((*t.shape[:2], *size), "float64")
    for place in np.ndindex(*size):
        axes = zip(place, t.shape[2:], size, strict=True)
        window = tuple(slice(i * n // o, -((i + 1) * n // -o)) for i, n, o in axes)
        y[(..., *place)] = reduce(t[(slice(None), slice(None), *window)], axis=tuple(range(2, t.ndim)))
    return y.astype(t.dtype)


for size in ((4,), (3, 5), (2, 3, 1)):
    x = data(2, 3, *(7, 5, 4)[: len(size)])
    for name, reduce in (("max", np.max), ("avg", np.mean)):
        call = f"nn.adaptive_{name}_pool{len(size)}d"
        text = ", ".join(str(d) for d in size)
        y = adaptive(x, size, reduce)
        case(f"adaptive {name} {len(size)}d", f"{call}(%0, output_size=[{text}])", [x], [y], 1e-6)
        error(f"adaptive {name} {len(size)}d", f"{call}(%0, output_size=[0])", [x], "output_size must be at least 1")
x = data(1, 2, 6, 4)
call = 'nn.adaptive_avg_pool2d(%0, output_size=[3], layout="NHWC")'
case("adaptive even", call, [last(x)], [last(adaptive(x, (3, 3), np.mean))], 1e-6)
case("adaptive whole", "nn.adaptive_max_pool2d(%0)", [x], [x])

# ---- resampling: onnxruntime knows lines, planes and volumes, opencv's names mean the same
for size, shape in (((9,), (2, 3, 5)), ((6, 7), (1, 2, 4, 3)), ((5, 4, 6), (1, 2, 3, 2, 4))):
    x = data(*shape)
    rank = len(size)
    text = ", ".join(str(d) for d in size)
    for mode in ("linear", "nearest_neighbor"):
        scales = [1.0, 1.0, *(n / d for n, d in zip(size, shape[2:], strict=True))]
        y = run_onnx(
            "Resize",
            [x, np.zeros(0, "float32"), np.array(scales, "float32")],
            mode=mode.split("_")[0],
            coordinate_transformation_mode="half_pixel",
        )
        rounding = ', rounding_method="round_prefer_floor"' if mode == "nearest_neighbor" else ""
        call = f'image.resize{rank}d(%0, size=[{text}], method="{mode}"{rounding})'
        case(f"resize{rank}d {mode}", call, [x], [y], 2e-6)
    error(f"resize{rank}d size", f"image.resize{rank}d(%0, size=[{text}, 2])", [x], f"size needs {rank} numbers")
x = data(1, 2, 3, 4)
case("upsampling", "nn.upsampling(%0, scale_h=2f, scale_w=3f)", [x], [x.repeat(2, 2).repeat(3, 3)])
y = run_onnx(
    "Resize",
    [x, np.zeros(0, "float32"), np.array([1, 1, 2, 3], "float32")],
    mode="linear",
    coordinate_transformation_mode="align_corners",
)
args = 'nn.upsampling(%0, scale_h=2f, scale_w=3f, method="bilinear", align_corners=True)'
case("upsampling bilinear", args, [x], [y], 2e-6)
args = 'nn.upsampling(%0, scale_h=2f, scale_w=3f, layout="NHWC")'
case("upsampling NHWC", args, [last(x)], [last(x.repeat(2, 2).repeat(3, 3))])
error("upsampling", "nn.upsampling(%0, scale_h=-1f)", [x], "a scale of -1 gives")
x = data(1, 2, 2, 3, 2)
# Relay's coordinates of half pixels, and the floor of them.
near = [
    np.clip(np.floor((np.arange(n * d) + 0.5) / n - 0.5), 0, d - 1).astype(int) for n, d in ((2, 2), (2, 3), (3, 2))
]
y = x[:, :, near[0]][:, :, :, near[1]][:, :, :, :, near[2]]
case("upsampling3d", "nn.upsampling3d(%0, scale_d=2f, scale_h=2f, scale_w=3f)", [x], [y])
error("upsampling3d", 'nn.upsampling3d(%0, method="bicubic")', [x], "expected one of nearest_neighbor, trilinear")

# ---- boxes
corners = np.round(rng.uniform(0, 8, (2, 12, 4)) * 2) / 2
scores = rng.permutation(24).reshape(2, 12, 1) / 24
boxes = np.concatenate([rng.integers(-1, 2, (2, 12, 1)), scores, corners], 2).astype("float32")
counts, front, where = np.zeros(2, "int32"), np.full_like(boxes, -1), np.full((2, 12), -1, "int32")
for b in range(2):
    valid = [j for j in range(12) if boxes[b, j, 1] > 0.2 and boxes[b, j, 0] >= 0]
    counts[b], front[b, : len(valid)], where[b, : len(valid)] = len(valid), boxes[b, valid], valid
args = "vision.get_valid_counts(%0, score_threshold=0.2f)"
case("get_valid_counts", args, [boxes], [counts, front, where])
error("get_valid_counts", "vision.get_valid_counts(%0, score_index=6)", [boxes], "score_index is 6")
threshold = scalar(0.2)
case("get_valid_counts operand", "vision.get_valid_counts(%0, %1)", [boxes, threshold], [counts, front, where])
case(
    "get_valid_counts wide", "vision.get_valid_counts(%0, %1)", [boxes, scalar(0.2, "float64")], [counts, front, where]
)
message = "score_threshold is given twice, as attribute and as argument"
error("get_valid_counts twice", "vision.get_valid_counts(%0, %1, score_threshold=0.1f)", [boxes, threshold], message)
message = "score_threshold must be a float scalar"
error("get_valid_counts vector", "vision.get_valid_counts(%0, %1)", [boxes, np.array([0.2], "float32")], message)
message = "takes data and score_threshold, got 3 arguments"
error("get_valid_counts three", "vision.get_valid_counts(%0, %1, %1)", [boxes, threshold], message)


def overlap(p: np.ndarray, q: np.ndarray) -> float:
    low = np.maximum(np.minimum(p[:2], p[2:]), np.minimum(q[:2], q[2:]))
    high = np.minimum(np.maximum(p[:2], p[2:]), np.maximum(q[:2], q[2:]))
    inner = float(np.prod(np.maximum(high - low, 0)))
    outer = float(np.prod(np.abs(p[2:] - p[:2])) + np.prod(np.abs(q[2:] - q[:2]))) - inner
    return inner / outer if outer > 0 else 0.0


def suppress(b: int, most: int, limit: float, force: bool, top: int) -> tuple[list[int], list[int]]:
    order = sorted(range(counts[b]), key=lambda j: -front[b, j, 1])[: top if top > 0 else None]
    kept: list[int] = []
    for j in order:
        rivals = [i for i in kept if force or front[b, i, 0] == front[b, j, 0]]
        if (most <= 0 or len(kept) < most) and all(overlap(front[b, i, 2:], front[b, j, 2:]) < limit for i in rivals):
            kept.append(j)
    return order, kept


for name, most, limit, force, top in (
    ("plain", -1, 0.3, False, -1),
    ("force", -1, 0.1, True, -1),
    ("few", 2, 0.4, False, 6),
):
    flags = f"force_suppress={force}, top_k={top}"
    inputs = [front, counts, where, scalar(most, "int32"), scalar(limit)]
    picked, total = np.full((2, 12), -1, "int32"), np.zeros((2, 1), "int32")
    rows, packed = np.full_like(front, -1), np.full_like(front, -1)
    for b in range(2):
        order, kept = suppress(b, most, np.float32(limit), force, top)
        picked[b, : len(kept)], total[b] = where[b, kept], len(kept)
        packed[b, : len(kept)] = front[b, kept]
        for place, j in enumerate(order):
            rows[b, place] = front[b, j] if j in kept else -1
    call = "vision.non_max_suppression(%0, %1, %2, %3, %4, "
    case(f"non_max_suppression {name}", f"{call}{flags})", inputs, [picked, total])
    case(f"non_max_suppression boxes {name}", f"{call}{flags}, return_indices=False)", inputs, [rows])
    flags += ", return_indices=False, invalid_to_bottom=True"
    case(f"non_max_suppression packed {name}", f"{call}{flags})", inputs, [packed])
error("non_max_suppression", f"{call}coord_start=3)", inputs, "coord_start is 3")
error("non_max_suppression counts", call[:-2] + ")", [front, counts[:1], *inputs[2:]], "valid_count must be int32")

# ---- regions
x = data(2, 3, 6, 7)
regions = np.array([[0, 0, 0, 6, 5], [1, 1.5, 2, 4, 5.5], [0, 3, 1, 3.25, 1.5], [1, -2, -3, 9, 8]], "float32")
inputs = [x, regions[:, 1:].copy(), regions[:, 0].astype("int64")]
for ratio in (2, 0):
    y = run_onnx("RoiAlign", inputs, opset=10, output_height=2, output_width=3, sampling_ratio=ratio, spatial_scale=0.5)
    args = f"vision.roi_align(%0, %1, pooled_size=[2, 3], spatial_scale=0.5f, sample_ratio={ratio})"
    case(f"roi_align {ratio}", args, [x, regions], [y], 3e-6)
    case(f"roi_align NHWC {ratio}", f'{args[:-1]}, layout="NHWC")', [last(x), regions], [last(y)], 3e-6)
y = np.empty((2, 3, 2, 2), "float32")
for r, region in enumerate(regions[:2]):
    for c, p, q in np.ndindex(3, 2, 2):
        bin_h, bin_w = (region[4] - region[2]) / 2, (region[3] - region[1]) / 2
        points = [
            (region[2] + (p + (i + 0.5) / 2) * bin_h, region[1] + (q + (j + 0.5) / 2) * bin_w)
            for i, j in np.ndindex(2, 2)
        ]
        plane = x[int(region[0]), c].astype("float64")
        y[r, c, p, q] = ndimage.map_coordinates(plane, np.array(points).T, order=1, mode="nearest").max()
args = 'vision.roi_align(%0, %1, pooled_size=[2, 2], spatial_scale=1f, sample_ratio=2, mode="max")'
case("roi_align max", args, [x, regions[:2]], [y], 3e-6)
case("roi_align NHWC max", f'{args[:-1]}, layout="NHWC")', [last(x), regions[:2]], [last(y)], 3e-6)
error("roi_align layout", f'{args[:-1]}, layout="HWCN")', [x, regions], "layout is 'HWCN', expected one of NCHW, NHWC")
error("roi_align rois", "vision.roi_align(%0, %1, pooled_size=[2, 2], spatial_scale=1f)", [x, x[0, 0]], "rois must be")
error("roi_align batch", args, [x, regions + 1], "is of ", run=True)

# ---- random numbers
add_random_cases(ints)

# ---- images and detectors
add_image_cases(data)
add_matching_cases()

# ---- as many as the data says
add_select_cases(data)

# ---- means of integers whose sums are past their dtype
for dtype in ("int8", "uint8", "int32"):
    low, high = (2**30, 2**31 - 1) if dtype == "int32" else (60, 127)
    i = ints(1, 2, 8, 8, low=low, high=high, dtype=dtype)
    mean = np.trunc(i.mean((2, 3), keepdims=True)).astype(dtype)
    case(f"mean {dtype}", "mean(%0, axis=[2, 3], keepdims=True)", [i], [mean])
    case(f"avg_pool2d {dtype}", "nn.avg_pool2d(%0, pool_size=[8, 8])", [i], [mean])
    case(f"global_avg_pool2d {dtype}", "nn.global_avg_pool2d(%0)", [i], [mean])
    case(f"adaptive_avg_pool2d {dtype}", "nn.adaptive_avg_pool2d(%0, output_size=[1])", [i], [mean])
error("mean", "mean(%0, axis=[4])", [i], "axis 4 is out of range")
error("avg_pool2d", "nn.avg_pool2d(%0, pool_size=[0, 1])", [i], "pool_size")
error("global_avg_pool2d", "nn.global_avg_pool2d(%0)", [i[0]], "data must have 4 dimensions")

# ---- layouts whose channels lie in parts
add_packed_cases(data)

add_sum_cases(data, ints)
add_window_gradient_cases(data)
add_fixed_point_cases(ints)

# ---- indices past every axis
add_index_cases()

# ---- the families that have their numbers to themselves
add_elementwise_cases()
add_broadcast_cases()
add_reduce_cases()
add_shape_cases()
add_nn_cases()
add_integer_cases()
add_half_cases()
add_fourier_cases()
add_sparse_cases()
add_bit_cases()
add_quantize_cases()
add_quantized_dense_cases()
add_simulated_cases()
add_qnn_cases()
add_recurrent_cases()
finish()
