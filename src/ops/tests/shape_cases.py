"""Cases of the ops that move elements or make them of nothing; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, error, scalar

numbers = Numbers(14)
data, ints = numbers.data, numbers.ints


def text(values: object) -> str:
    """A shape, or a list of shapes, in the text form."""
    return str(values).replace("(", "[").replace(")", "]").replace(",]", "]")


def add_reshapes() -> None:
    x = data(2, 3, 4)
    for newshape, shape in (
        ((6, 4), (6, 4)),
        ((), ()),
        ((-1,), (24,)),
        ((0, -1), (2, 12)),
        ((-3, 0), (6, 4)),
        ((-2,), (2, 3, 4)),
        ((0, 0, -4, 2, -1), (2, 3, 2, 2)),
    ):
        source = x if shape else x[:1, :1, :1]
        call = f"reshape(%0, newshape={text(newshape)})"
        case(f"reshape {newshape}", call, [source], [source.reshape(shape)])
    none = np.zeros((0, 3), "int8")
    case("reshape of none", "reshape(%0, newshape=[3, 0], allowzero=True)", [none], [none.reshape(3, 0)])
    error("reshape", "reshape(%0, newshape=[5, -1])", [x], "cannot be reshaped to")
    error("reshape twice", "reshape(%0, newshape=[-1, -1])", [x], "only one size may be -1")
    case("reshape_like", "reshape_like(%0, %1)", [x, ints(6, 4)], [x.reshape(6, 4)])
    count = np.arange(24, dtype="int32")
    for name, call, source, like, shape in (
        ("part", "lhs_begin=1, rhs_begin=1", (2, 12), (7, 3, 4), (2, 3, 4)),
        ("from the end", "lhs_begin=-2, lhs_end=-1, rhs_begin=0, rhs_end=2", (3, 8, 1), (2, 4, 5), (3, 2, 4, 1)),
    ):
        arrays = [count.reshape(source), np.zeros(like, "int8")]
        case(f"reshape_like {name}", f"reshape_like(%0, %1, {call})", arrays, [count.reshape(shape)])
    error("reshape_like", "reshape_like(%0, %1)", [x, ints(5)], "the numbers of elements differ")
    like = np.zeros((6, 4), "int32")
    error("reshape_like begin", "reshape_like(%0, %1, lhs_begin=5)", [x, like], "lhs_begin is 5, expected -3 to 3")
    error("reshape_like end", "reshape_like(%0, %1, lhs_begin=2, lhs_end=1)", [x, like], "after lhs_end")
    case("batch_flatten", "nn.batch_flatten(%0)", [x], [x.reshape(2, 12)])
    error("batch_flatten", "nn.batch_flatten(%0)", [scalar(1)], "a scalar has no batch axis")


def add_axes() -> None:
    x = data(2, 1, 3, 1)
    for axes in ((), (0, 2, 1, 3), (-1, 0, 2, 1)):
        case(f"transpose {axes}", f"transpose(%0, axes={text(axes)})", [x], [x.transpose(axes or None)])
    i = ints(2, 3, dtype="int8")
    case("transpose int8", "transpose(%0)", [i], [i.T])
    error("transpose axes", "transpose(%0, axes=[0, 1, 2])", [x], "axes has 3 entries for a tensor of 4 dimensions")
    error("transpose twice", "transpose(%0, axes=[0, 1, 1, -1])", [x], "axes names axis 1 twice")
    for axis in ((), (1,), (-1, 1)):
        case(f"squeeze {axis}", f"squeeze(%0, axis={text(axis)})", [x], [np.squeeze(x, axis)])
    error("squeeze", "squeeze(%0, axis=[2])", [x], "axis 2 of Tensor[(2, 1, 3, 1), float32] has size 3, expected 1")
    for axis, count, shape in ((0, 1, (1, 2, 3)), (-1, 2, (2, 3, 1, 1)), (1, 1, (2, 1, 3)), (2, 0, (2, 3))):
        call = f"expand_dims(%0, axis={axis}, num_newaxis={count})"
        case(f"expand_dims {axis} {count}", call, [i], [i.reshape(shape)])
    error("expand_dims", "expand_dims(%0, axis=3)", [i], "axis 3 is out of range")
    for axis in (0, 1, -1):
        case(f"reverse {axis}", f"reverse(%0, axis={axis})", [x[:, 0]], [np.flip(x[:, 0], axis)])
    error("reverse", "reverse(%0, axis=-3)", [i], "axis -3 is out of range")


def add_joins() -> None:
    a, b, c = data(2, 3), data(2, 1), data(2, 4)
    case("concatenate 1", "concatenate((%0, %1, %2), axis=1)", [a, b, c], [np.concatenate([a, b, c], 1)])
    case("concatenate -2", "concatenate((%0, %1), axis=-2)", [a, a[:1]], [np.concatenate([a, a[:1]])])
    i = ints(3, dtype="uint8", low=0)
    case("concatenate one", "concatenate((%0,))", [i], [i])
    error("concatenate", "concatenate((%0, %1))", [a, b], "axis 1 of item 1 is 1 and of item 0 is 3")
    error("concatenate dtypes", "concatenate((%0, %1))", [a, i], "item 1 must have dtype float32, got uint8")
    for axis in (0, 1, -1):
        case(f"stack {axis}", f"stack((%0, %1), axis={axis})", [a, a + 1], [np.stack([a, a + 1], axis)])
    case("stack scalars", "stack((%0, %0, %0))", [scalar(3, "int64")], [np.full(3, 3, "int64")])
    error("stack", "stack((%0, %1))", [a, b], "axis 1 of item 1 is 1 and of item 0 is 3")
    x = data(2, 6, 2)
    for axis, parts in ((1, 3), (-2, 6), (0, 1), (1, [1, 4]), (1, [0, 2, 2])):
        call = f"split(%0, indices_or_sections={parts}, axis={axis})"
        case(f"split {axis} {parts}", call, [x], np.split(x, parts, axis))
    error("split", "split(%0, indices_or_sections=4, axis=1)", [x], "cannot be split into 4 equal parts")
    error("split positions", "split(%0, indices_or_sections=[3, 2], axis=1)", [x], "the positions must not decrease")


def add_repeats() -> None:
    a, i = data(3, 1), ints(3, dtype="int8")
    for x, shape in ((a, (2, 3, 4)), (i, (2, 3)), (a, (3, 1))):
        y = np.broadcast_to(x, shape)
        case(f"broadcast_to {x.ndim} {shape}", f"broadcast_to(%0, shape={text(shape)})", [x], [y])
        case(f"broadcast_to_like {x.ndim} {shape}", "broadcast_to_like(%0, %1)", [x, data(*shape)], [y])
    error("broadcast_to", "broadcast_to(%0, shape=[2, 4])", [a], "cannot be broadcast to (2, 4): axis 0 is 3")
    error("broadcast_to rank", "broadcast_to(%0, shape=[3])", [a], "has more dimensions than (3)")
    error("broadcast_to_like", "broadcast_to_like(%0, %1)", [a, data(2, 4)], "axis 0 is 3")
    x = data(2, 3)
    for reps in ((2,), (2, 1), (1, 2, 3), (0, 1)):
        case(f"tile {reps}", f"tile(%0, reps={text(reps)})", [x], [np.tile(x, reps)])
    case("tile int8", "tile(%0, reps=[3])", [i], [np.tile(i, 3)])
    error("tile", "tile(%0, reps=[-1])", [x], "reps has the negative count -1")
    for count, axis in ((2, 0), (3, -1), (0, 1)):
        case(f"repeat {count} {axis}", f"repeat(%0, repeats={count}, axis={axis})", [x], [np.repeat(x, count, axis)])
    error("repeat", "repeat(%0, repeats=-2)", [x], "repeats is -2, expected at least 0")


def add_slices() -> None:
    x = data(5, 4, 6)
    for words, y in (
        ("begin=[1], end=[4]", x[1:4]),
        ("begin=[0, 3], end=[5, -100], strides=[2, -1]", x[::2, ::-1]),
        ("begin=[-2, 0], end=[100, -1]", x[-2:, :-1]),
        ("begin=[1, 0], end=[3, 5], strides=[1, 2], axes=[-1, 0]", x[0:5:2, :, 1:3]),
        ('begin=[1, 0, 2], end=[2, -1, 3], slice_mode="size"', x[1:3, :, 2:5]),
        ("begin=[3], end=[1]", x[3:1]),
    ):
        case(f"strided_slice {words}", f"strided_slice(%0, {words})", [x], [y])
    i = ints(7, dtype="int8")
    case("strided_slice int8", "strided_slice(%0, begin=[-1], end=[-8], strides=[-3])", [i], [i[::-3]])
    error("strided_slice stride", "strided_slice(%0, begin=[0], end=[1], strides=[0])", [x], "stride of axis 0 is 0")
    error("strided_slice entries", "strided_slice(%0, begin=[0, 1], end=[1])", [x], "have 2, 1 and 2 entries")


def add_pads() -> None:
    x = data(2, 3, 4)
    fill = scalar(1.5)
    widths = ((0, 0), (1, 2), (0, 3))
    for mode, rest in {"constant": {"constant_values": 1.5}, "edge": {}, "reflect": {}}.items():
        call = f'nn.pad(%0, %1, pad_width={text(widths)}, pad_mode="{mode}")'
        case(f"pad {mode}", call, [x, fill], [np.pad(x, widths, mode, **rest)])
    call = "nn.pad(%0, %1, pad_width=[[-1, 1], [0, -2], [1, 0]])"
    y = np.pad(x[1:, :1], ((0, 1), (0, 0), (1, 0)), constant_values=1.5)
    case("pad crops", call, [x, fill], [y])
    widths = ((0, -1), (-1, 2), (3, -5))
    for mode in ("edge", "reflect"):
        call = f'nn.pad(%0, %1, pad_width={text(widths)}, pad_mode="{mode}")'
        y = np.pad(x, [[max(0, side) for side in pair] for pair in widths], mode)[:-1, 1:, :-5]
        case(f"pad {mode} crops", call, [x, fill], [y])
    i = ints(3, dtype="int8")
    y = np.pad(i, (2, 1), constant_values=7)
    for dtype, value in {"int8": 7, "float32": 7.75}.items():  # cast to the data's dtype
        case(f"pad int8 by {dtype}", "nn.pad(%0, %1, pad_width=[[2, 1]])", [i, scalar(value, dtype)], [y])
    error("pad pairs", "nn.pad(%0, %1, pad_width=[[1, 1]])", [x, fill], "pad_width has 1 pairs for Tensor[(2, 3, 4)")
    call = 'nn.pad(%0, %1, pad_width=[[0, 0], [3, 0], [0, 0]], pad_mode="reflect")'
    error("pad reflect", call, [x, fill], "axis 1 has 3 elements and cannot be padded by 3 from itself")
    for mode in ("SYMMETRIC", "REFLECT"):
        widths = ((0, 1), (2, 1), (0, 3))
        y = np.pad(x, widths, mode.lower())
        case(f"mirror_pad {mode}", f'nn.mirror_pad(%0, mode="{mode}", pad_width={text(widths)})', [x], [y])
    error("mirror_pad", 'nn.mirror_pad(%0, mode="EDGE", pad_width=[])', [x], "expected SYMMETRIC or REFLECT")


def add_fills() -> None:
    for dtype, value in {"float32": 1.5, "int8": -3, "bool": 1}.items():
        fill, like = scalar(value, dtype), np.zeros((2, 1, 3), dtype)
        y = np.full((2, 3), value, dtype)
        case(f"full {dtype}", f'full(%0, shape=[2, 3], dtype="{dtype}")', [fill], [y])
        case(f"full_like {dtype}", "full_like(%0, %1)", [like, fill], [np.full_like(like, value)])
        case(f"zeros {dtype}", f'zeros(shape=[3], dtype="{dtype}")', [], [np.zeros(3, dtype)])
        case(f"ones {dtype}", f'ones(shape=[2, 2], dtype="{dtype}")', [], [np.ones((2, 2), dtype)])
    case("full scalar", "full(%0, shape=[])", [scalar(2)], [scalar(2)])
    case("zeros of nothing", "zeros(shape=[0, 2])", [], [np.zeros((0, 2), "float32")])
    error("full", "full(%0, shape=[2])", [data(1)], "fill_value must be a scalar, got Tensor[(1), float32]")
    error("full_like", "full_like(%0, %1)", [data(2), scalar(1, "int8")], "fill_value must have dtype float32")
    for name in ("zeros", "ones"):
        error(name, f"{name}(shape=[2, -1])", [], "shape has a negative size: (2, -1)")
    for dtype, (start, stop, step) in {
        "float32": ("-1f", "2f", "0.75f"),
        "int32": ("7", "-3", "-4"),
        "int64": ("0i64", "5i64", "1i64"),
    }.items():
        y = np.arange(*(float(v.removesuffix("i64").removesuffix("f")) for v in (start, stop, step))).astype(dtype)
        case(f"arange {dtype}", f'arange({start}, {stop}, {step}, dtype="{dtype}")', [], [y])
    error("arange", 'arange(0, 5, 0, dtype="int32")', [], "step is 0")
    x = data(2, 0, 3)
    for dtype in ("int64", "int32", "float32"):
        shape, size = np.array(x.shape, dtype), np.array(x.size, dtype)
        case(f"shape_of {dtype}", f'shape_of(%0, dtype="{dtype}")', [x], [shape])
        case(f"ndarray_size {dtype}", f'ndarray_size(%0, dtype="{dtype}")', [x], [size])
    case("ndarray_size of 24", "ndarray_size(%0)", [ints(2, 3, 4)], [np.int32(24)])
    for name in ("shape_of", "ndarray_size"):
        error(name, f'{name}(%0, dtype="bool")', [x], "dtype must be of numbers, got bool")
    for x in (ints(3, 4), data(5) > 0, data(2, 2)):
        case(f"argwhere {x.dtype}", "argwhere(%0)", [x], [np.argwhere(x).astype("int32")])
    error("argwhere", "argwhere(%0, %0)", [x], "takes 1 argument")


FOO_NODE = "CgF4EgF5IgNGb28="  # the NodeProto y = Foo(x), in base64


def add_storages() -> None:
    """Programs after destination passing: what they give is what their views hold."""
    x = data(2, 3)
    flat = x.ravel().view("uint8")
    view = 'memory.view({}, byte_offset={}, shape={}, dtype="float32")'.format
    case("memory.view", view("%0", 8, "[2, 2]"), [x], [x.ravel()[2:].reshape(2, 2)])
    case("memory.view bytes", 'memory.view(%0, byte_offset=4, shape=[4], dtype="uint8")', [x], [flat[4:8]])
    error("memory.view", view("%0", 8, "[5]"), [x], "20 bytes at offset 8 do not lie within")
    extern = 'extern.onnx((%0,), node="", op="Foo", opset=1, results=["{}"])'.format
    error("extern.onnx", extern("float32[1"), [x], "'float32[1' is not a type of a result")
    lie = 'extern.onnx(({},), node="{}", op="{}", opset={}, results=["float32[1]"])'.format
    for name, program, message in (
        ("no base64", lie("%0", "!", "Foo", 1), "its attribute node is not the base64 of a NodeProto: "),
        ("no message", lie("%0", "/w==", "Foo", 1), "a NodeProto: the bytes are not such a message"),
        (
            "another operator",
            lie("%0", FOO_NODE, "Bar", 1),
            "its attribute op is 'Bar', and its node is of the operator 'Foo'",
        ),
        ("opset", lie("%0", FOO_NODE, "Foo", 0), "its attribute opset is 0; versions begin at 1"),
        ("outputs", lie("%0", "CgF4IgNGb28=", "Foo", 1), "it lists 1 results, and its node has 0 outputs"),
        ("inputs", lie("%0, %0", FOO_NODE, "Foo", 1), "it has 2 operands, and its node 1 inputs that are not left out"),
    ):
        error(f"extern.onnx {name}", program, [x], message)
    error("memory.view offset", view("%0", 6, "[2]"), [x], "offset 6 is not a multiple of float32's size")
    storage = "let %s = memory.alloc_storage(size=64); "
    copy = f"{storage}let %v = {view('%s', 32, '[2, 3]')}; let %c = memory.copy(%0, %v); "
    case("memory.copy", f"{copy}%v", [x], [x])
    error("memory.copy", "memory.copy(%0, %1)", [x, x[0]], "is copied to a Tensor[(3), float32]")
    case("memory.kill", f"{copy}let %k = memory.kill(%s); 7", [x], [np.int32(7)])
    error("memory.kill", "memory.kill(%0, %0)", [x], "got 2")
    error("memory.alloc_storage", "memory.alloc_storage(size=8, alignment=24)", [], "alignment must be a power of 2")
    function = "let %f = fn (%a: T, %b: T) { (add(%a, %b), negative(%b)) }; ".replace("T", "Tensor[(2, 3), float32]")
    places = f"let %t = {view('%s', 0, '[2, 3]')}; let %u = {view('%s', 32, '[2, 3]')}; "
    call = f"{storage}{function}{places}let %c = call_dps(%f, (%0, %1), (%t, %u)); (%t, %u)"
    y = data(2, 3)
    case("call_dps", call, [x, y], [x + y, -y])
    error("call_dps", "call_dps(%0, (%0,), (%0,))", [x], "the callee must be a function")


def add_shape_cases() -> None:
    add_reshapes()
    add_axes()
    add_joins()
    add_repeats()
    add_slices()
    add_pads()
    add_fills()
    add_storages()
