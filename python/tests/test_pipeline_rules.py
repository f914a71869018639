"""Rules of pipelines under attack: delays, failures, hangs, forks and wrong requests at random moments."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")


def shaky(change: Callable[[int], Any], seed: int, failing: float) -> Callable[[int], Any]:
    """A function that waits at random moments, and raises for a share of its calls."""
    draws = random.Random(seed)

    def run(x: int) -> Any:
        if draws.random() < 0.1:
            time.sleep(draws.random() * 0.003)
        if draws.random() < failing:
            raise ValueError(f"planted for {x}")
        return change(x)

    return run


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_joins_match_by_request_under_delays_and_failures(seed: int) -> None:
    graph = pipeline.Graph()
    left = graph.stage(shaky(lambda x: x * 10, seed, 0.05), "left", inputs=["x"])
    right = graph.stage(shaky(lambda x: x * 100, seed + 10, 0.05), "right", inputs=["x"], replicas=3)
    join = graph.stage(lambda x, y, z: (x, y, z), "join", outputs=["x", "y", "z"])
    graph.input("x").connect(left.input("x"))
    graph.input("x").connect(right.input("x"))
    graph.input("x").connect(join.input("x"))
    left.output().connect(join.input("y"))
    right.output().connect(join.input("z"))
    for name in "xyz":
        join.output(name).connect(graph.output(name))
    failed = 0
    with graph.build(max_inflight=7, failures_in_row=0) as pipe:
        for number, result in enumerate(pipe.map(range(400), return_errors=True)):
            if isinstance(result, pipeline.StageFailed):
                failed += 1
                assert str(result.cause) == f"planted for {number}"
            else:
                assert result == (number, number * 10, number * 100)
    assert 5 <= failed <= 100  # each branch fails 5 % of 400


def test_wrong_requests_of_many_threads_do_not_enter() -> None:
    seen = []
    graph = pipeline.Graph()
    stage = graph.stage(lambda a, b: seen.append((a, b)) or a + b, "add", inputs=["a", "b"])
    graph.input("a").connect(stage.input("a"))
    graph.input("b").connect(stage.input("b"))
    stage.output().connect(graph.output("sum"))
    right = []

    def submit(seed: int) -> None:
        draws = random.Random(seed)
        for i in range(100):
            if draws.random() < 0.5:
                with pytest.raises(hr.UserError, match="b"):
                    pipe.submit({"a": i} if draws.random() < 0.5 else {"a": i, "b": 1, "c": 2})
            else:
                right.append((i + seed, pipe.submit({"b": seed, "a": i})))

    with graph.build(max_inflight=4) as pipe:
        threads = [threading.Thread(target=submit, args=(1000 * n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [ticket.wait(10) for _, ticket in right] == [expected for expected, _ in right]
        assert pipe.metrics()["submitted"] == len(right) == len(seen)


def test_no_request_sees_half_of_a_change() -> None:
    graph = pipeline.Graph()
    first = graph.stage(shaky(lambda x: x, 5, 0), "first", inputs=["x"])
    both = graph.stage(lambda x, v, w: (int(v[0]), int(w[0])), "both", outputs=["v", "w"])
    graph.input("x").connect(first.input("x"))
    first.output().connect(both.input("x"))
    zero = np.zeros(1, "int64")
    for name in "vw":
        graph.param("group", name, zero).connect(both.input(name))
        both.output(name).connect(graph.output(name))
    begins = {0: 0}  # by the value, the first request that sees it

    def change() -> None:
        for value in range(1, 60):
            if value % 3 == 0:
                with pytest.raises(hr.UserError):  # one that is not there: neither is set
                    pipe.set_params("group", {"v": np.full(1, -1), "nope": np.full(1, -1)})
            begins[pipe.set_params("group", {"v": np.full(1, value), "w": np.full(1, value)})] = value
            time.sleep(0.001)

    with graph.build(max_inflight=5) as pipe:
        writer = threading.Thread(target=change)
        writer.start()
        results = list(pipe.map(range(300)))
        writer.join()
    assert all(v == w for v, w in results)
    expected, value = [], 0
    for number in range(300):
        value = begins.get(number, value)
        expected.append(value)
    assert [v for v, _ in results] == expected


def test_states_follow_the_life_of_a_pipeline() -> None:
    gate, entered = threading.Event(), threading.Event()

    def wait(x: int) -> int:
        if x == 0:
            raise ValueError("planted")
        entered.set()
        gate.wait(30)
        return x

    pipe = pipeline.chain([wait], failures_in_row=2, start=False)
    assert pipe.state == "built"
    with pytest.raises(pipeline.PipelineNotStarted, match=r"takes no requests before start\(\)"):
        pipe.submit(1)
    pipe.start()
    assert pipe.state == "running"
    for _ in range(2):
        assert pipe.submit(0).exception(10) is not None
    assert pipe.state == "degraded"
    pipe.reset()
    assert pipe.state == "running"
    ticket = pipe.submit(1)
    assert entered.wait(10)
    with pytest.raises(TimeoutError):
        pipe.drain(timeout=0.01)
    assert pipe.state == "draining"
    with pytest.raises(pipeline.PipelineStopped):
        pipe.submit(1)
    gate.set()
    pipe.drain(timeout=10)
    assert (pipe.state, ticket.wait()) == ("stopped", 1)
    gate.clear()
    entered.clear()
    stuck = pipeline.chain([pipeline.Stage(wait, name="stuck")])
    stuck.submit(1)
    assert entered.wait(10)
    assert stuck.stop(timeout=0.01) == ["stuck"]
    assert stuck.state == "failed"
    gate.set()
    assert stuck.stop(timeout=10) == []


def test_a_pipeline_that_is_stopped_does_not_start() -> None:
    pipe = pipeline.chain([abs], start=False)
    pipe.stop()
    assert pipe.state == "stopped"
    with pytest.raises(pipeline.PipelineStopped, match="cannot be started"):
        pipe.start()


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_warm_up_is_no_request(isolation: str, tmp_path: Path) -> None:
    (tmp_path / "exp.relay").write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { exp(%x) }\n')
    hr.compile(tmp_path / "exp.relay", output=tmp_path / "exp.so")
    stage = pipeline.Stage(tmp_path / "exp.so", isolation=isolation, replicas=2)
    with pipeline.chain([stage, pipeline.Stage(lambda x: x, outputs=["y"])], warm_up=True) as pipe:
        assert pipe.state == "running"
        assert [one["items"] for one in pipe.metrics()["stages"]] == [0, 0]
        np.testing.assert_allclose(pipe.submit(np.zeros(4, "float32")).wait(), np.ones(4))


def test_no_call_waits_longer_than_its_timeout() -> None:
    gate, entered = threading.Event(), threading.Event()

    def hang(x: int) -> int:
        entered.set()
        gate.wait(30)
        return x

    pipe = pipeline.chain([hang, abs], max_inflight=2)
    begin = time.monotonic()
    tickets = [pipe.submit(1), pipe.submit(2)]  # the first stage hangs, and neither waits for it
    assert entered.wait(10)
    with pytest.raises(pipeline.PipelineFull):
        pipe.submit(3, timeout=0.05)
    with pytest.raises(pipeline.PipelineFull):
        pipe.push(3, timeout=0.05)
    with pytest.raises(TimeoutError):
        pipe.next(timeout=0.05)
    for call in (tickets[0].wait, tickets[0].outputs, tickets[1].exception):
        with pytest.raises(TimeoutError):
            call(0.05)
    with pytest.raises(TimeoutError):
        tickets[0].future().result(0.05)
    with pytest.raises(TimeoutError):
        list(pipeline.as_completed(tickets, timeout=0.05))
    assert pipe.metrics()["in_flight"] == 2
    with pytest.raises(TimeoutError):
        pipe.drain(timeout=0.05)
    assert pipe.stop(timeout=0.05) == ["hang"]
    assert time.monotonic() - begin < 10  # far below the 30 seconds of the hang
    assert all(isinstance(ticket.exception(1), pipeline.Stopped) for ticket in tickets)
    gate.set()
    assert pipe.stop(timeout=10) == []


def caught_signals() -> str:
    """The signals of this process that have handlers, as the kernel shows them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("SigCgt"))


def test_no_signal_handlers_are_installed() -> None:
    program = textwrap.dedent(f"""
        import signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from headrace import pipeline
        from test_pipeline_rules import caught_signals
        seen = [caught_signals()]
        stages = [abs, pipeline.Stage("builtins:abs", inputs=["x"], isolation="process", time_limit=30)]
        with pipeline.chain(stages) as pipe:
            seen.append(caught_signals())
            assert list(pipe.map(range(-20, 0), deadline=30)) == list(range(20, 0, -1))
            seen.append(caught_signals())
        seen.append(caught_signals())
        signal.signal(signal.SIGUSR1, lambda number, frame: None)  # one that does show
        print(*seen, caught_signals())
    """)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, *later, with_one = ran.stdout.split()
    assert later == [before] * 3 != [with_one] * 3


def test_a_child_forked_at_any_moment_sees_a_stopped_pipeline() -> None:
    program = textwrap.dedent("""
        import os, random, signal, time
        from headrace import pipeline
        draws = random.Random(3)
        def slow(x):
            time.sleep(draws.random() * 0.002)
            return x
        pipe = pipeline.chain([slow, slow, abs], max_inflight=4)
        for turn in range(30):
            tickets = [pipe.submit(x) for x in range(draws.randrange(5))]
            time.sleep(draws.random() * 0.003)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                try:
                    pipe.submit(1)
                except pipeline.PipelineStopped:
                    pipe.drain()
                    os._exit(7 if pipe.state == "stopped" and pipe.stop() == [] else 1)
                os._exit(2)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7, turn
            assert [ticket.wait(20) for ticket in tickets] == list(range(len(tickets)))
        print(pipe.state)
    """)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "running\n"), ran.stderr
