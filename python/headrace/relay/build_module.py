"""Building and running, by the place where users of Relay look for it."""

from typing import Any

from headrace import _elsewhere
from headrace.relay._run import GraphExecutorFactoryModule, bind_params_by_name, build, create_executor

__all__ = ["GraphExecutorFactoryModule", "bind_params_by_name", "build", "create_executor"]


def __getattr__(name: str) -> Any:
    raise _elsewhere.attribute_error(__name__, name)
