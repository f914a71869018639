"""What the evaluator gives, by the place where users of Relay look for it."""

from __future__ import annotations

from typing import Any

from headrace import _elsewhere
from headrace.relay.backend import interpreter

__all__ = ["interpreter"]


def __getattr__(name: str) -> Any:
    raise _elsewhere.attribute_error(__name__, name)
