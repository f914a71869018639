"""Columns of Arrow tables as arrays of numpy, and back, without copies where Arrow allows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace._core import UserError
from headrace._numpy import np

if TYPE_CHECKING:
    import numpy as np

__all__: list[str] = []


def is_table(batch: Any) -> bool:
    """Whether a batch is a `pyarrow.Table`; pyarrow is imported only by those who make one."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(batch, arrow.Table)


def array_of_column(column: Any, name: str) -> np.ndarray:
    """The values of a column with the rows as first dimension.

    Reads the column's memory in place if it has one chunk without nulls; several chunks are joined by a copy.
    """
    if column.null_count:
        raise UserError(f"column '{name}' has {column.null_count} nulls, and inputs have none; drop or fill these rows")
    chunks = [_array_of_chunk(chunk, name) for chunk in column.chunks if len(chunk)]
    if not chunks:
        return _empty(column, name)
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)


def _array_of_chunk(chunk: Any, name: str) -> np.ndarray:
    import pyarrow as pa

    if isinstance(chunk, pa.FixedShapeTensorArray):
        return chunk.to_numpy_ndarray()
    if pa.types.is_fixed_size_list(chunk.type):
        inner = chunk.flatten()  # keeps the offset of a slice
        if inner.null_count:
            raise UserError(f"column '{name}' has {inner.null_count} nulls in its rows, and inputs have none")
        return _array_of_chunk(inner, name).reshape(len(chunk), chunk.type.list_size, *_row_shape(inner))
    return np.asarray(chunk.to_numpy(zero_copy_only=False))  # Ray's tensors have a to_numpy of their own


def _row_shape(inner: Any) -> tuple[int, ...]:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(inner.type):
        return (inner.type.list_size, *_row_shape(inner.flatten()))
    return ()


def _empty(column: Any, name: str) -> np.ndarray:
    """A column of no rows, with its rows' shape and dtype."""
    import pyarrow as pa

    kind, shape = column.type, []
    declared = getattr(kind, "shape", None)
    if declared is not None:  # a tensor of Arrow or of Ray
        shape, kind = list(declared), getattr(kind, "scalar_type", None) or kind.value_type
    while pa.types.is_fixed_size_list(kind):
        shape.append(kind.list_size)
        kind = kind.value_type
    try:
        return np.empty((0, *shape), kind.to_pandas_dtype())
    except NotImplementedError:
        raise UserError(f"column '{name}' is {column.type}, which no input takes") from None


def table_of(arrays: Mapping[str, np.ndarray], kept: Mapping[str, Any]) -> Any:
    """A table of arrays, whose memory it reads in place, and of columns as they are."""
    import pyarrow as pa

    columns = {name: _column_of(array) for name, array in arrays.items()}
    return pa.table({**columns, **kept})


def _column_of(array: np.ndarray) -> Any:
    import pyarrow as pa

    if array.ndim == 1:
        return pa.array(array)
    kind = pa.fixed_shape_tensor(pa.from_numpy_dtype(array.dtype), array.shape[1:])
    values = pa.array(array.reshape(-1))
    size = int(np.prod(array.shape[1:]))
    return pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(values, size))
