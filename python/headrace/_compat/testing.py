"""Helpers for tests of programs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace import _public
from headrace._core import Device, NDArray, UserError
from headrace._numpy import np
from headrace.nd import cpu
from headrace.target import Target

__all__ = [
    "assert_allclose",
    "device_enabled",
    "enabled_targets",
    "main",
    "parameter",
    "parametrize_targets",
    "requires_cuda",
    "requires_gpu",
    "requires_llvm",
    "requires_metal",
    "requires_opencl",
    "requires_rocm",
    "requires_vulkan",
    "uses_gpu",
]

# Kinds of TVM's that no code is made for: what a test says of them is left out. Any other name is a mistake.
_OTHER_KINDS = {
    "aocl",
    "c",
    "cuda",
    "ext_dev",
    "hexagon",
    "metal",
    "nvptx",
    "opencl",
    "rocm",
    "sdaccel",
    "vulkan",
    "webgpu",
}
_NO_DEVICE = "programs run on the CPU, and code is made for llvm"


def enabled_targets() -> list[tuple[str, Device]]:
    """The targets and devices that a test runs on.

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


def device_enabled(target: str) -> bool:
    """Whether programs for a target run here.

    Parameters
    ----------
    target : str
        Such as "llvm" or "cuda".

    Returns
    -------
    bool

    Raises
    ------
    UserError
        For what is not a target, here or in TVM.
    """
    if isinstance(target, str) and target.partition(" ")[0] in _OTHER_KINDS:
        return False
    return Target(target).kind == "llvm"


def _decorated(args: tuple[Any, ...], decorate: Callable[[Any], Any]) -> Any:
    """Applies a decorator that may be written with `()` and without."""
    return decorate(args[0]) if args else decorate


def _skipped(test: Any) -> Any:
    import pytest

    return pytest.mark.skip(reason=_NO_DEVICE)(test)


def requires_llvm(*args: Any) -> Any:
    """A decorator of tests that need what is here, code for "llvm", and no more: they run as they are.

    Parameters
    ----------
    *args : function, optional
        The test.

    Returns
    -------
    The test, or the decorator
    """
    return _decorated(args, lambda test: test)


uses_gpu = requires_llvm  # tests that would use a GPU where there is one


def requires_gpu(*args: Any) -> Any:
    """A decorator of tests that need a GPU: pytest skips them, since programs run on the CPU.

    Parameters
    ----------
    *args : function or class, optional
        The test.

    Returns
    -------
    The test, or the decorator
    """
    return _decorated(args, _skipped)


requires_cuda = requires_metal = requires_opencl = requires_rocm = requires_vulkan = requires_gpu


def parametrize_targets(*args: Any) -> Any:
    """A decorator of tests that pytest calls for each target, with it as `target` and its device as `dev`.

    Parameters
    ----------
    *args : function or str
        The test; or targets, and TVM's other kinds are skipped. Without any, those of `enabled_targets`.

    Returns
    -------
    The test, or the decorator

    Raises
    ------
    UserError
        For what is not a target, here or in TVM, and for a test that takes neither `target` nor `dev`.
    """
    tests = tuple(arg for arg in args if callable(arg))
    targets = [arg for arg in args if not callable(arg)] or [target for target, _ in enabled_targets()]
    rows = [(target, device_enabled(target)) for target in targets]

    def decorate(test: Any) -> Any:
        import pytest

        names = [name for name in ("target", "dev") if name in inspect.signature(test).parameters]
        if not names:
            raise UserError(f"parametrize_targets: the test '{test.__name__}' takes neither target nor dev")
        params = []
        for target, is_here in rows:
            values = {"target": target, "dev": cpu()}
            marks = () if is_here else (pytest.mark.skip(reason=_NO_DEVICE),)
            params.append(pytest.param(*(values[name] for name in names), marks=marks, id=str(target)))
        return pytest.mark.parametrize(names, params)(test)

    return _decorated(tests, decorate)


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None) -> Any:
    """A fixture of pytest with several values, for tests that take one by the name that it is assigned to.

    Parameters
    ----------
    *values
        The values: a test runs for each.
    ids : sequence of str, optional
        What pytest calls them.
    by_dict : dict of str to value, optional
        Names and values, instead of both.

    Returns
    -------
    fixture

    Raises
    ------
    UserError
        For no values, and for values beside `by_dict`.
    """
    import pytest

    if bool(values) == bool(by_dict):
        raise UserError("parameter: give the values, or by_dict")
    names = list(by_dict) if by_dict else ids
    params = list(by_dict.values()) if by_dict else values

    @pytest.fixture(params=params, ids=names)
    def value(*_self: Any, request: Any) -> Any:  # a class that it stands in gives itself
        return request.param

    return value


def main() -> None:
    """Runs the tests of the file that calls it, by pytest with the arguments of the command line, and exits."""
    import pytest

    sys.exit(pytest.main([str(inspect.getsourcefile(sys._getframe(1))), *sys.argv[1:]]))


_public.publish(__name__, "headrace.testing")
