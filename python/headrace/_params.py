"""Tensors by name as bytes, in the format of safetensors: a header of JSON with its length before it, then the data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments, _core, _foreign, _public, _whole_file
from headrace._numpy import np, numpy_dtype

__all__ = ["load_param_dict", "load_param_dict_from_file", "save_param_dict", "save_param_dict_to_file"]

_NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def save_param_dict(params: Mapping[str, Any]) -> bytearray:
    """Tensors by name as bytes, which are a file of safetensors.

    Parameters
    ----------
    params : dict of str to tensor
        The tensors.

    Returns
    -------
    bytearray

    Raises
    ------
    UserError
        For a name that is not a str, a value that is not a tensor, a dtype that the format does not have.
    """
    header, parts, end = {}, [], 0
    for name, value in _arguments.mapping(params, "params", 'params={"weight": w}').items():
        tensor = _core.array(value, f"parameter '{name}'")
        if tensor.dtype not in _NAMES:
            raise _core.UserError(f"parameter '{name}': {tensor.dtype} is not a dtype of safetensors")
        data = tensor.numpy().tobytes()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [end, end + len(data)],
        }
        parts.append(data)
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return bytearray().join([len(text).to_bytes(8, "little"), text, *parts])


def load_param_dict(param_bytes: bytes | bytearray) -> dict[str, _core.NDArray]:
    """The tensors that `save_param_dict` gave the bytes of, this one's or TVM's.

    Parameters
    ----------
    param_bytes : bytes
        The bytes, or those of any file of safetensors, or those of a `.params` file that TVM wrote.

    Returns
    -------
    dict of str to NDArray

    Raises
    ------
    UserError
        For what is of neither format, and for a file that is cut off or damaged.
    """
    if not isinstance(param_bytes, (bytes, bytearray)):
        raise _core.UserError(f"param_bytes: expected bytes, got {_arguments.kind(param_bytes)}")
    if _foreign.is_in("tvm.params", param_bytes):
        return _foreign.read("tvm.params", param_bytes)
    begin = 8 + int.from_bytes(param_bytes[:8], "little")
    if len(param_bytes) < 8 or begin > len(param_bytes):
        raise _core.UserError("param_bytes: they are not what save_param_dict gives: no header of safetensors")
    try:
        header = json.loads(param_bytes[8:begin])
        data = bytes(param_bytes[begin:])
        rows = {name: row for name, row in header.items() if name != "__metadata__"}
        return {name: _core.array(_tensor(row, data), f"parameter '{name}'") for name, row in rows.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise _core.UserError(f"param_bytes: they are not what save_param_dict gives: {error!r}") from None


def save_param_dict_to_file(params: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Writes tensors by name to a file, as `save_param_dict` makes them bytes. An error leaves the old file in place.

    Parameters
    ----------
    params : dict of str to tensor
        The tensors.
    path : path
        The file.

    Raises
    ------
    UserError
        As `save_param_dict`, and for a file that cannot be written.
    """
    data = save_param_dict(params)
    _with_file(path, lambda file: _whole_file.write_whole(str(file), data))


def load_param_dict_from_file(path: str | PathLike[str]) -> dict[str, _core.NDArray]:
    """The tensors of a file, as `load_param_dict` reads them from bytes.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    dict of str to NDArray

    Raises
    ------
    UserError
        As `load_param_dict`, and for a file that cannot be read.
    """
    return load_param_dict(_with_file(path, Path.read_bytes))


def _with_file(path: str | PathLike[str], action: Callable[[Path], Any]) -> Any:
    name = _arguments.path(path, "path")
    try:
        return action(Path(name))
    except OSError as error:
        raise _core.UserError(f"path: '{name}': {error.strerror}") from None


def _tensor(row: Mapping[str, Any], data: bytes) -> np.ndarray:
    """One tensor; KeyError, TypeError or ValueError for a row of the header that does not fit the data."""
    dtype, shape, (begin, end) = numpy_dtype(_DTYPES[row["dtype"]]), row["shape"], row["data_offsets"]
    if not 0 <= begin <= end <= len(data) or min(shape, default=0) < 0:
        raise ValueError(f"data from {begin} to {end} of {len(data)} bytes, for the shape {shape}")
    if math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(f"{end - begin} bytes for {dtype.name} of the shape {shape}")
    return np.frombuffer(data[begin:end], dtype).reshape(shape).copy()


_public.publish(__name__, "headrace.runtime")
