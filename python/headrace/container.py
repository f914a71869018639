"""Sequences and mappings that C++ and Python share, by the place where users of older TVM look for them."""

from headrace._compat import places

__all__ = places.show(__name__)
