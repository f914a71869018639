"""Building and running, by the place where users of Relay look for it."""

from headrace._compat import places

__all__ = places.show(__name__)
