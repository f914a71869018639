"""The runtime that a build takes, by the place where users of Relay look for it."""

from headrace.relay.backend._options import Runtime

__all__ = ["Runtime"]
