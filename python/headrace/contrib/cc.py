"""As `headrace.cc`."""

from headrace.cc import create_shared, get_cc

__all__ = ["create_shared", "get_cc"]
