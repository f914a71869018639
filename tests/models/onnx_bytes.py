"""ONNX models as bytes, from the standard library alone: just enough to write small models and to change the attributes
of large ones in place."""

from __future__ import annotations

import struct
from collections.abc import Sequence

FLOAT, INT64 = 1, 7


def varint(value: int) -> bytes:
    """A protobuf integer; negative ones have ten bytes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def field(number: int, value: bytes | str | int | float) -> bytes:
    """A field of a message; a float is a float32."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def attribute(name: str, value: float | int | Sequence[int]) -> bytes:
    """An AttributeProto."""
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    return field(1, name) + field(8, b"".join(map(varint, value))) + field(20, 7)


def node(kind: str, inputs: Sequence[str], output: str, **attributes: float | int | Sequence[int]) -> bytes:
    """A NodeProto."""
    parts = [*(field(1, name) for name in inputs), field(2, output), field(4, kind)]
    return b"".join((*parts, *(field(5, attribute(name, value)) for name, value in attributes.items())))


def tensor(name: str, shape: Sequence[int], values: Sequence[float]) -> bytes:
    """A float32 TensorProto."""
    dims = b"".join(field(1, size) for size in shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, struct.pack(f"<{len(values)}f", *values))


def value_info(name: str, shape: Sequence[int]) -> bytes:
    """A float32 ValueInfoProto."""
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


def model(nodes: Sequence[bytes], weights: Sequence[bytes], source: Sequence[int], result: Sequence[int]) -> bytes:
    """A ModelProto of opset 17 with the input x and the output y, of these shapes."""
    graph = b"".join(field(1, one) for one in nodes) + field(2, "g") + b"".join(field(5, one) for one in weights)
    graph += field(11, value_info("x", source)) + field(12, value_info("y", result))
    return field(1, 8) + field(7, graph) + field(8, field(2, 17))


def replace_attribute(data: bytes, name: str, before: float | Sequence[int], after: float | Sequence[int]) -> bytes:
    """The model with another value of every attribute of that name and value; ValueError when there is none.

    The encodings must be as long, since the sizes around them stay.
    """
    changed = data
    for encode in (attribute, _unpacked):
        old, new = encode(name, before), encode(name, after)
        if len(old) != len(new):
            raise ValueError(f"{name}: {before} and {after} are not as long")
        # Replaces only the bytes before the attribute's type, because writers put the type in different places.
        changed = changed.replace(old[:-3], new[:-3])
    if changed == data:
        raise ValueError(f"the model has no attribute {name}={before}")
    return changed


def _unpacked(name: str, value: float | Sequence[int]) -> bytes:
    """An AttributeProto whose integers are fields of their own."""
    if isinstance(value, float):
        return attribute(name, value)
    return field(1, name) + b"".join(field(8, one) for one in value) + field(20, 7)
