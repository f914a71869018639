"""A running pipeline: the inputs of the next run, the parameters of stages, and the results that wait to be taken."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Mapping
from threading import Condition, Lock, Thread, current_thread
from typing import Any

from headrace import _arguments
from headrace._compat.pipeline import adapter
from headrace._compat.pipeline.errors import PipelineExecutorError, told_of
from headrace._core import NDArray, array, try_array
from headrace._numpy import cast_array

# Seconds that a run waits for a place while other threads are alive of which none has asked for outputs yet: one may be
# about to.
_FIRST_READER = 5.0
# Seconds that a thread waits for a run when it is the only one of the program: a callback of a ticket may start one.
_LONE_READER = 1.0
_SLICE = 0.1  # seconds after which a run that waits looks whether the threads that take outputs are alive


class _Run:
    """The result of one run: a ticket until the result is taken from the pipeline, then the outputs or the error."""

    def __init__(self, ticket: Any) -> None:
        self.ticket = ticket
        self._outputs: list[NDArray] = []
        self._error: Exception | None = None
        self._lock = Lock()

    def outputs(self, timeout: float | None) -> list[NDArray]:
        """The outputs; raises the error of the run, or TimeoutError when it has no result in time."""
        if not self._lock.acquire(timeout=-1 if timeout is None else timeout):
            raise TimeoutError("the run has no result yet")
        try:
            if self.ticket is not None:
                self._take_result(timeout)
            if self._error is not None:
                raise self._error
            return self._outputs
        finally:
            self._lock.release()

    def _take_result(self, timeout: float | None) -> None:
        try:
            self._outputs = adapter.wait(self.ticket, timeout)
        except TimeoutError:
            raise
        except Exception as error:
            self._error = error
        self.ticket = None


class RunningPipeline:
    """A pipeline that was started. Threads may share it: runs are in one order, and so are results.

    A run has its place until its outputs are taken, so that memory is bounded.

    Parameters
    ----------
    pipeline_mods, mods_config : dict
        As PipelineExecutorFactoryModule holds them.
    pipeline : Pipeline
        It runs, and its parameters have the values `params` of its modules.
    runtime_groups : dict of str to str, optional
        The runtime's names of parameter groups, where they differ.
    """

    def __init__(
        self,
        pipeline_mods: Mapping[int, Mapping[str, Any]],
        mods_config: Mapping[str, Any],
        pipeline: Any,
        runtime_groups: Mapping[str, str] | None = None,
    ) -> None:
        self._mods, self._config = pipeline_mods, mods_config
        self._inputs: dict[str, list[tuple[int, str]]] = {}
        for entry in mods_config["input_connection"]:
            consumers = self._inputs.setdefault(str(entry["global_interface_name"]), [])
            consumers.append((entry["mod_idx"], entry["module_interface_name"]))
        self._groups = {str(entry["global_param_name"]): entry["mod_idx"] for entry in mods_config["param_connection"]}
        outputs = [output for stage in mods_config["module_connection"] for output in stage["output"]]
        self.num_outputs = sum(fed["mod_idx"] == 0 for output in outputs for fed in output["dependencies"])
        self._staged: dict[str, NDArray] = {}
        self._pipeline, self._runtime_groups = pipeline, runtime_groups or {}
        # Those that have a value.
        self._params = {(number, name) for number, parts in pipeline_mods.items() for name in parts.get("params", {})}
        self._submitting = Lock()
        self._taking = Lock()
        self._changed = Condition()  # guards what follows, and what is staged
        self._runs: deque[_Run] = deque()  # those whose outputs were not given out
        self._readers: set[Thread] = set()  # threads that have asked for outputs
        self._is_stopped = False
        self.num_runs = 0

    @property
    def num_inputs(self) -> int:
        """How many inputs the pipeline has."""
        return len(self._inputs)

    def consumers_of(self, name: Any) -> list[tuple[int, str]]:
        """The inputs of stages that an input of the pipeline feeds."""
        if str(name) not in self._inputs:
            names = ", ".join(self._inputs) or "none"
            raise PipelineExecutorError(f"Cannot find {name} in binding list input: the pipeline has {names}")
        return self._inputs[str(name)]

    def stage_of_group(self, name: Any) -> int:
        """The number of the stage whose parameters a group sets."""
        if str(name) not in self._groups:
            names = ", ".join(self._groups) or "none"
            raise PipelineExecutorError(f"there is no parameter group {name}; the pipeline has {names}")
        return self._groups[str(name)]

    def set_input(self, name: Any, value: Any) -> None:
        """Copies a tensor that the next run takes."""
        number, port = self.consumers_of(name)[0]
        tensor = _copied(value, self._type_of(number, port), f"pipeline input {name}")
        with self._changed:
            self._staged[str(name)] = tensor

    def get_input(self, name: Any) -> NDArray:
        """The tensor that the next run takes."""
        self.consumers_of(name)
        with self._changed:
            if str(name) not in self._staged:
                raise PipelineExecutorError(f"pipeline input {name} has no value for the next run; set_input gives it")
            return self._staged[str(name)]

    def set_params(self, group: Any, values: Any) -> None:
        """Sets parameters for the runs from now on: all of them, or none when one does not fit."""
        if not values:
            raise PipelineExecutorError(f"set_params: params_data is empty; give tensors for the group {group}")
        number = self.stage_of_group(group)
        with told_of("set_params"):
            given = _arguments.entries(values, "params_data")
        settable = self._mods[number].get("settable", ())
        for name in given:
            if name not in settable:
                names = ", ".join(settable) or "none"
                raise PipelineExecutorError(
                    f"set_params: parameter {name} of mod{number} cannot be set; those of the group {group} are {names}"
                )
        checked = {
            (number, name): _copied(value, self._type_of(number, name), f"parameter {name} of the group {group}")
            for name, value in given.items()
        }
        with self._changed:
            own = self._runtime_groups.get(str(group), str(group))
            adapter.set_params(self._pipeline, own, {name: value for (_, name), value in checked.items()})
            self._params |= checked.keys()

    def run(self, timeout: float | None) -> Any:
        """Starts a run with the staged inputs, and gives its ticket. Waits only while the pipeline is full."""
        with self._submitting:
            with self._changed:
                self._request()
                self._wait_for_place(timeout)
                request = self._request()
                staged, self._staged = self._staged, {}
            try:
                ticket = adapter.submit(self._pipeline, request)
            except BaseException:  # nothing entered the pipeline, so the inputs are the next run's
                with self._changed:
                    self._staged = {**staged, **self._staged}
                raise
            with self._changed:
                self._runs.append(_Run(ticket))
                self.num_runs += 1
                self._changed.notify_all()
        return ticket

    def _wait_for_place(self, timeout: float | None) -> None:
        """Waits until a run may enter; raises PipelineExecutorError when no thread would make a place for it."""
        begin = time.monotonic()
        while len(self._runs) >= adapter.MAX_IN_FLIGHT and not self._is_stopped:
            waited = time.monotonic() - begin
            if waited >= self._patience(timeout):
                raise PipelineExecutorError(
                    f"run: {len(self._runs)} runs have outputs that were not taken, which is the most; call "
                    "get_output() in between, or in another thread"
                )
            if timeout is not None and waited >= timeout:
                raise TimeoutError(f"run: {len(self._runs)} runs have outputs that were not taken, which is the most")
            self._changed.wait(_SLICE if timeout is None else min(_SLICE, timeout - waited))

    def _patience(self, timeout: float | None) -> float:
        """The seconds in which another thread may be expected to take outputs."""
        self._readers = {thread for thread in self._readers if thread.is_alive()}
        if self._readers - {current_thread()}:
            return math.inf
        return 0.0 if self._readers or (timeout is None and _is_alone()) else _FIRST_READER

    def take_outputs(self, waits: bool, timeout: float | None) -> list[NDArray]:
        """The outputs of the oldest run whose outputs were not taken; [] when they are not there and `waits` is not."""
        end = None if timeout is None or not waits else time.monotonic() + timeout
        with self._changed:
            self._readers.add(current_thread())
        if not self._taking.acquire(blocking=waits, timeout=-1 if end is None else timeout or 0):
            return self._nothing(waits)
        try:
            with self._changed:
                if not self._wait_for_run(end if waits else -math.inf):
                    return self._nothing(waits)
                run = self._runs[0]
            try:
                outputs = run.outputs(_left(end) if waits else 0)
            except TimeoutError:
                return self._nothing(waits)
            except BaseException as error:
                if isinstance(error, Exception):  # an interrupt leaves the run where it is
                    self._forget_oldest()
                raise
            self._forget_oldest()
            return outputs
        finally:
            self._taking.release()

    def _wait_for_run(self, end: float | None) -> bool:
        """Waits until a run has outputs to take; False when there is none in time, which is None for any.

        Raises PipelineStopped when the pipeline is stopped and none is left, and PipelineExecutorError when no thread
        would start a run.
        """
        begin = time.monotonic()
        while not self._runs:
            if self._is_stopped:
                raise adapter.stopped("get_output: the pipeline is stopped, and no outputs are left")
            left = _left(end)
            if left == 0:
                return False
            if left is not None or not _is_alone():
                begin = time.monotonic()
            elif time.monotonic() - begin >= _LONE_READER:
                so_far = "the outputs of every run were taken" if self.num_runs else "no run was started"
                raise PipelineExecutorError(f"get_output: {so_far}, and no other thread starts one; call run() before")
            self._changed.wait(_SLICE if left is None else left)
        return True

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._is_stopped

    def stop(self) -> None:
        """Ends the pipeline."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        adapter.stop(self._pipeline)

    def _forget_oldest(self) -> None:
        with self._changed:
            self._runs.popleft()
            self._changed.notify_all()

    def _request(self) -> dict[str, NDArray]:
        missing = [name for name in self._inputs if name not in self._staged]
        if missing:
            names = ", ".join(missing)
            raise PipelineExecutorError(f"run: no value for pipeline input {names}; set_input gives it, for each run")
        request = dict(self._staged)
        for number, parts in self._mods.items():
            for name in parts.get("settable", ()):
                if (number, name) not in self._params:
                    what = f"parameter {name} of mod{number}"
                    raise PipelineExecutorError(f"run: {what} has no value; set_params gives it")
        return request

    def _type_of(self, number: int, name: str) -> Any:
        found = self._mods[number].get("types", {}).get(name)
        return found if hasattr(found, "dtype") else None  # not of a tuple

    @staticmethod
    def _nothing(waits: bool) -> list[NDArray]:
        if waits:
            raise TimeoutError("get_output: no run has a result yet")
        return []


def _is_alone() -> bool:
    """Whether no other thread of Python lives."""
    return all(thread is current_thread() or not thread.is_alive() for thread in threading.enumerate())


def _left(end: float | None) -> float | None:
    """The seconds until a time."""
    return None if end is None else max(0.0, end - time.monotonic())


def _copied(value: Any, expected: Any, what: str) -> NDArray:
    """A copy of a tensor that has the expected type; numpy's are cast as `GraphModule.set_input` casts them."""
    dtype = "" if expected is None else str(expected.dtype)
    with told_of(what):
        given = cast_array(value, dtype) if hasattr(value, "dtype") and not isinstance(value, NDArray) else value
        tensor = try_array(given)
        if tensor is None:
            tensor = array(given, what, "" if hasattr(given, "dtype") else dtype)
    if expected is not None:
        shape = [getattr(size, "value", None) for size in expected.shape]  # None for a symbolic dimension
        fits = len(shape) == len(tensor.shape) and all(
            size in (None, own) for size, own in zip(shape, tensor.shape, strict=True)
        )
        if not fits or str(tensor.dtype) != dtype:
            got = f"Tensor[({', '.join(map(str, tensor.shape))}), {tensor.dtype}]"
            raise PipelineExecutorError(f"{what}: expected {expected}, got {got}")
    return tensor.copyto(tensor.device)
