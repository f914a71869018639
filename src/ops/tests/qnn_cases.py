"""Cases of Relay's qnn ops, worked out in Python's integers and fractions; see make_op_cases.py.

onnxruntime has operators that do the same in floats: where it has one, its result is at most one step away.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from op_case_format import Numbers, case, error, run_onnx, scalar, type_text

# A scale or zero point: a number, or one for each index of an axis.
Steps = float | list[float]


def multiplier_of(source: float, target: float) -> Fraction:
    """The quotient of two float32 scales, as 31 bits and a power of two."""
    significand, exponent = math.frexp(float(np.float32(source)) / float(np.float32(target)))
    return Fraction(math.floor(Fraction(significand) * 2**31 + Fraction(1, 2)), 2**31) * Fraction(2) ** exponent


def rounded(value: Fraction, rounding: str = "UPWARD") -> int:
    """The whole number that is nearest: halves go up, or away from zero."""
    half = Fraction(1, 2)
    if rounding == "UPWARD":
        return math.floor(value + half)
    return math.floor(abs(value) + half) * (1 if value >= 0 else -1)


def cut(values: np.ndarray, dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([min(max(int(v), info.min), info.max) for v in values.ravel()], dtype).reshape(values.shape)


def spread(steps: Steps, shape: tuple[int, ...], axis: int) -> np.ndarray:
    """A scale or zero point for each element."""
    values = np.asarray(steps, "float64")
    if values.ndim == 1:
        values = values.reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))])
    return np.broadcast_to(values, shape)


def rescaled(x: np.ndarray, source: Steps, target: float, axis: int = -1, rounding: str = "UPWARD") -> np.ndarray:
    """Integers in steps of `source` as integers in steps of `target`, without bounds."""
    scales = spread(source, x.shape, axis)
    numbers = [
        rounded(int(v) * multiplier_of(s, target), rounding) for v, s in zip(x.ravel(), scales.ravel(), strict=True)
    ]
    return np.array(numbers, object).reshape(x.shape)


def less(x: np.ndarray, zero: Steps, axis: int = -1) -> np.ndarray:
    return x.astype("int64") - spread(zero, x.shape, axis).astype("int64")


def text_of(value: np.ndarray) -> str:
    """A constant in Relay's text form."""
    numbers = [f"{float(v)!r}" if value.dtype.kind == "f" else str(int(v)) for v in value.ravel()]
    if value.ndim == 0:
        return numbers[0] + ("f" if value.dtype.kind == "f" else "")
    return f"const({type_text(value)}, [{', '.join(numbers)}])"


def both(name: str, call: str, data: list[np.ndarray], steps: list[np.ndarray], y: np.ndarray) -> None:
    """The call `op(data, steps, attributes)`, "@" being its steps: as parameters of the program, and as constants."""
    places = [f"%{len(data) + k}" for k in range(len(steps))]
    case(name, call.replace("@", ", ".join(places)), data + steps, [y])
    case(f"{name}, constants", call.replace("@", ", ".join(text_of(s) for s in steps)), data, [y])


def steps_of(*values: Steps) -> list[np.ndarray]:
    """Scales and zero points by turns."""
    return [np.asarray(v, "float32" if k % 2 == 0 else "int32") for k, v in enumerate(values)]


def products_of(*values: Steps) -> list[np.ndarray]:
    """The two zero points and the two scales of a product."""
    return [np.asarray(v, "int32" if k < 2 else "float32") for k, v in enumerate(values)]


def is_near(ours: np.ndarray, theirs: np.ndarray, most: int = 1) -> bool:
    """Whether all integers are within that many steps of each other."""
    return bool(np.abs(ours.astype("int64") - theirs.astype("int64")).max() <= most)


def contrib(op: str, inputs: list[np.ndarray], **attrs: object) -> np.ndarray:
    return run_onnx(op, inputs, domain="com.microsoft", **attrs)


# ---- requantize


def requantized(
    x: np.ndarray, steps: tuple[Steps, Steps, float, int], dtype: str = "int8", axis: int = -1, rounding: str = "UPWARD"
) -> np.ndarray:
    source, zero, target, target_zero = steps
    return cut(rescaled(less(x, zero, axis), source, target, axis, rounding) + target_zero, dtype)


def requantized_in_floats(x: np.ndarray, steps: tuple[float, int, float, int], real: type, rounding: str) -> np.ndarray:
    source, zero, target, target_zero = steps
    factor = real(float(np.float32(source)) / float(np.float32(target)))
    sums = [real(int(v) - zero) * factor + real(target_zero) for v in x.ravel()]
    values = [rounded(Fraction(float(s)), rounding) for s in sums]
    return cut(np.array(values, object), "int8").reshape(x.shape)


def add_requantize_cases(numbers: Numbers) -> None:
    x = numbers.ints(2, 3, 5, low=-3000, high=3000)
    x[0, 0] = [1, -1, 3, -3, -5]
    for rounding in ("UPWARD", "TONEAREST"):
        call = f'qnn.requantize(%0, @, rounding="{rounding}"'
        for name, steps in {
            "half": (0.5, 0, 1.0, 0),
            "plain": (0.1, 7, 0.75, -3),
            "same": (0.3, 0, 0.3, 2),
            "wider": (3.0, -1, 0.4, 1),
            "small": (2.0**-40, 0, 1.0, 5),
        }.items():
            y = requantized(x, steps, rounding=rounding)
            both(f"qnn.requantize {name} {rounding}", f"{call})", [x], steps_of(*steps), y)
        each: tuple[Steps, Steps, float, int] = ([0.1, 0.7, 4.0], [0, 9, -300], 0.5, 3)
        y = requantized(x, each, "uint8", 1, rounding)
        both(f"qnn.requantize along an axis {rounding}", f'{call}, axis=1, out_dtype="uint8")', [x], steps_of(*each), y)
        for compute, real in (("float32", np.float32), ("float64", np.float64)):
            floats = {"half": (0.5, 0, 1.0, 0), "half and zero": (0.5, 0, 1.0, 3), "plain": (0.1, 7, 0.75, -3)}
            for name, few in floats.items():
                y = requantized_in_floats(x, few, real, rounding)
                both(
                    f"qnn.requantize {name} {rounding} {compute}",
                    f'{call}, compute_dtype="{compute}")',
                    [x],
                    steps_of(*few),
                    y,
                )
    whole: tuple[Steps, Steps, float, int] = (0.1, 7, 0.75, -3)
    for dtype in ("int8", "uint8", "int16"):
        bytes_ = numbers.ints(4, 6, low=np.iinfo(dtype).min, high=np.iinfo(dtype).max + 1, dtype=dtype)
        y = requantized(bytes_, whole, "int32")
        both(f"qnn.requantize of {dtype}", 'qnn.requantize(%0, @, out_dtype="int32")', [bytes_], steps_of(*whole), y)
    far = np.array([[2**40 + 5, -(2**40) - 5, 2**31 + 100, 700, -700]], "int64")
    y = requantized(far.astype("int32"), whole)
    both("qnn.requantize of int64", "qnn.requantize(%0, @)", [far], steps_of(*whole), y)
    one_zero: tuple[Steps, Steps, float, int] = (0.1, [1, 2, 3, 4, 5], 0.5, 0)
    y = requantized(x, one_zero, "int16")
    both("qnn.requantize zero points", 'qnn.requantize(%0, @, out_dtype="int16")', [x], steps_of(*one_zero), y)

    op, args = "qnn.requantize(%0, %1, %2, %3, %4)", [x, *steps_of(*whole)]

    def refused(name: str, message: str, changes: dict[int, np.ndarray], call: str = op) -> None:
        error(f"qnn.requantize {name}", call, [changes.get(i, a) for i, a in enumerate(args)], message)

    refused("data", "data must have dtype int8, uint8, int16, int32 or int64", {0: x.astype("float32")})
    refused("scale", "input_scale must have dtype float32", {1: scalar(1, "float64")})
    refused("zero", "input_zero_point must have dtype int32", {2: scalar(1, "int8")})
    refused("size", "input_scale must be a scalar or have 5 numbers", {1: np.ones(3, "float32")})
    refused("output", "output_scale must be a scalar, got", {3: np.ones(5, "float32")})
    refused("axis", "axis 3 is out of range", {1: np.ones(3, "float32")}, f"{op[:-1]}, axis=3)")
    refused(
        "rounding", "rounding is 'DOWN', expected one of None, UPWARD, TONEAREST", {}, f'{op[:-1]}, rounding="DOWN")'
    )
    refused("arithmetic", "compute_dtype is 'int8', expected one of", {}, f'{op[:-1]}, compute_dtype="int8")')
    refused("dtype", "out_dtype is int64, expected int8", {}, f'{op[:-1]}, out_dtype="int64")')
    message = "output_scale must be positive and finite, got 0"
    error("qnn.requantize by zero", "qnn.requantize(%0, 1f, 0, 0f, 0)", [x], message)
    call = "qnn.requantize(%0, 2147483648f, 0, 1f, 0)"
    error("qnn.requantize by 2^31", call, [x], "the scales give a factor of 2147483648, expected one below 2^31")
    call = 'qnn.requantize(%0, 4294967296f, 0, 1f, 0, compute_dtype="float64")'
    case("qnn.requantize by 2^32, in floats", call, [x], [cut(x.astype("int64") * 2**32, "int8")])


# ---- products


def convolved(x: np.ndarray, w: np.ndarray, stride: int, pad: int, groups: int = 1) -> np.ndarray:
    """2-D cross-correlation of integers."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, groups, 1), np.split(w, groups, 0), strict=True)
    return np.concatenate([np.einsum("nchwrs,kcrs->nkhw", a, b) for a, b in parts], 1)


def spread_out(x: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """The transpose of a 2-D cross-correlation: each element adds the kernel at its place."""
    n, _, h, width = x.shape
    size = [(s - 1) * stride + r for s, r in zip((h, width), w.shape[2:], strict=True)]
    y = np.zeros((n, w.shape[1], *size), "int64")
    for i, j in np.ndindex(h, width):
        at = np.s_[:, :, i * stride : i * stride + w.shape[2], j * stride : j * stride + w.shape[3]]
        y[at] += np.einsum("nc,ckrs->nkrs", x[:, :, i, j], w)
    return y


def add_product_cases(numbers: Numbers) -> None:
    ranges = {"int8": (-128, 128), "uint8": (0, 256)}
    for a, b in (("uint8", "int8"), ("int8", "int8"), ("uint8", "uint8")):
        x = numbers.ints(2, 4, 6, 7, low=ranges[a][0], high=ranges[a][1], dtype=a)
        w = numbers.ints(6, 4, 3, 3, low=ranges[b][0], high=ranges[b][1], dtype=b)
        y = convolved(less(x, 9), less(w, 5), 2, 1).astype("int32")
        call = "qnn.conv2d(%0, %1, @, strides=[2, 2], padding=[1, 1], kernel_size=[3, 3], channels=6)"
        both(f"qnn.conv2d {a} {b}", call, [x, w], products_of(9, 5, 0.5, 0.25), y)
        inputs = [x, scalar(0.5), scalar(9, a), w, scalar(0.25), scalar(5, b), scalar(40), scalar(3, a)]
        theirs = run_onnx("QLinearConv", inputs, strides=[2, 2], pads=[1, 1, 1, 1])
        assert is_near(requantized(y, (0.125, 0, 40.0, 3), a), theirs)
    zeros = [0, 1, -2, 3, 4, 9]
    y = convolved(less(x, 9), less(w, zeros, 0), 1, 0).astype("int32")
    steps = products_of(9, zeros, 0.5, [0.1] * 6)
    both("qnn.conv2d zero points", 'qnn.conv2d(%0, %1, @, out_dtype="int32")', [x, w], steps, y)
    last = [x.transpose(0, 2, 3, 1).copy(), w.transpose(2, 3, 1, 0).copy()]
    call = 'qnn.conv2d(%0, %1, @, data_layout="NHWC", kernel_layout="HWIO")'
    both("qnn.conv2d NHWC", call, last, steps, y.transpose(0, 2, 3, 1))
    y = convolved(less(x, 0), less(w[:4, :1], 0), 1, 1, 4).astype("int32")
    call = "qnn.conv2d(%0, %1, @, padding=[1, 1], groups=4)"
    both("qnn.conv2d groups", call, [x, w[:4, :1].copy()], products_of(0, 0, 0.5, 0.25), y)

    k = w.transpose(1, 0, 2, 3).copy()
    y = spread_out(less(x, 9), less(k, 5), 2).astype("int32")
    call = "qnn.conv2d_transpose(%0, %1, @, strides=[2, 2])"
    both("qnn.conv2d_transpose", call, [x, k], products_of(9, 5, 0.5, 0.25), y)

    m, n = (
        numbers.ints(2, 3, 8, low=-128, high=128, dtype="int8"),
        numbers.ints(2, 5, 8, low=-99, high=99, dtype="int8"),
    )
    y = (less(m, 3) @ less(n, -7).transpose(0, 2, 1)).astype("int32")
    both("qnn.batch_matmul", "qnn.batch_matmul(%0, %1, @)", [m, n], products_of(3, -7, 0.5, 0.25), y)
    inputs = [m, scalar(0.5), scalar(3, "int8"), n.transpose(0, 2, 1).copy(), scalar(0.25), scalar(-7, "int8")]
    theirs = run_onnx("QLinearMatMul", [*inputs, scalar(60), scalar(3, "int8")])
    assert is_near(requantized(y, (0.125, 0, 60.0, 3)), theirs)

    ones = products_of(0, 0, 1, 1)
    for op, left, right, weight in (
        ("conv2d", x, w, "kernel"),
        ("conv2d_transpose", x, k, "weight"),
        ("batch_matmul", m, n, "y"),
    ):
        args, call = [left, right, *ones], f"qnn.{op}(%0, %1, %2, %3, %4, %5)"

        def refused(
            name: str,
            message: str,
            changes: dict[int, np.ndarray],
            call: str = call,
            args: list[np.ndarray] = args,
            op: str = op,
        ) -> None:
            error(f"qnn.{op} {name}", call, [changes.get(i, a) for i, a in enumerate(args)], message)

        refused("data", "must have dtype int8 or uint8", {0: left.astype("int16")})
        refused("weight", f"{weight} must have dtype int8 or uint8", {1: right.astype("float32")})
        refused("zero", "zero_point must be a scalar, got", {2: np.zeros(2, "int32")})
        refused("scale", "scale must have dtype float32", {4: scalar(1, "float16")})
        refused("dtype", "out_dtype is int16, expected int32", {}, call[:-1] + ', out_dtype="int16")')
    error("qnn.conv2d channels", "qnn.conv2d(%0, %1, 0, 0, 1f, 1f)", [x, w[:, :3].copy()], "weight must have 4 input")
    message = "kernel_zero_point must be a scalar or have 6 numbers"
    error("qnn.conv2d sizes", "qnn.conv2d(%0, %1, 0, %2, 1f, 1f)", [x, w, np.zeros(4, "int32")], message)
    error(
        "qnn.batch_matmul sum", "qnn.batch_matmul(%0, %1, 0, 0, 1f, 1f)", [m, n[:, :, :5].copy()], "summed dimensions"
    )


# ---- sums, differences and products of elements

COMBINE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
}


def add_broadcast_cases(numbers: Numbers) -> None:
    for dtype, (low, high) in {"int8": (-128, 128), "uint8": (0, 256)}.items():
        a = numbers.ints(2, 3, 4, low=low, high=high, dtype=dtype)
        b = numbers.ints(3, 1, low=low, high=high, dtype=dtype)
        wide = {dtype: (0.3, 2, 0.07, 9, 0.2, 5), f"{dtype} alike": (0.5, 3, 0.5, 3, 0.5, 3)}
        for name, steps in wide.items():
            s1, z1, s2, z2, s3, z3 = steps
            left, right = rescaled(less(a, z1), s1, s3), rescaled(less(b, z2), s2, s3)
            for op, combine in COMBINE.items():
                y = cut(combine(left, right) + z3, dtype)
                both(f"qnn.{op} {name}", f"qnn.{op}(%0, %1, @)", [a, b], steps_of(*steps), y)
            product = less(a, z1) * less(b, z2)
            y = cut(rescaled(product, float(np.float32(s1) * np.float32(s2)), s3) + z3, dtype)
            both(f"qnn.mul {name}", "qnn.mul(%0, %1, @)", [a, b], steps_of(*steps), y)
            typed = [np.asarray(v, "float32" if k % 2 == 0 else dtype) for k, v in enumerate(steps)]
            inputs = [a, *typed[:2], b, *typed[2:]]
            assert is_near(y, contrib("QLinearMul", inputs))
            assert is_near(cut(left + right + z3, dtype), contrib("QLinearAdd", inputs))
    each, one, ones = [0.1, 0.2, 0.4], [4, 5, 6], [0.3, 0.2, 0.1]
    left, right = rescaled(less(a, one, 1), each, 0.5, 1), rescaled(less(b, one, 0), ones, 0.5, 0)
    attrs = "lhs_axis=1, rhs_axis=0"
    steps = steps_of(each, one, ones, one, 0.5, 1)
    for op, combine in COMBINE.items():
        both(f"qnn.{op} axes", f"qnn.{op}(%0, %1, @, {attrs})", [a, b], steps, cut(combine(left, right) + 1, "uint8"))
    product, scales = less(a, one, 1) * less(b, one, 0), (np.float32(each) * np.float32(ones)).astype("float64")
    y = cut(rescaled(product, list(scales), 0.5, 1) + 1, "uint8")
    both("qnn.mul axes", f"qnn.mul(%0, %1, @, {attrs})", [a, b], steps, y)

    args = [a, b, *steps_of(0.1, 0, 0.1, 0, 0.1, 0)]
    for op in ("add", "subtract", "mul"):
        call = f"qnn.{op}(%0, %1, %2, %3, %4, %5, %6, %7)"

        def refused(name: str, message: str, changes: dict[int, np.ndarray], call: str = call, op: str = op) -> None:
            error(f"qnn.{op} {name}", call, [changes.get(i, x) for i, x in enumerate(args)], message)

        refused("lhs", "lhs must have dtype int8 or uint8", {0: a.astype("int32")})
        refused("rhs", "rhs must have dtype uint8, got int8", {1: b.astype("int8")})
        refused("shapes", "cannot be broadcast", {1: b[:2].copy()})
        refused("scale", "lhs_scale must be a scalar or have 4 numbers", {2: np.ones(3, "float32")})
        refused("zero", "rhs_zero_point must have dtype int32", {5: scalar(0, "int8")})
        refused("output", "output_scale must be a scalar, got", {6: np.ones(4, "float32")})
        call = f"qnn.{op}(%0, %1, 65536f, 0, 65536f, 0, 0.000001f, 0)"
        error(f"qnn.{op} factor", call, [a, b], "expected one below 2^31")
    call = "qnn.mul(%0, %1, %2, 0, %3, 0, 1f, 0, lhs_axis=2, rhs_axis=0)"
    error("qnn.mul two axes", call, [a, b, np.ones(4, "float32"), np.ones(3, "float32")], "must be of one axis")
    call = "qnn.mul(%0, %1, 1f, 0, %2, 0, 1f, 0)"
    error("qnn.mul one number", call, [a, b, np.ones(1, "float32")], "rhs_scale has 1 number for an axis")


# ---- parts, pools and functions


def add_concatenate_cases(numbers: Numbers) -> None:
    a, b = numbers.ints(2, 3, low=0, high=256, dtype="uint8"), numbers.ints(2, 4, low=0, high=256, dtype="uint8")
    y = np.concatenate([requantized(a, (0.3, 5, 0.4, 7), "uint8"), requantized(b, (0.9, 8, 0.4, 7), "uint8")], 1)
    call = "qnn.concatenate((%0, %1), ({}, {}), ({}, {}), {}, {}, axis=1)"
    steps = [*(np.float32(s) for s in (0.3, 0.9)), *(np.int32(z) for z in (5, 8)), np.float32(0.4), np.int32(7)]
    arrays = [np.asarray(s) for s in steps]
    case("qnn.concatenate", call.format(*(f"%{k}" for k in range(2, 8))), [a, b, *arrays], [y])
    case("qnn.concatenate, constants", call.format(*(text_of(s) for s in arrays)), [a, b], [y])
    inputs = [scalar(0.4), scalar(7, "uint8"), a, scalar(0.3), scalar(5, "uint8"), b, scalar(0.9), scalar(8, "uint8")]
    assert is_near(y, contrib("QLinearConcat", inputs, axis=1))
    one = "qnn.concatenate((%0, %1), (1f, {}), (0, {}), {}, 0, axis={})"
    wide = a.astype("int32")
    error("qnn.concatenate data", one.format("1f", 0, "1f", 1), [wide, wide], "data must have dtype int8 or uint8")
    error("qnn.concatenate axis", one.format("1f", 0, "1f", 2), [a, b], "axis 2 is out of range")
    error("qnn.concatenate shapes", one.format("1f", 0, "1f", 0), [a, b], "axis 1 of item 1 is 4 and of item 0 is 3")
    first = "item 1 of input_scales must be positive and finite, got"
    error("qnn.concatenate by zero", one.format("0f", 0, "1f", 1), [a, b], f"{first} 0")
    error("qnn.concatenate below zero", one.format("-1f", 0, "1f", 1), [a, b], f"{first} -1")
    error("qnn.concatenate nan", one.format("nanf", 0, "1f", 1), [a, b], f"{first} nan")
    error("qnn.concatenate factor", one.format("4294967296f", 0, "1f", 1), [a, b], "expected one below 2^31")
    error("qnn.concatenate scale", one.format("%2", 0, "1f", 1), [a, b, np.ones(2, "float32")], "must be scalars of")
    error("qnn.concatenate zero", one.format("1f", "1f", "1f", 1), [a, b], "input_zero_points must be scalars of int32")
    error("qnn.concatenate output", one.format("1f", 0, "0f", 1), [a, b], "output_scale must be positive")
    few = "qnn.concatenate((%0, %1), (1f,), (0, 0), 1f, 0, axis=1)"
    error("qnn.concatenate count", few, [a, b], "input_scales must have a scalar for each of the 2 parts, got 1")


def add_pool_cases(numbers: Numbers) -> None:
    x = numbers.ints(1, 2, 6, 6, low=0, high=256, dtype="uint8")
    for name, steps in {"alike": (0.5, 3, 0.5, 3), "rescaled": (0.5, 3, 0.3, 9)}.items():
        source, zero, target, target_zero = steps
        sums = rescaled(less(x, zero), source, target) + target_zero
        windows = np.lib.stride_tricks.sliding_window_view(sums, (2, 3), axis=(2, 3))[:, :, ::2, ::3]
        y = cut(np.array([int(w.sum()) // 6 for w in windows.reshape(-1, 6)], object).reshape(1, 2, 3, 2), "uint8")
        call = "qnn.avg_pool2d(%0, @, pool_size=[2, 3], strides=[2, 3])"
        both(f"qnn.avg_pool2d {name}", call, [x], steps_of(*steps), y)
        typed = [np.asarray(v, "float32" if k % 2 == 0 else "uint8") for k, v in enumerate(steps)]
        assert is_near(y, contrib("QLinearAveragePool", [x, *typed], kernel_shape=[2, 3], strides=[2, 3]))
    padded = np.pad(x.astype("int64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 2), axis=(2, 3))[:, :, ::2, ::2]
    y = (windows.sum((4, 5)) // 4).astype("uint8")
    call = "qnn.avg_pool2d(%0, @, pool_size=[2, 2], strides=[2, 2], padding=[1, 1], count_include_pad=True)"
    both("qnn.avg_pool2d padded", call, [x], steps_of(0.5, 3, 0.5, 3), y)
    call = "qnn.avg_pool2d(%0, %1, 0, 1f, 0, pool_size=[2, 2])"
    error("qnn.avg_pool2d data", call, [x.astype("int32"), scalar(1)], "data must have dtype int8 or uint8")
    error("qnn.avg_pool2d scale", call, [x, np.ones(2, "float32")], "input_scale must be a scalar, got")
    call_far = call.replace("%1", "4294967296f")
    error("qnn.avg_pool2d factor", call_far, [x], "expected one below 2^31")
    error("qnn.avg_pool2d rank", call, [x[0], scalar(1)], "data must have 4 dimensions")
    error("qnn.avg_pool2d pool_size", call.replace("[2, 2]", "[0, 2]"), [x, scalar(1)], "pool_size")


def leaky(x: np.ndarray, alpha: float, steps: tuple[float, int, float, int]) -> np.ndarray:
    """As TVM has it: brought to the result's scale first; below the zero point, alpha and 1 - alpha are factors."""
    source, zero, target, target_zero = steps
    slope, rest = (Fraction(math.floor(Fraction(f) * 2**40) >> 9, 2**31) for f in (alpha, 1 - alpha))
    there = rescaled(less(x, zero), source, target) + target_zero
    bent = [
        q if v >= zero else rounded(int(q) * slope) + rounded(target_zero * rest)
        for v, q in zip(x.ravel(), there.ravel(), strict=True)
    ]
    return cut(np.array(bent, object), str(x.dtype)).reshape(x.shape)


FUNCTIONS: dict[str, tuple[Callable[[float], float], float]] = {
    "tanh": (math.tanh, 1 / 100),
    "exp": (math.exp, 1 / 7),
    "sqrt": (math.sqrt, 1 / 52),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 1 / 50),
    "erf": (math.erf, 1 / 100),
    "sigmoid": (lambda x: 1 / (1 + math.exp(-x)), 1 / 200),
    "hardswish": (lambda x: x * min(max(x + 3, 0), 6) / 6, 1 / 32),
    "log": (math.log, 1 / 40),
    "abs": (abs, 9 / 224),
}


def add_function_cases(numbers: Numbers) -> None:
    every = {"int8": np.arange(-128, 128).astype("int8"), "uint8": np.arange(256).astype("uint8")}
    for dtype, x in every.items():
        for alpha, steps in ((0.25, (0.5, 20, 0.5, 20)), (0.125, (0.5, 20, 0.3, 7))):
            call = f"qnn.leaky_relu(%0, @, alpha={alpha}f)"
            y = leaky(x, alpha, steps)
            both(f"qnn.leaky_relu {dtype} {alpha}", call, [x], steps_of(*steps), y)
            typed = [np.asarray(v, "float32" if k % 2 == 0 else dtype) for k, v in enumerate(steps)]
            assert is_near(y, contrib("QLinearLeakyRelu", [x, *typed], alpha=alpha))
    for name, (function, step) in FUNCTIONS.items():
        for dtype, x in every.items():
            # Roots and logarithms have numbers above 0 alone.
            zero = int(x[0]) - 1 if name in ("sqrt", "rsqrt", "log") else int(x[100])
            places = [function((int(v) - zero) * 0.03125) / float(np.float32(step)) for v in x]
            assert min(abs(p % 1 - 0.5) for p in places) > 1e-4, f"{name}: float32 may round otherwise"
            y = cut(np.array([round(p) - 3 for p in places], object), dtype)
            call = f"qnn.{name}(%0, @)"
            both(f"qnn.{name} {dtype}", call, [x], steps_of(0.03125, zero, step, -3), y)
    x = every["int8"]
    for name in ("leaky_relu", *FUNCTIONS):
        call = f"qnn.{name}(%0, %1, 0, 1f, %2)"
        zero = scalar(0, "int32")
        error(f"qnn.{name} x", call, [x.astype("int32"), scalar(1), zero], "x must have dtype int8 or uint8")
        error(f"qnn.{name} scale", call, [x, np.ones(3, "float32"), zero], "scale must be a scalar, got")
        error(f"qnn.{name} zero", call, [x, scalar(1), scalar(0, "int8")], "output_zero_point must have dtype int32")
    call = "qnn.leaky_relu(%0, 1f, 0, 1f, 0, alpha=1.5f)"
    error("qnn.leaky_relu alpha", call, [x], "alpha is 1.5, expected 0 to 1")
    error("qnn.leaky_relu factor", "qnn.leaky_relu(%0, 4294967296f, 0, 1f, 0)", [x], "expected one below 2^31")


# ---- products with packed matrices


def blocked(w: np.ndarray, rows: int, columns: int = 0) -> np.ndarray:
    """A matrix [n, k] as [n / rows, k, rows], or with columns as [n / rows, k / columns, rows, columns]."""
    n, k = w.shape
    if columns == 0:
        return w.reshape(n // rows, rows, k).transpose(0, 2, 1).copy()
    return w.reshape(n // rows, rows, k // columns, columns).transpose(0, 2, 1, 3).copy()


def add_dense_pack_cases(numbers: Numbers) -> None:
    for a, b in (("uint8", "int8"), ("int8", "uint8")):
        low, high = np.iinfo(a).min, np.iinfo(a).max
        x = numbers.ints(2, 3, 8, low=low, high=high + 1, dtype=a)
        w = numbers.ints(6, 8, low=0, high=100, dtype=b)
        zeros = [0, 1, -2, 3, 4, 9]
        for name, zero, scale in (("", 5, 0.25), (" zero points", zeros, [0.25] * 6)):
            y = (less(x, 9) @ less(w, zero, 0).T).astype("int32")
            packs = {"NC3n": blocked(w, 3), "NC": blocked(w, 2), "NC2n4c": blocked(w, 2, 4), "NC1n1c": blocked(w, 1, 1)}
            for layout, packed in packs.items():
                call = f'qnn.contrib_dense_pack(%0, %1, @, weight_layout="{layout}")'
                steps = products_of(9, zero, 0.5, scale)
                both(f"qnn.contrib_dense_pack {layout} {a} {b}{name}", call, [x, packed], steps, y)
    packed = blocked(w, 3)
    y = (x[0, 0].astype("int32") @ w.astype("int32").T).astype("int32")
    call = 'qnn.contrib_dense_pack(%0, %1, @, units=6, out_dtype="int32")'
    both("qnn.contrib_dense_pack row", call, [x[0, 0].copy(), packed], products_of(0, 0, 1, 1), y)

    args = [x, packed, *products_of(0, 0, 1, 1)]
    plain = "qnn.contrib_dense_pack(%0, %1, %2, %3, %4, %5)"

    def refused(name: str, message: str, changes: dict[int, np.ndarray], attrs: str = "") -> None:
        call = f"{plain[:-1]}{attrs})"
        error(f"qnn.contrib_dense_pack {name}", call, [changes.get(i, a) for i, a in enumerate(args)], message)

    refused("data", "data must have dtype int8 or uint8", {0: x.astype("int16")})
    refused("scalar", "data must be [..., k], got", {0: scalar(1, "int8")})
    refused("weight", "weight must have dtype int8 or uint8", {1: packed.astype("int32")})
    refused("rank", "weight must be [n / b, k, b] or [n / b, k / c, b, c]", {1: w})
    refused("layout", "weight_layout is NC8n, but weight", {}, ', weight_layout="NC8n"')
    refused("no layout", "is laid out as NC2n4c", {1: blocked(w, 2, 4)})
    refused("sum", "the summed dimensions differ", {1: blocked(w[:, :4], 3)})
    refused("units", "units is 5, but weight has 6 rows", {}, ", units=5")
    refused("dtype", "out_dtype is int16, expected int32", {}, ', out_dtype="int16"')
    refused("zero", "input_zero_point must be a scalar, got", {2: np.zeros(6, "int32")})
    refused("zeros", "kernel_zero_point must be a scalar or have 6 numbers", {3: np.zeros(3, "int32")})
    refused("scale", "input_scale must have dtype float32", {4: scalar(1, "float16")})
    call = "qnn.contrib_dense_pack(%0, %1, 0, 0, 1f, 0f)"
    error("qnn.contrib_dense_pack by zero", call, args[:2], "kernel_scale must be positive and finite, got 0")


# ---- softmax


def shiftmax(numbers: list[int], one: int) -> list[int]:
    """Shares of 128 as Relay's qnn.softmax has them: Shiftmax of I-ViT (arXiv 2207.01405, algorithm 1), for n = 8 bits
    of an exponential and m = 30 of the inverse; `one` steps make 1. Python's shifts round down, as Relay's do.
    """
    exponentials = []
    for number in numbers:
        x = number - max(numbers)
        power = x + (x >> 1) - (x >> 4)
        halvings, rest = -power // one, -(-power % one)
        exponential = (rest >> 1) + one
        exponentials.append(exponential << 8 - halvings if halvings <= 8 else 0)
    assert sum(exponentials) < 2**31
    inverse = 2**30 // sum(exponentials)
    return [inverse * e >> 23 for e in exponentials]


def softmax_of(x: np.ndarray, steps: tuple[float, int, float, int], axis: int) -> np.ndarray:
    source, zero, target, target_zero = steps
    one = math.floor(float(np.float32(1) / np.float32(source)) + 0.5)
    shares = np.apply_along_axis(lambda line: shiftmax([int(v) for v in line], one), axis, less(x, zero))
    return cut(rescaled(shares, 1 / 128, target) + target_zero, "int8")


def add_softmax_cases(numbers: Numbers) -> None:
    x = numbers.ints(2, 5, 7, low=-128, high=128, dtype="int8")
    for name, steps, axis in (
        ("plain", (0.05, 3, 1 / 256, -128), -1),
        ("first axis", (0.05, 3, 1 / 256, -128), 0),
        ("middle axis", (0.1, -7, 1 / 128, 0), 1),
        ("small scale", (0.001, 0, 1 / 256, -100), 2),
        ("large scale", (1.7, 0, 0.01, 1), -2),
        ("halved steps", (0.4, 0, 1 / 256, -128), -1),  # 2.5 steps make 1, which are taken as 3
    ):
        y = softmax_of(x, steps, axis)
        both(f"qnn.softmax {name}", f"qnn.softmax(%0, @, axis={axis})", [x], steps_of(*steps), y)
        real = np.exp((x.astype("float64") - steps[1]) * steps[0])
        real /= real.sum(axis, keepdims=True)
        # Where a step is longer than 1, or no whole number of steps makes 1, little is left of the method's precision.
        if name not in ("large scale", "halved steps"):
            assert np.abs((y - float(steps[3])) * steps[2] - real).max() < 0.04, name
    y = softmax_of(x[0, 0], (0.05, 3, 1 / 256, -128), 0)
    both("qnn.softmax line", "qnn.softmax(%0, @)", [x[0, 0].copy()], steps_of(0.05, 3, 1 / 256, -128), y)

    call = "qnn.softmax(%0, %1, 0, 0.0078125f, %2)"
    zero = scalar(0, "int32")
    error("qnn.softmax x", call, [x.astype("uint8"), scalar(1), zero], "x must have dtype int8, got")
    error("qnn.softmax scale", call, [x, np.ones(3, "float32"), zero], "scale must be a scalar, got")
    error("qnn.softmax zero", call, [x, scalar(1), scalar(0, "int8")], "output_zero_point must have dtype int32")
    error("qnn.softmax axis", call[:-1] + ", axis=3)", [x, scalar(1), zero], "axis 3 is out of range")
    error("qnn.softmax by 2.25", "qnn.softmax(%0, 2.25f, 0, 1f, 0)", [x], "scale is 2.25, expected at most 2")
    error("qnn.softmax by 0", "qnn.softmax(%0, 0f, 0, 1f, 0)", [x], "scale must be positive and finite, got 0")
    far = "qnn.softmax(%0, 1f, 0, 0.000000000001f, 0)"
    error("qnn.softmax factor", far, [x], "expected one below 2^31")


def add_qnn_cases() -> None:
    numbers = Numbers(37)
    add_requantize_cases(numbers)
    add_product_cases(numbers)
    add_broadcast_cases(numbers)
    add_concatenate_cases(numbers)
    add_pool_cases(numbers)
    add_function_cases(numbers)
    more = Numbers(43)
    add_dense_pack_cases(more)
    add_softmax_cases(more)
