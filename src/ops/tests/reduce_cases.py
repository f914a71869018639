"""Cases of reductions, by numpy; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import Numbers, case, error

numbers = Numbers(13)
data, ints = numbers.data, numbers.ints

# How the axes are named, and which they are of three.
AXES: dict[str, tuple[int, ...]] = {
    "": (0, 1, 2),
    "axis=[1]": (1,),
    "axis=[0, -1], keepdims=True": (0, 2),
    "axis=[1], exclude=True": (0, 2),
    "axis=[]": (),
}


def call(name: str, words: str, *rest: str) -> str:
    return f"{name}({', '.join(word for word in ('%0', *rest, words) if word)})"


def reduced(function: Callable[..., np.ndarray], x: np.ndarray, words: str) -> np.ndarray:
    return np.asarray(function(x, axis=AXES[words], keepdims="keepdims" in words)).astype(x.dtype)


def wrapping(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """In 64 bits, cut to the dtype."""
    return lambda x, **kept: function(x.astype("int64"), **kept)


def add_sums() -> None:
    for name, function in {"sum": np.sum, "prod": np.prod, "mean": np.mean}.items():
        x = data(3, 2, 4)
        for words in AXES:
            y = reduced(function, x.astype("float64"), words).astype("float32")
            case(f"{name} {words or 'all'}", call(name, words), [x], [y], 2e-6)
        half = data(2, 3).astype("float16")
        y = function(half.astype("float64"), axis=1).astype("float16")
        case(f"{name} float16", f"{name}(%0, axis=[1])", [half], [y], 1e-3)
        if name != "mean":
            for dtype in ("int8", "uint8", "int32"):
                i = ints(3, 5, low=60, high=120, dtype=dtype)
                y = wrapping(function)(i, axis=1).astype(dtype)
                case(f"{name} {dtype}", f"{name}(%0, axis=[1])", [i], [y])
            empty = np.zeros((2, 0), "float32")
            case(f"{name} of nothing", f"{name}(%0, axis=[1])", [empty], [function(empty, axis=1)])
        error(f"{name} bool", f"{name}(%0)", [x > 0], "data must be numbers, got Tensor[(3, 2, 4), bool]; cast it")
        error(f"{name} axis", f"{name}(%0, axis=[-4])", [x], "axis -4 is out of range")
    error("mean of nothing", "mean(%0, axis=[1])", [empty], "axis 1 of Tensor[(2, 0), float32] is empty")


def add_logicals() -> None:
    b = data(3, 2, 4, low=-1, high=2) > 0
    for name, function in {"all": np.all, "any": np.any}.items():
        for words in AXES:
            case(f"{name} {words or 'all axes'}", call(name, words), [b], [reduced(function, b, words)])
        none = np.zeros((2, 0), "bool")
        case(f"{name} of nothing", f"{name}(%0, axis=[1])", [none], [function(none, axis=1)])
        error(f"{name} dtype", f"{name}(%0)", [ints(3)], "data must be bool, got Tensor[(3), int32]; cast it")


def add_extrema() -> None:
    x = data(3, 2, 4)
    x[1, 0, 2] = np.nan
    for name, function in {"max": np.max, "min": np.min}.items():
        for words in AXES:
            case(f"{name} {words or 'all'}", call(name, words), [x], [reduced(function, x, words)])
        for i in (ints(3, 4, dtype="int8"), ints(3, 4, low=0, high=255, dtype="uint8"), ints(2, 3) > 0):
            case(f"{name} {i.dtype}", f"{name}(%0, axis=[0])", [i], [function(i, axis=0)])
        error(f"{name} of nothing", f"{name}(%0)", [x[:0]], "is empty: nothing to choose from")
        error(f"{name} twice", f"{name}(%0, axis=[0, -3])", [x], "axis -3 is named twice in (0, -3)")


def add_arguments() -> None:
    x = ints(3, 2, 5, low=0, high=3).astype("float32")  # with equals
    nans = data(2, 4)
    nans[0, 1] = nans[0, 3] = np.nan
    for name, function in {"argmax": np.argmax, "argmin": np.argmin}.items():
        case(f"{name} all", f"{name}(%0)", [x], [np.int32(function(x))])
        case(f"{name} 1", f"{name}(%0, axis=[1])", [x], [function(x, axis=1).astype("int32")])
        long = f'{name}(%0, axis=[1], dtype="int64")'
        case(f"{name} int64", long, [x], [function(x, axis=1)])
        case(
            f"{name} kept",
            f"{name}(%0, axis=[-1], keepdims=True)",
            [x],
            [function(x, axis=-1, keepdims=True).astype("int32")],
        )
        last = (x.shape[2] - 1 - function(x[:, :, ::-1], axis=2)).astype("int32")
        case(f"{name} last", f"{name}(%0, axis=[2], select_last_index=True)", [x], [last])
        two = function(x.transpose(1, 0, 2).reshape(2, 15), axis=1).astype("int32")
        case(f"{name} of two axes", f"{name}(%0, axis=[0, 2])", [x], [two])
        case(f"{name} excluded", f"{name}(%0, axis=[1], exclude=True)", [x], [two])
        case(f"{name} nan", f"{name}(%0, axis=[1])", [nans], [function(nans, axis=1).astype("int32")])
        i = ints(4, 3, dtype="int8")
        case(f"{name} int8", f"{name}(%0, axis=[0])", [i], [function(i, axis=0).astype("int32")])
        error(f"{name} of nothing", f"{name}(%0)", [x[:0]], "is empty: nothing to choose from")
        error(f"{name} axis", f"{name}(%0, axis=[3])", [x], "axis 3 is out of range")


def add_variance() -> None:
    x = data(3, 2, 4)
    for words, axes in {"axis=[1, 2]": (1, 2), "": (0, 1, 2), "axis=[0], keepdims=True": (0,)}.items():
        kept = "keepdims" in words
        mean = x.mean(axes, keepdims=True, dtype="float64").astype("float32")
        for unbiased in (False, True):
            y = np.var(x.astype("float64"), axis=axes, keepdims=kept, ddof=int(unbiased)).astype("float32")
            text = call("variance", words, "%1", f"unbiased={unbiased}")
            case(f"variance {words} {unbiased}", text, [x, mean], [np.asarray(y)], 5e-6)
    error("variance dtype", "variance(%0, %0)", [ints(3)], "data must be floating point, got Tensor[(3), int32]")
    error("variance mean", "variance(%0, %1)", [x[0], x], "mean must broadcast to data")


def add_reduce_cases() -> None:
    add_sums()
    add_logicals()
    add_extrema()
    add_arguments()
    add_variance()
