"""The serialized form of a region, and its run.

    8 bytes   "HRNUMPY1"
    8 bytes   the size of the header, little-endian
    header    JSON: {"inputs": 2, "constants": [{"dtype": "float32", "shape": [3]}],
                     "steps": [{"op": "add", "attrs": {}, "args": [0, 2]}], "outputs": [3]}
    the rest  the constants, one behind another

Values are numbered: the inputs, the constants, then the result of each step, which uses values before it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

import numpy as np

from headrace._core import UserError
from headrace.backends.numpy._ops import ALL, OPS
from headrace.backends.numpy._patterns import COMPOSITES

_MAGIC = b"HRNUMPY1"
_STEPS = {**OPS, **COMPOSITES}


@dataclass(frozen=True)
class Step:
    """One op on values."""

    op: str
    attrs: dict[str, Any]
    args: list[int]


@dataclass(frozen=True)
class Program:
    """A region as steps, which any number of threads may run at once."""

    num_inputs: int
    constants: list[np.ndarray]
    steps: list[Step]
    outputs: list[int]

    @property
    def num_values(self) -> int:
        """Values so far."""
        return self.num_inputs + len(self.constants) + len(self.steps)

    def write(self) -> bytes:
        """The serialized form."""
        header = {
            "inputs": self.num_inputs,
            "constants": [{"dtype": one.dtype.name, "shape": list(one.shape)} for one in self.constants],
            "steps": [asdict(step) for step in self.steps],
            "outputs": self.outputs,
        }
        text = json.dumps(header, sort_keys=True).encode()
        return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *(one.tobytes() for one in self.constants)])

    @staticmethod
    def read(data: bytes) -> Program:
        """Reads the serialized form. UserError for anything else."""
        begin = len(_MAGIC) + 8
        if data[: len(_MAGIC)] != _MAGIC or len(data) < begin:
            _refuse("they do not begin as a region of this backend")
        end = begin + int.from_bytes(data[len(_MAGIC) : begin], "little")
        try:
            header = json.loads(data[begin:end])
        except (ValueError, RecursionError):
            _refuse("the header is not JSON")
        if (
            end > len(data)
            or not isinstance(header, dict)
            or set(header) != {"inputs", "constants", "steps", "outputs"}
        ):
            _refuse("the header is incomplete")
        program = Program(_number(header["inputs"]), _read_constants(header["constants"], data, end), [], [])
        for row in _list(header["steps"]):
            program.steps.append(_read_step(row, program.num_values))
        program.outputs.extend(_number(one, program.num_values) for one in _list(header["outputs"]))
        return program

    def run(self, name: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        """Runs all steps, and copies the results to the outputs."""
        if (len(inputs), len(outputs)) != (self.num_inputs, len(self.outputs)):
            raise UserError(f"the region '{name}' was called with {len(inputs)} inputs and {len(outputs)} outputs")
        values = [*inputs, *self.constants]
        with np.errstate(all="ignore"):  # NaN and infinities are results
            for step in self.steps:
                operands = [values[i] for i in step.args]
                values.append(np.asarray(_STEPS[step.op].compute(operands, step.attrs)))
        for output, number in zip(outputs, self.outputs, strict=True):
            if (values[number].shape, values[number].dtype) != (output.shape, output.dtype):
                raise UserError(f"the region '{name}' has a result of another type than its bytes say")
            output[...] = values[number]


def _refuse(why: str) -> NoReturn:
    raise UserError(f"the bytes are damaged: {why}; compile the model again")


def _number(value: Any, limit: int = 1 << 40) -> int:
    if type(value) is not int or not 0 <= value < limit:
        _refuse(f"{value!r} should be a number below {limit}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        _refuse(f"{value!r} should be a list")
    return value


def _fields(value: Any, *names: str) -> list[Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        _refuse(f"{value!r} should have the fields {', '.join(names)}")
    return [value[name] for name in names]


def _read_step(row: Any, num_values: int) -> Step:
    op, attrs, args = _fields(row, "op", "attrs", "args")
    if not isinstance(op, str) or op not in _STEPS or not isinstance(attrs, dict):
        _refuse(f"there is no op {op!r}")
    return Step(op, attrs, [_number(one, num_values) for one in _list(args)])


def _read_constants(rows: Any, data: bytes, begin: int) -> list[np.ndarray]:
    constants = []
    for row in _list(rows):
        dtype, dims = _fields(row, "dtype", "shape")
        if dtype not in ALL:
            _refuse(f"there is no dtype {dtype!r}")
        shape = [_number(dim) for dim in _list(dims)]
        end = begin + math.prod(shape) * np.dtype(dtype).itemsize
        if end > len(data):
            _refuse("a constant is cut off")
        # A copy is aligned as numpy likes it.
        constants.append(np.frombuffer(data[begin:end], dtype).reshape(shape).copy())
        begin = end
    if begin != len(data):
        _refuse("there are bytes behind the last constant")
    return constants
