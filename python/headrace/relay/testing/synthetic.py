"""The network synthetic, as `relay.testing` of TVM has it."""

from headrace._compat import places

__all__ = places.show(__name__)
