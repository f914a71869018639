"""Cases of the ops that take each element by itself; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import Numbers, case, error, scalar
from scipy import special

numbers = Numbers(11)
data, ints = numbers.data, numbers.ints

Function = Callable[[np.ndarray], np.ndarray]

# numpy's or scipy's function in float64, and where its arguments lie
FUNCTIONS: dict[str, tuple[Function, float, float]] = {
    "exp": (np.exp, -9, 9),
    "log": (np.log, 0, 40),
    "log2": (np.log2, 0, 40),
    "log10": (np.log10, 0, 40),
    "sqrt": (np.sqrt, 0, 40),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.125, 40),
    "sigmoid": (special.expit, -20, 20),
    "erf": (special.erf, -4, 4),
    "sin": (np.sin, -9, 9),
    "cos": (np.cos, -9, 9),
    "tan": (np.tan, -1.5, 1.5),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -9, 9),
    "sinh": (np.sinh, -5, 5),
    "cosh": (np.cosh, -5, 5),
    "tanh": (np.tanh, -5, 5),
    "asinh": (np.arcsinh, -9, 9),
    "acosh": (np.arccosh, 1, 40),
    "atanh": (np.arctanh, -0.875, 0.875),
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1, -1], "float32")
TOLERANCES = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-13}


def rounded_away(x: np.ndarray) -> np.ndarray:
    """The nearest integers, halves away from zero; numpy's own function takes halves to even."""
    whole = np.floor(np.abs(x))
    return np.copysign(whole + (np.abs(x) - whole >= 0.5), x).astype(x.dtype)


# Functions that keep a number's dtype, for floats and integers.
ROUNDINGS: dict[str, Function] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": rounded_away,
    "nearbyint": np.round,
}
SIGNS: dict[str, Function] = {
    "abs": np.abs,
    "negative": np.negative,
    "sign": np.sign,
    "nn.relu": lambda x: np.maximum(x, x.dtype.type(0)),
}
PREDICATES: dict[str, Function] = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}


def halves(bits: int) -> np.ndarray:
    """Halves and their neighbours among the floats whose significands have that many bits."""
    top = 2.0 ** (bits - 1)  # the least number from which on all are whole
    x = np.array([0.5, 1.5, 2.5, 0.5 - 2.0 ** (-bits - 1), top - 1.5, top - 0.5, top + 1])
    return np.concatenate([x, -x])


def add_halves() -> None:
    for name, function in (("round", rounded_away), ("nearbyint", np.round)):
        for dtype, bits in (("float16", 11), ("float32", 24), ("float64", 53)):
            x = halves(bits).astype(dtype)
            case(f"{name} halves of {dtype}", f"{name}(%0)", [x], [function(x)])
        x = halves(8).astype("float32")
        call = f'cast({name}(cast(%0, dtype="bfloat16")), dtype="float32")'
        case(f"{name} halves of bfloat16", call, [x], [function(x)])


def add_functions() -> None:
    for name, (function, low, high) in FUNCTIONS.items():
        inputs = [
            np.concatenate([data(8, low=low, high=high), SPECIAL]),
            data(2, 1, 4, low=low, high=high).astype("float64"),
            data(low=low, high=high).astype("float16"),
        ]
        for x in inputs:
            y = function(x.astype("float64")).astype(x.dtype)
            case(f"{name} {x.dtype}", f"{name}(%0)", [x], [y], TOLERANCES[str(x.dtype)])
        error(name, f"{name}(%0)", [ints(3)], "data must be floating point, got Tensor[(3), int32]")


def add_numbers() -> None:
    halves = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.625, -2.375, 2.0**30 + 128], "float32")
    least = np.array([-128, -127, -1, 0, 1, 127], "int8")
    for name, function in {**ROUNDINGS, **SIGNS}.items():
        case(f"{name} float32", f"{name}(%0)", [halves], [function(halves)])
        case(f"{name} float16", f"{name}(%0)", [halves[:8].astype("float16")], [function(halves[:8].astype("float16"))])
        specials = SPECIAL.astype("float64")
        case(f"{name} specials", f"{name}(%0)", [specials], [function(specials)])
        case(f"{name} int8", f"{name}(%0)", [least], [function(least)])
        error(name, f"{name}(%0)", [halves > 0], "data must be numbers, got Tensor[(9), bool]")
    u = least.view("uint8")
    for name, y in {"floor": u, "abs": u, "sign": np.sign(u), "nn.relu": u}.items():
        case(f"{name} uint8", f"{name}(%0)", [u], [y])


def add_predicates() -> None:
    for name, function in PREDICATES.items():
        for dtype in ("float32", "float64"):
            x = SPECIAL.astype(dtype)
            case(f"{name} {dtype}", f"{name}(%0)", [x], [function(x)])
        case(f"{name} int16", f"{name}(%0)", [np.array([-5, 0, 7], "int16")], [function(np.array([-5, 0, 7], "int16"))])
        error(name, f"{name}(%0)", [x > 0], "data must be numbers, got Tensor[")
    b = data(2, 3) > 0
    case("logical_not", "logical_not(%0)", [b], [~b])
    error("logical_not", "logical_not(%0)", [data(2)], "data must be bool, got Tensor[(2), float32]; cast it")
    case("bitwise_not bool", "bitwise_not(%0)", [b], [~b])
    for dtype in ("int8", "uint8", "int32", "int64", "uint64"):
        i = ints(5, low=0 if dtype[0] == "u" else -9, high=99, dtype=dtype)
        case(f"bitwise_not {dtype}", "bitwise_not(%0)", [i], [~i])
    error("bitwise_not", "bitwise_not(%0)", [data(2)], "data must be integers or bool, got Tensor[(2), float32]")


def add_activations() -> None:
    x = np.concatenate([data(9), SPECIAL])
    for alpha in (0.25, -0.5):
        y = np.where(x > 0, x, x * np.float32(alpha))
        case(f"leaky_relu {alpha}", f"nn.leaky_relu(%0, alpha={alpha}f)", [x], [y])
    error("leaky_relu", "nn.leaky_relu(%0)", [ints(3)], "data must be floating point")
    for dtype, low, high, a_min, a_max in (
        ("float32", -3, 3, -1.25, 2.5),
        ("float64", -3, 3, -1e30, 0),
        ("float16", -3, 3, 0, 6),
        ("int32", -9, 9, -4, 6),
        ("int8", -128, 127, -1000, 100),
        ("uint8", 0, 255, -5, 200),
    ):
        x = ints(3, 4, low=low, high=high, dtype=dtype)
        y = np.clip(x.astype("float64"), a_min, a_max).astype(dtype)
        case(f"clip {dtype}", f"clip(%0, a_min={float(a_min)}f, a_max={float(a_max)}f)", [x], [y])
    # Bounds that are not float16, beside a tie: rounded once.
    x = np.array([0, 9, 65504, -np.inf], "float16")
    for low in (3.3056640625000004, -65519.99999):
        y = np.clip(x, np.float16(low), np.float16(65519.99999))
        case(f"clip float16 at {low}", f"clip(%0, a_min={low}f64, a_max=65519.99999f64)", [x], [y])
    y = np.clip(SPECIAL, -2, 3)
    case("clip specials", "clip(%0, a_min=-2f, a_max=3f)", [SPECIAL], [y])
    error("clip", "clip(%0, a_min=0f, a_max=1f)", [x > 0], "data must be numbers")
    x, alpha = data(2, 3, 4), data(3)
    case("prelu", "nn.prelu(%0, %1)", [x, alpha], [np.where(x > 0, x, x * alpha[:, None])])
    last = data(4)
    case("prelu last", "nn.prelu(%0, %1, axis=-1)", [x, last], [np.where(x > 0, x, x * last)])
    error("prelu", "nn.prelu(%0, %1)", [x, last], "alpha must have shape (3), the data's axis 1")
    case("dropout", "nn.dropout(%0, rate=0.25f)", [x], [x, np.ones_like(x)])
    error("dropout", "nn.dropout(%0)", [ints(3)], "data must be floating point")


def saturated(x: np.ndarray, dtype: str) -> np.ndarray:
    """Floats as integers: toward zero, to the nearest there is, NaN 0."""
    limits = np.iinfo(dtype)
    values = [0 if np.isnan(v) else max(limits.min, min(limits.max, v)) for v in x.astype("float64")]
    return np.array([int(v) for v in values], dtype)


def add_copies() -> None:
    x = np.array([1.5, -1.5, 0, -0.0, 300, -300, 1e9, -1e9, 1e30, -1e30, np.inf, -np.inf, np.nan], "float32")
    for dtype in ("int8", "uint8", "int32", "int64"):
        case(f"cast float32 to {dtype}", f'cast(%0, dtype="{dtype}")', [x], [saturated(x, dtype)])
    case("cast float32 to bool", 'cast(%0, dtype="bool")', [x], [x != 0])
    case("cast float32 to float64", 'cast(%0, dtype="float64")', [x], [x.astype("float64")])
    small = data(6) / 3
    case("cast float32 to float16", 'cast(%0, dtype="float16")', [small], [small.astype("float16")])
    # Beside the ties of float16: rounded once, not by way of float32.
    near = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11 - 2.0**-40, -2049 - 2.0**-30, 2.0**-25 + 2.0**-60])
    case("cast float64 to float16", 'cast(%0, dtype="float16")', [near], [near.astype("float16")])
    whole = np.array([2049 * 2**16 - 1, 2**25 + 2**17 + 1, -(2**30) - 2**22 - 1], "int32")
    for t in (np.array([1 + 2.0**-8 + 2.0**-40, 1 + 3 * 2.0**-8 - 2.0**-40]), whole):
        rounded = np.array(
            [round(float(v) / 2.0 ** (int(np.log2(abs(v))) - 7)) * 2.0 ** (int(np.log2(abs(v))) - 7) for v in t]
        )
        case(
            f"cast {t.dtype} to bfloat16",
            'cast(cast(%0, dtype="bfloat16"), dtype="float32")',
            [t],
            [rounded.astype("float32")],
        )
    # A double does not hold these; Python's integers do.
    for dtype in ("int64", "uint64"):
        t = np.array([16994051718905855, 10027546045317121, 2**53 + 1, 2**62 + 2**54 + 1, 2**62 + 2**54 - 1, 3], dtype)
        t = np.concatenate([t, -t if dtype == "int64" else t + np.uint64(2**63)])
        rounded = []
        for v in map(int, t):
            step = 2 ** max(abs(v).bit_length() - 8, 0)
            down, rest = divmod(abs(v), step)
            up = 2 * rest > step or (2 * rest == step and down % 2 == 1)
            rounded.append((down + up) * step * (-1 if v < 0 else 1))
        call = 'cast(cast(%0, dtype="bfloat16"), dtype="float32")'
        case(f"cast {dtype} to bfloat16", call, [t], [np.array(rounded, "float32")])
    i = np.array([0, 1, -1, 127, 128, 255, 256, -129, 2**31 - 1, -(2**31)], "int32")
    for dtype in ("int8", "uint8", "int64", "uint32", "float32", "bool"):
        case(f"cast int32 to {dtype}", f'cast(%0, dtype="{dtype}")', [i], [i.astype(dtype)])
    case("cast bool to int8", 'cast(%0, dtype="int8")', [i > 0], [(i > 0).astype("int8")])
    error("cast", 'cast(%0, dtype="handle")', [x], "cannot cast to handle")
    for t in (x, i, i > 0, scalar(2, "float16")):
        case(f"copy {t.dtype}", "copy(%0)", [t], [t])
        case(f"zeros_like {t.dtype}", "zeros_like(%0)", [t], [np.zeros_like(t)])
        case(f"ones_like {t.dtype}", "ones_like(%0)", [t], [np.ones_like(t)])
    for name in ("copy", "zeros_like", "ones_like"):
        error(name, f"{name}(%0, %0)", [x], "got 2")
    on_device, device_copy = "virtual_device", 'src_virtual_device="{0}", dst_virtual_device'
    for name, names in {"on_device": on_device, "device_copy": device_copy}.items():
        call = f'{name}(%0, {names}="{{0}}")'
        case(name, call.format("cpu:0"), [i], [i])
        error(name, call.format("gpu:0"), [i], "'gpu' in 'gpu:0' is not a kind of device")


def add_elementwise_cases() -> None:
    with np.errstate(all="ignore"):
        add_functions()
        add_numbers()
        add_halves()
        add_predicates()
        add_activations()
        add_copies()
