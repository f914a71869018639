"""A model as a caller gives it: a path, the bytes of an ONNX file, or an onnx.ModelProto."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from os import PathLike
from typing import Any

from headrace import _arguments
from headrace._core import UserError
from headrace._memory_file import MemoryFile


class ModelSource:
    """The file of a model, which may be in memory, and the name by which messages call it."""

    def __init__(self, model: Any, what: str) -> None:
        self._memory_file: MemoryFile | None = None
        if isinstance(model, (bytes, bytearray, memoryview)):
            data = bytes(model)
            if not data:
                raise UserError(
                    f"{what}: got {_arguments.kind(model)} without content, which is not an ONNX model; give the bytes "
                    "of an .onnx file, or its path"
                )
            self._in_memory(data, f"the model of {len(data)} byte{'s' if len(data) > 1 else ''}")
        elif _arguments.kind(model) == "ModelProto" and hasattr(model, "SerializeToString"):
            if not model.HasField("graph"):
                raise UserError(
                    f"{what}: the onnx.ModelProto has no graph; make a model with onnx.helper.make_model, or read one "
                    "with onnx.load"
                )
            name = model.graph.name
            self._in_memory(_serialized(model, what), f"the model '{name}'" if name else "the onnx.ModelProto")
        elif isinstance(model, (str, PathLike)):
            self.path = self.name = _arguments.path(model, what)
            if not self.path:
                raise UserError(f"{what}: the path is empty; name the file of an ONNX model or of Relay text")
        else:
            instead = "; IRModule.from_expr makes a module of it" if _arguments.kind(model) == "Function" else ""
            raise UserError(
                f"{what}: expected a path, the bytes of an ONNX model or an onnx.ModelProto, got "
                f"{_arguments.kind(model)}{instead}"
            )

    def rewritten(self, data: bytes) -> ModelSource:
        """Other bytes, for which messages use the same name."""
        other = ModelSource.__new__(ModelSource)
        other._in_memory(data, self.name)
        return other

    @property
    def is_in_memory(self) -> bool:
        """Whether the model was given as bytes, which name no files beside them."""
        return self._memory_file is not None

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Makes errors name the model as the caller gave it, not by the path of the file in memory."""
        try:
            yield
        except UserError as error:
            message = str(error)
            if not self.is_in_memory or self.path not in message:
                raise
            told = message.replace(f"'{self.path}'", self.name).replace(self.path, self.name)
            place = getattr(error, "place", None)
            fields = {"place": place.replace(self.path, self.name)} if isinstance(place, str) else {}
            raise _arguments.retold(error, told, **fields) from None

    def _in_memory(self, data: bytes, name: str) -> None:
        self._memory_file = MemoryFile(data)  # kept, since each compile reads it again
        self.path, self.name = self._memory_file.path, name


def _serialized(model: Any, what: str) -> bytes:
    try:
        return model.SerializeToString()
    except Exception as error:  # protobuf's own classes: a message past 2 GB, or required fields that are missing
        raise UserError(f"{what}: the ModelProto cannot be serialized: {error}; save it and give its path") from None
