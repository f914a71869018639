"""Pipelines whose stages are actors on several nodes."""

from __future__ import annotations

import atexit
import heapq
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from time import monotonic
from types import TracebackType
from typing import Any

from headrace import _arguments, _public
from headrace._core import UserError
from headrace._numpy import np
from headrace.pipeline import _processes
from headrace.pipeline._errors import PipelineError, refusal
from headrace.pipeline._graph import PortError
from headrace.ray._actors import StageSpec, group_stages, read_options, read_stages
from headrace.ray._calls import CallWiring
from headrace.ray._compiled import CompiledWiring
from headrace.ray._package import ray_package
from headrace.ray._places import known_nodes, read_places
from headrace.ray._recovery import Limits, Line
from headrace.ray._tickets import Request, Ticket

__all__ = ["Pipeline"]

_running: weakref.WeakSet[Pipeline] = weakref.WeakSet()
_KEPT_LATENCIES = 4096
_SWEEP = 1024


class Pipeline:
    """A chain of stages that are actors of Ray, on the nodes that `nodes` says.

        nodes = {"detect": {"pool": "front"}, "read": {"pool": "back"}}
        with headrace.ray.Pipeline(["detect.so", "read.so"], nodes=nodes) as pipe:
            for result in pipe.map(frames):
                ...

    The process that makes the pipeline is connected to a cluster (`ray.init`). Ray carries tensors between the nodes.
    Neighbouring stages with the same entry in `nodes` are one actor, in which the rings of `headrace.pipeline` join
    them. Artifacts travel by their content, once to each node.

    The pipeline keeps a journal of its requests. When an actor dies, it starts another one and gives it the requests
    again, in a new epoch. Each ticket gets exactly one answer. A pure stage may run twice for a request. A request that
    a stage which is not pure had begun ends with `headrace.pipeline.StageLost`.

    Parameters
    ----------
    stages : list
        Codes, or `headrace.pipeline.Stage(code, name=..., pure=..., time_limit=...)`. A code is an artifact's path, a
        model that was compiled to a file, an ArtifactRef, a dict of these by their batch, a function that Ray can
        pickle, or a function's name "module:function". Programs are pure; functions are if `pure=True` says so.
    nodes : dict or path, optional
        Where each stage runs: labels of a node ({"pool": "front"} or "pool=front"), or a resource that it has. A path
        names a plan file: JSON with such a dict as "nodes". Other stages run where Ray puts them.
    max_inflight : int
        How many requests may be in the pipeline; `submit` waits for a place.
    window : int
        How many requests a pure actor has at once, so that the next one is there when one is done. Its batches have at
        most as many.
    wiring : "auto", "calls" or "compiled"
        "compiled" is a compiled graph of Ray's, which is faster, for actors that are all on this process's node.
        "calls" is one call of an actor for each stage of a request. "auto" takes a compiled graph where the nodes
        allow it, unless a stage has a time limit, batches or replicas, or pure stages share an actor.
    start_seconds : float
        How long an actor may take to start.
    options : dict, optional
        Options of all actors, as Ray's `options` takes them: {"num_cpus": 2, "runtime_env": {...}}. Resources and
        labels are required beside those of `nodes`.

    Raises
    ------
    UserError
        For wrong arguments; MissingError, which is one, without Ray; PipelineError, which is one, for actors that do
        not start; PortError, which is one, for neighbours that do not fit.
    """

    def __init__(
        self,
        stages: Iterable[Any],
        *,
        nodes: Mapping[str, Any] | str | PathLike[str] | None = None,
        max_inflight: int = 64,
        window: int = 4,
        wiring: str = "auto",
        start_seconds: float = 60.0,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        ray = ray_package()
        if wiring not in ("auto", "calls", "compiled"):
            raise UserError(f"wiring is {wiring!r}; it is 'auto', 'calls' or 'compiled'")
        for name, value in (("max_inflight", max_inflight), ("window", window)):
            if _arguments.integer(value, name) < 1:
                raise UserError(f"{name} is {value}; it is at least 1")
        if not ray.is_initialized():
            raise UserError("Ray is not connected to a cluster; call ray.init() before making a pipeline")
        specs = read_stages(stages)
        _check_wiring(wiring, specs)
        groups = group_stages(specs, read_places(nodes, [spec.name for spec in specs]))
        limits = Limits(window, _arguments.seconds(start_seconds, "start_seconds"))
        self._wiring: CallWiring | CompiledWiring = CallWiring(groups, read_options(options), limits)
        self._max_inflight, self._state = max_inflight, "running"
        self._changed = threading.Condition()
        self._open: dict[int, Request] = {}
        self._submitted = self._succeeded = 0
        self._begin, self._latencies = monotonic(), deque[float](maxlen=_KEPT_LATENCIES)
        self._deadlines = _Deadlines()
        try:
            self._start(limits, wiring)
        except BaseException:
            self._state = "stopped"
            self._wiring.close()
            raise
        self._finalizer = weakref.finalize(self, _close_later, self._deadlines, self._wiring)
        self._finalizer.atexit = False  # `_stop_all` is earlier
        _running.add(self)

    def _start(self, limits: Limits, wiring: str) -> None:
        """Waits for the actors, checks their ports, and chooses the wiring."""
        lines = self._wiring.lines
        end = monotonic() + limits.start_seconds
        for line, ready in zip(lines, self._wiring.create(), strict=True):
            line.about = _ready(line, ready, max(0.0, end - monotonic()), limits)
        _check_ports(lines)
        self._inputs = [tuple(port) for port in lines[0].about["inputs"]]
        self._outputs = [port[0] for port in lines[-1].about["outputs"]]
        here = ray_package().get_runtime_context().get_node_id()
        elsewhere = [line.spec.name for line in lines if line.about["node"] != here]
        if wiring == "compiled" and elsewhere:
            raise UserError(
                f"wiring='compiled': the stages {', '.join(elsewhere)} are not on this process's node; a channel of "
                "Ray's compiled graphs that is closed by a death ends Ray on the other node, so use wiring='calls'"
            )
        calls_suit = any(line.spec.takes_several or line.spec.time_limit is not None for line in lines)
        if wiring == "compiled" or (wiring == "auto" and not elsewhere and not calls_suit):
            self._wiring = CompiledWiring(self._wiring, limits)
        self._wiring.start()

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs, in the order in which `submit` takes them."""
        return [port[0] for port in self._inputs]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs, in the order in which tickets give them."""
        return list(self._outputs)

    @property
    def state(self) -> str:
        """ "running", "degraded" (an actor does not start), "draining" or "stopped"."""
        if self._state == "running" and any(line.state == "failed" for line in self._wiring.lines):
            return "degraded"
        return self._state

    def submit(self, *inputs: Any, timeout: float | None = None, deadline: float | None = None) -> Ticket:
        """Submits a request, and returns its ticket at once, unless the pipeline is full.

        Parameters
        ----------
        *inputs
            One for each input of the pipeline, in order. Arrays are copied.
        timeout : float, optional
            The seconds to wait for a place in a full pipeline; None waits for ever.
        deadline : float, optional
            The seconds after which the request fails with DeadlineExceeded if it is not done.

        Raises
        ------
        PipelineFull, PipelineStopped
            The request was not taken.
        UserError
            An input, `timeout` or `deadline` does not fit; the message names it.
        """
        values = self._check(inputs)
        timeout = None if timeout is None else _arguments.seconds(timeout, "timeout")
        deadline = None if deadline is None else _arguments.seconds(deadline, "deadline")
        with self._changed:
            self._wait_for_place(timeout)
            request = Request(self._submitted, values, before_done=self._leave)
            self._submitted += 1
            self._open[request.seq] = request
        if deadline is not None:
            self._deadlines.add(monotonic() + deadline, request)
        self._wiring.submit(request)
        return Ticket(request, lambda one: one.fail("Cancelled", f"request {one.seq} was cancelled"))

    def _check(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(inputs) != len(self._inputs):
            raise UserError(f"the inputs are {', '.join(self.inputs)}; got {len(inputs)} values")
        for (name, dtype, shape), value in zip(self._inputs, inputs, strict=True):
            given = (str(getattr(value, "dtype", "")), tuple(getattr(value, "shape", ())))
            if dtype is not None and given != (dtype, tuple(shape)):
                got = f"{given[0]} {given[1]}" if given[0] else _arguments.kind(value)
                raise UserError(f"input '{name}' is {dtype} {tuple(shape)}, got {got}")
        return tuple(np.array(value) if isinstance(value, np.ndarray) else value for value in inputs)

    def _wait_for_place(self, timeout: float | None) -> None:
        end = None if timeout is None else monotonic() + timeout
        while True:
            if self._state != "running":
                raise refusal("PipelineStopped", f"the pipeline is {self._state}, and takes no requests")
            if len(self._open) < self._max_inflight:
                return
            left = None if end is None else end - monotonic()
            if left is not None and left <= 0:
                raise refusal("PipelineFull", f"{self._max_inflight} requests are in the pipeline, as many as may be")
            self._changed.wait(left)

    def _leave(self, request: Request) -> None:
        """The request is done: frees its place."""
        with self._changed:
            del self._open[request.seq]
            if request.error is None:
                self._succeeded += 1
                self._latencies.append(monotonic() - request.submitted)
            self._changed.notify_all()

    def map(self, items: Iterable[Any], *, deadline: float | None = None, return_errors: bool = False) -> Iterator[Any]:
        """The results for a stream of items, in order; up to `max_inflight` requests are ahead of the reader.

        An item is the only input, or a tuple of all. A request that fails raises its error there, and those ahead of
        it are cancelled; with `return_errors` its error is its result.
        """
        ahead: deque[Ticket] = deque()
        try:
            for item in items:
                while len(ahead) >= self._max_inflight:
                    yield _outcome(ahead.popleft(), return_errors)
                values = item if isinstance(item, tuple) and len(self._inputs) > 1 else (item,)
                ahead.append(self.submit(*values, deadline=deadline))
            while ahead:
                yield _outcome(ahead.popleft(), return_errors)
        finally:
            for ticket in ahead:
                ticket.cancel()

    def metrics(self) -> dict[str, Any]:
        """The work so far, as `headrace.pipeline.format_metrics` prints it.

        Beside the numbers of `headrace.pipeline.Pipeline.metrics` there are "wiring", "epoch" (how often requests were
        given to actors again), and for each actor its "node", "pids", "restarts" and "state".
        """
        seconds = monotonic() - self._begin
        with self._changed:
            submitted, succeeded, inside = self._submitted, self._succeeded, len(self._open)
            latencies = sorted(self._latencies)
        stages = [_line_metrics(line, seconds) for line in self._wiring.lines]
        busiest = max(stages, key=lambda stage: stage["busy"])
        return {
            "seconds": seconds,
            "submitted": submitted,
            "succeeded": succeeded,
            "failed": submitted - succeeded - inside,
            "inflight": inside,
            "latency": _spread(latencies),
            "stages": stages,
            "bottleneck": busiest["name"] if busiest["busy"] else "",
            "wiring": self._wiring.kind,
            "epoch": self._wiring.epoch,
        }

    def drain(self, timeout: float | None = None) -> bool:
        """Takes no more requests, finishes those in the pipeline and ends the actors.

        Returns False if that took longer than `timeout` seconds; those requests end with Stopped.
        """
        end = None if timeout is None else monotonic() + timeout
        with self._changed:
            if self._state == "running":
                self._state = "draining"
            self._changed.notify_all()
            while self._open and (end is None or monotonic() < end):
                self._changed.wait(None if end is None else max(0.0, end - monotonic()))
            is_empty = not self._open
        self.stop()
        return is_empty

    def stop(self) -> None:
        """Ends all requests that are not done with Stopped, and the actors."""
        with self._changed:
            self._state = "stopped"
            left = list(self._open.values())
            self._changed.notify_all()
        try:
            for request in left:
                request.fail("Stopped", "the pipeline was stopped before the request was done")
        finally:  # an interrupt ends this call, and a second call finds the rest to be done
            self._finalizer.detach()
            _close(self._deadlines, self._wiring)

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
        return f"Pipeline({', '.join(self.inputs)} -> {', '.join(self.outputs)}; {self.state})"


def _close(deadlines: _Deadlines, wiring: CallWiring | CompiledWiring) -> None:
    deadlines.close()
    wiring.close()


def _close_later(deadlines: _Deadlines, wiring: CallWiring | CompiledWiring) -> None:
    """Closes the wiring of a pipeline that was dropped, in a new thread: the garbage collector may hold any lock."""
    threading.Thread(target=_close, args=(deadlines, wiring), name="headrace-ray-close", daemon=True).start()


class _Deadlines:
    """Ends requests at their deadlines, in a thread that the first of them starts.

    Requests are held weakly, so that those that are done are freed before their deadlines.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, weakref.ref[Request]]] = []
        self._sweep_at = _SWEEP
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, when: float, request: Request) -> None:
        with self._changed:
            if len(self._heap) >= self._sweep_at:
                self._sweep()
            heapq.heappush(self._heap, (when, request.seq, weakref.ref(request)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="headrace-ray-deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _sweep(self) -> None:
        """Drops the entries of requests that are done; the next sweep is at twice as many as are left."""
        self._heap = [entry for entry in self._heap if (request := entry[2]()) is not None and not request.is_done]
        heapq.heapify(self._heap)
        self._sweep_at = max(_SWEEP, 2 * len(self._heap))

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._is_closed and (not self._heap or self._heap[0][0] > monotonic()):
                    self._changed.wait(self._heap[0][0] - monotonic() if self._heap else None)
                if self._is_closed:
                    return
                request = heapq.heappop(self._heap)[2]()
            if request is not None:
                request.fail("DeadlineExceeded", f"request {request.seq} was not done by its deadline")
            del request


def _check_wiring(wiring: str, specs: Sequence[StageSpec]) -> None:
    """Refuses compiled graphs of stages whose options need calls."""
    if wiring != "compiled":
        return
    unlimited = [spec.name for spec in specs if spec.time_limit is None]
    if unlimited and len(unlimited) < len(specs):
        raise UserError(
            f"wiring='compiled': the stages {', '.join(unlimited)} have no time_limit and others have one; a compiled "
            "graph has a limit as a whole, so give one to each stage or to none, or use wiring='calls'"
        )
    several = [spec.name for spec in specs if spec.takes_several]
    if several:
        raise UserError(
            f"wiring='compiled': the stages {', '.join(several)} have batches or replicas, and an actor of a compiled "
            "graph has one request at a time; use wiring='calls'"
        )


def _ready(line: Line, ready: Any, timeout: float, limits: Limits) -> Mapping[str, Any]:
    """Waits until an actor has started, and returns its report about itself."""
    ray, name = ray_package(), line.spec.name
    try:
        about = ray.get(ready, timeout=timeout)
    except ray.exceptions.GetTimeoutError:
        raise PipelineError(
            f"the actor of stage '{name}' did not start within {limits.start_seconds} s; it needs {line.spec.place} "
            f"with a free processor, and there are {known_nodes()}"
        ) from None
    except ray.exceptions.RayError as error:
        raise PipelineError(f"the actor of stage '{name}' did not start: {error}") from error
    if about["error"] is not None:
        cause = _processes.unpack(about["error"])
        raise PipelineError(f"stage '{name}' cannot start on {line.spec.place}: {cause}") from cause
    return about


def _check_ports(lines: Any) -> None:
    """Raises PortError for actors whose outputs are not the inputs of the next one."""
    for before, after in pairwise(lines):
        made, taken = before.about["outputs"], after.about["inputs"]
        names = before.spec.stages[-1].name, after.spec.stages[0].name
        if len(made) != len(taken):
            raise PortError(
                f"stage '{names[0]}' has {len(made)} outputs, and stage '{names[1]}' takes {len(taken)} inputs"
            )
        for out, into in zip(made, taken, strict=True):
            if out[1] is not None and into[1] is not None and tuple(out[1:]) != tuple(into[1:]):
                raise PortError(
                    f"output '{out[0]}' of stage '{names[0]}' is {out[1]} {tuple(out[2])}, and input '{into[0]}' of "
                    f"stage '{names[1]}' is {into[1]} {tuple(into[2])}"
                )


def _outcome(ticket: Ticket, return_errors: bool) -> Any:
    if not return_errors:
        return ticket.wait()
    error = ticket.exception()
    return ticket.wait() if error is None else error


def _line_metrics(line: Line, seconds: float) -> dict[str, Any]:
    return {
        "name": line.spec.name,
        "items": line.items,
        "errors": line.errors,
        "busy": line.busy,
        "starved": max(0.0, seconds - line.busy),
        "blocked": 0.0,
        "replicas": 1,
        "batches": 0,
        "waited": 0.0,
        "restarts": line.restarts,
        "run": _spread(sorted(line.runs)),
        "node": line.about.get("node", ""),
        "pids": [line.about["pid"]] if line.state == "running" else [],
        "state": line.state,
    }


def _spread(values: list[float]) -> dict[str, float]:
    """Median and 99th percentile of sorted seconds; zeros without any."""
    if not values:
        return {"median": 0.0, "p99": 0.0}
    return {"median": values[len(values) // 2], "p99": values[min(len(values) - 1, len(values) * 99 // 100)]}


@atexit.register
def _stop_all() -> None:
    for pipeline in list(_running):
        pipeline.stop()


_public.publish(__name__, "headrace.ray")
