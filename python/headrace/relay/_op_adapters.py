"""The few functions that are richer than an op: they make several calls, or choose by their arguments."""

from __future__ import annotations

from typing import Any

from headrace import _arguments, _core, _node, _public
from headrace._numpy import np
from headrace._operands import TupleWrapper, const, dtype_of, operand, shape_of
from headrace.relay._op_functions import deferred

__all__ = [
    "arange",
    "full",
    "full_like",
    "gather_nd",
    "logsumexp",
    "matrix_set_diag",
    "mean_std",
    "mean_variance",
    "reverse_reshape",
    "segment_sum",
    "std",
    "stft",
    "strided_set",
    "unique",
    "variance",
]

_arange = deferred("arange")
_mean = deferred("mean")
_variance = deferred("variance")
_sqrt = deferred("sqrt")
_full, _full_like = map(deferred, ("full", "full_like"))
_cast = deferred("cast")
_stft = deferred("stft")
_add, _cast_like, _concatenate, _expand_dims, _reshape = map(
    deferred, ("add", "cast_like", "concatenate", "expand_dims", "reshape")
)
_scatter_nd, _shape_of, _slice_like, _strided_slice, _zeros = map(
    deferred, ("scatter_nd", "shape_of", "slice_like", "strided_slice", "zeros")
)
_unique = deferred("unique")
_matrix_set_diag = deferred("matrix_set_diag")
_strided_set = deferred("strided_set")
_gather_nd = deferred("gather_nd")
_reverse_reshape = deferred("contrib_reverse_reshape")
_exp, _log, _max, _sum, _squeeze = map(deferred, ("exp", "log", "max", "sum", "squeeze"))


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
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
    """
    if stop is None:
        start, stop = 0, start
    given = {"start": start, "stop": stop, "step": 1 if step is None else step}
    operands = [operand(value, f"arange: {name}", dtype) for name, value in given.items()]
    return _arange(*operands, dtype=dtype, span=span)


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
    """The square root of `variance`.

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
    return _sqrt(variance(data, axis, keepdims, exclude, unbiased, with_mean))


def mean_variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """Mean and variance.

    Parameters
    ----------
    data : RelayExpr
        The tensor.
    axis : int or tuple of int, optional
        What is reduced; everything when it is left out.
    keepdims, exclude, unbiased : bool
        Keep reduced axes with size 1; reduce the other axes; divide by one less.

    Returns
    -------
    TupleWrapper
        The mean, and the variance.
    """
    mean = _mean(data, axis, True, exclude)
    spread = _variance(data, mean, axis, keepdims, exclude, unbiased)
    return TupleWrapper(
        _node.class_of("relay.Tuple")([mean if keepdims else _mean(data, axis, False, exclude), spread]), 2
    )


def mean_std(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """Mean and standard deviation.

    Parameters
    ----------
    data : RelayExpr
        The tensor.
    axis : int or tuple of int, optional
        What is reduced; everything when it is left out.
    keepdims, exclude, unbiased : bool
        Keep reduced axes with size 1; reduce the other axes; divide by one less.

    Returns
    -------
    TupleWrapper
        The mean, and the standard deviation.
    """
    mean, spread = mean_variance(data, axis, keepdims, exclude, unbiased)
    return TupleWrapper(_node.class_of("relay.Tuple")([mean, _sqrt(spread)]), 2)


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
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
    """
    value = operand(fill_value, "full: fill_value", dtype or None)
    chosen = dtype or dtype_of(value)
    if chosen is None:
        raise _core.UserError("full: the dtype of fill_value is not known; give dtype")
    known = dtype_of(value)
    if known is not None and known != chosen:
        value = _cast(value, chosen)
    return _full(value, shape, chosen, span=span)


def full_like(data: Any, fill_value: Any, *, span: Any = None) -> Any:
    """A tensor of one value, with the type of another.

    Parameters
    ----------
    data : RelayExpr
        The other tensor.
    fill_value : RelayExpr or number
        The value, a scalar. Of another dtype than that of `data`, if both are known, it is cast, as `full` does.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
    """
    like = operand(data, "full_like: data")
    dtype = dtype_of(like)
    value = operand(fill_value, "full_like: fill_value", beside=dtype)
    if None not in (dtype, dtype_of(value)) and dtype_of(value) != dtype:
        value = _cast(value, dtype)
    return _full_like(like, value, span=span)


def unique(data: Any, is_sorted: bool = True, return_counts: bool = False, *, span: Any = None) -> TupleWrapper:
    """The different elements of a tensor of one axis.

    Parameters
    ----------
    data : RelayExpr
        The tensor, of n elements.
    is_sorted : bool
        Whether they are in order, or as they come first.
    return_counts : bool
        Whether there is a fifth field: how often each is.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    TupleWrapper
        The elements, where each is first, which of them every element is, and how many there are.
    """
    return _unique(data, is_sorted, return_counts, span=span)


def matrix_set_diag(data: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT", *, span: Any = None) -> Any:
    """Matrices with other diagonals.

    Parameters
    ----------
    data : RelayExpr
        The matrices, T[..., m, n].
    diagonal : RelayExpr
        T[..., longest], or T[..., number, longest] with the highest first.
    k : int or (int, int)
        Which diagonal, or the lowest and the highest; 0 is the main one, 1 that above it.
    align : str
        At which end shorter diagonals stand, first those above the main one, then the others: "RIGHT_LEFT",
        "LEFT_RIGHT", "LEFT_LEFT" or "RIGHT_RIGHT".
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
    """
    ends = align.split("_") if isinstance(align, str) else []
    if len(ends) != 2 or not {"LEFT", "RIGHT"}.issuperset(ends):
        raise _core.UserError(
            f"matrix_set_diag: align is {align!r}; it is RIGHT_LEFT, LEFT_RIGHT, LEFT_LEFT or RIGHT_RIGHT"
        )
    low, high = (k[0], k[-1]) if isinstance(k, (list, tuple)) and len(k) in (1, 2) else (k, k)
    return _matrix_set_diag(data, diagonal, low, high, ends[0] == "RIGHT", ends[1] == "RIGHT", span=span)


def strided_set(data: Any, v: Any, begin: Any, end: Any, strides: Any = None, *, span: Any = None) -> Any:
    """A tensor with a slice replaced.

    Parameters
    ----------
    data : RelayExpr
        The tensor.
    v : RelayExpr
        What stands in the slice.
    begin, end : list of int or RelayExpr
        Where the slice begins and ends, one an axis.
    strides : list of int or RelayExpr, optional
        Its steps; 1 for each axis when they are left out, which asks for a list or a constant as `begin`.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
    """
    if strides is None:
        is_constant = isinstance(begin, _core.Object) and begin.type_key == "relay.Constant"
        known = begin.data.numpy() if is_constant else begin
        if isinstance(known, _core.Object) or np.ndim(known) != 1:
            raise _core.UserError(
                "strided_set: strides: give them, one an axis, where begin is not a list and no constant"
            )
        strides = [1] * len(known)
    return _strided_set(data, v, begin, end, strides, span=span)


def gather_nd(data: Any, indices: Any, batch_dims: int = 0, index_rank: int | None = None, *, span: Any = None) -> Any:
    """Slices of a tensor at tuples of indices.

    Parameters
    ----------
    data : RelayExpr
        T[...]: what is read.
    indices : RelayExpr
        int[M, Y...]: M indices for each slice.
    batch_dims : int
        How many leading axes of data are not indexed, but go along with those of Y.
    index_rank : int, optional
        M, which the type of `indices` tells as well; checked where it does.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
        T[Y..., rest of data].

    Raises
    ------
    UserError
        For an index_rank that is not the first dimension of `indices`.
    """
    if index_rank is not None:
        rank = _arguments.integer(index_rank, "gather_nd: index_rank")
        shape = shape_of(_arguments.expression(indices, "gather_nd: indices"))
        first = None if shape is None else shape[:1]
        if rank < 1 or first not in (None, (None,), (rank,)):
            told = "1 or more" if first is None else f"the first dimension of indices, whose shape is {shape}"
            raise _core.UserError(f"gather_nd: index_rank is {rank}; it is {told}")
    return _gather_nd(data, indices, batch_dims, span=span)


def _length(value: Any, what: str) -> int:
    length = _arguments.integer(value, what)
    if length < 1:
        raise _core.UserError(f"{what}: expected 1 or more, got {length}")
    return length


def stft(
    data: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    normalized: bool = False,
    onesided: bool = True,
    *,
    span: Any = None,
) -> Any:
    """Fourier transforms of windows of signals.

    Parameters
    ----------
    data : RelayExpr
        f[batch, length]: the signals.
    n_fft : int
        How many elements a transform is of.
    hop_length : int, optional
        From one transform to the next; `n_fft // 4` when it is left out.
    win_length : int, optional
        The length of the window that is made where none is given; `n_fft` when it is left out.
    window : RelayExpr, optional
        T[w], w at most n_fft: what elements are multiplied by; ones when it is left out.
    normalized, onesided : bool
        Divide by the root of n_fft; give only the first n_fft // 2 + 1 frequencies.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
        f[batch, frequencies, transforms, 2]: real and imaginary parts.
    """
    n_fft = _length(n_fft, "stft: n_fft")
    hop = max(n_fft // 4, 1) if hop_length is None else hop_length
    width = n_fft if win_length is None else _length(win_length, "stft: win_length")
    return _stft(
        data,
        const(np.ones(width, "int32")) if window is None else window,
        n_fft,
        hop,
        width,
        normalized,
        onesided,
        span=span,
    )


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None, *, span: Any = None) -> Any:
    """The sums of the rows of a tensor that belong to one segment each.

    Parameters
    ----------
    data : RelayExpr
        T[n, ...]: the rows.
    segment_ids : RelayExpr
        int[m], m at most n: the segment of each of the first m rows.
    num_segments : int or RelayExpr, optional
        How many segments there are; without it as many as the greatest id says, so it depends on the data: the
        interpreter runs that.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
        T[num_segments, ...].
    """
    data = _arguments.expression(data, "segment_sum: data")
    ids = _arguments.expression(segment_ids, "segment_sum: segment_ids")
    if num_segments is None:
        count = _cast(_reshape(_add(_max(ids), _cast_like(const(1), ids)), (1,)), "int64")
    elif isinstance(num_segments, _core.Object):
        count = _cast(_reshape(num_segments, (1,)), "int64")
    else:
        count = const([_arguments.integer(num_segments, "segment_sum: num_segments")], "int64")
    rest = _strided_slice(_shape_of(data, dtype="int64"), begin=[1], end=[np.iinfo("int64").max])
    zeros = _cast_like(_zeros(_concatenate((count, rest), axis=0), dtype="float32"), data)
    rows = _slice_like(data, ids, axes=[0])
    return _scatter_nd(zeros, _expand_dims(ids, axis=0), rows, mode="add", span=span)


def reverse_reshape(data: Any, newshape: Any, *, span: Any = None) -> Any:
    """Reshapes a tensor; the special values of the new shape are matched from the last axis to the first.

    Parameters
    ----------
    data : RelayExpr
        T[...]: what gets another shape.
    newshape : tuple of int
        As of `reshape`: 0 copies a size, -1 is inferred, -2 copies the rest, -3 merges two, -4 splits one.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Call
        Of `contrib_reverse_reshape`.
    """
    return _reverse_reshape(data, newshape, span=span)


def logsumexp(data: Any, axis: Any = None, keepdims: bool = False, *, span: Any = None) -> Any:
    """The logarithm of the sum of the exponentials, where large elements do not overflow.

    Parameters
    ----------
    data : RelayExpr
        f[...]: the exponents.
    axis : int or tuple of int, optional
        What is reduced; everything when it is left out.
    keepdims : bool
        Whether reduced axes are kept with size 1.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    RelayExpr
    """
    axes = (axis,) if isinstance(axis, int) else axis
    greatest = _max(data, axes, True, span=span)
    total = _log(_sum(_exp(data - greatest, span=span), axes, True, span=span), span=span) + greatest
    return total if keepdims else _squeeze(total, axes, span=span)


# The functions that replace the ops' generated functions in `relay`.
FUNCTIONS: dict[str, Any] = {name: globals()[name] for name in __all__}


_public.publish(__name__, "headrace.relay")
