"""Backends in Python that come with the package; `headrace.backend.find` imports them by their names."""

from headrace import _public

__all__ = _public.facade(__name__, {}, modules="numpy onnxruntime")
_public.settle(__name__)
