"""A pipeline under ten times the load that it can take: its memory does not grow, and each policy does what it says.

It runs 10 seconds for the three policies together; 60 seconds for each where HEADRACE_TEST_SIZE is "full".
"""

from __future__ import annotations

import time

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")
from pipeline_kit import resident_bytes  # noqa: E402
from size_kit import IS_FULL  # noqa: E402

SECONDS = 60.0 if IS_FULL else 10 / 3
CALL = 0.002  # seconds of the slowest stage; requests come in a tenth of that
PLACES = 8


@pytest.mark.parametrize("policy", ["wait", "reject", "drop_oldest"])
def test_memory_does_not_grow_under_overload(policy: str) -> None:
    def slow(frame: np.ndarray) -> int:
        time.sleep(CALL)
        return int(frame[0])

    frame = np.zeros(1 << 18, "float32")  # 1 MiB: a frame that is kept for each request would show
    tickets: list[pipeline.Ticket] = []
    offered = refused = dropped = answered = 0
    waits = 0.0
    peaks = {False: 0, True: 0}  # those of the first and of the later part
    with pipeline.chain([lambda frame: frame, slow], max_inflight=PLACES, when_full=policy) as pipe:
        begin = time.monotonic()
        while (now := time.monotonic()) < begin + SECONDS:
            frame[0] = offered
            try:
                tickets.append(pipe.submit(frame))
            except pipeline.PipelineFull:
                refused += 1
            waits = max(waits, time.monotonic() - now)
            offered += 1
            if policy != "wait":
                time.sleep(max(0.0, begin + offered * CALL / 10 - time.monotonic()))
            for ticket in [ticket for ticket in tickets if ticket.done()]:
                tickets.remove(ticket)
                error = ticket.exception()
                assert error is None or isinstance(error, pipeline.Dropped)
                dropped += error is not None
                answered += error is None
            assert len(tickets) <= PLACES + 2  # a place is free before its outcome is known
            is_late = now > begin + SECONDS * 0.4
            peaks[is_late] = max(peaks[is_late], resident_bytes())
        answered += sum(ticket.exception(30) is None for ticket in tickets)
        dropped += sum(ticket.exception(30) is not None for ticket in tickets)
        counts = pipe.metrics()
    growth = peaks[True] / peaks[False] - 1
    assert growth <= 0.01, f"resident memory grew by {growth:.2%}"
    assert answered + refused + dropped == offered
    assert (counts["refused"], counts["dropped"], counts["succeeded"]) == (refused, dropped, answered)
    assert answered <= SECONDS / CALL + PLACES
    if policy == "wait":  # nothing is lost, and callers go at the pace of the slowest stage
        assert (refused, dropped) == (0, 0)
        assert waits >= CALL / 2
    else:  # callers never wait; at ten times the load most requests have no place
        assert (refused, dropped)[policy == "reject"] == 0
        assert refused + dropped > offered / 2
