"""Natural numbers as data: nat.rly."""

from headrace._compat import places

__all__ = places.show(__name__)
