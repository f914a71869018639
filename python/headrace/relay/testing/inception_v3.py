"""The network inception_v3, as `relay.testing` of TVM has it."""

from headrace._compat import places

__all__ = places.show(__name__)
