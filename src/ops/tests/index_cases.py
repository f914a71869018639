"""The cases of ops that are given indices, at the ends of the integers' dtypes; see make_op_cases.py."""

import numpy as np
from op_case_format import case, error

PAST = 2**63  # as int64 it would be negative
LAST = 2**64 - 1  # and this one -1


def u64(*values: int) -> np.ndarray:
    return np.array(values, "uint64")


def picks(x: np.ndarray, indices: np.ndarray, mode: str) -> np.ndarray:
    """x[indices] along axis 0, an index beyond it clipped or wrapped: Python's integers have no end."""
    n = len(x)
    places = [int(i) % n if mode == "wrap" else min(max(int(i), 0), n - 1) for i in indices]
    return x[places]


def add_index_cases() -> None:
    x = np.arange(6, dtype="float32").reshape(3, 2)
    indices = {"uint64": u64(LAST, 1, PAST, PAST + 1, 2, 4), "int64": np.array([-(2**63), -1, 2**63 - 1, 1], "int64")}
    for dtype, i in indices.items():
        for mode in ("clip", "wrap"):
            y = picks(x, i, mode)
            case(f"take {mode} {dtype}", f'take(%0, %1, axis=0, mode="{mode}")', [x, i], [y])
            y = picks(x.ravel(), i, mode)
            case(f"take flat {mode} {dtype}", f'take(%0, %1, mode="{mode}")', [x, i], [y])
    beyond = "index 18446744073709551615 is out of range for an axis of 3"
    error("take uint64", 'take(%0, %1, axis=0, mode="fast")', [x, u64(0, LAST)], beyond, run=True)
    case("take fast uint64", 'take(%0, %1, axis=0, mode="fast")', [x, u64(2, 0)], [x[[2, 0]]])
    grid = u64(2, 0, 1, 1).reshape(2, 2)
    case("gather uint64", "gather(%0, %1, axis=0)", [x, grid], [np.take_along_axis(x, grid.astype("int64"), 0)])
    error("gather uint64", "gather(%0, %1, axis=0)", [x, u64(0, LAST).reshape(1, 2)], beyond, run=True)
    before = "index -4 is out of range for an axis of 3"
    error("gather before", "gather(%0, %1, axis=0)", [x, np.array([[0, -4]], "int64")], before, run=True)
    case("gather_nd uint64", "gather_nd(%0, %1)", [x, grid // 2], [np.array([2, 0], "float32")])
    error("gather_nd uint64", "gather_nd(%0, %1)", [x, u64(LAST).reshape(1, 1)], beyond, run=True)
    error("gather_nd before", "gather_nd(%0, %1)", [x, np.array([[-4]], "int64")], before, run=True)
    case("adv_index uint64", "adv_index((%0, %1))", [x, u64(2, 0)], [x[[2, 0]]])
    error("adv_index uint64", "adv_index((%0, %1))", [x, u64(LAST)], beyond, run=True)
    add_scatter_cases(x, beyond)
    add_place_cases(x)


def add_scatter_cases(x: np.ndarray, beyond: str) -> None:
    row, one = np.array([[7, 8]], "float32"), u64(2).reshape(1, 1)
    y = x.copy()
    y[2] = row[0]
    case("scatter_nd uint64", "scatter_nd(%0, %1, %2)", [x, one, row], [y])
    error("scatter_nd uint64", "scatter_nd(%0, %1, %2)", [x, one * 0 + LAST, row], beyond, run=True)
    pair = u64(2, 0).reshape(1, 2)
    y = x.copy()
    y[2, 0], y[0, 1] = row[0]
    case("scatter_elements uint64", "scatter_elements(%0, %1, %2)", [x, pair, row], [y])
    error("scatter_elements uint64", "scatter_elements(%0, %1, %2)", [x, pair * 0 + LAST, row], beyond, run=True)
    error(
        "invert_permutation uint64",
        "invert_permutation(%0)",
        [u64(0, LAST)],
        "it has 18446744073709551615 at 1",
        run=True,
    )


def add_place_cases(x: np.ndarray) -> None:
    """Positions that are not elements of an axis: classes, lengths, diagonals."""
    on, off = np.float32(1), np.float32(0)
    y = np.zeros((2, 4), "float32")
    y[1, 3] = 1
    case("one_hot uint64", "one_hot(%0, %1, %2, depth=4)", [u64(LAST, 3), on, off], [y])
    for dtype, k in {"uint64": u64(LAST), "uint8": np.array([255], "uint8")}.items():
        case(f"triu {dtype}", "trilu(%0, %1)", [x, k[0]], [np.zeros_like(x)])
        case(f"tril {dtype}", "trilu(%0, %1, upper=False)", [x, k[0]], [x])
    rows = np.arange(9, dtype="float32").reshape(3, 3)
    turned = np.array([[0, 1, 2], [5, 4, 3], [7, 6, 8]], "float32")
    case("reverse_sequence uint64", "reverse_sequence(%0, %1)", [rows, u64(1, LAST, 2)], [turned])
    case("reverse_sequence lengths", "reverse_sequence(%0, %1)", [rows, np.array([-5, 9, 2], "int32")], [turned])
    error(
        "unravel_index uint64",
        "unravel_index(%0, %1)",
        [u64(LAST), np.array([2, 3])],
        "index 18446744073709551615 is out of range for shape (2, 3)",
        run=True,
    )
    ignored = LAST - 99  # as int64 -100, the class that is ignored
    error(
        "nll_loss uint64",
        "nn.nll_loss(%0, %1, %2)",
        [x, u64(0, 1, ignored), np.ones(2, "float32")],
        f"class {ignored} is out of range for 2 classes",
        run=True,
    )
