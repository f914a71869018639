"""Traces of pipelines: their files beside the metrics."""

from __future__ import annotations

import json
import time
from itertools import pairwise

import headrace as hr
import pytest
from headrace import pipeline


def slow(x):
    time.sleep(0.001)
    return x


def read(path):
    """The lanes by (pid, tid), the groups by pid, and the events of a trace."""
    trace = json.loads(path.read_text())
    lanes, groups = {}, {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            lanes[event["pid"], event["tid"]] = event["args"]["name"]
        if event["ph"] == "M" and event["name"] == "process_name":
            groups[event["pid"]] = event["args"]["name"]
    return lanes, groups, [event for event in trace["traceEvents"] if event["ph"] == "X"], trace["otherData"]


def test_a_trace_has_every_call_and_wait(tmp_path):
    path = tmp_path / "trace.json"
    stages = [
        pipeline.Stage(lambda x: x, name="first", group="host"),
        pipeline.Stage(slow, name="slow"),
        pipeline.Stage(lambda x: x, name="last", group="host"),
    ]
    texts = [str(i) for i in range(60)]  # texts have no fixed size, so the first stage waits for places
    with pipeline.chain(stages, max_inflight=8) as pipe:
        with pipe.trace() as trace:
            assert list(pipe.map(texts)) == texts
            trace.save(path)
        metrics = pipe.metrics()
    lanes, groups, events, other = read(path)
    assert sorted(lanes.values()) == ["first", "last", "slow"]
    assert sorted(groups.values()) == ["group host", "group slow"]
    assert other["overwritten_events"] == trace.overwritten == 0
    assert len(trace) >= len(events) > 0
    for lane, name in lanes.items():
        mine = [event for event in events if (event["pid"], event["tid"]) == lane]
        for before, after in pairwise(mine):  # times of a lane follow each other; 1 ns is rounded
            assert before["ts"] + before["dur"] <= after["ts"] + 0.002
        calls = [event for event in mine if event["cat"] == "call"]
        assert [call["args"]["request"] for call in calls] == list(range(60))
        assert {event["name"] for event in mine} <= {name, "starved", "blocked"}
        (stage,) = [stage for stage in metrics["stages"] if stage["name"] == name]
        assert len(calls) == stage["items"]
        assert sum(call["dur"] for call in calls) * 1e-6 == pytest.approx(stage["busy"], abs=1e-6)
    assert {event["name"] for event in events if lanes[event["pid"], event["tid"]] == "first"} >= {"first", "blocked"}


def test_a_batch_is_one_call(tmp_path):
    path = tmp_path / "trace.json"
    stage = pipeline.Stage(lambda xs: xs, name="many", max_batch=4, max_delay=60)
    with pipeline.chain([stage]) as pipe, pipe.trace(path):
        list(pipe.map(range(20)))
    _, _, events, _ = read(path)
    calls = [event["args"] for event in events if event["cat"] == "call"]
    assert calls == [{"request": first, "requests": 4, "failed": False} for first in range(0, 20, 4)]


def test_a_failed_call_is_marked(tmp_path):
    path = tmp_path / "trace.json"

    def fail(x):
        return 1 / x

    with pipeline.chain([fail]) as pipe, pipe.trace(path):
        assert [type(result).__name__ for result in pipe.map([1, 0], return_errors=True)] == ["float", "StageFailed"]
    _, _, events, _ = read(path)
    assert [event["args"]["failed"] for event in events if event["cat"] == "call"] == [False, True]


def test_one_trace_at_a_time(tmp_path):
    with pipeline.chain([abs]) as pipe:
        trace = pipe.trace(tmp_path / "first.json")
        with pytest.raises(hr.UserError, match="records a trace already"):
            pipe.trace()
        pipe.submit(-1).wait()
        trace.stop()
        trace.stop()
        pipe.submit(-2).wait()
        assert sum(event["cat"] == "call" for event in read(tmp_path / "first.json")[2]) == 1
        with pipe.trace() as second:
            pipe.submit(-3).wait()
        second.save(tmp_path / "second.json")
        assert [e["args"]["request"] for e in read(tmp_path / "second.json")[2] if e["cat"] == "call"] == [2]
        del second
        dropped = pipe.trace()
        del dropped  # ends it
        with pipe.trace(), pytest.raises(hr.UserError, match="nowhere"):
            trace.save(tmp_path / "nowhere" / "trace.json")


def test_a_trace_is_not_a_page(tmp_path):
    remedy = r"a trace is JSON, so name it '.*stages.json'; headrace pipeline run FILE --trace '.*stages.html' writes"
    with pipeline.chain([abs]) as pipe:
        with pytest.raises(hr.UserError, match=remedy):
            pipe.trace(tmp_path / "stages.html")
        with pipe.trace() as trace:  # none is recorded yet
            pipe.submit(1).wait()
        with pytest.raises(hr.UserError, match=remedy):
            trace.save(str(tmp_path / "stages.html"))
    assert list(tmp_path.iterdir()) == []
