"""What tests of programs are written with."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace._core import Device, NDArray
from headrace.nd import cpu

__all__ = ["assert_allclose", "enabled_targets"]


def enabled_targets() -> list[tuple[str, Device]]:
    """What tests go through that run everywhere.

    Returns
    -------
    list of (str, Device)
        Pairs of a target that code is made for and a device that it runs on.
    """
    return [("llvm", cpu())]


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raises AssertionError, which shows where, unless two tensors have one shape and elements that are near.

    Parameters
    ----------
    actual, desired : NDArray, array, list or number
        What is, and what it should be.
    rtol, atol : float
        How far an element may be off: `atol + rtol * abs(desired)`.
    """
    given, expected = (np.asarray(x.numpy() if isinstance(x, NDArray) else x) for x in (actual, desired))
    if given.shape != expected.shape:
        raise AssertionError(f"the shape is {given.shape}, and should be {expected.shape}")
    np.testing.assert_allclose(given, expected, rtol=rtol, atol=atol)
