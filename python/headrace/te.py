"""Tensor expressions, by the names that users of te know: all that `headrace.tir` has."""

from headrace._compat import places

__all__ = places.show(__name__)
