"""Functions, by the place where users of Relay look for them."""

from headrace.relay._classes import Function

__all__ = ["Function"]
