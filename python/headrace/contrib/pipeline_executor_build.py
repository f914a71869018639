"""The names of `headrace.pipeline_executor` that compile a pipeline, by the place where TVM has them."""

from headrace._compat import places

__all__ = places.show(__name__)
