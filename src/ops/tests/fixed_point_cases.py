"""Cases of products in fixed point, worked out in Python's integers; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import case, error


def product(x: int, multiplier: int, left: int, right: int) -> int:
    """As Relay documents it: halves are rounded up."""
    return ((x << left) * multiplier + (1 << (30 + right))) >> (31 + right)


def products(x: np.ndarray, multiplier: int, shift: int) -> np.ndarray:
    return np.array([product(int(v), multiplier, max(shift, 0), max(-shift, 0)) for v in x.ravel()], "int32").reshape(
        x.shape
    )


def add_fixed_point_cases(ints: Callable[..., np.ndarray]) -> None:
    x = ints(3, 5, low=-(2**20), high=2**20)
    x[0] = [0, 1, -1, 3, -3]
    for multiplier, shift in ((1395864371, 1), (1395864371, -3), (2**30, 0), (-(2**30), 0), (2**31 - 1, 4), (7, -31)):
        call = f"fixed_point_multiply(%0, multiplier={multiplier}, shift={shift})"
        case(f"fixed_point_multiply {multiplier} {shift}", call, [x], [products(x, multiplier, shift)])
    extremes = np.array([2**31 - 1, -(2**31)], "int32")
    call = "fixed_point_multiply(%0, multiplier=2147483647, shift=0)"
    case("fixed_point_multiply extremes", call, [extremes], [products(extremes, 2**31 - 1, 0)])
    call = "fixed_point_multiply(%0, multiplier=1, shift=32)"
    error("fixed_point_multiply shift", call, [x], "shift is 32, expected -31 to 31")
    call = "fixed_point_multiply(%0, multiplier=1, shift=0)"
    error("fixed_point_multiply dtype", call, [x.astype("int64")], "data must have dtype int32")

    op = "fixed_point_multiply_per_axis(%0, %1, %2, %3, "
    x = ints(2, 3, 4, low=-9999, high=9999)
    m = ints(3, low=2**29, high=2**31 - 1)
    left, right = np.array([0, 2, 5], "int32"), np.array([3, 0, 1], "int32")

    def each(is_left: bool, is_right: bool) -> np.ndarray:
        shifts = [(int(m[c]), int(left[c]) * is_left, int(right[c]) * is_right) for c in range(3)]
        y = [[[product(int(v), *shifts[c]) for v in x[n, c]] for c in range(3)] for n in range(2)]
        return np.array(y, "int32")

    args = [x, m, left, right]
    for flags in ((True, True), (True, False), (False, True), (False, False)):
        call = f"{op}is_lshift_required={flags[0]}, is_rshift_required={flags[1]}, axes=[1])"
        case(f"fixed_point_multiply_per_axis {flags}", call, args, [each(*flags)])
    last = [x.transpose(1, 0, 2)[:, :, 0].copy(), *(np.stack([v, v[::-1]], 1) for v in args[1:])]
    y = [[product(*(int(v[c, n]) for v in last)) for n in range(2)] for c in range(3)]
    call = f"{op}is_lshift_required=True, is_rshift_required=True, axes=[0, -1])"
    case("fixed_point_multiply_per_axis of two", call, last, [np.array(y, "int32")])
    error("fixed_point_multiply_per_axis axes", f"{op}axes=[3])", args, "axes 3 is out of range")
    error("fixed_point_multiply_per_axis size", f"{op}axes=[2])", args, "multiplier must be as large as data")
    wrong = [x, m, left.astype("int64"), right]
    error("fixed_point_multiply_per_axis dtype", f"{op}axes=[1])", wrong, "lshift must have dtype int32")
