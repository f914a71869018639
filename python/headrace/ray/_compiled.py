"""Requests through a compiled graph of Ray's: actors that wait in loops and pass requests by shared memory.

A compiled graph answers in the order of its executions, takes a fixed number of them, belongs to the process that
compiled it, and is shut down as a whole when an actor dies. So a thread here feeds it from the journal and keeps its
capacity, another one reads the answers, and a death makes the first one start what is dead, compile the graph again and
submit the requests without an answer again.
"""

from __future__ import annotations

import contextlib
import heapq
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from headrace.pipeline._errors import PipelineError
from headrace.ray._actors import kill_actor, pack_values, unpack_values, unreadable
from headrace.ray._package import RAY_IS_GONE, is_connected, ray_package
from headrace.ray._recovery import Limits, Line, fail_by_status, first_line, is_death, start_problem
from headrace.ray._tickets import Request

if TYPE_CHECKING:
    from headrace.ray._calls import CallWiring

__all__: list[str] = []

# Seconds between looks whether the actors of a graph that answers nothing live.
_LOOK_SECONDS = 30.0
# Seconds that the end of a graph may take.
_END_SECONDS = 20.0
_FOR_EVER = -1  # as a timeout of compiled graphs; None is a default of Ray's


class CompiledWiring:
    """Sends requests through a compiled graph."""

    kind = "compiled"

    def __init__(self, calls: CallWiring, limits: Limits) -> None:
        self._calls, self._limits = calls, limits
        self._lines: Sequence[Line] = calls.lines
        self._is_pure = all(line.spec.is_pure for line in self._lines)
        # The pipeline refuses graphs in which only some actors have a time limit.
        times = [line.spec.time_limit for line in self._lines if line.spec.time_limit is not None]
        self._time_limit = sum(times) if len(times) == len(self._lines) else None
        self._changed = threading.Condition()
        self._waiting: list[Request] = []
        self._flying: deque[tuple[Request, Any]] = deque()
        self._broken = ""  # why the graph answers no more
        self._is_closed = False
        self._graph: Any = None
        self._threads = [
            threading.Thread(target=work, name=f"headrace-ray-{name}", daemon=True)
            for name, work in (("feed", self._feed), ("read", self._read))
        ]
        self.epoch = 0

    @property
    def lines(self) -> Sequence[Line]:
        """The actors, in order."""
        return self._lines

    @property
    def _capacity(self) -> int:
        return max(self._limits.window, len(self._lines) + 1)

    def start(self) -> None:
        """Compiles the graph and begins the work.

        Raises
        ------
        PipelineError
            If the graph does not answer.
        """
        for line in self._lines:
            line.state = "running"
        self._compile()
        for thread in self._threads:
            thread.start()

    def submit(self, request: Request) -> None:
        """Takes a request; returns at once."""
        with self._changed:
            failed = next((line for line in self._lines if line.state == "failed"), None)
            if failed is None:
                heapq.heappush(self._waiting, request)
                self._changed.notify_all()
        if failed is not None:
            request.fail("StageLost", failed.refusal(), failed.spec.name)

    def close(self) -> None:
        """Ends the threads and the actors; requests that are not done stay so."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            is_idle = not self._flying
        self._tear_down(_END_SECONDS if is_idle else 0.0)
        for thread in self._threads:
            if thread.ident is not None and threading.current_thread() is not thread:
                thread.join(timeout=10)
        self._calls.close()

    def _compile(self) -> None:
        from ray.dag import InputNode

        ray = ray_package()
        with InputNode() as value:
            node = value
            for line in self._lines:
                node = line.actor.step.bind(node)
        limit = min(self._limits.start_seconds, 20.0)
        self._graph = node.experimental_compile(_submit_timeout=limit, _max_inflight_executions=self._capacity)
        try:
            ray.get(self._graph.execute((None, [], None)), timeout=limit)  # no stage sees a request without values
        except ray.exceptions.RayError as error:
            raise PipelineError(
                f"Ray's compiled graph does not answer on these nodes ({type(error).__name__}); wiring='calls' works "
                "without one"
            ) from error

    def _tear_down(self, wait_seconds: float) -> None:
        """Ends the graph. After `wait_seconds` kills the actors, because Ray waits for calls that run, however long."""
        graph = self._graph
        if graph is None:
            return

        def work() -> None:
            with contextlib.suppress(Exception):
                graph.teardown()

        thread = threading.Thread(target=work, name="headrace-ray-end", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter ends, and starts no threads
            self._kill_all()
            work()
            return
        thread.join(wait_seconds)
        if thread.is_alive():
            self._kill_all()
            thread.join(_END_SECONDS)

    def _kill_all(self) -> None:
        for line in self._lines:
            kill_actor(line.actor)

    def _room(self) -> int:
        """How many requests the graph may have: one, while it may be a request that makes actors die."""
        suspects = self._waiting[0].crashes or any(request.crashes for request, _ in self._flying)
        return 1 if suspects else self._capacity

    def _feed(self) -> None:
        """Submits requests in order, and builds the graph again when it is broken."""
        while not self._is_closed:
            request = None
            try:
                request = self._next()
                if self._is_closed:
                    return
                if request is not None:
                    self._execute(request)
                elif self._broken:
                    self._recover()
                else:
                    self._look()
            except Exception as error:  # one that nothing foresees must not leave requests waiting
                with self._changed:
                    lost = [one for one, _ in self._flying] + ([] if request is None else [request])
                    self._broken = self._broken or first_line(error)
                self._end_all(lost, f"{type(error).__name__}: {error}")

    def _next(self) -> Request | None:
        """Waits for a request that the graph has room for. Returns None when something else is to be done."""
        look_at = monotonic() + _LOOK_SECONDS
        with self._changed:
            while not self._is_closed and not self._broken and monotonic() < look_at:
                while self._waiting and self._waiting[0].is_done:
                    heapq.heappop(self._waiting)
                if self._waiting and len(self._flying) < self._room():
                    return heapq.heappop(self._waiting)
                self._changed.wait(look_at - monotonic())
        return None

    def _look(self) -> None:
        """Finds actors that died without a word from Ray, so that requests without a time limit do not wait for ever.

        An actor that does not answer in time may be busy, and is not dead.
        """
        if not self._flying:
            return
        if not is_connected():
            self._break(RAY_IS_GONE)
            return
        for line in self._lines:
            try:
                ray_package().get(line.actor.ready.remote(), timeout=1.0)
            except Exception as error:
                if is_death(error):
                    self._break(first_line(error))

    def _break(self, why: str, epoch: int | None = None) -> None:
        """Says that the graph answers no more; of an earlier epoch, this is known."""
        with self._changed:
            if epoch is None or self.epoch == epoch:
                self._broken = self._broken or why
                self._changed.notify_all()

    def _execute(self, request: Request) -> None:
        exceptions = ray_package().exceptions
        values = request.inputs
        if request.is_done:  # it was cancelled just now
            return
        try:
            answer = self._graph.execute(((request.seq, self.epoch), [], pack_values(values)))
        except (exceptions.RayError, OSError) as error:
            with self._changed:
                heapq.heappush(self._waiting, request)
                self._break(f"{type(error).__name__}: {error}")
        except Exception as error:  # such as inputs that cannot be pickled
            name = self._lines[0].spec.name
            request.fail("StageFailed", f"stage '{name}' cannot be called: {error}", name, error)
        else:
            with self._changed:
                self._flying.append((request, answer))
                self._changed.notify_all()

    def _read(self) -> None:
        """Reads the answers in order."""
        while True:
            with self._changed:
                while not self._is_closed and (self._broken or not self._flying):
                    self._changed.wait()
                if self._is_closed:
                    return
                entry, epoch = self._flying[0], self.epoch
            try:
                self._read_answer(entry, epoch)
            except Exception as error:  # one that nothing foresees must not leave requests waiting
                self._break(f"{type(error).__name__}: {error}", epoch)

    def _read_answer(self, entry: tuple[Request, Any], epoch: int) -> None:
        ray = ray_package()
        request, answer = entry
        limit = _FOR_EVER if self._time_limit is None else self._time_limit
        try:
            if not is_connected():
                raise PipelineError(RAY_IS_GONE)
            mark, statuses, values = ray.get(answer, timeout=limit)
        except Exception as error:
            is_late = isinstance(error, (ray.exceptions.GetTimeoutError, ray.exceptions.RayChannelTimeoutError))
            with self._changed:
                if self.epoch != epoch or self._is_closed:
                    return
            if is_late:
                self._give_up(request, limit)
            self._break(first_line(error), epoch)
            return
        if mark != (request.seq, epoch):
            self._break(f"the graph answered {mark} in place of {(request.seq, epoch)}", epoch)
            return
        results = None
        try:  # the values lie in the memory of a channel, which the next answer overwrites
            results = None if values is None else list(unpack_values(values))
        except Exception as error:
            statuses[-1]["failure"] = unreadable(self._lines[-1].spec.stages[-1].name, error)
        del values
        self._settle(request, statuses, results)
        with self._changed:
            if self._flying and self._flying[0] is entry:
                self._flying.popleft()
                self._changed.notify_all()

    def _settle(self, request: Request, statuses: Sequence[Mapping[str, Any]], results: list[Any] | None) -> None:
        request.crashes = 0
        for line, status in zip(self._lines, statuses, strict=False):
            line.count(status)
            limit = line.spec.time_limit
            if limit is not None and status["seconds"] > limit:  # in the sum of all limits, which `_read_answer` waits
                request.fail("StageTimeout", f"stage '{line.spec.name}' took longer than {limit} s", line.spec.name)
        if results is None:
            fail_by_status(request, statuses[-1])
        else:
            request.settle(results, None)

    def _give_up(self, request: Request, limit: float) -> None:
        """No answer came in time: nobody knows from which actor, so all of them end."""
        names = ", ".join(line.spec.name for line in self._lines)
        request.fail("StageTimeout", f"the stages {names} took longer than {limit} s", self._lines[-1].spec.name)
        self._kill_all()

    def _recover(self) -> None:
        """Starts the actors that are dead, compiles the graph again, and gives back what has no answer."""
        with self._changed:
            lost, self._flying = list(self._flying), deque()
            why = self._broken
            self.epoch += 1
        if not is_connected():
            self._end_all([request for request, _ in lost], RAY_IS_GONE)
            return
        self._tear_down(_END_SECONDS)
        dead = [line for line in self._lines if not self._is_alive(line)]
        self._give_back([request for request, _ in lost], dead or list(self._lines), why)
        for line in dead:
            if line.state == "running":
                line.died(monotonic())
            if line.state == "failed":
                self._refuse(line)
            if not self._restart(line):
                return  # broken still: the thread comes back here
        try:
            self._compile()
        except Exception as error:
            self._compile_failed(self._lines[0], error)
            return
        with self._changed:
            self._broken = ""
            self._changed.notify_all()

    def _end_all(self, lost: Sequence[Request], why: str) -> None:
        """Ends all requests, and those of the next second."""
        for line in self._lines:
            line.start_failed(monotonic(), why)
            for request in lost:
                request.fail("StageLost", line.refusal(), line.spec.name)
            self._refuse(line)
        self._wait(self._lines[0].start_at)

    def _compile_failed(self, line: Line, error: Exception) -> None:
        """Counts a graph that does not answer like a death of its first actor, so that the attempts are bounded."""
        self._broken = first_line(error)
        line.died(monotonic())
        if line.state == "failed":
            kill_actor(line.actor)  # the next attempt begins with a new one
            line.why = f"its compiled graph does not answer: {error}"
            self._refuse(line)
        else:
            self._wait(line.start_at)
            line.state = "running"

    def _is_alive(self, line: Line) -> bool:
        if line.state != "running":
            return False
        try:
            ray_package().get(line.actor.ready.remote(), timeout=self._limits.start_seconds)
        except Exception:
            return False
        return True

    def _give_back(self, lost: Sequence[Request], dead: Sequence[Line], why: str) -> None:
        for request in lost:
            request.crashes += 1
            if self._is_pure and request.crashes < self._limits.crashes:
                with self._changed:
                    heapq.heappush(self._waiting, request)
                continue
            line = next((one for one in dead if not one.spec.is_pure), dead[0])
            times = f", {request.crashes} times" if request.crashes > 1 else ""
            text = f"the actor of stage '{dead[0].spec.name}' died while the graph had the request{times}: {why}"
            request.fail("StageLost", text, line.spec.name)

    def _refuse(self, line: Line) -> None:
        with self._changed:
            waiting, self._waiting = self._waiting, []
        for request in waiting:
            request.fail("StageLost", line.refusal(), line.spec.name)

    def _restart(self, line: Line) -> bool:
        """Starts an actor when it is time. Returns whether it is ready."""
        self._wait(line.start_at)
        if self._is_closed:
            return False
        kill_actor(line.actor)  # one that did not answer would go on beside the new one
        line.starting(monotonic(), self._limits)
        try:
            line.actor = self._calls.new_actor(line)
            ready = line.actor.ready.remote().future()
            why, died = start_problem(ready, self._limits.start_seconds)
        except TimeoutError:
            died, why = False, f"it did not start within {self._limits.start_seconds} s"
        except Exception as error:
            died, why = False, first_line(error)
        if not why:
            line.running(ready.result())
            return True
        kill_actor(line.actor)
        line.start_failed(monotonic(), why, died)
        if line.state == "failed":
            self._refuse(line)
        self._wait(line.start_at)
        return False

    def _wait(self, until: float) -> None:
        with self._changed:
            while not self._is_closed and monotonic() < until:
                self._changed.wait(until - monotonic())
