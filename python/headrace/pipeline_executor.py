"""The pipeline executor: modules that run at the same time on a stream of requests."""

from headrace._compat import places

__all__ = places.show(__name__)
