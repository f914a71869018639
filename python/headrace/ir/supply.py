"""Names that nothing else has yet, by the place where users of TVM look for them."""

from headrace._compat import places

__all__ = places.show(__name__)
