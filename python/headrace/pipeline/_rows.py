"""Calls of functions for requests with any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace._core import UserError


def call_with_rows(function: Callable[..., Any], arguments: Sequence[Any], outputs: int) -> Any:
    """Calls a function with the rows of several requests one after another, and splits what it returns among them.

    An argument that is a list has one value for each request: arrays with their rows as first dimension, which become
    one array, or lists of rows, which become one list. Any other argument is a parameter. For each output the function
    returns as many rows as it got, as an array or a sequence. Returns a list of one value for each request; with
    several outputs, a list of such lists.
    """
    counts: list[int] | None = None
    joined = []
    for argument in arguments:
        if not isinstance(argument, list):
            joined.append(argument)
            continue
        lengths = [len(rows) for rows in argument]
        if counts is not None and lengths != counts:
            raise UserError(
                f"the inputs of the requests have {counts} and {lengths} rows; all of one request have the same"
            )
        counts = lengths
        arrays = all(isinstance(rows, np.ndarray) for rows in argument)
        joined.append(np.concatenate(argument) if arrays else [row for rows in argument for row in rows])
    ends = np.cumsum(counts or []).tolist()
    made = function(*joined)
    if outputs == 1:
        return _split(made, ends)
    if not isinstance(made, (tuple, list)) or len(made) != outputs:
        raise UserError(f"the function has {outputs} outputs, so it returns a tuple of {outputs} sequences of rows")
    return [_split(rows, ends) for rows in made]


def _split(rows: Any, ends: Sequence[int]) -> list[Any]:
    total = ends[-1] if ends else 0
    if not isinstance(rows, np.ndarray):
        rows = list(rows)
    if len(rows) != total:
        raise UserError(f"the function got {total} rows and returned {len(rows)}")
    return [rows[begin:end] for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
