"""Relay: programs of tensors and functions, as users of Relay write them.

The functions of ops are Python text, a `def` each: `relay.nn` and the modules of the other families have theirs, and
`relay` has those of the ops without a family. `python/write_ops.py` writes them when the package is built.
"""

from headrace._compat import places

__all__ = places.show(__name__)
