"""The cases of ops with as many results as the data says; see make_op_cases.py."""

from collections.abc import Callable

import numpy as np
from op_case_format import case, error, run_onnx


def with_rest(found: np.ndarray, size: int, rest: int) -> np.ndarray:
    """The rows found, and behind them the room that is left."""
    result = np.full((size, *found.shape[1:]), rest, found.dtype)
    result[: len(found)] = found
    return result


def add_select_cases(data: Callable[..., np.ndarray]) -> None:
    x = data(3, 4)
    for name, condition in {
        "float": np.where(np.abs(x) < 1, 0, x),
        "int": (x > 0).astype("int32"),
        "bool": x > 9,
    }.items():
        found = np.argwhere(condition)
        outputs = [with_rest(found.astype("int32"), 12, -1), np.array([len(found)], "int32")]
        case(f"argwhere_bounded {name}", "argwhere_bounded(%0)", [condition], outputs)
    one = np.array(5, "int32")
    case("argwhere_bounded scalar", "argwhere_bounded(%0)", [one], [np.zeros((1, 0), "int32"), np.ones(1, "int32")])
    error("argwhere_bounded", "argwhere_bounded(%0, %0)", [x], "takes 1 argument")
    add_unique_cases(data)
    add_all_class_cases(data)


def add_unique_cases(data: Callable[..., np.ndarray]) -> None:
    floats = np.array([1.5, np.nan, -2, 1.5, 0, np.nan, -2, 7], "float32")
    for name, x in (("float", floats), ("int", (data(40) * 2).astype("int64")), ("one", np.array([3], "uint8"))):
        values, first, which, counts = np.unique(x, True, True, True)
        for is_sorted in (True, False):
            order = np.arange(len(values)) if is_sorted else np.argsort(first)
            number = np.argsort(order)
            outputs = [
                with_rest(values[order], len(x), 0),
                with_rest(first[order].astype("int32"), len(x), 0),
                number[which].astype("int32"),
                np.array([len(values)], "int32"),
                with_rest(counts[order].astype("int32"), len(x), 0),
            ]
            call = f"unique(%0, sorted={is_sorted}"
            case(f"unique {name} {is_sorted}", call + ")", [x], outputs[:4])
            case(f"unique counts {name} {is_sorted}", call + ", return_counts=True)", [x], outputs)
    error("unique rank", "unique(%0)", [data(2, 3)], "data must be numbers of one dimension")


def add_all_class_cases(data: Callable[..., np.ndarray]) -> None:
    boxes, scores = np.abs(data(2, 6, 4)), data(2, 3, 6)
    boxes[0, 1] = boxes[0, 2] = boxes[0, 0] + 0.125
    scores[1, 2, 3] = scores[1, 2, 5]
    call = "vision.all_class_non_max_suppression(%0, %1, %2, %3, %4)"
    for most, overlap, least in ((6, 0.3, -9), (2, 0.0, 0.5), (0, 0.5, 0)):
        inputs = [boxes, scores, np.array(most, "int64"), np.array(overlap, "float32"), np.array(least, "float32")]
        limits = [np.array([v], t) for v, t in ((most, "int64"), (overlap, "float32"), (least, "float32"))]
        rows = run_onnx("NonMaxSuppression", [boxes, scores, *limits], opset=11).reshape(-1, 3)
        outputs = [with_rest(rows, 36, -1), np.array([len(rows)], "int64")]
        case(f"all_class_non_max_suppression {most}", call, inputs, outputs)
    # Without a threshold what scores NaN or the least counts, too, and comes last.
    apart = np.array([[[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5]]], "float32")
    own = np.array([[[np.nan, 0.5, -np.inf]]], "float32")
    limits = [np.array(5, "int64"), np.array(0.5, "float32"), np.array(np.nan, "float32")]
    rows = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 2]], "int64")
    case("all_class_non_max_suppression all", call, [apart, own, *limits], [rows, np.array([3], "int64")])
    inputs[1] = scores[:, :, :5]
    error("all_class_non_max_suppression", call, inputs, "scores must be [batch, classes, boxes]")
