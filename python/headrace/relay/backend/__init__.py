"""What a build takes and what the evaluator gives, by the place where users of Relay look for it."""

from __future__ import annotations

from typing import Any

from headrace import _elsewhere
from headrace.relay.backend import executor, interpreter, runtime
from headrace.relay.backend._options import Executor, Runtime

__all__ = ["Executor", "Runtime", "executor", "interpreter", "runtime"]


def __getattr__(name: str) -> Any:
    raise _elsewhere.attribute_error(__name__, name)
