"""Tensors."""

from headrace._core import NDArray, array

__all__ = ["NDArray", "array"]
