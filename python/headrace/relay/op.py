"""Operators: `op.get(name)`, registering ops, and the functions of ops and all else of `relay` as attributes."""

from headrace._compat import places

__all__ = places.show(__name__)
