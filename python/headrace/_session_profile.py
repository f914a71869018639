"""The profile of a session: a JSON file of events, for chrome://tracing."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator

from headrace import _whole_file


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
            event = {
                "cat": "Session",
                "pid": os.getpid(),
                "tid": threading.get_native_id(),
                "dur": (time.monotonic_ns() - start) // 1000,
                "ts": (start - self.start_ns) // 1000,
                "ph": "X",
                "name": name,
                "args": args,
            }
            with self._lock:
                if self._events is not None:
                    self._events.append(event)

    def end(self) -> str:
        """Writes the file, one event a line, and gives its name; "" after the first time."""
        with self._lock:
            events, self._events = self._events, None
        if events is None:
            return ""
        text = "[\n" + ",\n".join(map(json.dumps, events)) + "\n]\n"
        _whole_file.write_whole(self._path, text.encode())
        return self._path
