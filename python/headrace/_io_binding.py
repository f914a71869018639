"""IOBinding: inputs and outputs that are bound once for many runs."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from typing import Any

from headrace import _arguments, _public
from headrace._numpy import np
from headrace._ort_value import OrtValue, check_cpu, numpy_dtype, sizes
from headrace.error import SessionError

__all__ = ["IOBinding"]


class IOBinding:
    """The tensors that a session's `run_with_iobinding` reads and writes; made by `InferenceSession.io_binding`.

    An input that is bound is read when the session runs. An output that has memory is written there, without a copy
    where the memory is aligned and apart from that of inputs and other outputs; another is a new tensor in each run.
    What the memory holds after a run that failed is not defined.
    """

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs: dict[str, OrtValue] = {}
        self._outputs: dict[str, OrtValue | None] = {}
        self._results: list[OrtValue] | None = None

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds a numpy array."""
        self._bind_input(name, OrtValue.ortvalue_from_numpy(arr_on_cpu))

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds memory at an address, which the caller keeps while it is bound."""
        check_cpu(device_type, f"input '{name}'")
        self._bind_input(name, OrtValue(_array_at(buffer_ptr, element_type, shape, f"input '{name}'")))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an OrtValue."""
        self._bind_input(name, _ort_value(ortvalue, f"input '{name}'"))

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Asks for an output: in the memory at `buffer_ptr`, which needs dtype and shape, or in new memory."""
        check_cpu(device_type, f"output '{name}'")
        if buffer_ptr is None:
            self._bind_output(name, None)
            return
        if element_type is None or shape is None:
            raise SessionError(f"output '{name}': memory at an address needs element_type and shape")
        self._bind_output(name, OrtValue(_array_at(buffer_ptr, element_type, shape, f"output '{name}'")))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Asks for an output in the memory of an OrtValue."""
        self._bind_output(name, _ort_value(ortvalue, f"output '{name}'"))

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order in which they were bound."""
        if self._results is None:
            raise SessionError("the binding has no outputs before run_with_iobinding has run")
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs of the last run, as numpy arrays."""
        return [value.numpy().copy() for value in self.get_outputs()]

    def clear_binding_inputs(self) -> None:
        """Forgets the inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets the outputs, and those of the last run."""
        self._outputs.clear()
        self._results = None

    def synchronize_inputs(self) -> None:
        """Does nothing: the CPU's memory needs no wait."""

    def synchronize_outputs(self) -> None:
        """Does nothing: a run has ended when it returns."""

    def _run(self, run_options: Any) -> None:
        if not self._outputs:
            raise SessionError("at least one output must be bound before a run")
        places = {name: target.numpy() for name, target in self._outputs.items() if target is not None}
        made = self._session._results(list(self._outputs), self._inputs, run_options, places)
        results = []
        for (name, target), result in zip(self._outputs.items(), made, strict=True):
            array = result.numpy()
            if target is None:
                results.append(OrtValue(array))
                continue
            own = target.numpy()
            if (own.shape, own.dtype) != (array.shape, array.dtype):
                raise SessionError(
                    f"output '{name}': the memory is {own.dtype}{list(own.shape)}, the output "
                    f"{array.dtype}{list(array.shape)}"
                )
            if own.ctypes.data != array.ctypes.data:
                own[...] = array
            results.append(target)
        self._results = results

    def _bind_input(self, name: str, value: OrtValue) -> None:
        known = [arg.name for arg in [*self._session.get_inputs(), *self._session.get_overridable_initializers()]]
        if name not in known:
            raise SessionError(f"the model has no input '{name}'; it has {', '.join(known)}")
        self._inputs[name] = value

    def _bind_output(self, name: str, value: OrtValue | None) -> None:
        known = [arg.name for arg in self._session.get_outputs()]
        if name not in known:
            raise SessionError(f"the model has no output '{name}'; it has {', '.join(known)}")
        if value is not None and not value.numpy().flags.writeable:
            raise SessionError(f"output '{name}': the memory is read-only; bind an array that can be written to")
        self._outputs[name] = value


def _ort_value(value: Any, what: str) -> OrtValue:
    if not isinstance(value, OrtValue):
        raise SessionError(f"{what}: expected an OrtValue, got {_arguments.kind(value)}")
    return value


def _array_at(address: int, element_type: Any, shape: Sequence[int], what: str) -> Any:
    """The memory at an address as a numpy array that does not own it."""
    dtype = numpy_dtype(element_type, f"{what}: element_type")
    dims = sizes(shape, f"{what}: shape")
    at = _arguments.integer(address, f"{what}: buffer_ptr", bits=65)
    count = math.prod(dims) * dtype.itemsize
    if count > sys.maxsize:
        raise SessionError(f"{what}: a tensor of the shape {list(dims)} is larger than memory can be")
    if count == 0:
        return np.empty(dims, dtype)
    if at <= 0:
        raise SessionError(f"{what}: buffer_ptr is {at}; give the address of memory")
    memory = (ctypes.c_uint8 * count).from_address(at)
    return np.frombuffer(memory, np.uint8).view(dtype).reshape(dims)


_public.publish(__name__, "headrace.session")
