"""Cases of sparse tensors, by numpy and scipy, and by hand; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, error, scalar
from scipy import sparse

numbers = Numbers(72)
data, ints = numbers.data, numbers.ints


def add_places() -> None:
    call = "sparse_to_dense(%0, %1, %2, output_shape={})"
    places, values = np.array([[0, 1], [2, 3], [2, 0]]), data(3)
    want = np.full((3, 4), 0.5, "float32")
    want[tuple(places.T)] = values
    case("sparse_to_dense", call.format("[3, 4]"), [places, values, scalar(0.5)], [want])
    case("sparse_to_dense from the end", call.format("[3, 4]"), [places - [3, 4], values, scalar(0.5)], [want])
    line = np.array([7, 0, 7, 0, 8], "int32")
    at, of = np.array([1, 3, 4], "int32"), np.array([0, 0, 8], "int32")
    case("sparse_to_dense line", call.format("[5]"), [at, of, scalar(7, "int64")], [line])
    twice = [np.array([2, 2], "uint8"), np.array([3.0, 4.0], "float16"), scalar(0, "int32")]
    case("sparse_to_dense twice", call.format("[3]"), twice, [np.array([0, 0, 4], "float16")])
    case("sparse_to_dense one", call.format("[3]"), [scalar(1, "int64"), scalar(3), scalar(0)], [np.float32([0, 3, 0])])
    same = np.array([[5, 9], [9, 5]], "int8")
    alike = [np.array([[0, 0], [1, 1]]), scalar(5, "int8"), scalar(9, "int8")]
    case("sparse_to_dense of one value", call.format("[2, 2]"), alike, [same])
    error("sparse_to_dense range", call.format("[2, 4]"), [places, values, scalar(0)], "2", run=True)
    error("sparse_to_dense axes", call.format("[3]"), [places, values, scalar(0)], "the axes that indices name")
    error("sparse_to_dense count", call.format("[3, 4]"), [places, data(2), scalar(0)], "the numbers of indices")


def add_reshapes() -> None:
    call = "sparse_reshape(%0, %1, %2)"
    for name, before, after, asked in (
        ("merge", (2, 3, 6), (9, 4), (9, -1)),
        ("split", (9, 4), (2, 3, 6), (2, -1, 6)),
        ("line", (9, 4), (36,), (-1,)),
        ("same", (5, 7), (5, 7), (5, 7)),
    ):
        size = int(np.prod(before))
        flat = np.sort(numbers.rng.permutation(size)[:6])
        for dtype in ("int32", "int64"):
            places = np.stack(np.unravel_index(flat, before), 1).astype(dtype)
            want = np.stack(np.unravel_index(flat, after), 1).astype(dtype)
            shapes = [np.array(before, dtype), np.array(asked, dtype)]
            case(f"sparse_reshape {name} {dtype}", call, [places, *shapes], [want, np.array(after, dtype)])
    none = [np.zeros((0, 2), "int64"), np.array([3, 6]), np.array([-1, 2])]
    case("sparse_reshape of none", call, none, [np.zeros((0, 2), "int64"), np.array([9, 2])])
    places = np.array([[0, 1]])
    error("sparse_reshape axes", call, [places, np.array([6]), np.array([6])], "the axes that indices name")


def add_empty_rows() -> None:
    call = "sparse_fill_empty_rows(%0, %1, %2, %3)"
    # The example in TensorFlow's documentation of the op.
    places = np.array([[0, 1], [0, 3], [2, 0], [3, 1]])
    inputs = [places, np.array([1, 2, 3, 4], "int32"), np.array([5, 6]), scalar(-1, "int32")]
    want = [
        np.array([[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]),
        np.array([1, 2, -1, 3, 4, -1], "int32"),
        np.array([False, True, False, False, True]),
    ]
    case("sparse_fill_empty_rows", call, inputs, want)
    inputs = [np.zeros((0, 2), "int32"), np.zeros(0, "float32"), np.array([2, 3]), scalar(1)]
    want = [np.array([[0, 0], [1, 0]], "int32"), np.ones(2, "float32"), np.array([True, True])]
    case("sparse_fill_empty_rows of none", call, inputs, want)
    error(
        "sparse_fill_empty_rows", call, [places, data(4), np.array([5, 6]), data(1)], "default_value must be a scalar"
    )


def compressed(matrix: sparse.spmatrix) -> list[np.ndarray]:
    return [matrix.data, matrix.indices.astype("int32"), matrix.indptr.astype("int32")]


def some(rows: int, columns: int, dtype: str = "float32") -> np.ndarray:
    dense = data(rows, columns) if dtype.startswith("float") else ints(rows, columns)
    return (dense * (numbers.rng.random((rows, columns)) < 0.4)).astype(dtype)


def add_matrices() -> None:
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12), ("int32", 0)):
        x = data(3, 8).astype(dtype) if dtype.startswith("float") else ints(3, 8)
        w = some(6, 8, dtype)
        inputs = [x, *compressed(sparse.csr_matrix(w))]
        case(f"sparse_dense {dtype}", "nn.sparse_dense(%0, %1, %2, %3)", inputs, [x @ w.T], tolerance)
        left = "nn.sparse_dense(%0, %1, %2, %3, sparse_lhs=True)"
        case(f"sparse_dense left {dtype}", left, inputs, [w @ x.T], tolerance)
        blocks = [x, *compressed(sparse.bsr_matrix(w, blocksize=(3, 2)))]
        case(f"sparse_dense blocks {dtype}", "nn.sparse_dense(%0, %1, %2, %3)", blocks, [x @ w.T], tolerance)
        case(f"sparse_dense left blocks {dtype}", left, blocks, [w @ x.T], tolerance)
        added = [x := data(6, 8).astype(dtype), *inputs[1:]]
        case(f"sparse_add {dtype}", "nn.sparse_add(%0, %1, %2, %3)", added, [x + w], tolerance)
        square = some(5, 5, dtype)
        turned = compressed(sparse.csr_matrix(square.T))
        call = "nn.sparse_transpose(%0, %1, %2)"
        case(f"sparse_transpose {dtype}", call, compressed(sparse.csr_matrix(square)), turned)


def add_refused_matrices() -> None:
    x, starts = data(2, 3), np.array([0, 1, 2], "int32")
    call = "nn.sparse_dense(%0, %1, %2, %3)"
    error("sparse_dense entries", call, [x, data(2), ints(3), starts], "sparse_indices must be 2 integers")
    error("sparse_dense column", call, [x, data(2), np.array([0, 3], "int32"), starts], "3", run=True)
    error(
        "sparse_dense rows",
        call,
        [x, data(2), np.array([0, 1], "int32"), starts * 2],
        "row 1 has entries 2 to 4 of 2",
        run=True,
    )
    call = "nn.sparse_add(%0, %1, %2, %3)"
    error("sparse_add rows", call, [data(3, 3), data(2), ints(2), starts], "the sparse matrix has 2 rows")
    call = "nn.sparse_transpose(%0, %1, %2)"
    error("sparse_transpose", call, [data(2, 2), ints(2), starts], "sparse_data must be numbers of one dimension")
    error("sparse_transpose starts", call, [data(3), ints(3, low=0, high=1), starts], "sparse_indptr", run=True)


def add_sparse_cases() -> None:
    add_places()
    add_reshapes()
    add_empty_rows()
    add_matrices()
    add_refused_matrices()
