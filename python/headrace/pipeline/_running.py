"""Running pipelines and the tickets of their requests."""

from __future__ import annotations

import asyncio
import atexit
import queue
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import Any

from headrace import _arguments, _core, _public
from headrace._core import UserError
from headrace._numpy import np
from headrace.pipeline import _prometheus
from headrace.pipeline._errors import (
    PipelineError,
    PipelineFull,
    PipelineNotStarted,
    PipelineStopped,
    failure,
    refusal,
)
from headrace.pipeline._futures import future_of
from headrace.pipeline._paths import trace_path

__all__ = ["Pipeline", "Ticket", "Trace", "as_completed", "format_metrics"]

# Seconds that the end of Python waits for the calls of each pipeline.
_LAST_PATIENCE = 1.0

_NO_RESULT = "a Ticket is not a result; call its wait(), which gives the result"

_IN_CALLBACK = "a callback runs in a thread of the pipeline and must not wait for it"
# The thread that runs a callback of a ticket has the `token` of its pipeline as `of`.
_callback = threading.local()

_running: weakref.WeakSet[Pipeline] = weakref.WeakSet()


def _error_of(ticket: _core.PipelineTicket) -> PipelineError | None:
    told = ticket.failure
    return None if told is None else failure(*told)


def _seconds(value: float | None, what: str) -> float | None:
    """A time limit; None for none. UserError for what is not a number."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{what}: expected seconds, got {value!r:.40}")
    return float(value)


def _is_in_callback(token: object) -> bool:
    """Whether this thread runs a callback of the pipeline that has the token."""
    return getattr(_callback, "of", None) is token


def _until_error(items: Iterable[Any], errors: list[Any]) -> Iterator[Any]:
    """The items; an error that they raise ends them, and is added to `errors`."""
    try:
        for item in items:  # noqa: UP028 (`yield from` would close the caller's generator)
            yield item
    except Exception as error:
        errors.append(error)


def _ends_stream(entry: Ticket | Exception, return_errors: bool) -> bool:
    """Whether `map` submits nothing more after what became of an item."""
    if isinstance(entry, (PipelineNotStarted, PipelineStopped)):
        return True
    return isinstance(entry, Exception) and not return_errors


class Ticket:
    """A request of a pipeline: wait for it, await it, or cancel it.

    It keeps the pipeline until its outcome was taken.
    """

    def __init__(self, native: _core.PipelineTicket, as_numpy: Sequence[bool], pipeline: Pipeline) -> None:
        self._native, self._as_numpy = native, list(as_numpy)
        self._pipeline: Pipeline | None = pipeline
        self._token = pipeline._token

    @property
    def seq(self) -> int:
        """The number of the request, in the order of submission."""
        return self._native.number

    def done(self) -> bool:
        """Whether the request has an outcome."""
        return self._native.done()

    def wait(self, timeout: float | None = None) -> Any:
        """The only output, or a tuple of all in the pipeline's order.

        Raises TimeoutError when there is no outcome after so many seconds, PipelineError for a request that failed, and
        UserError in a callback of the pipeline, where no request that is not done may be waited for.
        Outputs of programs are NDArrays. Those of functions are what they returned, tensors as arrays of numpy.
        """
        outputs = self.outputs(timeout)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def outputs(self, timeout: float | None = None) -> list[Any]:
        """All outputs as a list; raises as `wait` does."""
        self._wait(timeout)
        error = _error_of(self._native)
        if error is not None:
            raise error
        return self._native.results(self._as_numpy)

    def exception(self, timeout: float | None = None) -> PipelineError | None:
        """Why the request failed; None if it did not. Raises TimeoutError when there is no outcome in time."""
        self._wait(timeout)
        return _error_of(self._native)

    def _wait(self, timeout: float | None) -> None:
        self._check_may_wait(timeout)
        if not self._native.wait(_seconds(timeout, "timeout")):
            raise TimeoutError(f"request {self.seq} is not done yet")
        self._pipeline = None

    def cancel(self) -> bool:
        """Ends the request: at once if no stage has begun it, else at the next stage. False if it was done before."""
        return self._native.cancel()

    def add_done_callback(self, function: Callable[[Ticket], Any]) -> None:
        """Calls the function with this ticket once it has an outcome, in a thread of the pipeline.

        The function is called at once where there is an outcome. It must not block, since the stages of the thread wait
        meanwhile: it may submit to the same pipeline, and must wait for the result in another thread. `wait` raises
        UserError there, and `submit` PipelineFull at once.
        """

        def call(_: Any) -> None:
            if sys._getframe().f_back is not None:  # a thread of Python, whose `cancel` or `stop` ended the request
                function(self)
                return
            _callback.of = self._token
            try:
                function(self)
            finally:
                _callback.of = None

        self._native.add_done_callback(call)

    def _check_may_wait(self, timeout: float | None) -> None:
        """Raises UserError where waiting would block the thread that may have to compute the result."""
        if timeout == 0 or not _is_in_callback(self._token) or self.done():
            return
        raise UserError(
            f"request {self.seq} is not done, and {_IN_CALLBACK}; wait in a thread of your own, or give this ticket a "
            "callback, too"
        )

    def future(self) -> Future[Any]:
        """A future with the result of `wait`; cancelling it cancels the request."""
        return future_of(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Raises UserError, since numpy would otherwise make an array of the ticket itself."""
        raise UserError(_NO_RESULT)

    def __getitem__(self, key: Any) -> Any:
        """Raises TypeError, which names `wait`; so do loops over a ticket."""
        raise TypeError(f"'Ticket' object is not subscriptable: {_NO_RESULT}")

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError, which names `wait`."""
        raise AttributeError(f"'Ticket' object has no attribute '{name}': {_NO_RESULT}", name=name, obj=self)

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self.future()).__await__()

    def __repr__(self) -> str:
        return f"Ticket(seq={self.seq}, done={self.done()})"


class Pipeline:
    """Stages that work on a stream of requests at the same time.

    `Graph.build` and `chain` make pipelines. Threads may share one. Use it as a context manager, whose end drains it,
    or `stop` it; without that, it stops when neither a name nor an open ticket refers to it, and when Python ends.
    """

    def __init__(self, native: _core.Pipeline, save: Callable[[str | PathLike[str]], None] | None) -> None:
        self._native, self._save = native, save
        self._token = object()  # stands for the pipeline where nothing may keep it
        self._inputs = [port[0] for port in native.inputs]
        self._outputs = [port[0] for port in native.outputs]
        self._any_outputs = [port[1] is None for port in native.outputs]
        self._max_inflight = native.max_inflight
        _running.add(self)
        for one in self.fallbacks:
            warnings.warn(
                f"stage '{one['stage']}': region {one['region']} runs natively, not by {one['backend']}: "
                f"{one['message']}",
                RuntimeWarning,
                stacklevel=_core.caller_level(),
            )

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in the order in which `submit` takes them."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in the order in which tickets give them."""
        return list(self._outputs)

    @property
    def fallbacks(self) -> list[dict[str, Any]]:
        """Regions of other backends that run natively, because the backend is missing or failed.

        Each is a dict of `stage`, `region`, `backend`, `reason` (a number of headrace/reason.h), `reason_name` (its
        name there, such as "BACKEND_MISSING") and `message` (what the backend said). A stage in a process of its own
        has those from the start of its process.
        """
        return self._native.fallbacks

    @property
    def state(self) -> str:
        """ "built", "running", "degraded" (a stage keeps failing), "draining", "stopped" or "failed".

        It is "failed" where it was stopped and a call did not return.
        """
        return self._native.state

    def start(self) -> None:
        """Starts a pipeline that was built with start=False; returns when its programs have warmed up, if they do.

        Nothing happens where it runs. Raises UserError for a program that fails on zeros, which stops the
        pipeline, and PipelineStopped for one that is stopped.
        """
        refused = self._native.start()
        if refused is None and self.state in ("stopped", "failed"):  # the runtime starts once, and says nothing then
            refused = ("PipelineStopped", "the pipeline is stopped, and cannot be started; make a new one to go on")
        if refused is not None:
            raise refusal(*refused)

    def submit(
        self,
        *inputs: Any,
        timeout: float | None = None,
        deadline: float | None = None,
        copy: bool = True,
        **unknown: Any,
    ) -> Ticket:
        """Submits a request, and returns its ticket at once, unless the pipeline is full.

        Parameters
        ----------
        *inputs
            One for each input of the pipeline, in order; or a dict of them by name.
        timeout : float, optional
            The seconds to wait for a place in a full pipeline; None waits for ever.
        deadline : float, optional
            The seconds after which the request fails with DeadlineExceeded if it is not done.
        copy : bool
            False: arrays are read in place, and must not be written before the request is done.

        Raises
        ------
        PipelineFull, PipelineBroken, PipelineNotStarted, PipelineStopped
            The request was not taken.
        UserError
            An input does not fit; the message names it.
        """
        self._check_keywords("submit", unknown)
        return Ticket(self._submit(inputs, timeout, deadline, copy, False), self._any_outputs, self)

    def push(
        self,
        *inputs: Any,
        timeout: float | None = None,
        deadline: float | None = None,
        copy: bool = True,
        **unknown: Any,
    ) -> int:
        """Submits a request whose outcome `next` gives; returns its number. It has its place until then."""
        self._check_keywords("push", unknown)
        return self._submit(inputs, timeout, deadline, copy, True)

    def _submit(
        self, inputs: tuple[Any, ...], timeout: float | None, deadline: float | None, copy: bool, pushed: bool
    ) -> Any:
        in_order = self._in_order(inputs)
        try:
            made = self._native.submit(
                inputs=in_order,
                timeout=_seconds(timeout, "timeout"),
                deadline=_seconds(deadline, "deadline"),
                keeps_inputs=not copy,
                is_pushed=pushed,
            )
        except UserError as error:
            for port, value in zip(self._inputs, in_order, strict=False):
                if isinstance(value, Ticket):
                    raise UserError(f"input '{port}': {_NO_RESULT}") from None
            if type(error) is not UserError or not (remedy := self._remedy(in_order)):
                raise
            raise UserError(f"{str(error).partition(chr(10))[0]}; {remedy}") from None
        if isinstance(made, tuple):
            kind, message = made
            if kind == "PipelineFull" and _is_in_callback(self._token):
                message = f"{message.partition(';')[0]}; {_IN_CALLBACK}; submit in a thread of your own"
            raise refusal(kind, f"{message}; make a new one to go on" if kind == "PipelineStopped" else message)
        return made

    def _remedy(self, inputs: Sequence[Any]) -> str:
        """How the first input that does not fit can be made to; empty where nothing is known."""
        ports = self._native.inputs
        if len(inputs) > len(ports) or any(isinstance(value, Mapping) for value in inputs):
            return ""
        for (name, dtype, shape), value in zip(ports, inputs, strict=False):
            if dtype is None:
                continue
            try:
                given = value if hasattr(value, "shape") and hasattr(value, "dtype") else np.asarray(value)
            except Exception:  # the error of the input says why it is not an array
                return ""
            if str(given.dtype) != dtype and given is value:
                return f"give {name}.astype('{dtype}')"
            if list(shape[:1]) == [1] and tuple(given.shape) == tuple(shape[1:]):
                return f"the first dimension is the batch: give {name}[None]"
            if given is not value and tuple(given.shape) != tuple(shape):
                return f"each input is an argument of its own, as an array of shape {tuple(shape)}, not in a list"
        return ""

    def _check_keywords(self, name: str, unknown: Mapping[str, Any]) -> None:
        if not unknown:
            return
        first = next(iter(unknown))
        options = "timeout, deadline and copy are its options"
        if first in self._inputs:
            raise UserError(
                f"{name}() takes inputs in order, or by name in a dict: {name}({{'{first}': ...}}); {options}"
            )
        raise UserError(f"{name}() has no option '{first}'; {options}, and the inputs are {', '.join(self._inputs)}")

    def _in_order(self, inputs: tuple[Any, ...]) -> list[Any]:
        if len(inputs) != 1 or not isinstance(inputs[0], Mapping):
            return list(inputs)
        named = inputs[0]
        if len(self._inputs) == 1 and set(named) != set(self._inputs) and self._native.inputs[0][1] is None:
            return list(inputs)  # a dict is the value itself
        missing = [name for name in self._inputs if name not in named]
        unknown = [str(name) for name in named if name not in self._inputs]
        if missing or unknown:
            raise UserError(
                f"the inputs are {', '.join(self._inputs)}; missing: {', '.join(missing) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}"
            )
        return [named[name] for name in self._inputs]

    def next(self, timeout: float | None = None, *, in_order: bool = True) -> Ticket:
        """The ticket of the oldest pushed request, once it is done; without `in_order`, of the first that is done.

        Raises TimeoutError when there is none in time, and PipelineStopped when the pipeline has stopped and none is
        left.
        """
        native = self._native.next(_seconds(timeout, "timeout"), in_order)
        if native is not None:
            return Ticket(native, self._any_outputs, self)
        if self.state in ("stopped", "failed"):
            raise refusal("PipelineStopped", "the pipeline has stopped, and no outcome is left")
        raise TimeoutError("no request that was pushed is done yet")

    def map(self, items: Iterable[Any], *, deadline: float | None = None, return_errors: bool = False) -> Iterator[Any]:
        """The results for a stream of items, in order; up to `max_inflight` requests are ahead of the reader.

        Parameters
        ----------
        items : iterable
            An item is the only input, or a tuple or dict of all. When `items` itself raises, the results of the items
            before come first.
        deadline : float, optional
            As for `submit`, for each item.
        return_errors : bool
            True: each item has a result, and that of a request which fails or is refused is its error. False: such an
            error is raised after the results of the items before, and requests after it are cancelled. The error of a
            refused request begins with "item N of map", counted from 0.

        Yields
        ------
        object
            As `Ticket.wait` returns it.

        Raises
        ------
        PipelineStopped, PipelineNotStarted
            The pipeline takes no requests; also with `return_errors`.
        """
        seconds = _seconds(deadline, "deadline")
        ahead: deque[Ticket | Exception] = deque()
        ends: list[Any] = []  # the error after the last result; a list, so that no variable keeps its traceback
        try:
            for number, item in enumerate(_until_error(items, ends)):
                while len(ahead) >= self._max_inflight or (ahead and not self._native.has_place()):
                    yield self._outcome(ahead.popleft(), return_errors)
                # Another thread may have taken the place: who waits for one may hold the results that would free it.
                while not (entry := self._ticket_or_error(item, number, seconds, bool(ahead))):
                    yield self._outcome(ahead.popleft(), return_errors)
                ahead.append(entry)
                if _ends_stream(ahead[-1], return_errors):
                    ends.append(ahead.pop())
                    break
            while ahead:
                yield self._outcome(ahead.popleft(), return_errors)
            if ends:
                raise ends.pop()
        finally:
            for left in ahead:
                if isinstance(left, Ticket):
                    left.cancel()

    def _ticket_or_error(
        self, item: Any, number: int, deadline: float | None, can_read: bool
    ) -> Ticket | Exception | None:
        """Submits an item of `map`; returns the error when it is refused, with the item's number in its message.

        Returns None where the pipeline is full and `can_read`: a result that is read first may free a place.
        """
        try:
            values = item if isinstance(item, tuple) and len(self._inputs) > 1 else (item,)
            return self.submit(*values, timeout=0 if can_read else None, deadline=deadline)
        except Exception as error:
            if can_read and isinstance(error, PipelineFull) and self._native.waits_for_places:
                return None
            if len(error.args) == 1 and isinstance(error.args[0], str):
                error.args = (f"item {number} of map: {error.args[0]}",)
            return error

    @staticmethod
    def _outcome(entry: Ticket | Exception, return_errors: bool) -> Any:
        if isinstance(entry, Exception):
            return entry
        if not return_errors:
            return entry.wait()
        error = entry.exception()
        return entry.wait() if error is None else error

    def set_params(self, group: str, values: Mapping[str, Any]) -> int:
        """Changes parameters of a group, all at once; returns the number of the first request that sees them."""
        given = _arguments.mapping(values, "values", '{"w": array}')
        tensors = {name: _core.array(value, f"parameter '{name}'", "") for name, value in given.items()}
        return self._native.set_params(_arguments.text(group, "group"), tensors)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the pipeline to one file, as `Graph.save` does it.

        Raises UserError for a pipeline that was loaded from a file: copy that file.
        """
        if self._save is None:
            raise UserError("the pipeline was loaded from a file, which is what save would write; copy that file")
        self._save(path)

    def reset(self) -> None:
        """Lets a degraded pipeline take requests again."""
        self._native.reset()

    def drain(self, timeout: float | None = None) -> None:
        """Takes no more requests, and stops when those that it has are done; TimeoutError if they are not in time."""
        if not self._native.drain(_seconds(timeout, "timeout")):
            raise TimeoutError("the pipeline still has requests; drain again, or stop it")

    def stop(self, timeout: float | None = None) -> list[str]:
        """Ends the requests that the pipeline has with Stopped, and waits for calls that run.

        Returns the names of the stages whose calls have not returned after so many seconds.
        """
        return self._native.stop(_seconds(timeout, "timeout"))

    def metrics(self) -> dict[str, Any]:
        """The pipeline's work so far: counts, `latency` and, for each of the `stages`, times in seconds.

        A stage was busy, starved (waited for inputs) or blocked (waited for a place for its outputs); `bottleneck` is
        the stage that was busy most. A stage that takes several requests in one call has made so many `batches`, for
        which its requests `waited` so many seconds, all together. A stage in processes of its own has the `pids` of its
        replicas (0 for one that does not run now) and has had so many `restarts`. The `occupancy` of a stage is the
        share of the time in which its replicas were busy, from 0 to 1. `format_metrics` makes a table of it.
        """
        metrics = self._native.metrics()
        for stage in metrics["stages"]:
            stage["occupancy"] = min(1.0, stage["busy"] / max(metrics["seconds"], 1e-9) / stage["replicas"])
        return metrics

    def metrics_text(self) -> str:
        """The metrics in the text format of Prometheus; their names begin with headrace_pipeline_.

        Times are in seconds. Those of a stage have its name as label `stage`, and its backend as label `backend`.
        """
        return _prometheus.text_of(self.metrics())

    def trace(self, path: str | PathLike[str] | None = None) -> Trace:
        """Records from now on when each stage works and waits, until `stop` of what it returns.

        Parameters
        ----------
        path : path, optional
            The file, such as "trace.json", that gets the trace when it stops. Without it, `Trace.save` writes one.

        Returns
        -------
        Trace
            A context manager that stops at its end.

        Raises
        ------
        UserError
            While another trace of the pipeline is recorded, and for a file of HTML, since a trace is JSON.
        """
        return Trace(self._native, None if path is None else trace_path(path, "path"))

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.drain()
        else:
            self.stop()

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self._inputs)} -> {', '.join(self._outputs)}; {self.state})"


class Trace:
    """A record of the calls and waits of a pipeline's stages: `Pipeline.trace` begins one.

    The file opens in chrome://tracing and in Perfetto (ui.perfetto.dev). Each stage has a line, with its calls (the
    number of the first request, and how many there were) and its waits: "starved" for inputs, "blocked" for a place for
    its outputs. Each thread of the pipeline keeps its last 65,536 of these; `overwritten` counts the others.
    """

    def __init__(self, native: _core.Pipeline, path: str | None) -> None:
        self._native, self._path = native, path
        self._taken: _core.PipelineTrace | None = None
        native.start_trace()
        self._is_running = True

    def stop(self) -> None:
        """Ends the recording, and writes the file that `Pipeline.trace` was given."""
        if not self._is_running:
            return
        self._is_running = False
        self._taken = self._native.stop_trace()
        if self._path is not None:
            self.save(self._path)

    def save(self, path: str | PathLike[str]) -> None:
        """Writes what was recorded so far, as JSON. UserError for a file that cannot be written or is HTML."""
        self._now().save(trace_path(path, "path"))

    @property
    def overwritten(self) -> int:
        """How many times of stages were overwritten by later ones, and are not in the file."""
        return self._now().overwritten

    def __len__(self) -> int:
        return len(self._now())

    def __bool__(self) -> bool:
        return True

    def _now(self) -> _core.PipelineTrace:
        return self._native.trace() if self._taken is None else self._taken

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        if getattr(self, "_is_running", False):
            self._native.stop_trace()

    def __repr__(self) -> str:
        return f"Trace({len(self)} times of stages)"


def as_completed(tickets: Iterable[Ticket], timeout: float | None = None) -> Iterator[Ticket]:
    """The tickets in the order in which their requests are done.

    Parameters
    ----------
    tickets : list of Ticket
        The requests to wait for.
    timeout : float, optional
        The seconds after which TimeoutError is raised if some are not done.

    Yields
    ------
    Ticket
    """
    done: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
    count = 0
    for ticket in tickets:
        if isinstance(ticket, Ticket):  # those of headrace.ray call back in a thread that computes nothing
            ticket._check_may_wait(timeout)
        ticket.add_done_callback(done.put)
        count += 1
    end = None if timeout is None else monotonic() + timeout
    for left in range(count, 0, -1):
        try:
            yield done.get(timeout=None if end is None else max(0.0, end - monotonic()))
        except queue.Empty:
            raise TimeoutError(f"{left} requests are not done yet") from None


def format_metrics(metrics: Mapping[str, Any]) -> str:
    """A table of what a pipeline has done, with the bottleneck named.

    Parameters
    ----------
    metrics : dict
        What `Pipeline.metrics` gave.

    Returns
    -------
    str
    """
    lines = [f"{'stage':<20} {'items':>9} {'errors':>7} {'busy':>6} {'starved':>8} {'blocked':>8} {'median ms':>10}"]
    seconds = max(metrics["seconds"], 1e-9)
    for stage in metrics["stages"]:
        share = [stage[what] / seconds / stage["replicas"] for what in ("busy", "starved", "blocked")]
        lines.append(
            f"{stage['name']:<20} {stage['items']:>9} {stage['errors']:>7} {share[0]:>6.0%} {share[1]:>8.0%} "
            f"{share[2]:>8.0%} {stage['run']['median'] * 1e3:>10.3f}"
        )
    for stage in metrics["stages"]:
        if stage["batches"]:
            lines.append(
                f"{stage['name']}: {stage['batches']} batches, {stage['items'] / stage['batches']:.1f} requests each, "
                f"which waited {stage['waited'] / stage['items'] * 1e3:.3f} ms (mean)"
            )
    lines += [f"{stage['name']}: {stage['restarts']} restarts" for stage in metrics["stages"] if stage["restarts"]]
    rate = metrics["succeeded"] / seconds
    lines.append(
        f"{metrics['succeeded']} of {metrics['submitted']} requests succeeded, {rate:.1f} a second; latency "
        f"{metrics['latency']['median'] * 1e3:.3f} ms (median), {metrics['latency']['p99'] * 1e3:.3f} ms (p99)"
    )
    if metrics["bottleneck"]:
        lines.append(f"bottleneck: {metrics['bottleneck']}")
    return "\n".join(lines)


@atexit.register
def _stop_all() -> None:
    """Stops what runs, since stages of Python cannot run after the interpreter's end."""
    for pipeline in list(_running):
        pipeline.stop(_LAST_PATIENCE)


_public.publish(__name__, "headrace.pipeline")
