"""What tests of passes are written with."""

from headrace._compat import places

__all__ = places.show(__name__)
