"""The parts that the runtimes of headrace.peer share."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np


class Runtime(NamedTuple):
    """A model that is open, with its inputs and outputs bound to memory that every run uses again where the runtime
    allows that."""

    version: str
    run: Callable[[], None]
    outputs: Callable[[], list[np.ndarray]]  # the results of the last run
    bound: list[object]  # the owners of that memory


class Signature(NamedTuple):
    """The inputs and outputs of an ONNX file, in its order."""

    inputs: list[str]
    outputs: dict[str, str]  # the dtypes, by name


def read_signature(model: str) -> Signature:
    """Reads them; inputs that have values of their own are left out."""
    import onnx

    graph = onnx.load(model, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    inputs = [one.name for one in graph.input if one.name not in constants]
    outputs = {one.name: onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type) for one in graph.output}
    return Signature(inputs, {name: str(dtype) for name, dtype in outputs.items()})


@contextlib.contextmanager
def captured_stderr() -> Iterator[list[str]]:
    """Keeps from the terminal what this process, C++ libraries included, writes to stderr; afterwards the list has its
    lines."""
    lines: list[str] = []
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            lines += file.read().decode(errors="replace").splitlines()
