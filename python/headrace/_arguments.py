"""Checks of arguments, each told in one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from os import PathLike, fspath
from typing import Any

from headrace import _node
from headrace._container import Map
from headrace._core import Device, NDArray, UserError, array, try_array

# Hints for objects that are passed in place of a model's file: the functions that accept these objects.
_INSTEAD = {
    "ModelProto": "; relay.frontend.from_onnx reads it, or onnx.save it",
    "IRModule": "; relay.build compiles it",
    "Function": "; relay.build compiles it",
}


def kind(value: object) -> str:
    """The name of a value's type, for a message: "None", "str", "int"."""
    return "None" if value is None else type(value).__name__


def expression(value: Any, what: str) -> Any:
    """An expression of Relay; of an op's several results, their tuple."""
    whole = value.astuple() if hasattr(type(value), "astuple") else value
    instead = "; give one of its functions, as mod['main']" if kind(value) == "IRModule" else ""
    if isinstance(whole, _node.class_of("relay.Expr")):
        return whole
    raise UserError(f"{what}: expected an expression, got {kind(value)}{instead}")


def module(value: Any, what: str) -> Any:
    """An IRModule."""
    if isinstance(value, _node.class_of("ir.IRModule")):
        return value
    instead = "; IRModule.from_expr makes one of it" if isinstance(value, _node.class_of("relay.Expr")) else ""
    raise UserError(f"{what}: expected an IRModule, got {kind(value)}{instead}")


def node(value: Any, what: str, *keys: str) -> Any:
    """A node of one of the types with these keys."""
    classes = tuple(_node.class_of(key) for key in keys)
    if isinstance(value, classes):
        return value
    raise UserError(f"{what}: expected {' or '.join(keys)}, got {kind(value)}")


def entries(value: Any, what: str) -> dict[Any, Any]:
    """The entries of a dict or a Map; none of None."""
    if value is None:
        return {}
    if isinstance(value, (Mapping, Map)):
        return dict(value.items())
    raise UserError(f"{what}: expected a dict, got {kind(value)}")


def retold(error: UserError, message: str, **fields: str) -> UserError:
    """A copy of the error with another message; `fields` replace parts of its location."""
    other = type(error)(message)
    vars(other).update({**vars(error), **fields})
    return other


def path(value: str | PathLike[str], what: str) -> str:
    """The name of a file as a str. UserError for another type, or a name that no file can have."""
    if isinstance(value, (str, PathLike)):
        name = fspath(value)
        if isinstance(name, str):
            if "\0" in name:
                raise UserError(f"{what}: {name!r} has a NUL character, which no file's name has")
            return text(name, what)
        value = name
    instead = _INSTEAD.get(kind(value), "")
    raise UserError(f"{what}: expected a path (a str or a pathlib.Path), got {kind(value)}{instead}")


def text(value: str, what: str) -> str:
    """The str itself. UserError for another type, or text that is not valid Unicode."""
    if not isinstance(value, str):
        raise UserError(f"{what}: expected a str, got {kind(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise UserError(f"{what}: {value!r} is not text in UTF-8; rename what it names") from None
    return value


def present(device: Device, what: str) -> Device:
    """A device that memory and programs can be on."""
    if not device.exist:
        raise UserError(f"{what}: {device} is not here; tensors and programs are on the CPU: headrace.cpu()")
    return device


def seconds(value: float, what: str) -> float:
    """A time from 0 to a million seconds. UserError for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1e6:
        raise UserError(f"{what}: expected seconds, 0 to 1000000, got {value!r:.40}")
    return float(value)


def integer(value: int, what: str, bits: int = 32) -> int:
    """A signed integer of so many bits; numpy's will do, a bool is none."""
    try:
        number = index(value if not isinstance(value, bool) else None)
    except TypeError:
        raise UserError(f"{what}: expected an int, got {value!r}") from None
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise UserError(f"{what}: {number} is out of range")
    return number


def names(value: Iterable[str], what: str) -> list[str]:
    """A list of str; a str alone would be split into letters."""
    if isinstance(value, str):
        raise UserError(f"{what}: expected a list of str, got one str; write [{value!r}]")
    if not isinstance(value, Iterable):
        raise UserError(f"{what}: expected a list of str, got {kind(value)}")
    return [text(name, f"{what}[{i}]") for i, name in enumerate(value)]


def mapping(value: Mapping[str, Any] | None, what: str, example: str) -> dict[str, Any]:
    """A dict whose keys are names of inputs; empty for None. UserError for anything but a mapping."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UserError(f"{what}: expected a dict by name, as in {example}, got {kind(value)}")
    return {name if _is_plain(name) else text(name, f"{what}: a key"): item for name, item in value.items()}


def _is_plain(name: object) -> bool:
    """Whether a name is surely text, so that no message needs to be made for it."""
    return isinstance(name, str) and name.isascii()


def falls_back(fallback: str) -> bool:
    """Whether regions run natively where their backend is missing or fails."""
    if fallback not in ("native", "none"):
        raise UserError(f"fallback: expected 'native' or 'none', got {fallback!r}")
    return fallback == "native"


def shapes(value: Mapping[str, Sequence[int]] | None) -> dict[str, tuple[int, ...]]:
    """Shapes by input."""
    example = 'shapes={"x": (1, 3, 224, 224)}'
    return {name: _shape(dims, name) for name, dims in mapping(value, "shapes", example).items()}


def dims(value: Mapping[str, int] | None) -> dict[str, int]:
    """Sizes of dimensions by name."""
    example = 'dims={"batch": 1}'
    return {name: integer(size, f"dims: '{name}'", bits=64) for name, size in mapping(value, "dims", example).items()}


def _shape(dims: Sequence[int], name: str) -> tuple[int, ...]:
    if isinstance(dims, (str, bytes)) or not isinstance(dims, Iterable):
        raise UserError(f"shapes: input '{name}': expected a tuple of ints, got {dims!r}")
    return tuple(integer(dim, f"shapes: input '{name}': dimension {i}", bits=64) for i, dim in enumerate(dims))


def tensors(value: Sequence[Any]) -> Sequence[Any]:
    """Inputs in order; an array alone would be split into rows."""
    if isinstance(value, (str, bytes, NDArray)) or not isinstance(value, Sequence):
        raise UserError(f"inputs: expected a list with one tensor an input, got {kind(value)}; write run([x])")
    return value


def tensor(value: Any, what: str, name: object, dtype: str = "") -> NDArray:
    """A tensor that shares the memory; numbers get `dtype`. Messages have the name for the braces of `what`."""
    shared = try_array(value)
    return array(value, what.format(name), dtype) if shared is None else shared


def copied(value: Any, what: str) -> NDArray:
    """A copy of a tensor, so that a constant of a program shares no memory that a caller may write to."""
    shared = array(value, what)
    return shared.copyto(shared.device)
