"""The cases of einsum, of annotations and of contrib_reverse_reshape; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import case, error


def add_sum_cases(data: Callable[..., np.ndarray], ints: Callable[..., np.ndarray]) -> None:
    a, b, c = data(2, 3), data(3, 4), data(5, 2, 3)
    for name, equation, inputs in (
        ("product", "ij,jk->ik", [a, b]),
        ("implicit order", "kj,ik", [b, data(2, 3)]),
        ("batch", "bij,jk->bik", [c, b]),
        ("outer", "i,jk->kij", [data(2), b]),
        ("three", "ij,jk,kl->il", [a, b, data(4, 2)]),
        ("trace", "ii", [data(3, 3)]),
        ("diagonal", "iij->ji", [data(3, 3, 2)]),
        ("transpose", "ij->ji", [a]),
        ("total", "ij->", [a]),
        ("case of letters", "aA,Ab->ab", [a, b]),
        ("spaces", " ij , jk -> ik ", [a, b]),
        ("rest", "...ij,...jk->...ik", [data(2, 1, 2, 3), data(4, 3, 2)]),
        ("rest of one", "...i->...", [c]),
        ("rest behind", "i...,i->...i", [data(2, 3), data(2)]),
        ("implicit rest", "...ij,j", [c, data(3)]),
        ("no rest", "...i,i->...", [data(3), data(3)]),
        ("nothing summed", "ij,jk->ik", [np.zeros((2, 0), "float32"), np.zeros((0, 3), "float32")]),
    ):
        operands = ", ".join(f"%{k}" for k in range(len(inputs))) + ("," if len(inputs) == 1 else "")
        result = np.einsum(equation, *[x.astype("float64") for x in inputs]).astype("float32")
        case(f"einsum {name}", f'einsum(({operands}), equation="{equation}")', inputs, [result], 1e-5)
    i = ints(2, 3)
    case("einsum int", 'einsum((%0, %1), equation="ij,ij->j")', [i, i], [np.einsum("ij,ij->j", i, i)])
    for name, equation, message in (
        ("count", "ij->ij", "has 1 operands, but 2 are given"),
        ("rank", "ijk,jk->i", "operand 0 has 2 dimensions, its term 'ijk' names 3"),
        ("rest", "...ijk,jk->i", "operand 0 has 2 dimensions"),
        ("term", "i1,jk->i", "expected letters and at most one '...', got 'i1'"),
        ("dots", "......ij,jk->i", "expected letters and at most one '...'"),
        ("result", "ij,jk->il", "no operand has the axis 'l'"),
        ("twice", "ij,jk->ii", "the result has the axis 'i' twice"),
        ("missing rest", "...j,jk->k", "the axes of '...' are missing"),
        ("sizes", "ij,ik->jk", "axis 0 of operand 1 is 3, and 2 elsewhere in 'ij,ik->jk'"),
    ):
        error(f"einsum {name}", f'einsum((%0, %1), equation="{equation}")', [a, b], message)
    error("einsum dtypes", 'einsum((%0, %1), equation="ij,jk->ik")', [a, ints(3, 4)], "operand 1")
    error("einsum bool", 'einsum((%0,), equation="ij->ji")', [a > 0], "operands must be numbers")
    error("einsum nothing", 'einsum((), equation="")', [], "needs at least one tensor")

    # From the right, as Relay's documentation has it.
    x = data(10, 5, 4)
    for newshape, shape in (((-1, 0), (50, 4)), ((-3, 4), (50, 4)), ((0, -4, 2, -1), (5, 2, 2)), ((-2,), (10, 5, 4))):
        source = x[0] if newshape == (0, -4, 2, -1) else x
        call = f"contrib_reverse_reshape(%0, newshape=[{', '.join(map(str, newshape))}])"
        case(f"reverse_reshape {newshape}", call, [source], [source.reshape(shape)])
    error("reverse_reshape", "contrib_reverse_reshape(%0, newshape=[3, 0])", [x], "cannot be reshaped to")
    case("stop_fusion", "annotation.stop_fusion(%0)", [a], [a])
    error("stop_fusion", "annotation.stop_fusion(%0, %0)", [a], "takes 1 argument")
    for border in ("compiler_begin", "compiler_end"):
        case(border, f'annotation.{border}(%0, compiler="gpu")', [a], [a])
        error(border, f'annotation.{border}(%0, compiler="")', [a], "the compiler has no name")
