"""The journal's entries: requests with exactly one outcome each, and their tickets."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from headrace import _public
from headrace.pipeline._errors import PipelineError, failure
from headrace.pipeline._futures import future_of

__all__ = ["Ticket"]


@dataclass(eq=False)
class Request:
    """A request from its submission to its outcome.

    The journal keeps `inputs` until the outcome, so that the request can start again on other actors. `value` is what
    its next stage gets: the inputs, or a reference to what the stage before returned.
    """

    seq: int
    inputs: tuple[Any, ...]
    value: Any = None
    crashes: int = 0  # how many actors died while they had it, since a stage last succeeded
    submitted: float = field(default_factory=monotonic)
    before_done: Callable[[Request], Any] | None = None  # is called once, before those who wait go on
    error: PipelineError | None = None
    results: list[Any] | None = None
    _done: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _callbacks: list[Callable[[], Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.value = self.inputs

    def __lt__(self, other: Request) -> bool:
        return self.seq < other.seq

    @property
    def is_done(self) -> bool:
        """Whether the request has its outcome."""
        return self._done.is_set()

    def wait(self, timeout: float | None) -> bool:
        """Waits for the outcome; returns whether there is one in time."""
        return self._done.wait(timeout)

    def settle(self, results: list[Any] | None, error: PipelineError | None) -> bool:
        """Gives the request its outcome. Returns False, and changes nothing, if it has one."""
        with self._lock:
            if self._done.is_set():
                return False
            self.results, self.error = results, error
            self.inputs, self.value = (), None
            if self.before_done is not None:
                self.before_done(self)
                self.before_done = None  # a ticket that is kept keeps no pipeline
            self._done.set()
            callbacks, self._callbacks = self._callbacks, []
        for function in callbacks:
            _call(function)
        return True

    def fail(self, kind: str, message: str, stage: str = "", cause: BaseException | None = None) -> bool:
        """Settles the request with an error of headrace.pipeline."""
        return self.settle(None, failure(kind, message, self.seq, stage, "", cause))

    def when_done(self, function: Callable[[], Any]) -> None:
        """Calls the function when the request is done; at once if it is."""
        with self._lock:
            if not self._done.is_set():
                self._callbacks.append(function)
                return
        _call(function)


def _call(function: Callable[[], Any]) -> None:
    """Calls a user's function. Passes what it raises to `sys.unraisablehook`, because no caller could handle it."""
    try:
        function()
    except BaseException as error:
        _Report(error)


class _Report:
    """Raises an error in a finalizer, which is the only way for Python code to reach `sys.unraisablehook`'s default."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __del__(self) -> None:
        raise self._error


class Ticket:
    """A request of a pipeline of actors: wait for it, await it, or cancel it; as `headrace.pipeline.Ticket`."""

    def __init__(self, request: Request, cancel: Callable[[Request], bool]) -> None:
        self._request, self._cancel = request, cancel

    @property
    def seq(self) -> int:
        """The number of the request, in the order of submission."""
        return self._request.seq

    def done(self) -> bool:
        """Whether the request has an outcome."""
        return self._request.is_done

    def wait(self, timeout: float | None = None) -> Any:
        """The only output, or a tuple of all in the pipeline's order.

        Raises TimeoutError when there is no outcome after so many seconds, and PipelineError for a request that failed.
        Tensors are arrays of numpy, for reading only where they lie in Ray's object store.
        """
        outputs = self.outputs(timeout)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def outputs(self, timeout: float | None = None) -> list[Any]:
        """All outputs as a list; raises as `wait` does."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return list(self._request.results or ())

    def exception(self, timeout: float | None = None) -> PipelineError | None:
        """Why the request failed; None if it did not. Raises TimeoutError when there is no outcome in time."""
        if not self._request.wait(None if timeout is None else float(timeout)):
            raise TimeoutError(f"request {self.seq} is not done yet")
        return self._request.error

    def cancel(self) -> bool:
        """Ends the request with Cancelled; what a stage makes of it is dropped. False if it was done before."""
        return self._cancel(self._request)

    def add_done_callback(self, function: Callable[[Ticket], Any]) -> None:
        """Calls the function with this ticket once it has an outcome, in a thread of the pipeline.

        `sys.unraisablehook` gets what the function raises.
        """
        self._request.when_done(lambda: function(self))

    def future(self) -> Future[Any]:
        """A future with the result of `wait`; cancelling it cancels the request."""
        return future_of(self)

    def __await__(self) -> Generator[Any, None, Any]:
        return asyncio.wrap_future(self.future()).__await__()

    def __repr__(self) -> str:
        return f"Ticket(seq={self.seq}, done={self.done()})"


_public.publish(__name__, "headrace.ray")
