"""Reading text, by the place where users of Relay look for it."""

from headrace.relay import fromtext, parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]
