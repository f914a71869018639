"""numpy, which is imported when something of it is first used: importing it takes longer than all of Headrace."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _Numpy:
        """Stands for the module: keeps what was asked for."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module("numpy"), name)
            setattr(self, name, value)
            return value

    np = _Numpy()

__all__ = ["cast_array", "np", "numpy_dtype"]


def cast_array(value: Any, dtype: str) -> Any:
    """An array of numpy as an array of the dtype that a program takes; other values and casts as they are.

    Casts only within a kind or to a wider one (float64 to float32, int64 to int32, int32 to float32), never floats to
    integers: what is left is refused where the tensor is used.
    """
    given = str(getattr(value, "dtype", ""))
    if not dtype or given == dtype or not isinstance(value, (np.ndarray, np.generic)):
        return value
    try:
        can_cast = np.can_cast(value.dtype, dtype, "same_kind")
    except TypeError:
        return value
    return value.astype(dtype) if can_cast else value


def numpy_dtype(name: str) -> np.dtype:
    """The dtype of that name, also one of ml_dtypes: "bfloat16", "float8_e4m3fn", "int4"."""
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"numpy has no dtype {name!r} of its own; ml_dtypes, which may have it, is missing") from None
    if not hasattr(ml_dtypes, name):
        raise TypeError(f"data type {name!r} not understood")
    return np.dtype(getattr(ml_dtypes, name))
