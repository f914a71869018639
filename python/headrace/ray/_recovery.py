"""The part that both wirings share: an actor's state from start to start, and the end of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.pipeline import _processes
from headrace.pipeline._errors import failure
from headrace.ray._actors import ActorSpec
from headrace.ray._package import ray_package
from headrace.ray._tickets import Request

__all__: list[str] = []

# After so many deaths without a request that succeeded between them, requests fail until a start succeeds. The same
# numbers as for stages in processes: the second start in a row waits 10 ms, and each further one twice as long.
_DEATHS_IN_ROW = 5
_FIRST_WAIT = 0.01
_PROBE_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """The numbers that bound each wait and each repetition."""

    window: int  # calls that a pure actor, or executions that a compiled graph, may have
    start_seconds: float
    crashes: int = 3  # the deaths after which a request is lost


@dataclass
class Line:
    """An actor and its history."""

    spec: ActorSpec
    actor: Any = None
    state: str = "starting"  # "starting", "running", "waiting" (for its next start), "failed" (until one succeeds)
    generation: int = 0
    restarts: int = 0
    deaths_in_row: int = 0
    start_at: float = 0.0
    ready_by: float = float("inf")
    why: str = ""
    items: int = 0
    errors: int = 0
    busy: float = 0.0
    about: Mapping[str, Any] = field(default_factory=dict)
    runs: list[float] = field(default_factory=list)  # the last seconds of calls

    def count(self, status: Mapping[str, Any]) -> None:
        """Counts a call that answered."""
        self.items += 1
        self.errors += "failure" in status
        self.busy += status["seconds"]
        self.deaths_in_row = 0
        self.runs.append(status["seconds"])
        if len(self.runs) > _KEPT_RUNS:
            del self.runs[: _KEPT_RUNS // 2]

    def died(self, now: float) -> None:
        """The actor is gone; says when to start the next one."""
        self.generation += 1
        self.ready_by = float("inf")
        self.deaths_in_row += 1
        wait = 0.0 if self.deaths_in_row == 1 else _FIRST_WAIT * 2 ** (self.deaths_in_row - 2)
        self.state, self.start_at = "waiting", now + wait
        if self.deaths_in_row > _DEATHS_IN_ROW:
            self.state, self.start_at = "failed", now + _PROBE_SECONDS
            self.why = f"its actor died {self.deaths_in_row} times in a row"

    def starting(self, now: float, limits: Limits) -> None:
        """A new actor was asked for."""
        self.generation += 1
        self.restarts += 1
        self.state = "failed" if self.state == "failed" else "starting"
        self.start_at, self.ready_by = float("inf"), now + limits.start_seconds

    def running(self, about: Mapping[str, Any]) -> None:
        """The new actor is ready."""
        self.state, self.about, self.ready_by = "running", about, float("inf")

    def start_failed(self, now: float, why: str, is_death: bool = False) -> None:
        """The new actor did not start; the next one is asked for after a while.

        If Ray says that the actor died, it may have chosen a node that was just dying: requests wait for further starts
        until these are too many. Otherwise requests fail at once until a start succeeds.
        """
        if is_death and self.state != "failed" and self.deaths_in_row < _DEATHS_IN_ROW:
            self.died(now)
            self.start_at = now + _PROBE_SECONDS
            return
        self.generation += 1
        self.ready_by = float("inf")
        self.state, self.start_at, self.why = "failed", now + _PROBE_SECONDS, f"its actor cannot start: {why}"

    def refusal(self) -> str:
        """Why requests fail at once."""
        return f"stage '{self.spec.name}' on {self.spec.place} is lost: {self.why}"


_KEPT_RUNS = 4096


def first_line(error: BaseException) -> str:
    """The first line of an error's text; its class where it has no text."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def fail_by_status(request: Request, status: Mapping[str, Any]) -> None:
    """Settles a request with the failure that an actor reported."""
    kind, message, stage, backend, packed = status["failure"]
    cause = None
    if packed is not None:
        try:
            cause = _processes.unpack(packed)
        except Exception as error:  # a class that only the actor's process can import
            cause = RuntimeError(f"the stage's exception cannot be read here: {error}")
    request.settle(None, failure(kind, message, request.seq, stage, backend, cause))


def start_problem(ready: Any, timeout: float | None = None) -> tuple[str, bool]:
    """Why an actor did not start, by the future of its `ready`, and whether it died; ("", False) if it did start.

    Raises TimeoutError for no answer.
    """
    error = ready.exception(timeout)
    if error is not None:
        return first_line(error), is_death(error)
    packed = ready.result()["error"]
    return "" if packed is None else str(_processes.unpack(packed)), False


def is_death(error: BaseException) -> bool:
    """Whether an error of Ray's says that an actor, its process or its node is gone."""
    kinds = ray_package().exceptions
    gone = (kinds.RayActorError, kinds.WorkerCrashedError, kinds.NodeDiedError, kinds.OutOfMemoryError)
    return isinstance(error, gone)


def is_lost_value(error: BaseException) -> bool:
    """Whether an error of Ray's says that the inputs of a call are gone with the node that had them."""
    lost = ray_package().exceptions.ObjectLostError
    return isinstance(error, lost) or isinstance(getattr(error, "cause", None), lost)
