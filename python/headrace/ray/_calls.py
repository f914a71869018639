"""Requests through actors by calls: one call for each stage of a request, and tensors pass between the nodes.

One thread has all the state and works on events: submissions, calls that ended, actors that started. A call gives two
objects: its status, which comes here, and the outputs, which stay in the object store of the actor's node until the
next stage reads them. So this process knows for each request which stages have answered, and a death costs only the
calls that the dead actor had.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import queue
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from headrace.ray._actors import ActorSpec, create_actor, kill_actor
from headrace.ray._package import RAY_IS_GONE, is_connected
from headrace.ray._recovery import Limits, Line, fail_by_status, first_line, is_death, is_lost_value, start_problem
from headrace.ray._tickets import Request

__all__: list[str] = []

# Seconds between looks at time limits and starts.
_TICK = 0.02


@dataclass
class _Call:
    request: Request
    began: float
    outputs: Any  # the ObjectRef; None for the last stage, whose status has them


@dataclass
class _CallLine(Line):
    """An actor, the calls that it has, and the requests that wait for it in the order of submission."""

    calls: dict[int, _Call] = field(default_factory=dict)
    waiting: list[Request] = field(default_factory=list)
    last_end: float = 0.0


class CallWiring:
    """Sends requests through the actors one call at a time."""

    kind = "calls"

    def __init__(self, specs: Sequence[ActorSpec], options: Mapping[str, Any], limits: Limits) -> None:
        self._lines = [_CallLine(spec) for spec in specs]
        self._options, self._limits = options, limits
        self._events: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._numbers = itertools.count()
        self._thread = threading.Thread(target=self._work, name="headrace-ray", daemon=True)
        self.epoch = 0

    @property
    def lines(self) -> Sequence[Line]:
        """The actors, in order."""
        return self._lines

    def create(self) -> list[Any]:
        """Asks for the first actors; returns a reference to what `ready` of each gives."""
        for line in self._lines:
            line.actor = self.new_actor(line)
        return [line.actor.ready.remote() for line in self._lines]

    def start(self) -> None:
        """Begins the work, once all actors are ready."""
        for line in self._lines:
            line.state = "running"
        self._thread.start()

    def submit(self, request: Request) -> None:
        """Takes a request; returns at once."""
        self._events.put((self._arrive, 0, request))

    def close(self) -> None:
        """Ends the thread and the actors; requests that are not done stay so."""
        self._events.put((None,))
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(timeout=10)
        for line in self._lines:
            kill_actor(line.actor)
            line.actor = None

    def new_actor(self, line: Line) -> Any:
        """Asks Ray for an actor of the stages."""
        # Calls overlap where several stages, batches or replicas of the actor can work on several requests.
        concurrency = self._limits.window if line.spec.takes_several else 1
        return create_actor(line.spec, self._options, concurrency)

    def _work(self) -> None:
        last_look = monotonic()
        while True:
            with contextlib.suppress(queue.Empty):
                act, *arguments = self._events.get(timeout=_TICK if self._is_watching() else 1.0)
                if act is None:
                    return
                self._act(act, arguments)
            if monotonic() - last_look >= _TICK:
                last_look = monotonic()
                self._act(self._look_at_all, [last_look])

    def _act(self, act: Any, arguments: Sequence[Any]) -> None:
        """Works on an event. An error that nothing foresees ends the requests: it must not leave them waiting."""
        try:
            act(*arguments)
        except Exception as error:
            self._end_all(f"{type(error).__name__}: {error}")

    def _end_all(self, why: str) -> None:
        """Ends all requests, and those to come until actors start again."""
        for line in self._lines:
            kill_actor(line.actor)
            calls, line.calls = line.calls, {}
            line.start_failed(monotonic(), why)
            for call in calls.values():
                call.request.fail("StageLost", line.refusal(), line.spec.name)
            self._refuse_waiting(line)

    def _is_watching(self) -> bool:
        return any(line.state != "running" or (line.calls and line.spec.time_limit) for line in self._lines)

    def _arrive(self, index: int, request: Request) -> None:
        line = self._lines[index]
        if line.state == "failed":
            request.fail("StageLost", line.refusal(), line.spec.name)
            return
        heapq.heappush(line.waiting, request)
        self._dispatch(index)

    def _dispatch(self, index: int) -> None:
        """Sends waiting requests to the actor while it has room."""
        line = self._lines[index]
        while line.state == "running" and line.waiting:
            if line.waiting[0].is_done:
                heapq.heappop(line.waiting)
                continue
            if len(line.calls) >= self._room(line):
                return
            self._send(index, heapq.heappop(line.waiting))

    def _room(self, line: _CallLine) -> int:
        """How many calls the actor may have.

        A stage that is not pure has one, so that a death costs only a request that it had begun. A request that an
        actor died with runs alone, so that requests beside it do not count its crashes as theirs.
        """
        suspects = line.waiting[0].crashes or any(call.request.crashes for call in line.calls.values())
        return 1 if suspects or not line.spec.is_pure else self._limits.window

    def _send(self, index: int, request: Request) -> None:
        line, number = self._lines[index], next(self._numbers)
        is_last = index + 1 == len(self._lines)
        try:
            made = line.actor.run.options(num_returns=1 if is_last else 2).remote(request.value)
        except Exception as error:  # such as inputs that cannot be pickled
            request.fail("StageFailed", f"stage '{line.spec.name}' cannot be called: {error}", line.spec.name, error)
            return
        status, outputs = (made, None) if is_last else made
        line.calls[number] = _Call(request, monotonic(), outputs)
        generation = line.generation
        status.future().add_done_callback(lambda done: self._events.put((self._end, index, generation, number, done)))

    def _end(self, index: int, generation: int, number: int, done: Any) -> None:
        """A call ended. Calls of an actor that was given up, which a new generation replaced, are not listened to."""
        line = self._lines[index]
        if line.generation != generation or number not in line.calls:
            return
        error = done.exception()
        if error is not None and is_death(error):
            self._lose(index, first_line(error))
            return
        call = line.calls.pop(number)
        line.last_end = monotonic()
        if error is not None:
            self._fail(index, call.request, error)
        else:
            status = done.result()
            if index + 1 == len(self._lines):
                status, outputs = status
                self._succeed(index, call.request, status, outputs)
            else:
                self._succeed(index, call.request, status, call.outputs)
        self._dispatch(index)

    def _succeed(self, index: int, request: Request, status: Mapping[str, Any], outputs: Any) -> None:
        line = self._lines[index]
        line.count(status)
        request.crashes = 0
        if "failure" in status:
            fail_by_status(request, status)
        elif index + 1 == len(self._lines):
            request.settle(list(outputs), None)
        elif not request.is_done:
            request.value = outputs
            self._arrive(index + 1, request)

    def _fail(self, index: int, request: Request, error: BaseException) -> None:
        """A call raised: Ray lost its inputs with a node, or could not pass the outputs on."""
        line = self._lines[index]
        if not is_lost_value(error):
            cause = getattr(error, "cause", None) or error
            line.errors += 1
            text = f"stage '{line.spec.name}' failed: {type(cause).__name__}: {cause}"
            request.fail("StageFailed", text, line.spec.name, cause)
            return
        before = self._lines[:index]
        request.crashes += 1
        impure = next((one for one in before if not one.spec.is_pure), None)
        if impure is not None or request.crashes >= self._limits.crashes:
            lost = impure or line
            text = f"a node died with what stage '{lost.spec.name}' had made for the request"
            request.fail("StageLost", text, lost.spec.name, error)
            return
        request.value = request.inputs
        self._arrive(0, request)

    def _lose(self, index: int, why: str, guilty: int | None = None) -> None:
        """The actor died, or is given up: its pure calls go back to the journal, and a new actor is asked for."""
        line = self._lines[index]
        calls, line.calls = line.calls, {}
        self.epoch += 1
        kill_actor(line.actor)
        line.died(monotonic())
        for number, call in calls.items():
            if number == guilty:
                limit = line.spec.time_limit
                call.request.fail(
                    "StageTimeout", f"stage '{line.spec.name}' took longer than {limit} s", line.spec.name
                )
            elif guilty is not None and line.spec.is_pure:
                heapq.heappush(line.waiting, call.request)  # not begun, or not to blame
            else:
                self._lose_call(line, call.request, why)
        if line.state == "failed":
            self._refuse_waiting(line)

    def _lose_call(self, line: _CallLine, request: Request, why: str) -> None:
        request.crashes += 1
        if line.spec.is_pure and request.crashes < self._limits.crashes:
            heapq.heappush(line.waiting, request)
            return
        again = f", {request.crashes} times" if request.crashes > 1 else ""
        text = f"the actor of stage '{line.spec.name}' died while it had the request{again}: {why}"
        request.fail("StageLost", text, line.spec.name)

    def _refuse_waiting(self, line: _CallLine) -> None:
        waiting, line.waiting = line.waiting, []
        for request in waiting:
            request.fail("StageLost", line.refusal(), line.spec.name)

    def _look_at_all(self, now: float) -> None:
        if any(line.calls for line in self._lines) and not is_connected():
            self._end_all(RAY_IS_GONE)
        for index in range(len(self._lines)):
            self._look(index, now)

    def _look(self, index: int, now: float) -> None:
        """Starts what is due, and gives up what takes too long."""
        line = self._lines[index]
        if line.state in ("waiting", "failed") and now >= line.start_at:
            self._restart(index, now)
        elif now >= line.ready_by:
            self._start_failed(index, line.generation, f"it did not start within {self._limits.start_seconds} s")
        elif line.state == "running" and line.calls and line.spec.time_limit is not None:
            number, call = next(iter(line.calls.items()))
            if now - max(call.began, line.last_end) > line.spec.time_limit:
                self._lose(index, "a call before it took too long", guilty=number)

    def _restart(self, index: int, now: float) -> None:
        line = self._lines[index]
        line.starting(now, self._limits)
        generation = line.generation
        try:
            line.actor = self.new_actor(line)
            ready = line.actor.ready.remote()
        except Exception as error:
            self._start_failed(index, generation, first_line(error))
            return
        ready.future().add_done_callback(lambda done: self._events.put((self._started, index, generation, done)))

    def _started(self, index: int, generation: int, done: Any) -> None:
        line = self._lines[index]
        if line.generation != generation or line.state not in ("starting", "failed"):
            return
        why, died = start_problem(done)
        if why:
            self._start_failed(index, generation, why, died)
            return
        line.running(done.result())
        self._dispatch(index)

    def _start_failed(self, index: int, generation: int, why: str, died: bool = False) -> None:
        line = self._lines[index]
        if line.generation == generation:
            kill_actor(line.actor)
            line.start_failed(monotonic(), why, died)
            if line.state == "failed":
                self._refuse_waiting(line)
