"""Tensor expressions, by the names that users of te know: those of `headrace.tir` that make them."""

from headrace.tir import _functions, _tensors
from headrace.tir._functions import *  # noqa: F403
from headrace.tir._tensors import *  # noqa: F403

__all__ = [*_functions.__all__, *_tensors.__all__]
