"""The few functions that are richer than an op: they make several calls, or choose by their arguments."""

from __future__ import annotations

from typing import Any

from headrace import _core, _expr
from headrace.relay._build_ir import const
from headrace.relay._op_functions import make_function

_arange = make_function("arange")
_mean = make_function("mean")
_variance = make_function("variance")
_sqrt = make_function("sqrt")
_full = make_function("full")


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32", *, span: Any = None) -> Any:
    """Evenly spaced values in [start, stop).

    Parameters
    ----------
    start : RelayExpr or number
        The first value; the end, when `stop` is left out, and then the first is 0.
    stop : RelayExpr or number, optional
        The end, which is not among the values.
    step : RelayExpr or number, optional
        The distance, 1 when it is left out.
    dtype : str
        The result's.

    Returns
    -------
    RelayExpr
    """
    if stop is None:
        start, stop = const(0, dtype), start
    given = [
        value if isinstance(value, _core.Object) else const(value, dtype)
        for value in (start, stop, 1 if step is None else step)
    ]
    return _arange(*given, dtype=dtype, span=span)


def variance(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Any = None,
) -> Any:
    """The mean of the squared distances to the mean.

    Parameters
    ----------
    data : RelayExpr
        The tensor.
    axis : int or tuple of int, optional
        What is reduced; everything when it is left out.
    keepdims, exclude, unbiased : bool
        Keep reduced axes with size 1; reduce the other axes; divide by one less.
    with_mean : RelayExpr, optional
        The mean, when it is known.

    Returns
    -------
    RelayExpr
    """
    mean = _mean(data, axis, True, exclude) if with_mean is None else with_mean
    return _variance(data, mean, axis, keepdims, exclude, unbiased)


def std(
    data: Any,
    axis: Any = None,
    keepdims: bool = False,
    exclude: bool = False,
    unbiased: bool = False,
    with_mean: Any = None,
) -> Any:
    """The square root of `variance`, with its parameters."""
    return _sqrt(variance(data, axis, keepdims, exclude, unbiased, with_mean))


def mean_variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> _expr.TupleWrapper:
    """Mean and variance, as a tuple; parameters as those of `variance`."""
    from headrace.relay._classes import Tuple

    mean = _mean(data, axis, True, exclude)
    spread = _variance(data, mean, axis, keepdims, exclude, unbiased)
    return _expr.TupleWrapper(Tuple([mean if keepdims else _mean(data, axis, False, exclude), spread]), 2)


def full(fill_value: Any, shape: Any = (), dtype: str = "", *, span: Any = None) -> Any:
    """A tensor of one value.

    Parameters
    ----------
    fill_value : RelayExpr or number
        The value, a scalar.
    shape : tuple of int or RelayExpr
        The result's shape.
    dtype : str
        The result's; when it is empty, the value's.

    Returns
    -------
    RelayExpr
    """
    value = fill_value if isinstance(fill_value, _core.Object) else const(fill_value, dtype or None)
    chosen = dtype or _expr.dtype_of(value)
    if chosen is None:
        raise _core.UserError("full: the dtype of fill_value is not known; give dtype")
    return _full(value, shape, chosen, span=span)
