"""What a build takes and what the evaluator gives, by the place where users of Relay look for it."""

from headrace.relay.backend import executor, interpreter, runtime
from headrace.relay.backend._options import Executor, Runtime

__all__ = ["Executor", "Runtime", "executor", "interpreter", "runtime"]
