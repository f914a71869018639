"""Cases of the ops of two tensors whose shapes broadcast, and of where and nn.bias_add; see make_op_cases.py.

The results of integers are worked out in Python's, which have no end, and wrapped; those of floats are numpy's.
"""

from collections.abc import Callable

import numpy as np
from op_case_format import Numbers, case, error

numbers = Numbers(12)
data, ints = numbers.data, numbers.ints

OfInts = Callable[[int, int], int]
OfFloats = Callable[[np.ndarray, np.ndarray], np.ndarray]


def wrapped(value: int, dtype: np.dtype) -> int:
    bits = dtype.itemsize * 8
    value %= 2**bits
    return value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def on_ints(function: OfInts, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    values = [wrapped(function(int(x), int(y)), a.dtype) for x, y in zip(a.ravel(), b.ravel(), strict=True)]
    return np.array(values, a.dtype).reshape(a.shape)


def quotient(a: int, b: int) -> int:
    """Toward zero; nothing by zero."""
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: int, b: int) -> int:
    return 0 if b == 0 else a - quotient(a, b) * b


def power(a: int, b: int) -> int:
    """A negative exponent truncates the quotient."""
    return a**b if b >= 0 else quotient(1, a**-b)


ARITHMETIC: dict[str, tuple[OfInts, OfFloats]] = {
    "add": (lambda a, b: a + b, np.add),
    "subtract": (lambda a, b: a - b, np.subtract),
    "multiply": (lambda a, b: a * b, np.multiply),
    "divide": (quotient, np.divide),
    "trunc_divide": (quotient, lambda a, b: np.trunc(a / b)),
    "floor_divide": (lambda a, b: 0 if b == 0 else a // b, lambda a, b: np.floor(a / b)),
    "mod": (remainder, np.fmod),
    "trunc_mod": (remainder, np.fmod),
    "floor_mod": (lambda a, b: 0 if b == 0 else a % b, np.mod),
    "maximum": (max, np.maximum),
    "minimum": (min, np.minimum),
}
COMPARISONS: dict[str, OfFloats] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}
LOGICALS: dict[str, OfFloats] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}

EDGES = {
    "int8": [-128, -127, -7, -1, 0, 1, 2, 3, 100, 127],
    "uint8": [0, 1, 2, 3, 7, 127, 128, 200, 255],
    "int32": [-(2**31), -65537, -7, -2, 0, 3, 65536, 2**31 - 1],
    "int64": [-(2**63), -(2**40), -1, 0, 5, 2**63 - 1],
    "uint64": [0, 1, 6, 2**63, 2**64 - 1],
}


def pairs(dtype: str) -> list[np.ndarray]:
    """All pairs of the numbers at the dtype's edges, as a column and a row."""
    edges = np.array(EDGES[dtype], dtype)
    return [edges[:, None], edges]


def add_refusals(name: str, wanted: str, wrong: np.ndarray) -> None:
    right = np.ones(wrong.shape, "int32")
    message = f"operands must be {wanted}, got Tensor[(2, 3), {wrong.dtype}]"
    error(f"{name} dtype", f"{name}(%0, %0)", [wrong], message)
    error(f"{name} dtypes", f"{name}(%0, %1)", [right, right.astype("int64")], "rhs must have dtype int32, got int64")


def add_shape_refusal(name: str, dtype: str) -> None:
    x, y = np.ones((2, 3), dtype), np.ones((2, 1, 4), dtype)
    error(f"{name} shapes", f"{name}(%0, %1)", [x, y], "shapes (2, 3) and (2, 1, 4) cannot be broadcast")


def add_arithmetic() -> None:
    specials = np.array([np.nan, np.inf, -np.inf, 0, 1.5, -2], "float32")
    for name, (of_ints, of_floats) in ARITHMETIC.items():
        a, b = data(2, 3, 1), data(3, 4, low=0.25)
        case(f"{name} broadcast", f"{name}(%0, %1)", [a, b], [of_floats(a, b)])
        column = specials[:, None]
        if name not in ("floor_mod", "floor_divide"):  # numpy has rules of its own for infinite quotients
            case(f"{name} specials", f"{name}(%0, %1)", [column, specials], [of_floats(column, specials)])
        a, b = data(2, 1).astype("float16"), data(1, 3, low=1).astype("float16")
        y = of_floats(a.astype("float32"), b.astype("float32")).astype("float16")
        case(f"{name} float16", f"{name}(%0, %1)", [a, b], [y])
        for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
            case(f"{name} {dtype}", f"{name}(%0, %1)", pairs(dtype), [on_ints(of_ints, *pairs(dtype))])
        add_shape_refusal(name, "float32")
        if name not in ("maximum", "minimum"):
            add_refusals(name, "numbers", data(2, 3) > 0)
    b = np.array([False, True])
    for name, y in {"maximum": b[:, None] | b, "minimum": b[:, None] & b}.items():
        case(f"{name} bool", f"{name}(%0, %1)", [b[:, None], b], [y])


def add_power() -> None:
    a, b = data(3, 1, low=0.125), data(4)
    case("power", "power(%0, %1)", [a, b], [np.power(a.astype("float64"), b).astype("float32")], 2e-6)
    a, b = np.array([[-2], [-0.5], [0], [np.inf], [1]], "float64"), np.array([2, -1, 0.5, 0, 3])
    case("power float64", "power(%0, %1)", [a, b], [np.power(a, b)], 1e-13)
    for dtype in ("int8", "int32", "uint8"):
        a = np.array(EDGES[dtype], dtype)[:, None]
        b = np.array([0, 1, 2, 5, 9] if dtype[0] == "u" else [-3, -2, -1, 0, 1, 2, 5, 9], dtype)
        a = a[a[:, 0] != 0]  # zero has no negative power
        case(f"power {dtype}", "power(%0, %1)", [a, b], [on_ints(power, a, b)])
    add_shape_refusal("power", "float32")
    add_refusals("power", "numbers", data(2, 3) > 0)


def add_comparisons() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1.5], "float32")
    b = np.array([False, True])
    for name, function in COMPARISONS.items():
        for dtype, (left, right) in {
            "float32": [x[:, None], x],
            "int32": [ints(3, 4), ints()],
            "uint64": pairs("uint64"),
            "bool": [b[:, None], b],
        }.items():
            case(f"{name} {dtype}", f"{name}(%0, %1)", [left, right], [function(left, right)])
        add_shape_refusal(name, "float32")
        error(f"{name} dtypes", f"{name}(%0, %1)", [x, b], "rhs must have dtype float32, got bool")


def add_bits() -> None:
    b = np.array([False, True])
    for word, function in LOGICALS.items():
        for name in (f"logical_{word}", f"bitwise_{word}"):
            case(f"{name} bool", f"{name}(%0, %1)", [b[:, None], b], [function(b[:, None], b)])
            add_shape_refusal(name, "bool")
        error(f"logical_{word} dtype", f"logical_{word}(%0, %0)", [ints(2)], "operands must be bool")
        error(f"bitwise_{word} dtype", f"bitwise_{word}(%0, %0)", [data(2)], "operands must be integers or bool")
        for dtype in ("int8", "uint8", "int32", "int64"):
            left, right = pairs(dtype)
            case(f"bitwise_{word} {dtype}", f"bitwise_{word}(%0, %1)", [left, right], [function(left, right)])
    for dtype in ("int8", "uint8", "int32", "uint64"):
        bits = np.dtype(dtype).itemsize * 8
        counts = np.array([0, 1, 5, bits - 1, bits, 120] + ([-1, -100] if dtype[0] == "i" else []), dtype)
        values = np.array(EDGES[dtype], dtype)[:, None]
        left = on_ints(lambda a, n, bits=bits: a << n if 0 <= n < bits else 0, values, counts)
        right = on_ints(lambda a, n, bits=bits: a >> n if 0 <= n < bits else -(a < 0), values, counts)
        case(f"left_shift {dtype}", "left_shift(%0, %1)", [values, counts], [left])
        case(f"right_shift {dtype}", "right_shift(%0, %1)", [values, counts], [right])
    for name in ("left_shift", "right_shift"):
        add_refusals(name, "integers", data(2, 3))
        add_shape_refusal(name, "int32")


def add_where() -> None:
    c, x, y = data(2, 1, 4) > 0, data(3, 1), data(4)
    case("where", "where(%0, %1, %2)", [c, x, y], [np.where(c, x, y)])
    c, x, y = data() > 0, ints(2, 3, dtype="int8"), ints(2, 1, dtype="int8")
    case("where int8", "where(%0, %1, %2)", [c, x, y], [np.where(c, x, y)])
    for dtype in ("int32", "uint8", "float32", "float16"):  # numbers other than 0 count as true
        number = np.array([[2, 0, -1], [0, 7, 1]]).astype(dtype)
        case(f"where {dtype} condition", "where(%0, %1, %2)", [number, x, y], [np.where(number != 0, x, y)])
    nan = np.array([[np.nan, -0.0, 1e-45]], "float32")
    case("where NaN condition", "where(%0, %1, %2)", [nan, x, y], [np.where(nan != 0, x, y)])
    error("where dtypes", "where(%0, %1, %2)", [c, x, data(3)], "y must have dtype int8, got float32")
    for dtype in ("float32", "int32", "float16"):
        x = ints(2, 3, 4, low=-9, high=9, dtype=dtype)
        for axis in (1, -1):
            b = ints(x.shape[axis], low=-9, high=9, dtype=dtype)
            y = x + (b[:, None] if axis == 1 else b)
            case(f"bias_add {dtype} {axis}", f"nn.bias_add(%0, %1, axis={axis})", [x, b], [y])
    error("bias_add shape", "nn.bias_add(%0, %1)", [x, b], "bias must have shape (3), axis 1 of data")
    error("bias_add axis", "nn.bias_add(%0, %1, axis=3)", [x, b], "axis 3 is out of range")


def add_broadcast_cases() -> None:
    with np.errstate(all="ignore"):
        add_arithmetic()
        add_power()
        add_comparisons()
        add_bits()
        add_where()
