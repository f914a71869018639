"""Sequences and mappings that C++ and Python share, by the place where users of TVM look for them."""

from headrace._container import Array, Map

__all__ = ["Array", "Map"]
