"""OrtValue: a tensor by onnxruntime's interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _arguments, _core, _public
from headrace._numpy import np
from headrace.error import SessionError

__all__ = ["OrtValue"]

_ELEMENT_TYPES = {  # by ONNX's numbers
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    25: "uint2",
    26: "int2",
}
_OF_ML_DTYPES = frozenset(name for number, name in _ELEMENT_TYPES.items() if number >= 16)
_NAMES = {  # onnxruntime's, where they are not numpy's
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float4_e2m1fn": "float4e2m1",
}


def type_string(dtype: str) -> str:
    """The type of a tensor as onnxruntime writes it: "tensor(float)"."""
    return f"tensor({_NAMES.get(dtype, dtype)})"


def numpy_dtype(given: Any, what: str) -> Any:
    """A numpy dtype from a dtype, its name, or ONNX's number of it."""
    name = _ELEMENT_TYPES.get(given) if isinstance(given, int) and not isinstance(given, bool) else given
    try:
        if isinstance(name, str) and name in _OF_ML_DTYPES:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, name))
        dtype = np.dtype(name)
    except (ImportError, AttributeError):
        raise _core.MissingError(f"{what}: {name} needs the package ml_dtypes") from None
    except TypeError:
        dtype = None
    if name is None or dtype is None or str(dtype) not in _ELEMENT_TYPES.values():
        raise SessionError(f"{what}: expected the dtype of a tensor, got {given!r}")
    return dtype


def check_cpu(device_type: str, what: str) -> None:
    """Refuses devices on which there are no tensors."""
    if device_type != "cpu":
        raise SessionError(f"{what}: device {device_type!r}: tensors are on the CPU; give 'cpu'")


class OrtValue:
    """A tensor on the CPU, which shares its memory with the numpy array that it was made of."""

    def __init__(self, array: Any) -> None:
        if not isinstance(array, np.ndarray):
            raise SessionError(f"OrtValue: expected a numpy array, got {_arguments.kind(array)}")
        _element_type(str(array.dtype))
        self._array = np.ascontiguousarray(array).reshape(array.shape)

    @classmethod
    def ortvalue_from_numpy(cls, array: Any, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A value that shares the array's memory where that is contiguous and in C order."""
        check_cpu(device_type, "ortvalue_from_numpy")
        return cls(array)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: Any, onnx_element_type: int) -> OrtValue:
        """A value of ONNX's element type of that number, whose elements have the bits of the array's."""
        dtype = numpy_dtype(onnx_element_type, "onnx_element_type")
        value = cls(data)
        if dtype.itemsize != value._array.itemsize:
            raise SessionError(f"onnx_element_type: {dtype} and the array's {value._array.dtype} differ in size")
        value._array = value._array.view(dtype)
        return value

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """A value of zeros; the type is a numpy dtype, its name or ONNX's number."""
        check_cpu(device_type, "ortvalue_from_shape_and_type")
        return cls(np.zeros(sizes(shape, "shape"), numpy_dtype(element_type, "element_type")))

    @classmethod
    def from_dlpack(cls, data: Any) -> OrtValue:
        """A value that shares the memory of a DLPack tensor."""
        return cls(data._array if isinstance(data, OrtValue) else _core.array(data, "data").numpy())

    def numpy(self) -> Any:
        """The numpy array, which shares the memory."""
        return self._array

    def shape(self) -> list[int]:
        """The sizes of the dimensions."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The type as text: "tensor(float)"."""
        return type_string(str(self._array.dtype))

    def element_type(self) -> int:
        """ONNX's number of the dtype."""
        return _element_type(str(self._array.dtype))

    def tensor_size_in_bytes(self) -> int:
        """The bytes of the elements."""
        return self._array.nbytes

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._array.ctypes.data

    def device_name(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def has_value(self) -> bool:
        """Always True."""
        return True

    def is_tensor(self) -> bool:
        """Always True."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Always False."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Always False."""
        return False

    def update_inplace(self, array: Any) -> None:
        """Writes the elements of an array of the same shape and dtype into the memory."""
        if not isinstance(array, np.ndarray) or (array.shape, array.dtype) != (self._array.shape, self._array.dtype):
            got = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else _arguments.kind(array)
            raise SessionError(f"update_inplace: expected {self._array.dtype}{self.shape()}, got {got}")
        self._array[...] = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        cast = self._array if dtype is None else self._array.astype(dtype, copy=False)
        if copy is False and cast is not self._array:
            raise ValueError(f"a copy is needed to make {dtype} of {self._array.dtype}")
        return cast.copy() if copy and cast is self._array else cast

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __repr__(self) -> str:
        return f"OrtValue({self.data_type()}, shape={self.shape()})"


def _element_type(dtype: str) -> int:
    for number, name in _ELEMENT_TYPES.items():
        if name == dtype:
            return number
    raise SessionError(f"tensors of {dtype} are not supported")


def sizes(shape: Sequence[int], what: str) -> tuple[int, ...]:
    """A shape: sizes from 0 on."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise SessionError(f"{what}: expected a list of ints, got {_arguments.kind(shape)}")
    given = tuple(_arguments.integer(size, f"{what}[{i}]", bits=64) for i, size in enumerate(shape))
    if any(size < 0 for size in given):
        raise SessionError(f"{what}: got {list(given)}; sizes are 0 or more")
    return given


_public.publish(__name__, "headrace.session")
