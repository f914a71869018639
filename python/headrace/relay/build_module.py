"""Building and running, by the place where users of Relay look for it."""

from headrace.relay._run import GraphExecutorFactoryModule, bind_params_by_name, build, create_executor

__all__ = ["GraphExecutorFactoryModule", "bind_params_by_name", "build", "create_executor"]
