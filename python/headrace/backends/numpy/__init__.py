"""The backend `numpy`: computes ops by numpy. One to read and to copy; README.md beside it says what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from headrace import _public
from headrace._core import UserError
from headrace.backend import Backend, Region
from headrace.backends.numpy import _ops, _patterns
from headrace.backends.numpy._program import Program
from headrace.backends.numpy._region import write_region

__all__ = ["NumpyBackend"]

_FORMAT = "1"


class NumpyBackend(Backend):
    """Computes tensors of float32, float64, int32, int64 and bool by numpy."""

    name = "numpy"
    version = f"{_FORMAT} on numpy {numpy.__version__}"

    def supports(self, call: Any) -> bool | str:
        """Takes the ops of a table, in some dtypes."""
        return _ops.verdict(call)

    def patterns(self) -> Sequence[tuple[Any, ...]]:
        """Takes dense layers with their bias, and with relu, as one."""
        return _patterns.table()

    def compile(self, regions: list[Region], options: dict[str, Any]) -> list[bytes | str]:
        """Writes each region as steps; there are no options."""
        if options:
            raise UserError(f"the backend 'numpy' has no option '{next(iter(options))}', and no other")
        return [write_region(region.function) for region in regions]

    def load(self, data: bytes) -> Program:
        """Reads the steps."""
        return Program.read(data)

    def accepts_version(self, recorded: str) -> bool | str:
        """Reads what this backend wrote on any version of numpy."""
        return recorded.startswith(f"{_FORMAT} on ") or f"its steps are of the form {_FORMAT}"


_public.settle(__name__)
