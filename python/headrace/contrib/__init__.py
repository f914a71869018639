"""Modules by the place where users of Relay look for them."""

from headrace.contrib import cc, graph_executor, utils

__all__ = ["cc", "graph_executor", "utils"]
