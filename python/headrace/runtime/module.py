"""Modules of code and their timing, where users of TVM look for them."""

from headrace._compat import places

__all__ = places.show(__name__)
