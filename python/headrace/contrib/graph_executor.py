"""As `headrace.graph_executor`."""

from headrace.graph_executor import GraphModule

__all__ = ["GraphModule"]
