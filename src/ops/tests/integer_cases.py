"""Cases of integers, for ops whose other cases are of floats; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, run_onnx, scalar

numbers = Numbers(16)
ints = numbers.ints


def int8s(*shape: int) -> np.ndarray:
    return ints(*shape, low=-128, high=128, dtype="int8")


def add_picks() -> None:
    x, u = int8s(4, 5), ints(2, 4, 3, low=0, high=255, dtype="uint8")
    rows = np.array([[3, -1, 0], [1, 2, 2]])
    case("take int8", "take(%0, %1, axis=-1)", [x, rows], [x[:, np.clip(rows, 0, 4)]])
    batched = np.array([[0, 2], [1, 1]], "int32")
    y = np.stack([u[b][:, batched[b]] for b in range(2)])
    case("take batches", "take(%0, %1, batch_dims=1, axis=2)", [u, batched], [y])
    deep = ints(2, 4, 2, low=-3, high=3, dtype="int64")
    case("gather uint8", "gather(%0, %1, axis=2)", [u, deep], [np.take_along_axis(u, deep, 2)])
    tuples = np.array([[0, 3, -4], [1, -1, 0]], "int32")
    case("gather_nd int8", "gather_nd(%0, %1)", [x, tuples], [x[tuples[0], tuples[1]]])
    places = np.array([[[1, 3], [0, 2]]])
    y = np.stack([u[b, places[0, b]] for b in range(2)])
    case("gather_nd batches", "gather_nd(%0, %1, batch_dims=1)", [u, places], [y])
    case("adv_index int8", "adv_index((%0, %1, %1))", [x, np.array([3, 0, -1])], [x[[3, 0, -1], [3, 0, -1]]])
    case("slice_like int8", "slice_like(%0, %1)", [x, ints(2, 5)], [x[:2]])
    windows = np.lib.stride_tricks.sliding_window_view(u, 2, axis=2)
    case("sliding_window uint8", "sliding_window(%0, axis=2, window_shape=[2], strides=[1])", [u], [windows])
    flat = np.array([0, 5, 19], "int32")
    y = np.stack(np.unravel_index(flat, (4, 5))).astype("int32")
    case("unravel_index int32", "unravel_index(%0, %1)", [flat, np.array([4, 5], "int32")], [y])


def add_moves() -> None:
    x, u = int8s(2, 3, 4), ints(2, 4, 2, 2, low=0, high=255, dtype="uint8")
    case("split int8", "split(%0, indices_or_sections=2, axis=-1)", [x], np.split(x, 2, -1))
    case("squeeze int8", "squeeze(%0)", [x[:1, :, :1]], [x[0, :, 0]])
    case("repeat int8", "repeat(%0, repeats=2, axis=1)", [x], [x.repeat(2, 1)])
    case("reverse int8", "reverse(%0, axis=2)", [x], [x[:, :, ::-1]])
    case("reshape_like int8", "reshape_like(%0, %1)", [x, ints(4, 6)], [x.reshape(4, 6)])
    case("batch_flatten uint8", "nn.batch_flatten(%0)", [u], [u.reshape(2, 16)])
    case("reverse_reshape int8", "contrib_reverse_reshape(%0, newshape=[-1, 0])", [x], [x.reshape(6, 4)])
    wide = ints(3, 2, low=-300, high=300)
    case("cast_like uint8", "cast_like(%0, %1)", [wide, u], [wide.astype("uint8")])
    bits = np.array([0x3FC00000, 0x7F800000], "int32")
    case("reinterpret int32", 'reinterpret(%0, dtype="float32")', [bits], [np.array([1.5, np.inf], "float32")])
    grid = np.meshgrid(x[0, 0], x[0, 1, :2], indexing="ij")
    case("meshgrid int8", "meshgrid((%0, %1))", [x[0, 0], x[0, 1, :2]], grid)
    call = 'layout_transform(%0, src_layout="NCHW", dst_layout="NHWC")'
    case("layout_transform uint8", call, [u], [np.moveaxis(u, 1, -1)])
    y = np.full((3, 3, 10), -1, "int8")
    y[::2, :, ::3] = x
    case("dilate int8", "nn.dilate(%0, strides=[2, 1, 3], dilation_value=-1f)", [x], [y])
    y = np.full((5, 3), 102.53125000000001).astype("float16")  # rounded once
    y[::2, ::2] = x[0, :3, :2]
    call = "nn.dilate(%0, strides=[2, 2], dilation_value=102.53125000000001f64)"
    case("dilate float16", call, [x[0, :3, :2].astype("float16")], [y])
    widths = ((1, 0), (0, 2), (3, 1))
    call = 'nn.mirror_pad(%0, mode="REFLECT", pad_width=[[1, 0], [0, 2], [3, 1]])'
    case("mirror_pad int8", call, [x], [np.pad(x, widths, "reflect")])
    case("upsampling uint8", "nn.upsampling(%0, scale_h=2f, scale_w=1f)", [u], [u.repeat(2, 2)])
    y, lengths = x.copy(), np.array([3, 1], "int32")
    y[0] = x[0, ::-1]
    case("reverse_sequence int8", "reverse_sequence(%0, %1)", [x, lengths], [y])
    turned = u.reshape(2, 2, 2, 1, 2, 2).transpose(0, 3, 4, 1, 5, 2).reshape(2, 1, 4, 4)
    case("depth_to_space uint8", "nn.depth_to_space(%0, block_size=2)", [u], [turned])
    case("space_to_depth uint8", "nn.space_to_depth(%0, block_size=2)", [turned], [u])
    y = np.concatenate([x[:, :, ::2], x[:, :, 1::2]])
    call = "nn.space_to_batch_nd(%0, block_shape=[1, 2], paddings=[[0, 0], [0, 0]])"
    case("space_to_batch_nd int8", call, [x], [y])
    call = "nn.batch_to_space_nd(%0, block_shape=[1, 2], crops=[[0, 0], [0, 0]])"
    case("batch_to_space_nd int8", call, [y], [x])


def add_writes() -> None:
    x = int8s(2, 3, 4)
    y = x.copy()
    y[0, 2:], y[1] = 7, 7
    call = "sequence_mask(%0, %1, mask_value=7f, axis=1)"
    case("sequence_mask int8", call, [x, np.array([2, 0], "int32")], [y])
    case("trilu int8", "trilu(%0, %1)", [x, scalar(1, "int64")], [np.triu(x, 1)])
    y, diagonal = x.copy(), int8s(2, 3)
    y[:, range(3), range(3)] = diagonal
    case("matrix_set_diag int8", "matrix_set_diag(%0, %1)", [x, diagonal], [y])
    i, new = np.array([[0, 1, 1, 0]]), ints(1, 4, low=0, high=9)
    old = ints(2, 4)
    for reduction, join in {"add": np.add, "mul": np.multiply, "max": np.maximum}.items():
        y = old.copy()
        join.at(y, (i, np.arange(4)), new)
        call = f'scatter_elements(%0, %1, %2, axis=0, reduction="{reduction}")'
        case(f"scatter_elements int32 {reduction}", call, [old, i, new], [y])
        y, places = old.copy(), np.array([[1, 0, 1], [3, -4, 3]])
        join.at(y, tuple(places), new[0, :3])
        call = f'scatter_nd(%0, %1, %2, mode="{reduction}")'
        case(f"scatter_nd int32 {reduction}", call, [old, places, new[0, :3]], [y])
    y, v = x.copy(), int8s(1, 3, 2)
    y[1:, :, ::2] = v
    bounds = [np.array(b) for b in ([1, 0, 0], [2, 3, 4], [1, 1, 2])]
    case("strided_set int8", "strided_set(%0, %1, %2, %3, %4)", [x, v, *bounds], [y])
    case(
        "collapse_sum_to int32", "collapse_sum_to(%0, shape=[2, 1])", [old], [old.sum(1, keepdims=True, dtype="int32")]
    )
    y = x.sum((0, 1), dtype="int64").astype("int8")
    case("collapse_sum_like int8", "collapse_sum_like(%0, %1)", [x, int8s(4)], [y])


def add_networks() -> None:
    for rank in (1, 2, 3):
        x, w = int8s(1, 4, *(5, 4, 3)[:rank]), int8s(4, 2, *(2, 3, 2)[:rank])
        # Their products are exact in float32.
        floats = [x.astype("float32"), w.astype("float32")]
        for op, name, layouts in (("Conv", "", "OI"), ("ConvTranspose", "_transpose", "IO")):
            y = run_onnx(op, floats, group=2, strides=[2] * rank, pads=[1] * rank + [0] * rank).astype("int32")
            call = f"nn.conv{rank}d{name}(%0, %1, groups=2, strides={[2] * rank}, padding={[1] * rank + [0] * rank}"
            case(f"conv{rank}d{name} groups int8", f'{call}, out_dtype="int32")', [x, w], [y])
            letters = "DHW"[3 - rank :]
            call += f', data_layout="N{letters}C", kernel_layout="{letters}{layouts}"'
            turned = [np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-2, -1))]
            case(f"conv{rank}d{name} wraps", f"{call})", turned, [np.moveaxis(y, 1, -1).astype("int8")])
        pool = f"pool_size={[2] * rank}, strides={[2] * rank}"
        x = int8s(2, 3, *[4] * rank)
        windows = x.reshape(2, 3, *[2] * (2 * rank))
        axes = tuple(range(3, 3 + 2 * rank, 2))
        mean, most = np.trunc(windows.mean(axes)).astype("int8"), windows.max(axes)
        case(f"avg_pool{rank}d windows int8", f"nn.avg_pool{rank}d(%0, {pool})", [x], [mean])
        for name, y in {"avg": mean, "max": most}.items():
            call = f"nn.adaptive_{name}_pool{rank}d(%0, output_size={[2] * rank})"
            case(f"adaptive_{name}_pool{rank}d windows int8", call, [x], [y])
    case("global_max_pool2d int8", "nn.global_max_pool2d(%0)", [x[..., 0]], [x[..., 0].max((2, 3), keepdims=True)])
    a, b = int8s(2, 3, 4), int8s(1, 2, 4)
    y = a.astype("int32") @ b.transpose(0, 2, 1).astype("int32")
    case("batch_matmul int8", 'nn.batch_matmul(%0, %1, out_dtype="int32")', [a, b], [y])


def add_integer_cases() -> None:
    add_picks()
    add_moves()
    add_writes()
    add_networks()
