"""The types and functions of prelude.rly, by the place where users of Relay look for them."""

from headrace._compat import places

__all__ = places.show(__name__)
