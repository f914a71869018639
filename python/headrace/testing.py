"""Helpers for tests of programs."""

from headrace._compat import places

__all__ = places.show(__name__)
