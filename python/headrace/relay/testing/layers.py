"""Ops whose weights are variables of their own."""

from headrace._compat import places

__all__ = places.show(__name__)
