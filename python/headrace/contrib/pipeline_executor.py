"""As `headrace.pipeline_executor`."""

from headrace._compat import places

__all__ = places.show(__name__)
