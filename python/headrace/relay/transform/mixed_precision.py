"""The rules of ToMixedPrecision for ops, at the place where users of Relay look for them."""

from __future__ import annotations

from headrace import _public
from headrace.relay._op_registration import (
    MIXED_PRECISION_ALWAYS,
    MIXED_PRECISION_FOLLOW,
    MIXED_PRECISION_NEVER,
    register_mixed_precision_conversion,
)

__all__ = [
    "MIXED_PRECISION_ALWAYS",
    "MIXED_PRECISION_FOLLOW",
    "MIXED_PRECISION_NEVER",
    "register_mixed_precision_conversion",
]

_public.settle(__name__)
