"""PyTorch models: a backend of torch.compile, and torch's modules compiled by one call.

    fast = torch.compile(model.eval(), backend="headrace")  # inference: call it under torch.no_grad()
    f = headrace.from_torch(model.eval(), (example,))

PyTorch is an optional package (`pip install '.[torch]'`), which is imported when it is first needed.
"""

from __future__ import annotations

from headrace import _public
from headrace.torch._backend import backend
from headrace.torch._module import from_torch
from headrace.torch._package import FallbackWarning

__all__ = ["FallbackWarning", "backend", "from_torch"]

_public.settle(__name__)
