"""The executor that a build takes, by the place where users of Relay look for it."""

from headrace.relay.backend._options import Executor

__all__ = ["Executor"]
