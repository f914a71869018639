"""Helpers for tests of passes."""

from headrace._compat import places

__all__ = places.show(__name__)
