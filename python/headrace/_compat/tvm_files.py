"""The `.params` files of TVM: a magic number, names, then arrays, all little-endian.

Each length is checked against what is left of the file.
"""

from __future__ import annotations

import math
import struct

from headrace import _core
from headrace._numpy import np, numpy_dtype

_LIST_MAGIC = 0xF7E58D4F05049CB7
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_MAX_NDIM = 64
# By the code and the bits of a DLPack dtype; a bool was an unsigned integer of one bit before it had a code of its own.
_DTYPES = {
    **{(0, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits): f"float{bits}" for bits in (16, 32, 64)},
    (1, 1): "bool",
    (4, 16): "bfloat16",
    (6, 8): "bool",
}


def recognise(data: bytes) -> bool:
    """Whether the bytes begin as a `.params` file does."""
    return data[:8] == _LIST_MAGIC.to_bytes(8, "little")


class _Reader:
    """Takes numbers and bytes from the front of what is left."""

    def __init__(self, data: bytes) -> None:
        self.data = memoryview(data)
        self.at = 0

    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int, what: str) -> memoryview:
        if size > self.left():
            raise _core.UserError(
                f"param_bytes: a .params file that is cut off or damaged: {what} at byte {self.at} would take {size} "
                f"bytes, and {self.left()} are left"
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def numbers(self, layout: str, what: str) -> tuple[int, ...]:
        layout = f"<{layout}"
        return struct.unpack(layout, self.take(struct.calcsize(layout), what))

    def count(self, what: str, least: int) -> int:
        """How many items follow, each of `least` bytes or more."""
        (number,) = self.numbers("Q", what)
        if number * least > self.left():
            raise _core.UserError(
                f"param_bytes: a .params file that is damaged: {what} is {number}, more than the {self.left()} bytes "
                "that are left can hold"
            )
        return number


def read(data: bytes) -> dict[str, _core.NDArray]:
    """The tensors of a `.params` file by name.

    Parameters
    ----------
    data : bytes
        The file.

    Returns
    -------
    dict of str to NDArray

    Raises
    ------
    UserError
        For a file that is cut off, damaged, has bytes behind its end, or has a dtype that there is not here.
    """
    reader = _Reader(data)
    reader.numbers("QQ", "the header")
    names = [_name(reader, i) for i in range(reader.count("the number of names", 8))]
    count = reader.count("the number of arrays", 40)
    if count != len(names):
        raise _core.UserError(f"param_bytes: a .params file that is damaged: {len(names)} names, {count} arrays")
    tensors = {name: _core.array(_array(reader, f"parameter '{name}'"), f"parameter '{name}'") for name in names}
    if len(tensors) != len(names) or reader.left():
        what = "two parameters of one name" if len(tensors) != len(names) else f"{reader.left()} bytes behind its end"
        raise _core.UserError(f"param_bytes: a .params file that is damaged: it has {what}")
    return tensors


def _name(reader: _Reader, index: int) -> str:
    what = f"name {index}"
    try:
        return bytes(reader.take(reader.count(what, 1), what)).decode()
    except UnicodeDecodeError:
        raise _core.UserError(f"param_bytes: a .params file that is damaged: {what} is not text in UTF-8") from None


def _array(reader: _Reader, what: str) -> np.ndarray:
    magic, _, _, _, ndim, code, bits, lanes = reader.numbers("QQiiiBBH", what)
    if magic != _ARRAY_MAGIC or not 0 <= ndim <= _MAX_NDIM:
        told = f"it has {ndim} dimensions" if magic == _ARRAY_MAGIC else "no array begins where it should"
        raise _core.UserError(f"param_bytes: a .params file that is damaged: {what}: {told}")
    if lanes != 1 or (code, bits) not in _DTYPES:
        raise _core.UserError(
            f"param_bytes: {what}: there is no dtype here of DLPack's code {code} with {bits} bits and {lanes} lanes"
        )
    shape = reader.numbers(f"{ndim}q", f"the shape of {what}")
    dtype = numpy_dtype(_DTYPES[code, bits])
    size = reader.count(f"the size of {what} in bytes", 1)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise _core.UserError(
            f"param_bytes: a .params file that is damaged: {what}: {size} bytes for {dtype.name} of the shape {shape}"
        )
    values = np.frombuffer(reader.take(size, what), dtype)
    try:
        return values.reshape(shape).copy()
    except ValueError as error:  # no elements, and a dimension past what numpy takes
        raise _core.UserError(f"param_bytes: a .params file that is damaged: {what}: {error}") from None
