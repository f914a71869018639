"""Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

from headrace import _arguments, _core, _native, _public
from headrace._core import Device, NDArray, UserError
from headrace._core import array as _share
from headrace._ffi import api
from headrace._numpy import np, numpy_dtype

if TYPE_CHECKING:
    from headrace.target import Target

__all__ = ["Device", "NDArray", "array", "cpu", "device", "empty", "from_dlpack"]

# Other names of kinds that users of Relay know.
_SHORT = {"llvm": "cpu", "gpu": "cuda", "nvptx": "cuda", "cl": "opencl"}


def array(data: Any, device: Device | None = None) -> NDArray:
    """A new tensor with the elements of another; `from_dlpack` shares them.

    Parameters
    ----------
    data : numpy.ndarray, DLPack tensor, list or number
        The elements.
    device : Device, optional
        The CPU.

    Returns
    -------
    NDArray

    Raises
    ------
    UserError
        For what is no tensor, and for elements in the other byte order.
    """
    dtype = getattr(data, "dtype", None)
    if getattr(dtype, "byteorder", None) in ("<", ">") and not dtype.isnative:
        raise UserError(f"data: {dtype} is in the other byte order; cast it, as data.astype('{dtype.name}')")
    return _share(data, "data").copyto(_checked(device))


def empty(shape: Sequence[int], dtype: str = "float32", device: Device | None = None) -> NDArray:
    """A tensor whose elements are whatever the memory held.

    Parameters
    ----------
    shape : sequence of int
        Its dimensions.
    dtype : str
        The dtype of the elements.
    device : Device, optional
        The CPU.

    Returns
    -------
    NDArray
    """
    _checked(device)
    dims = (shape,) if isinstance(shape, int) else shape
    sizes = tuple(_arguments.integer(dim, "shape", 64) for dim in dims)
    if any(size < 0 for size in sizes):
        raise UserError(f"shape: sizes are 0 or more, got {sizes}")
    try:
        return _share(np.empty(sizes, numpy_dtype(dtype) if isinstance(dtype, str) else dtype), "shape")
    except TypeError:
        raise UserError(f"dtype: numpy has no dtype {dtype!r}") from None


def from_dlpack(tensor: Any) -> NDArray:
    """A tensor that shares the memory of another.

    Parameters
    ----------
    tensor : object
        Anything with __dlpack__, as numpy's arrays and torch's tensors.

    Returns
    -------
    NDArray
    """
    return _share(tensor, "tensor")


def cpu(id: int = 0) -> Device:
    """The CPU, where tensors and programs are.

    Parameters
    ----------
    id : int
        Its number; there is one.

    Returns
    -------
    Device

    Raises
    ------
    UserError
        For a number below 0.
    """
    return _core.cpu(id)


def device(dev_type: str | int | Target, dev_id: int = 0) -> Device:
    """A device by name, which programs may be annotated with; tensors and what runs are on the CPU.

    Parameters
    ----------
    dev_type : str, int or Target
        "cpu", "cuda", "opencl", "vulkan", "metal", "rocm", "webgpu", "hexagon", "ext_dev", or DLPack's number of one;
        also "llvm", "gpu", "nvptx" and "cl", as Relay has them. Of a target's text, "llvm -mcpu=...", the first word
        counts; a Target gives the device of its kind.
    dev_id : int
        Which one.

    Returns
    -------
    Device
        Its `exist` says whether it is here.

    Raises
    ------
    UserError
        For a kind that is none, which lists them; a negative id.
    """
    kind, number = _kind(dev_type), _arguments.integer(dev_id, "dev_id")
    if _native.is_runtime_alone and kind in ("cpu", 1):
        return cpu(number)
    return api("target.Device")(kind, number)


def _kind(dev_type: str | int | Target) -> str | int:
    if isinstance(dev_type, str):
        word = next(iter(dev_type.split()), "")
        return _SHORT.get(word, word)
    if isinstance(dev_type, Integral):
        return _arguments.integer(dev_type, "dev_type")
    from headrace.target import Target  # needs the compiler

    if isinstance(dev_type, Target):
        return dev_type.device_type
    raise UserError(f"dev_type: expected a str, an int or a Target, got {_arguments.kind(dev_type)}")


def _checked(device: Device | None) -> Device:
    if device is not None and not isinstance(device, Device):
        raise UserError(f"device: expected a Device, as headrace.cpu(), got {_arguments.kind(device)}")
    return cpu() if device is None else _arguments.present(device, "device")


_public.settle(__name__)
