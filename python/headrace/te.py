"""Tensor expressions, by the names that users of te know: all that `headrace.tir` has."""

from headrace import tir
from headrace.tir import *  # noqa: F403

__all__ = [*tir.__all__]
