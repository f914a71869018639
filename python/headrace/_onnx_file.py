"""Reads what an ONNX file says about itself, and rewrites its initialisers, without the package onnx.

Only the fields that sessions need are read, by the field numbers of onnx.proto. A file is mapped, so weights are
skipped and not copied.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.error import SessionError

_MODEL_GRAPH, _GRAPH_NAME, _GRAPH_INITIALIZER, _GRAPH_DOC, _GRAPH_INPUT, _GRAPH_OUTPUT = 7, 2, 5, 10, 11, 12
_EXTERNAL = 1  # TensorProto.data_location
ELEMENT_TYPES = {
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
}


@dataclass
class Initializer:
    """A named constant of the model's graph."""

    name: str
    dtype: str
    shape: list[int]
    is_external: bool


@dataclass
class Header:
    """The fields of a model beside its nodes."""

    ir_version: int = 0
    producer_name: str = ""
    domain: str = ""
    model_version: int = 0
    doc: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    graph_name: str = ""
    graph_doc: str = ""
    input_names: list[str] = field(default_factory=list)
    denotations: dict[str, list[str]] = field(default_factory=dict)  # of an input's dimensions; "" where none
    initializers: dict[str, Initializer] = field(default_factory=dict)


def read_header(path: str) -> Header:
    """The header of the ONNX file; SessionError for bytes that are no ONNX model."""
    with _mapped(path) as data:
        header = Header()
        texts = {2: "producer_name", 4: "domain", 6: "doc"}
        for number, value in _fields(memoryview(data)):
            if number in texts:
                setattr(header, texts[number], _text(value))
            elif number == 1:
                header.ir_version = value
            elif number == 5:
                header.model_version = _signed(value)
            elif number == 14:
                entry = dict(_fields(value))
                header.properties[_text(entry.get(1, b""))] = _text(entry.get(2, b""))
            elif number == _MODEL_GRAPH:
                _read_graph(value, header)
            if isinstance(value, memoryview):
                value.release()
    return header


def with_initializers(path: str, replaced: Mapping[str, Any], dropped: set[str]) -> bytes:
    """The model with other values for some initialisers, and without those that become required inputs.

    Raises
    ------
    SessionError
        Where the weights that stay are in files beside the model: bytes cannot name these.
    """
    with Path(path).open("rb") as file:
        data = memoryview(file.read())
    model = bytearray()
    for start, end, number, value in _spans(data):
        if number != _MODEL_GRAPH:
            model += data[start:end]
            continue
        graph = bytearray()
        for inner_start, inner_end, inner, tensor in _spans(value):
            name = _text(dict(_fields(tensor)).get(8, b"")) if inner == _GRAPH_INITIALIZER else ""
            if name in replaced:
                graph += _delimited(_GRAPH_INITIALIZER, _tensor(name, replaced[name]))
            elif inner != _GRAPH_INITIALIZER or name not in dropped:
                if inner == _GRAPH_INITIALIZER and _initializer(tensor).is_external:
                    raise SessionError(
                        f"initialiser '{name}' is in a file beside the model; other initialisers can be replaced only "
                        "where all those that stay are in the model itself"
                    )
                graph += value[inner_start:inner_end]
        model += _delimited(_MODEL_GRAPH, graph)
    return bytes(model)


def element_type(dtype: str) -> int:
    """ONNX's number of a dtype; SessionError for one that ONNX's tensors do not have."""
    for number, name in ELEMENT_TYPES.items():
        if name == dtype:
            return number
    raise SessionError(f"tensors of {dtype} are not supported")


def _read_graph(graph: memoryview, header: Header) -> None:
    for number, value in _fields(graph):
        if number == _GRAPH_NAME:
            header.graph_name = _text(value)
        elif number == _GRAPH_DOC:
            header.graph_doc = _text(value)
        elif number == _GRAPH_INITIALIZER:
            tensor = _initializer(value)
            header.initializers[tensor.name] = tensor
        elif number == _GRAPH_INPUT:
            name, denotations = _input(value)
            header.input_names.append(name)
            header.denotations[name] = denotations
        if isinstance(value, memoryview):
            value.release()


def _initializer(tensor: memoryview) -> Initializer:
    found = Initializer("", "", [], is_external=False)
    for number, value in _fields(tensor):
        if number == 1:  # packed, or one by one
            found.shape += [_signed(value)] if isinstance(value, int) else _packed(value)
        elif number == 2:
            found.dtype = ELEMENT_TYPES.get(value, "")
        elif number == 8:
            found.name = _text(value)
        elif number == 14:
            found.is_external = value == _EXTERNAL
        if isinstance(value, memoryview):
            value.release()
    return found


def _input(info: memoryview) -> tuple[str, list[str]]:
    """The name of a ValueInfoProto and the denotations of its dimensions."""
    entry = dict(_fields(info))
    dims: list[str] = []
    for number, tensor_type in _fields(entry.get(2, memoryview(b""))):
        if number == 1:  # TypeProto.tensor_type
            shape = dict(_fields(tensor_type)).get(2, memoryview(b""))
            dims = [_text(dict(_fields(dim)).get(3, b"")) for number, dim in _fields(shape) if number == 1]
    return _text(entry.get(1, b"")), dims


class _mapped:
    """The bytes of a file while a `with` lasts."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> Any:
        with Path(self._path).open("rb") as file:
            try:
                self._data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except ValueError:  # an empty file
                self._data = b""
        return self._data

    def __exit__(self, *raised: object) -> None:
        if isinstance(self._data, mmap.mmap):
            with contextlib.suppress(BufferError):  # a traceback holds a view; the mapping goes with that
                self._data.close()


def _spans(data: memoryview) -> Iterator[tuple[int, int, int, Any]]:
    """(start, end, number, value) of each field: an int, or the bytes of text and messages."""
    at = 0
    try:
        while at < len(data):
            start = at
            key, at = _varint(data, at)
            kind = key & 7
            if kind == 0:
                value, at = _varint(data, at)
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
                value, at = int.from_bytes(data[at : at + size], "little"), at + size
            elif kind == 2:
                size, at = _varint(data, at)
                if size > len(data) - at:
                    raise IndexError
                value, at = data[at : at + size], at + size
            else:
                raise IndexError
            yield start, at, key >> 3, value
    except IndexError:
        raise SessionError("the bytes are no ONNX model: a field of the file is damaged") from None


def _fields(data: memoryview) -> Iterator[tuple[int, Any]]:
    for _, _, number, value in _spans(data):
        yield number, value


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError


def _packed(data: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(_signed(value))
    return values


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value: Any) -> str:
    return bytes(value).decode("utf-8", "replace") if not isinstance(value, int) else ""


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _delimited(number: int, data: bytes | bytearray) -> bytes:
    return _encoded(number << 3 | 2) + _encoded(len(data)) + bytes(data)


def _tensor(name: str, array: Any) -> bytes:
    """A TensorProto of the array's elements."""
    dims = b"".join(_encoded(1 << 3) + _encoded(size) for size in array.shape)
    dtype = _encoded(2 << 3) + _encoded(element_type(str(array.dtype)))
    return dims + dtype + _delimited(8, name.encode()) + _delimited(9, array.tobytes())
