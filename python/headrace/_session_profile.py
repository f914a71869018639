"""The profile of a session: a JSON file of events, for chrome://tracing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator, Sequence

from headrace import _whole_file
from headrace._providers import CPU_PROVIDER

_MOST_EVENTS = 1_000_000  # onnxruntime's number; a session that runs for days keeps no more


def _event(category: str, name: str, start_ns: int, duration_ns: int, args: dict[str, str]) -> dict:
    return {
        "cat": category,
        "pid": os.getpid(),
        "tid": threading.get_native_id(),
        "dur": duration_ns // 1000,
        "ts": start_ns // 1000,
        "ph": "X",
        "name": name,
        "args": args,
    }


class SessionProfile:
    """Times of what a session does, written to a file by `end`. Threads may share it."""

    def __init__(self, prefix: str) -> None:
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        self._path = f"{prefix}_{stamp}_{os.getpid()}_{id(self):x}.json"
        self.start_ns = time.monotonic_ns()
        self._events: list[dict] | None = []
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def span(self, name: str, **args: str) -> Iterator[None]:
        """Records the time that a `with` takes."""
        start = time.monotonic_ns()
        try:
            yield
        finally:
            self._add([_event("Session", name, start - self.start_ns, time.monotonic_ns() - start, args)])

    @contextlib.contextmanager
    def run_of(self, steps: Sequence[tuple[str, str]]) -> Iterator[list[int]]:
        """Records a run, and its steps with the nanoseconds that the `with` writes to the list.

        Steps have the name in the model and that of the code, and run one after another.
        """
        times: list[int] = []
        with self.span("model_run"):
            start = time.monotonic_ns() - self.start_ns
            yield times
        events = []
        for i, ((op, code), duration) in enumerate(zip(steps, times, strict=False)):
            kind = re.sub(r"_[0-9a-f]{16}$", "", code)  # kernels of one kind differ in the hash of their code
            args = {"op_name": kind, "provider": CPU_PROVIDER, "node_index": str(i), "code": code}
            events.append(_event("Node", f"{op or code}_kernel_time", start, duration, args))
            start += duration
        self._add(events)

    def _add(self, events: list[dict]) -> None:
        with self._lock:
            if self._events is not None and len(self._events) < _MOST_EVENTS:
                self._events += events

    def end(self) -> str:
        """Writes the file, one event a line, and gives its name; "" after the first time."""
        with self._lock:
            events, self._events = self._events, None
        if events is None:
            return ""
        text = "[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n"
        _whole_file.write_whole(self._path, text.encode())
        return self._path
