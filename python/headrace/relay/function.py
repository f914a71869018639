"""Functions, by the place where users of Relay look for them."""

from headrace.relay._classes import Function
from headrace.relay._with_fields import FunctionWithFields

__all__ = ["Function", "FunctionWithFields"]
