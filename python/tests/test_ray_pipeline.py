"""headrace.ray.Pipeline: stages that are actors on two nodes, and what happens when they die."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import types
import weakref
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
import ray_kit  # noqa: E402
from headrace import pipeline  # noqa: E402
from headrace import ray as hray  # noqa: E402
from headrace.ray import _compiled, _pipeline, _recovery  # noqa: E402
from headrace.ray._actors import ActorSpec, StageSpec  # noqa: E402
from headrace.ray._calls import CallWiring  # noqa: E402
from headrace.ray._places import Place  # noqa: E402
from headrace.ray._recovery import Limits  # noqa: E402
from headrace.ray._tickets import Request  # noqa: E402
from size_kit import IS_FULL  # noqa: E402

SEED = random.randrange(1 << 30)
LIMIT = 60  # seconds: no wait of these tests is longer


@pytest.fixture(scope="module")
def cluster():
    yield from ray_kit.two_nodes()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("ray") / "digits.so"
    hr.compile(ray_kit.ROOT / "models" / "digits.onnx", shapes={"x": (1, 1, 8, 8)}, threads=1, output=path)
    return path


@pytest.fixture(scope="module")
def answers(artifact, images):
    """The digit of each image, by this process."""
    model = hr.load(artifact)
    return [int(np.from_dlpack(model(image[None])).argmax()) for image in images]


def pure(function, **options):
    return pipeline.Stage(function, pure=True, **options)


def pids(pipe):
    return [pid for stage in pipe.metrics()["stages"] for pid in stage["pids"]]


def kill(pid):
    """Ends a process; returns whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid):
    """Whether a process is there and is no zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until(is_true, what):
    end = time.monotonic() + LIMIT
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.01)


BACK = {"digits": {"pool": "back"}, "as_batch": "pool=front", "best": "rear"}


def digits_stages(artifact):
    return [pure(ray_kit.as_batch), artifact, pure(ray_kit.best)]


@pytest.fixture(params=["calls", "compiled"])
def wiring(request):
    return request.param


def one_node(names, wiring):
    """`nodes` that compiled graphs allow: each stage an actor of its own on this process's node."""
    return {name: f"{ray_kit.OWN}{number}" for number, name in enumerate(names)} if wiring == "compiled" else None


def test_results_are_those_of_one_process_in_order(cluster, artifact, images, answers, wiring):
    nodes = BACK if wiring == "calls" else one_node(BACK, wiring)
    with hray.Pipeline(digits_stages(artifact), nodes=nodes, wiring=wiring) as pipe:
        assert pipe.inputs == ["image"]
        assert list(pipe.map(images[:100])) == answers[:100]
        metrics = pipe.metrics()
    assert metrics["wiring"] == wiring
    assert [stage["items"] for stage in metrics["stages"]] == [100, 100, 100]
    assert (metrics["submitted"], metrics["succeeded"], metrics["failed"], metrics["epoch"]) == (100, 100, 0, 0)
    assert "100 of 100 requests succeeded" in pipeline.format_metrics(metrics)


def test_stages_run_on_the_nodes_of_a_plan_file(cluster, artifact, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"nodes": BACK}))
    nodes = {node["Labels"].get("pool"): node["NodeID"] for node in cluster.nodes()}
    with hray.Pipeline(digits_stages(artifact), nodes=plan) as pipe:
        used = {stage["name"]: stage["node"] for stage in pipe.metrics()["stages"]}
        assert pipe.metrics()["wiring"] == "calls"
    assert used == {"as_batch": nodes["front"], "digits": nodes["back"], "best": nodes["back"]}


def test_neighbours_of_one_node_are_one_actor(cluster, artifact, images, answers):
    nodes = {"as_batch": "pool=back", "digits": "pool=back", "best": "pool=front"}
    with hray.Pipeline(digits_stages(artifact), nodes=nodes) as pipe:
        assert [stage["name"] for stage in pipe.metrics()["stages"]] == ["as_batch+digits", "best"]
        assert list(pipe.map(images[:50])) == answers[:50]


def test_auto_compiles_where_all_actors_are_on_this_node(cluster):
    with hray.Pipeline([pure(ray_kit.add_one)], nodes={"add_one": "pool=front"}) as pipe:
        assert pipe.metrics()["wiring"] == "compiled"
        assert list(pipe.map(range(20))) == list(range(1, 21))


@pytest.mark.parametrize("wiring", ["calls", "compiled"])
def test_actors_that_are_killed_lose_and_double_nothing(cluster, artifact, images, answers, wiring):
    """E12: a stage actor is killed 20 times during 10^4 requests (full size)."""
    kills, requests = (20, 10_000) if IS_FULL else (4, 1_200)
    nodes = BACK if wiring == "calls" else one_node(BACK, wiring)
    choose = random.Random(SEED)
    counts: Counter[int] = Counter()
    with hray.Pipeline(digits_stages(artifact), nodes=nodes, wiring=wiring) as pipe:
        tickets, killed = [], 0
        for number in range(requests):
            ticket = pipe.submit(images[number % len(images)], timeout=LIMIT)
            ticket.add_done_callback(lambda one: counts.update([one.seq]))
            tickets.append(ticket)
            if killed < kills and number >= requests * (killed + 1) // (kills + 2):
                wait_until(lambda: len(pids(pipe)) == 3, "an actor did not come back")
                time.sleep(choose.random() * 0.01)
                killed += kill(choose.choice(pids(pipe)))
        results = [ticket.wait(timeout=LIMIT) for ticket in tickets]
        metrics = pipe.metrics()
    assert killed == kills, SEED
    assert results == [answers[number % len(images)] for number in range(requests)], SEED
    assert counts == Counter(range(requests)), SEED
    assert metrics["succeeded"] == requests
    assert metrics["epoch"] >= kills - 1, SEED  # a kill may meet an actor that another kill's recovery replaced
    assert sum(stage["restarts"] for stage in metrics["stages"]) >= kills - 1, SEED


def test_deaths_at_bad_moments(cluster, images, answers, artifact, wiring):
    """All actors at once, a new actor as soon as it is there, and one while the others come back."""
    nodes = BACK if wiring == "calls" else one_node(BACK, wiring)
    choose = random.Random(SEED)
    with hray.Pipeline(digits_stages(artifact), nodes=nodes, wiring=wiring) as pipe:
        for _ in range(3):
            tickets = [pipe.submit(images[number], timeout=LIMIT) for number in range(40)]
            old = pids(pipe)
            for pid in old:
                kill(pid)
            wait_until(lambda old=old: set(pids(pipe)) - set(old), "no actor came back")
            for pid in choose.sample(sorted(set(pids(pipe)) - set(old)), 1):
                kill(pid)
            assert [ticket.wait(timeout=LIMIT) for ticket in tickets] == answers[:40], SEED
        assert pipe.state == "running"


def test_a_node_that_dies_and_another_that_takes_its_place(cluster):
    if not IS_FULL:
        pytest.skip("Ray takes half a minute to notice the death of a node; full size only")
    nodes = cluster.test_cluster
    third = nodes.add_node(num_cpus=2, object_store_memory=ray_kit.STORE_BYTES, labels={"pool": "third"})
    stages = [pure(ray_kit.grow), pure(ray_kit.total)]
    places = {"grow": "pool=third", "total": "pool=back"}
    with hray.Pipeline(stages, nodes=places, wiring="calls", start_seconds=LIMIT) as pipe:
        tickets = [pipe.submit(number) for number in range(60)]
        tickets[10].wait(timeout=LIMIT)
        nodes.remove_node(third, allow_graceful=False)
        third = nodes.add_node(num_cpus=2, object_store_memory=ray_kit.STORE_BYTES, labels={"pool": "third"})
        # Ray takes up to half a minute to notice the death of a node.
        assert [ticket.wait(timeout=2 * LIMIT) for ticket in tickets] == [200_000 * number for number in range(60)]
        assert pipe.metrics()["stages"][0]["restarts"] >= 1
    nodes.remove_node(third)


def test_a_stage_that_is_not_pure_loses_only_what_it_had_begun(cluster, tmp_path, wiring):
    calls = tmp_path / "calls.txt"
    options = {"runtime_env": {"env_vars": {"HEADRACE_TEST_CALLS": str(calls)}}}
    stages = [pure(ray_kit.add_one), ray_kit.counted]
    nodes = one_node(["add_one", "counted"], wiring)
    with hray.Pipeline(stages, nodes=nodes, wiring=wiring, options=options, max_inflight=400) as pipe:
        tickets = [pipe.submit(number) for number in range(300)]
        tickets[60].wait(timeout=LIMIT)
        kill(pids(pipe)[1])
        errors = [ticket.exception(timeout=LIMIT) for ticket in tickets]
        window = 1 if wiring == "calls" else 4
    lost = [error for error in errors if error is not None]
    assert 1 <= len(lost) <= window
    assert {type(error) for error in lost} == {pipeline.StageLost}
    assert {error.stage for error in lost} == {"counted"}
    assert "died while" in str(lost[0])
    begun = Counter(map(int, calls.read_text().split()))
    assert set(begun.values()) == {1}  # no request ran twice
    right = [number for number, error in enumerate(errors) if error is None]
    assert [tickets[number].wait() for number in right] == [number + 1 for number in right]
    assert {number + 1 for number in right} <= set(begun)


def test_a_request_that_kills_its_actors_is_lost_alone(cluster, wiring):
    with hray.Pipeline([pure(ray_kit.die_at_seven)], nodes=one_node(["die_at_seven"], wiring), wiring=wiring) as pipe:
        results = list(pipe.map(range(20), return_errors=True))
        restarts = pipe.metrics()["stages"][0]["restarts"]
    error = results[7]
    assert isinstance(error, pipeline.StageLost)
    assert "3 times" in str(error)
    assert [result for result in results if result is not error] == [number for number in range(20) if number != 7]
    assert restarts == 3


def test_a_stage_that_raises(cluster, wiring):
    stages = [pure(ray_kit.refuse_negative), pure(ray_kit.double)]
    with hray.Pipeline(stages, nodes=one_node(["refuse_negative", "double"], wiring), wiring=wiring) as pipe:
        results = list(pipe.map([1, -1, 3], return_errors=True))
        assert [results[0], results[2]] == [2, 6]
        error = results[1]
        assert isinstance(error, pipeline.StageFailed)
        assert (error.seq, error.stage, type(error.cause), str(error.cause)) == (
            1,
            "refuse_negative",
            ValueError,
            "below zero",
        )
        metrics = pipe.metrics()
        assert [stage["errors"] for stage in metrics["stages"]] == [1, 0]
        assert metrics["failed"] == 1
        with pytest.raises(pipeline.StageFailed, match="below zero"):
            list(pipe.map([-1]))


def test_outputs_that_cannot_be_pickled(cluster):
    with hray.Pipeline([ray_kit.lock_of], wiring="calls") as pipe:
        error = pipe.submit(1).exception(timeout=LIMIT)
        assert isinstance(error, pipeline.StageFailed)
        assert "lock" in str(error)
        assert error.stage == "lock_of"
        error = pipe.submit(threading.Lock()).exception(timeout=LIMIT)
        assert isinstance(error, pipeline.StageFailed)
        assert "cannot be called" in str(error)


def test_a_stage_that_takes_too_long(cluster, wiring):
    stage = pure(ray_kit.sleep, time_limit=4.0)
    with hray.Pipeline([stage], nodes=one_node(["sleep"], wiring), wiring=wiring) as pipe:
        tickets = [pipe.submit(seconds) for seconds in (0.0, 60.0, 0.0, 0.1)]
        assert isinstance(tickets[1].exception(timeout=LIMIT), pipeline.StageTimeout)
        assert "longer than 4.0 s" in str(tickets[1].exception())
        assert [ticket.wait(timeout=LIMIT) for ticket in (tickets[0], tickets[2], tickets[3])] == [0.0, 0.0, 0.1]


def test_deadlines_cancelling_and_a_full_pipeline(cluster, wiring):
    with hray.Pipeline([ray_kit.sleep], nodes=one_node(["sleep"], wiring), wiring=wiring, max_inflight=3) as pipe:
        done = pipe.submit(0.0)
        assert done.wait(timeout=LIMIT) == 0.0
        assert not done.cancel()
        long = [pipe.submit(10.0 * LIMIT) for _ in range(3)]
        with pytest.raises(pipeline.PipelineFull, match="3 requests are in the pipeline"):
            pipe.submit(0.0, timeout=0)
        with pytest.raises(TimeoutError, match="request 1 is not done yet"):
            long[0].wait(timeout=0.01)
        assert long[2].cancel()
        assert isinstance(long[2].exception(timeout=0), pipeline.Cancelled)
        late = pipe.submit(0.0, deadline=0.1)
        assert isinstance(late.exception(timeout=LIMIT), pipeline.DeadlineExceeded)
        assert long[0].cancel() and long[1].cancel()
        assert [ticket.done() for ticket in long] == [True] * 3


def test_tickets_as_futures(cluster):
    async def both(pipe):
        return await asyncio.wait_for(asyncio.gather(pipe.submit(1), pipe.submit(2)), LIMIT)

    with hray.Pipeline([pure(ray_kit.add_one)]) as pipe:
        assert pipe.submit(4).future().result(timeout=LIMIT) == 5
        assert asyncio.run(both(pipe)) == [2, 3]
        tickets = [pipe.submit(number) for number in range(5)]
        done = [ticket.seq for ticket in pipeline.as_completed(tickets, timeout=LIMIT)]
        assert sorted(done) == [ticket.seq for ticket in tickets]


def test_stop_ends_all_that_is_open(cluster, wiring):
    pipe = hray.Pipeline([ray_kit.sleep], nodes=one_node(["sleep"], wiring), wiring=wiring)
    tickets = [pipe.submit(30.0) for _ in range(3)]
    begin = time.monotonic()
    pipe.stop()
    assert time.monotonic() - begin < 20
    assert {type(ticket.exception(timeout=0)) for ticket in tickets} == {pipeline.Stopped}
    assert pipe.state == "stopped"
    pipe.stop()
    with pytest.raises(pipeline.PipelineStopped, match="the pipeline is stopped"):
        pipe.submit(0.0)


def test_drain_with_a_limit(cluster):
    pipe = hray.Pipeline([ray_kit.sleep], wiring="calls")
    quick, slow = pipe.submit(0.1), pipe.submit(60.0)
    assert not pipe.drain(timeout=2.0)
    assert quick.wait() == 0.1
    assert isinstance(slow.exception(timeout=0), pipeline.Stopped)


def test_an_exception_in_a_with_block_stops(cluster):
    with pytest.raises(KeyError), hray.Pipeline([ray_kit.sleep]) as pipe:
        ticket = pipe.submit(60.0)
        raise KeyError("the block's own")
    assert isinstance(ticket.exception(timeout=0), pipeline.Stopped)


def test_actors_that_do_not_come_back(cluster, tmp_path, wiring):
    """A stage that imports no more: requests fail at once, the state says so, and it works again when it can."""
    switch = tmp_path / "broken"
    options = {"runtime_env": {"env_vars": {"HEADRACE_TEST_SWITCH": str(switch)}}}
    nodes = one_node(["gate"], wiring)
    stage = pure("ray_kit_gate:gate", name="gate")
    with hray.Pipeline([stage], nodes=nodes, wiring=wiring, options=options) as pipe:
        assert pipe.submit(1).wait(timeout=LIMIT) == 1
        switch.touch()
        kill(pids(pipe)[0])
        errors = []

        def is_lost():
            errors.append(pipe.submit(2).exception(timeout=LIMIT))
            return pipe.state == "degraded" and isinstance(errors[-1], pipeline.StageLost)

        wait_until(is_lost, "no request was refused")
        assert "its actor cannot start" in str(errors[-1])
        assert "the switch is there" in str(errors[-1])
        switch.unlink()
        wait_until(lambda: pipe.submit(3).exception(timeout=LIMIT) is None, "the stage did not come back")
        assert pipe.state == "running"


@pytest.mark.parametrize(
    ("stages", "options", "message"),
    [
        ([], {}, "a pipeline needs at least one stage"),
        ("a.so", {}, r"stages: expected a list of stages, got one str; write \['a.so'\]"),
        ([7], {}, "a stage is an artifact's path, a CompiledModel, an ArtifactRef or a function, not int"),
        ([pipeline.Stage(ray_kit.double, group="a")], {}, "group: not an option of a stage of an actor"),
        ([ray_kit.double], {"wiring": "rings"}, "wiring is 'rings'; it is 'auto', 'calls' or 'compiled'"),
        ([ray_kit.double], {"window": 0}, "window is 0; it is at least 1"),
        ([ray_kit.double], {"nodes": {"triple": "rear"}}, "nodes: the pipeline has no stage triple; it has double"),
        ([ray_kit.double], {"nodes": {"double": 3}}, "nodes: stage 'double': expected labels such as"),
        ([ray_kit.double], {"nodes": "no/plan.json"}, "plan file 'no/plan.json' cannot be read: No such file"),
        (
            [ray_kit.double, ray_kit.add_one],
            {"nodes": {"double": "pool=front", "add_one": "rear"}, "wiring": "compiled"},
            "wiring='compiled': the stages add_one are not on this process's node; .* use wiring='calls'",
        ),
        (
            [pipeline.Stage(ray_kit.double, time_limit=1.0), ray_kit.add_one],
            {"wiring": "compiled"},
            "the stages add_one have no time_limit and others have one; .* or use wiring='calls'",
        ),
        (
            [pure(ray_kit.batch_size, max_batch=4)],
            {"wiring": "compiled"},
            "the stages batch_size have batches or replicas, .* use wiring='calls'",
        ),
        (
            [pipeline.Stage(ray_kit.batch_size, max_batch=4)],
            {},
            "stage 'batch_size' has batches or replicas and is not",
        ),
        ([ray_kit.double], {"options": {"max_restarts": 2}}, "options: the pipeline sets max_restarts of its actors"),
        ([ray_kit.double], {"options": {"max_concurrency": 2, "max_task_retries": 1}}, "sets max_concurrency and max_"),
        ([ray_kit.double], {"options": {"cpus": 2}}, "options: Ray's actors do not take them: .*cpus"),
        ([ray_kit.double], {"options": {"resources": "front0"}}, "options: resources: expected a dict by name"),
        (
            [ray_kit.double],  # options= adds to the resources that nodes= asks for
            {"nodes": {"double": "front0"}, "options": {"resources": {"moon": 1}}, "start_seconds": 1},
            "did not start within 1.0 s",
        ),
        (["ray_kit:triple"], {}, "stage 'triple' cannot start on any node: 'ray_kit:triple' cannot be imported"),
        (
            [ray_kit.double],
            {"nodes": {"double": "pool=moon"}, "start_seconds": 1},
            "did not start within 1.0 s; it needs a node with the label pool=moon with a free processor, and there are "
            "node 0: labels pool=back, resources rear; node 1: labels pool=front, resources front0, front1, front2",
        ),
    ],
)
def test_pipelines_that_cannot_be(cluster, stages, options, message):
    with pytest.raises(hr.UserError, match=message):
        hray.Pipeline(stages, **options)


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ('{"stages": {}}', 'has no "nodes"')])
def test_plan_files_that_cannot_be_read(cluster, tmp_path, text, message):
    plan = tmp_path / "plan.json"
    plan.write_text(text)
    with pytest.raises(hr.UserError, match=message):
        hray.Pipeline([ray_kit.double], nodes=plan)


def test_neighbours_that_do_not_fit(cluster, artifact):
    with pytest.raises(pipeline.PortError, match=r"output 'probabilities' of stage 'digits' is float32 \(1, 10\), and"):
        hray.Pipeline([artifact, artifact], wiring="calls")
    two = pipeline.Stage(ray_kit.double, outputs=2)
    with pytest.raises(pipeline.PortError, match="stage 'double' has 2 outputs, and stage 'add_one' takes 1 inputs"):
        hray.Pipeline([two, ray_kit.add_one], wiring="calls")


def test_inputs_that_do_not_fit(cluster, artifact):
    with hray.Pipeline([artifact]) as pipe:
        with pytest.raises(hr.UserError, match=r"input 'x' is float32 \(1, 1, 8, 8\), got float64 \(1, 1, 8, 8\)"):
            pipe.submit(np.zeros((1, 1, 8, 8)))
        with pytest.raises(hr.UserError, match="the inputs are x; got 2 values"):
            pipe.submit(1, 2)


def test_an_input_may_be_changed_after_it_was_submitted(cluster, wiring):
    stages = [pure(ray_kit.double)]
    with hray.Pipeline(stages, nodes=one_node(["double"], wiring), wiring=wiring, max_inflight=100) as pipe:
        value, tickets = np.zeros(1000), []
        for number in range(40):
            value[:] = number
            tickets.append(pipe.submit(value))
        kept = [ticket.wait(timeout=LIMIT) for ticket in tickets]
    for number, result in enumerate(kept):
        np.testing.assert_array_equal(result, np.full(1000, 2.0 * number))


def test_without_a_cluster_the_error_says_what_to_call(monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(hr.UserError, match=r"call ray\.init\(\) before making a pipeline"):
        hray.Pipeline([ray_kit.double])


GONE = """
import sys, time
import ray, headrace.ray
from headrace import pipeline
import ray_kit
ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="critical")
pipe = headrace.ray.Pipeline([pipeline.Stage(ray_kit.sleep, pure=True)], wiring=sys.argv[1])
ticket = pipe.submit(120.0)
time.sleep(0.5)
ray.shutdown()
error = ticket.exception(timeout=60)
print(type(error).__name__, ray.is_initialized(), pipe.state, error)
"""


def test_requests_end_when_ray_is_shut_down(wiring):
    pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    if wiring == "compiled" and not IS_FULL:
        pytest.skip("Ray takes half a minute to end a compiled graph that it is disconnected from; full size only")
    path = os.pathsep.join([str(ray_kit.ROOT / "python/tests"), os.environ.get("PYTHONPATH", "")])
    environment = dict(os.environ, PYTHONPATH=path, RAY_USAGE_STATS_ENABLED="0")
    command = [sys.executable, "-c", GONE, wiring]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.split()[:3] == ["StageLost", "False", "degraded"], done.stderr
    assert wiring == "compiled" or "no longer connected to Ray" in done.stdout
    assert done.returncode == 0, done.stderr


def two_lines(is_pure):
    """The calls of two stages without actors, to look at what ends a request."""
    specs = [ActorSpec([StageSpec(name, None, {}, is_pure, None)], Place()) for name in ("first", "second")]
    return CallWiring(specs, {}, Limits(window=4, start_seconds=1.0))


@pytest.mark.parametrize(("is_pure", "crashes", "stage"), [(False, 0, "first"), (True, 2, "second")])
def test_tensors_that_died_with_their_node(is_pure, crashes, stage):
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    request = Request(5, (1,), crashes=crashes)
    two_lines(is_pure)._fail(1, request, ray.exceptions.ObjectLostError("00" * 28, None, ""))
    assert isinstance(request.error, pipeline.StageLost)
    assert (request.error.seq, request.error.stage) == (5, stage)
    assert f"a node died with what stage '{stage}' had made" in str(request.error)


def test_an_error_that_nothing_foresees_ends_the_requests():
    pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    wiring, request = two_lines(True), Request(0, (1,))
    wiring._lines[1].waiting.append(request)
    wiring._act(lambda: 1 / 0, [])
    assert isinstance(request.error, pipeline.StageLost)
    assert "ZeroDivisionError" in str(request.error)
    assert [line.state for line in wiring.lines] == ["failed", "failed"]


def test_a_cause_of_a_class_that_is_only_over_there():
    request = Request(3, (1,))
    _recovery.fail_by_status(request, {"failure": ("StageFailed", "it failed", "digits", "", b"no pickle")})
    assert isinstance(request.error, pipeline.StageFailed)
    assert "the stage's exception cannot be read here" in str(request.error.cause)


def test_a_request_has_one_outcome():
    calls = []
    request = Request(0, (1,), before_done=lambda one: calls.append(one.seq))
    request.when_done(lambda: calls.append("done"))
    assert request.settle([2], None)
    assert not request.fail("Cancelled", "too late")
    assert (request.results, request.error, calls) == ([2], None, [0, "done"])
    request.when_done(lambda: calls.append("late"))
    assert calls[-1] == "late"


class SilentRay:
    """Stands in for the module ray where the graph's first answer is awaited."""

    def __init__(self, ray):
        self.exceptions = ray.exceptions

    def get(self, *_, **__):
        raise self.exceptions.RayChannelTimeoutError("no answer")


def test_a_compiled_graph_that_does_not_answer(cluster, monkeypatch):
    monkeypatch.setattr(_compiled, "ray_package", lambda: SilentRay(cluster))
    with pytest.raises(pipeline.PipelineError, match=r"does not answer on these nodes \(RayChannelTimeoutError\)"):
        hray.Pipeline([pure(ray_kit.double)], nodes={"double": "front0"}, wiring="compiled")


def test_graphs_that_cannot_be_compiled_again(cluster, monkeypatch):
    with hray.Pipeline([pure(ray_kit.double)], nodes={"double": "front0"}, wiring="compiled") as pipe:
        compile_graph = _compiled.CompiledWiring._compile

        def refuse(self):
            raise pipeline.PipelineError("no graph today")

        monkeypatch.setattr(_compiled.CompiledWiring, "_compile", refuse)
        kill(pids(pipe)[0])
        error = pipe.submit(1).exception(timeout=LIMIT)
        assert isinstance(error, pipeline.StageLost)
        assert "its compiled graph does not answer: no graph today" in str(error)
        assert pipe.state == "degraded"
        monkeypatch.setattr(_compiled.CompiledWiring, "_compile", compile_graph)
        wait_until(lambda: pipe.submit(3).exception(timeout=LIMIT) is None, "the graph did not come back")


def test_an_actor_that_dies_while_it_starts(cluster, tmp_path):
    switch = tmp_path / "broken"
    switch.write_text("exit")
    options = {"runtime_env": {"env_vars": {"HEADRACE_TEST_SWITCH": str(switch)}}}
    with pytest.raises(pipeline.PipelineError, match="the actor of stage 'gate' did not start: "):
        hray.Pipeline([pure("ray_kit_gate:gate")], options=options)


@pytest.fixture
def unraisable(monkeypatch):
    """The errors that sys.unraisablehook got."""
    errors = []
    monkeypatch.setattr(sys, "unraisablehook", lambda about: errors.append(about.exc_value))
    return errors


def test_a_callback_that_raises_is_reported(unraisable):
    calls, request = [], Request(0, (1,))
    for function in (lambda: 1 / 0, lambda: calls.append("second"), sys.exit):
        request.when_done(function)
    assert request.settle([2], None)
    request.when_done(lambda: 1 / 0)
    assert calls == ["second"]
    assert [type(error) for error in unraisable] == [ZeroDivisionError, SystemExit, ZeroDivisionError]


def test_callbacks_that_raise_do_not_disturb_the_pipeline(cluster, unraisable, wiring):
    nodes = one_node(["sleep"], wiring)
    pipe = hray.Pipeline([pure(ray_kit.sleep)], nodes=nodes, wiring=wiring)
    quick, long = pipe.submit(0.5), pipe.submit(10.0 * LIMIT)
    for ticket in (quick, long):
        ticket.add_done_callback(lambda _: 1 / 0)
    assert quick.wait(timeout=LIMIT) == 0.5
    [pid] = pids(pipe)
    pipe.stop()
    assert isinstance(long.exception(timeout=0), pipeline.Stopped)
    assert [type(error) for error in unraisable] == [ZeroDivisionError] * 2
    wait_until(lambda: not is_alive(pid), "the actor did not end")


def test_a_stop_that_is_interrupted(cluster, monkeypatch):
    pipe = hray.Pipeline([pure(ray_kit.sleep)], wiring="calls")
    ticket, [pid] = pipe.submit(10.0 * LIMIT), pids(pipe)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Request, "fail", interrupt)
        pipe.stop()
    wait_until(lambda: not is_alive(pid), "the actor did not end")
    pipe.stop()
    assert isinstance(ticket.exception(timeout=0), pipeline.Stopped)


def test_an_error_of_the_regular_look_ends_the_requests(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    wiring, request = two_lines(True), Request(0, (1,))
    monkeypatch.setattr(wiring, "_look", lambda *_: 1 / 0)
    wiring.submit(request)
    wiring._thread.start()
    assert request.wait(LIMIT)
    assert "ZeroDivisionError" in str(request.error)
    wiring.close()
    assert not wiring._thread.is_alive()


@pytest.mark.parametrize("wrong", [{"deadline": "soon"}, {"deadline": -1}, {"timeout": "soon"}])
def test_times_that_are_none_take_no_place(cluster, wrong):
    pipe = hray.Pipeline([pure(ray_kit.add_one)], wiring="calls")
    try:
        with pytest.raises(hr.UserError, match=f"{next(iter(wrong))}: expected seconds"):
            pipe.submit(1, **wrong)
        assert pipe.metrics()["inflight"] == 0
        assert pipe.drain(timeout=LIMIT)
    finally:
        pipe.stop()


def test_a_time_limit_holds_beside_stages_without_one(cluster):
    stages = [pure(ray_kit.sleep, time_limit=3.0), pure(ray_kit.add_one), pure(ray_kit.double)]
    nodes = dict.fromkeys(("sleep", "add_one", "double"), "pool=front")
    with hray.Pipeline(stages, nodes=nodes) as pipe:
        metrics = pipe.metrics()
        assert [stage["name"] for stage in metrics["stages"]] == ["sleep", "add_one+double"]
        assert metrics["wiring"] == "calls"
        tickets = [pipe.submit(seconds) for seconds in (10.0 * LIMIT, 0.0)]
        error = tickets[0].exception(timeout=LIMIT)
        assert isinstance(error, pipeline.StageTimeout)
        assert error.stage == "sleep"
        assert tickets[1].wait(timeout=LIMIT) == 2.0


def test_each_stage_of_a_compiled_graph_keeps_its_own_limit(cluster):
    stages = [pure(ray_kit.sleep, name="first", time_limit=2.0), pure(ray_kit.sleep, name="second", time_limit=LIMIT)]
    with hray.Pipeline(stages, nodes=one_node(["first", "second"], "compiled"), wiring="compiled") as pipe:
        error = pipe.submit(2.5).exception(timeout=LIMIT)
        assert isinstance(error, pipeline.StageTimeout)
        assert str(error) == "stage 'first' took longer than 2.0 s"
        assert pipe.submit(0.0).wait(timeout=LIMIT) == 0.0


def test_a_request_without_a_limit_outlasts_the_looks(cluster, monkeypatch):
    monkeypatch.setattr(_compiled, "_LOOK_SECONDS", 0.1)
    with hray.Pipeline([ray_kit.sleep], nodes=one_node(["sleep"], "compiled"), wiring="compiled") as pipe:
        assert pipe.submit(2.0).wait(timeout=LIMIT) == 2.0
        assert pipe.metrics()["epoch"] == 0


def compiled_lines(actor):
    """A compiled wiring without a graph, whose graph has one request."""
    calls = two_lines(True)
    for line in calls.lines:
        line.actor, line.state = actor, "running"
    wiring, request = _compiled.CompiledWiring(calls, Limits(4, 1.0)), Request(5, (1,))
    wiring._flying.append((request, "the answer"))
    return wiring, request


@pytest.mark.parametrize(("is_dead", "broken"), [(True, "gone"), (False, "")])
def test_a_look_tells_dead_actors_from_busy_ones(monkeypatch, is_dead, broken):
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")

    def ready():
        raise ray.exceptions.RayActorError(error_msg="gone") if is_dead else ray.exceptions.GetTimeoutError("busy")

    monkeypatch.setattr(_compiled, "is_connected", lambda: True)
    wiring, _ = compiled_lines(types.SimpleNamespace(ready=types.SimpleNamespace(remote=ready)))
    wiring._look()
    assert wiring._broken == broken


class AnsweringRay:
    """Stands in for the module ray: gives or raises what a test says."""

    def __init__(self, ray, answer):
        self.exceptions, self._answer = ray.exceptions, answer

    def get(self, *_, **__):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "why"),
    [(((4, 0), [], (1,)), "the graph answered (4, 0) in place of (5, 0)"), (RuntimeError(""), "RuntimeError")],
)
def test_answers_that_are_none_break_the_graph(monkeypatch, answer, why):
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    wiring, request = compiled_lines(None)
    monkeypatch.setattr(_compiled, "is_connected", lambda: True)
    monkeypatch.setattr(_compiled, "ray_package", lambda: AnsweringRay(ray, answer))
    wiring._read_answer(wiring._flying[0], 0)
    assert wiring._broken == why
    assert [entry[0] for entry in wiring._flying] == [request]  # the journal gives it to the next graph
    assert not request.is_done


def test_an_actor_that_does_not_answer_is_killed_before_the_next_one(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed (pip install '.[ray]')")
    events, wiring = [], compiled_lines("the old one")[0]
    monkeypatch.setattr(_compiled, "kill_actor", lambda actor: events.append(f"kill {actor}"))
    monkeypatch.setattr(wiring._calls, "new_actor", lambda _: events.append("new") or 1 / 0)
    monkeypatch.setattr(wiring, "_wait", lambda _: None)
    assert not wiring._restart(wiring.lines[0])
    assert events[:2] == ["kill the old one", "new"]


def test_a_stage_gets_the_dict_of_the_stage_before(cluster, wiring):
    stages = [pure(ray_kit.as_record), pure(ray_kit.of_record)]
    with hray.Pipeline(stages, nodes=one_node(["as_record", "of_record"], wiring), wiring=wiring) as pipe:
        assert list(pipe.map([1, 5])) == [2, 6]
    with hray.Pipeline([pure(ray_kit.of_record)], nodes=one_node(["of_record"], wiring), wiring=wiring) as pipe:
        assert pipe.submit({"x": 4}).wait(timeout=LIMIT) == 5


def test_values_that_cannot_pass_through_a_compiled_graph(cluster):
    nodes = one_node(["add_one", "lock_of"], "compiled")
    stages = [pure(ray_kit.add_one), pure(ray_kit.lock_of)]
    with hray.Pipeline(stages, nodes=nodes, wiring="compiled") as pipe:
        error = pipe.submit(1).exception(timeout=LIMIT)
        assert (type(error), error.stage) == (pipeline.StageFailed, "lock_of")
        assert "lock" in str(error)
        error = pipe.submit(threading.Lock()).exception(timeout=LIMIT)
        assert (type(error), error.stage) == (pipeline.StageFailed, "add_one")
        assert "cannot be called" in str(error)
        assert pipe.metrics()["epoch"] == 0


def test_values_that_cannot_be_read_again(cluster):
    nodes = one_node(["unreadable", "double"], "compiled")
    stages = [pure(ray_kit.unreadable), pure(ray_kit.double)]
    with hray.Pipeline(stages, nodes=nodes, wiring="compiled") as pipe:
        error = pipe.submit(-1).exception(timeout=LIMIT)
        assert (type(error), error.stage) == (pipeline.StageFailed, "double")
        assert "not in this process" in str(error)
        assert pipe.submit(2).wait(timeout=LIMIT) == 4
    with hray.Pipeline(stages[:1], nodes={"unreadable": "front0"}, wiring="compiled") as pipe:
        error = pipe.submit(-1).exception(timeout=LIMIT)
        assert (type(error), error.stage) == (pipeline.StageFailed, "unreadable")
        assert pipe.submit(2).wait(timeout=LIMIT) == 2
        assert pipe.metrics()["epoch"] == 0


def test_a_stage_alone_gathers_batches(cluster):
    with hray.Pipeline([pure(ray_kit.batch_size, max_batch=4, max_delay=5.0)], nodes={"batch_size": "front0"}) as pipe:
        assert pipe.metrics()["wiring"] == "calls"
        assert [ticket.wait(timeout=LIMIT) for ticket in [pipe.submit(number) for number in range(4)]] == [4] * 4


def test_deadlines_do_not_keep_requests():
    deadlines, far = _pipeline._Deadlines(), time.monotonic() + 1e5
    try:
        request = Request(0, (1,))
        deadlines.add(far, request)
        gone = weakref.ref(request)
        del request
        assert gone() is None
        for number in range(4 * _pipeline._SWEEP):
            deadlines.add(far, Request(number + 1, ()))
        assert len(deadlines._heap) <= _pipeline._SWEEP
        late = Request(0, ())
        deadlines.add(time.monotonic() + 0.01, late)
        assert late.wait(LIMIT)
        assert isinstance(late.error, pipeline.DeadlineExceeded)
    finally:
        deadlines.close()


def test_a_pipeline_that_is_dropped_ends_its_actors(cluster, wiring):
    pipe = hray.Pipeline([pure(ray_kit.add_one)], nodes=one_node(["add_one"], wiring), wiring=wiring)
    ticket, [pid] = pipe.submit(1, deadline=1000), pids(pipe)
    assert ticket.wait(timeout=LIMIT) == 2
    del pipe
    gc.collect()
    wait_until(lambda: not is_alive(pid), "the actor did not end")
