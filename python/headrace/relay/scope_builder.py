"""Scopes, by the place where users of Relay look for them."""

from headrace.relay._build_ir import ScopeBuilder

__all__ = ["ScopeBuilder"]
