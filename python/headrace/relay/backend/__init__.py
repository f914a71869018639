"""The options of a build and the results of the evaluator, at the place where users of Relay look for them."""

from headrace._compat import places

__all__ = places.show(__name__)
