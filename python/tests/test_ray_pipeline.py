"""headrace.ray.Pipeline: stages that are actors on two nodes, and what happens when they die."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
import ray_kit  # noqa: E402
from headrace import pipeline  # noqa: E402
from headrace import ray as hray  # noqa: E402
from headrace.ray import _compiled, _recovery  # noqa: E402
from headrace.ray._actors import ActorSpec, StageSpec  # noqa: E402
from headrace.ray._calls import CallWiring  # noqa: E402
from headrace.ray._places import Place  # noqa: E402
from headrace.ray._recovery import Limits  # noqa: E402
from headrace.ray._tickets import Request  # noqa: E402

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
    kills, requests = (20, 10_000) if ray_kit.IS_FULL else (4, 1_200)
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
                os.kill(choose.choice(pids(pipe)), signal.SIGKILL)
                killed += 1
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
                os.kill(pid, signal.SIGKILL)
            wait_until(lambda old=old: set(pids(pipe)) - set(old), "no actor came back")
            os.kill(choose.choice(sorted(set(pids(pipe)) - set(old))), signal.SIGKILL)
            assert [ticket.wait(timeout=LIMIT) for ticket in tickets] == answers[:40], SEED
        assert pipe.state == "running"


def test_a_node_that_dies_and_another_that_takes_its_place(cluster):
    if not ray_kit.IS_FULL:
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
        os.kill(pids(pipe)[1], signal.SIGKILL)
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
    stage = pure(ray_kit.sleep, time_limit=0.6)
    with hray.Pipeline([stage], nodes=one_node(["sleep"], wiring), wiring=wiring) as pipe:
        tickets = [pipe.submit(seconds) for seconds in (0.0, 60.0, 0.0, 0.1)]
        assert isinstance(tickets[1].exception(timeout=LIMIT), pipeline.StageTimeout)
        assert "longer than 0.6 s" in str(tickets[1].exception())
        assert [ticket.wait(timeout=LIMIT) for ticket in (tickets[0], tickets[2], tickets[3])] == [0.0, 0.0, 0.1]


def test_deadlines_cancelling_and_a_full_pipeline(cluster, wiring):
    with hray.Pipeline([ray_kit.sleep], nodes=one_node(["sleep"], wiring), wiring=wiring, max_inflight=3) as pipe:
        first, late, third = pipe.submit(0.5), pipe.submit(0.0, deadline=0.1), pipe.submit(0.0)
        with pytest.raises(pipeline.PipelineFull, match="3 requests are in the pipeline"):
            pipe.submit(0.0, timeout=0)
        with pytest.raises(TimeoutError, match="request 0 is not done yet"):
            first.wait(timeout=0.01)
        assert third.cancel()
        assert isinstance(third.exception(timeout=0), pipeline.Cancelled)
        assert isinstance(late.exception(timeout=LIMIT), pipeline.DeadlineExceeded)
        assert first.wait(timeout=LIMIT) == 0.5
        assert not first.cancel()
        assert pipe.submit(0.0).wait(timeout=LIMIT) == 0.0
        assert first.done()


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
        os.kill(pids(pipe)[0], signal.SIGKILL)
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
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'headrace[ray]')")
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
    pytest.importorskip("ray", reason="Ray is not installed (pip install 'headrace[ray]')")
    if wiring == "compiled" and not ray_kit.IS_FULL:
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
    ray = pytest.importorskip("ray", reason="Ray is not installed (pip install 'headrace[ray]')")
    request = Request(5, (1,), crashes=crashes)
    two_lines(is_pure)._fail(1, request, ray.exceptions.ObjectLostError("00" * 28, None, ""))
    assert isinstance(request.error, pipeline.StageLost)
    assert (request.error.seq, request.error.stage) == (5, stage)
    assert f"a node died with what stage '{stage}' had made" in str(request.error)


def test_an_error_that_nothing_foresees_ends_the_requests():
    pytest.importorskip("ray", reason="Ray is not installed (pip install 'headrace[ray]')")
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
        os.kill(pids(pipe)[0], signal.SIGKILL)
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
