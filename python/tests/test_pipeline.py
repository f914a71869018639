"""Pipelines of compiled models and of Python's functions."""

from __future__ import annotations

import asyncio
import gc
import re
import shutil
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import headrace as hr
import numpy as np
import pytest
from headrace import _core, pipeline

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"


def double(x):
    return x * 2


def fails_on_three(x):
    if x == 3:
        raise KeyError("three")
    return x


def test_a_chain_of_functions():
    with pipeline.chain([double, lambda y: y + 1]) as pipe:
        assert pipe.inputs == ["x"]
        assert pipe.submit(20).wait() == 41
        assert list(pipe.map(range(50))) == [2 * x + 1 for x in range(50)]
    assert pipe.state == "stopped"


def test_a_model_between_functions(artifact, images):
    """The results are those of the model alone, for every image."""
    model = hr.load(artifact)
    expected = [int(np.argmax(model(image[None]).numpy())) for image in images[:60]]
    stages = [lambda image: image[None], artifact, lambda scores: int(np.argmax(scores))]
    with pipeline.chain(stages, max_inflight=4) as pipe:
        assert list(pipe.map(images[:60])) == expected


def test_stages_of_one_file_open_it_once(artifact, images, tmp_path, monkeypatch):
    """An opening verifies the whole file, and maps weights that lie in a file beside it."""
    path, other = (Path(shutil.copy(artifact, tmp_path / name)) for name in ("shared.so", "other.so"))
    opened, open_artifact = [], _core.open_artifact

    def counted(name):
        opened.append(name)
        return open_artifact(name)

    monkeypatch.setattr(_core, "open_artifact", counted)

    def stage(graph, name, replicas=1):
        made = graph.stage(path, name, replicas=replicas)
        graph.input("image").connect(made.input("x"))
        made.output(0).connect(graph.output(name))

    graph = pipeline.Graph()
    stage(graph, "alone")
    stage(graph, "again", replicas=2)
    assert opened == [str(path)]
    other.rename(path)  # the name is that of another file now
    stage(graph, "renamed")
    assert opened == [str(path)] * 2
    with graph.build() as pipe:
        first, *others = (np.asarray(scores) for scores in pipe.submit(images[:1]).wait())
        for scores in others:
            np.testing.assert_array_equal(scores, first)


def test_outputs_of_programs_are_ndarrays_of_the_callers_own(artifact, images):
    model = hr.load(artifact)
    with pipeline.chain([artifact]) as pipe:
        results = [pipe.submit(image[None]).wait() for image in images[:20]]
    for image, result in zip(images[:20], results, strict=True):
        assert isinstance(result, hr.nd.NDArray)
        np.testing.assert_array_equal(result.numpy(), model(image[None]).numpy())


def test_arrays_that_functions_keep_stay_as_they_are(artifact, images):
    kept = []

    def keep(scores):
        kept.append(scores)
        return scores

    with pipeline.chain([artifact, keep]) as pipe:
        results = list(pipe.map(image[None] for image in images[:20]))
    model = hr.load(artifact)
    for image, seen, result in zip(images[:20], kept, results, strict=True):
        expected = model(image[None]).numpy()
        np.testing.assert_array_equal(seen, expected)
        np.testing.assert_array_equal(result, expected)


def test_a_buffer_that_a_function_uses_again_is_copied():
    buffer = np.zeros(4, np.float32)

    def fill(x):
        buffer[:] = x
        return buffer

    with pipeline.chain([fill, lambda y: float(y.sum())], max_inflight=8) as pipe:
        assert list(pipe.map(range(100))) == [4.0 * x for x in range(100)]


def test_inputs_are_copied_when_they_are_submitted():
    frame = np.ones(3)
    gate = threading.Event()

    def wait(x):
        gate.wait(10)
        return x

    with pipeline.chain([wait]) as pipe:
        ticket = pipe.submit(frame)
        frame[:] = 7
        gate.set()
        np.testing.assert_array_equal(ticket.wait(), np.ones(3))


def test_functions_must_not_write_to_their_inputs():
    def write(x):
        x[0] = 1
        return x

    with pipeline.chain([write]) as pipe, pytest.raises(pipeline.StageFailed, match="read-only"):
        pipe.submit(np.zeros(2)).wait()


def test_a_function_without_outputs_may_return_anything():
    graph = pipeline.Graph()
    seen = []
    show = graph.stage(lambda x: [seen.append(x)], "show", inputs=["x"], outputs=0)
    keep = graph.stage(double, "keep")
    graph.input("x").connect(show.input("x"))
    graph.input("x").connect(keep.input("x"))
    keep.output().connect(graph.output("y"))
    with graph.build() as pipe:
        assert list(pipe.map(range(5))) == [0, 2, 4, 6, 8]
    assert seen == list(range(5))


def test_a_graph_may_be_built_twice():
    graph = pipeline.Graph()
    stage = graph.stage(double, "double")
    graph.input("x").connect(stage.input("x"))
    stage.output().connect(graph.output("y"))
    with graph.build() as one, graph.build() as other:
        assert list(one.map(range(200))) == list(other.map(range(200))) == [2 * x for x in range(200)]


def test_a_stage_that_submits_to_its_own_full_pipeline():
    pipes = []
    with pipeline.chain([lambda x: pipes[0].submit(x)], max_inflight=1) as pipe:
        pipes.append(pipe)
        with pytest.raises(pipeline.StageFailed, match="the pipeline is full"):
            pipe.submit(1).wait(timeout=30)
    pipes.clear()


def test_parameters_and_tensors_are_copied():
    gate = threading.Event()

    def scale(x, w):
        gate.wait(10)
        return float(x[0] * w[0])

    graph = pipeline.Graph()
    stage = graph.stage(scale, "scale")
    graph.input("x").connect(stage.input("x"))
    graph.param("weights", "w").connect(stage.input("w"))
    stage.output().connect(graph.output("y"))
    with graph.build() as pipe:
        weights, frame = np.array([3.0]), hr.nd.array(np.array([2.0]))
        pipe.set_params("weights", {"w": weights})
        ticket = pipe.submit(frame)
        weights[0] = 100
        frame[:] = np.array([100.0])
        gate.set()
        assert ticket.wait() == 6.0


def test_stop_within_a_with_block():
    with pipeline.chain([double, double]) as pipe:
        tickets = [pipe.submit(n) for n in range(8)]
        pipe.stop()
    assert pipe.state == "stopped"
    assert all(ticket.done() for ticket in tickets)


def test_any_object_passes_between_functions():
    class Page:
        def __init__(self, lines):
            self.lines = lines

    stages = [lambda text: Page(text.split()), lambda page: {"page": page, "count": len(page.lines)}]
    with pipeline.chain(stages) as pipe:
        result = pipe.submit("a b c").wait()
    assert result["count"] == 3
    assert isinstance(result["page"], Page)


def test_a_graph_with_a_skipped_stage_and_two_outputs():
    graph = pipeline.Graph()
    first = graph.stage(lambda a, b: (a + b, a - b), "first", outputs=["sum", "difference"])
    second = graph.stage(double, "second")
    third = graph.stage(lambda x, y: x * y, "third")
    graph.input("a").connect(first.input("a"))
    graph.input("b").connect(first.input("b"))
    first.output("sum").connect(second.input(0))
    second.output().connect(third.input("x"))
    first.output("difference").connect(third.input("y"))
    third.output().connect(graph.output("product"))
    first.output("sum").connect(graph.output("sum"))
    with graph.build() as pipe:
        assert pipe.inputs == ["a", "b"]
        assert pipe.submit(5, 3).wait() == (32, 8)
        assert pipe.submit({"b": 3, "a": 5}).outputs() == [32, 8]
        assert list(pipe.map([(1, 0), (2, 1)])) == [(2, 1), (6, 3)]
        with pytest.raises(hr.UserError, match="missing: b; unknown: c"):
            pipe.submit({"a": 1, "c": 2})
        with pytest.raises(hr.UserError, match=r"the pipeline takes 2 inputs \(a, b\), got 1"):
            pipe.submit(1)


def test_an_exception_without_text_is_named():
    def stops(x):
        raise StopIteration

    wanted = pytest.raises(pipeline.StageFailed, match=r"request 0 failed in stage 's'.*: StopIteration$")
    with pipeline.chain([pipeline.Stage(stops, name="s")]) as pipe, wanted:
        pipe.submit(1).wait()


def test_a_failed_request_has_its_stage_and_cause():
    with pipeline.chain([double, pipeline.Stage(fails_on_three, name="check", backend="python")]) as pipe:
        good, bad, last = pipe.submit(1), pipe.submit(1.5), pipe.submit(2)
        with pytest.raises(
            pipeline.StageFailed, match=r"request 1 failed in stage 'check' \(python\): KeyError: 'three'"
        ) as caught:
            bad.wait()
        assert (caught.value.seq, caught.value.stage, caught.value.backend) == (1, "check", "python")
        assert isinstance(caught.value.cause, KeyError)
        assert caught.value.__cause__ is caught.value.cause
        assert isinstance(caught.value, (hr.UserError, RuntimeError))
        assert isinstance(bad.exception(), pipeline.StageFailed)
        assert good.exception() is None
        assert (good.wait(), last.wait()) == (2, 4)


def test_map_raises_at_the_item_or_returns_errors():
    with pipeline.chain([fails_on_three]) as pipe:
        seen = []
        with pytest.raises(pipeline.StageFailed):
            for result in pipe.map(range(10)):
                seen.append(result)
        assert seen == [0, 1, 2]
        results = list(pipe.map(range(5), return_errors=True))
        assert [type(result).__name__ for result in results] == ["int", "int", "int", "StageFailed", "int"]


def test_a_model_refuses_a_wrong_tensor_with_its_name(artifact):
    with pipeline.chain([artifact]) as pipe:
        with pytest.raises(hr.UserError, match="input 'x' has shape"):
            pipe.submit(np.zeros((1, 1, 9, 9), np.float32))
        with pytest.raises(hr.UserError, match="'x'"):
            pipe.submit("text")
    with (
        pipeline.chain([double, artifact]) as pipe,
        pytest.raises(pipeline.StageFailed, match="input 'x' has shape"),
    ):
        pipe.submit(np.zeros((1, 1, 9, 9), np.float32)).wait()


def test_timeouts_deadlines_and_cancel():
    gate = threading.Event()

    def wait(x):
        gate.wait(10)
        return x

    with pipeline.chain([wait], max_inflight=2) as pipe:
        first = pipe.submit(1)
        with pytest.raises(TimeoutError, match="request 0 is not done yet"):
            first.wait(timeout=0.01)
        late = pipe.submit(2, deadline=0.02)
        with pytest.raises(pipeline.PipelineFull, match="2 requests are in it"):
            pipe.submit(3, timeout=0)
        with pytest.raises(pipeline.DeadlineExceeded):
            late.wait()
        waiting = pipe.submit(4)
        assert waiting.cancel()
        with pytest.raises(pipeline.Cancelled):
            waiting.wait()
        gate.set()
        assert first.wait() == 1
        assert not first.cancel()


def test_full_pipelines_reject_or_drop():
    gate = threading.Event()

    def wait(x):
        gate.wait(10)
        return x

    with pipeline.chain([wait], max_inflight=1, when_full="reject") as pipe:
        ticket = pipe.submit(1)
        with pytest.raises(pipeline.PipelineFull):
            pipe.submit(2)
        gate.set()
        assert ticket.wait() == 1
    gate.clear()
    with pipeline.chain([wait], max_inflight=3, when_full="drop_oldest") as pipe:
        tickets = [pipe.submit(n) for n in range(5)]
        gate.set()
        outcomes = [type(ticket.exception()).__name__ for ticket in tickets]
    assert outcomes.count("Dropped") == 2
    assert outcomes[-1] == "NoneType"


def test_push_and_next():
    with pipeline.chain([double]) as pipe:
        assert [pipe.push(n) for n in range(4)] == [0, 1, 2, 3]
        assert [pipe.next().wait() for _ in range(4)] == [0, 2, 4, 6]
        with pytest.raises(TimeoutError):
            pipe.next(timeout=0.01)
    with pytest.raises(pipeline.PipelineStopped):
        pipe.next()


def test_futures_await_and_as_completed():
    def slow(x):
        time.sleep(0.05 if x == 0 else 0)
        return x

    with pipeline.chain([pipeline.Stage(slow, replicas=2)]) as pipe:
        tickets = [pipe.submit(n) for n in range(2)]
        assert [ticket.seq for ticket in pipeline.as_completed(tickets, timeout=10)] == [1, 0]
        assert pipe.submit(5).future().result(timeout=10) == 5

        async def ask():
            return await asyncio.gather(*(pipe.submit(n) for n in range(6)))

        assert asyncio.run(ask()) == list(range(6))
    with pipeline.chain([fails_on_three]) as pipe:
        assert isinstance(pipe.submit(3).future().exception(timeout=10), pipeline.StageFailed)


def test_a_broken_stage_refuses_requests_until_it_works():
    is_bad = [True]

    def shaky(x):
        if is_bad[0]:
            raise ValueError("no camera")
        return x

    with pipeline.chain([shaky], failures_in_row=2, probe_seconds=1000) as pipe:
        for n in range(2):
            pipe.submit(n).exception()
        assert pipe.state == "degraded"
        with pytest.raises(pipeline.PipelineBroken, match=r"stage 'shaky' does not work: .*no camera"):
            pipe.submit(2)
        is_bad[0] = False
        pipe.reset()
        assert pipe.submit(2).wait() == 2


def test_a_stage_that_hangs_ends_its_requests():
    gate = threading.Event()

    def hang(x):
        gate.wait(10)
        return x

    pipe = pipeline.chain([pipeline.Stage(hang, time_limit=0.02)])
    with pytest.raises(pipeline.StageTimeout, match="stage 'hang' took longer"):
        pipe.submit(1).wait()
    assert pipe.stop(timeout=0.01) == ["hang"]
    gate.set()
    assert pipe.stop() == []


def test_parameters():
    graph = pipeline.Graph()
    scale = graph.stage(lambda x, w: x * float(w[0]), "scale", inputs=["x", "w"])
    graph.input("x").connect(scale.input("x"))
    graph.param("weights", "w").connect(scale.input("w"))
    scale.output().connect(graph.output("y"))
    with graph.build() as pipe:
        with pytest.raises(hr.UserError, match="parameter 'w' of group 'weights' has no value; call set_params first"):
            pipe.submit(1.0)
        assert pipe.set_params("weights", {"w": [3.0]}) == 0
        assert pipe.submit(2.0).wait() == 6.0
        assert pipe.set_params("weights", {"w": [5.0]}) == 1
        assert pipe.submit(2.0).wait() == 10.0
        with pytest.raises(hr.UserError, match="no parameter group 'biases'"):
            pipe.set_params("biases", {})


def test_metrics():
    def slow(x):
        time.sleep(0.01)
        return x

    with pipeline.chain([double, slow]) as pipe:
        list(pipe.map(range(10)))
        metrics = pipe.metrics()
    assert metrics["succeeded"] == 10
    assert metrics["bottleneck"] == "slow"
    assert [stage["items"] for stage in metrics["stages"]] == [10, 10]
    assert metrics["stages"][1]["busy"] >= 0.1
    table = pipeline.format_metrics(metrics)
    assert table.splitlines()[-1] == "bottleneck: slow"
    assert "10 of 10 requests succeeded" in table


WRONG = {
    "a circle": (
        lambda g, a, b: (b.output().connect(a.input(0)), a.output().connect(b.input(0))),
        "in a circle; it is among: a, b",
    ),
    "an unknown input": (lambda g, a, b: a.input("nope"), "stage 'a' has no input 'nope'; it has x"),
    "an unknown output": (lambda g, a, b: a.output(3), "stage 'a' has no output 3; it has output0"),
    "two sources": (
        lambda g, a, b: (g.input("p").connect(a.input(0)), g.input("q").connect(a.input(0))),
        "input 'x' of stage 'a' has a source: input 'p' of the pipeline",
    ),
    "an input as a source": (lambda g, a, b: a.input(0).connect(b.input(0)), "input 'x' of stage 'a' takes values"),
    "an output as a sink": (lambda g, a, b: a.output().connect(b.output()), "which gives values and takes none"),
    "input to output": (
        lambda g, a, b: g.input("p").connect(g.output("q")),
        "only a stage's output leaves the pipeline",
    ),
    "two sources of an output": (
        lambda g, a, b: (a.output().connect(g.output("y")), b.output().connect(g.output("y"))),
        "output 'y' of the pipeline has a source: output 'output0' of stage 'a'",
    ),
    "another graph": (
        lambda g, a, b: pipeline.Graph().input("p").connect(a.input(0)),
        "which is not a port of this graph",
    ),
    "no source": (
        lambda g, a, b: (g.input("p").connect(a.input(0)), a.output().connect(g.output("y"))),
        "input 'x' of stage 'b' has no source",
    ),
    "an output without a source": (
        lambda g, a, b: (
            g.input("p").connect(a.input(0)),
            a.output().connect(b.input(0)),
            g.output("y"),
        ),
        "output 'y' of the pipeline has no source",
    ),
    "no outputs": (
        lambda g, a, b: (g.input("p").connect(a.input(0)), a.output().connect(b.input(0))),
        "the pipeline has no outputs",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_graphs(case):
    connect, message = WRONG[case]
    graph = pipeline.Graph()
    a, b = graph.stage(double, "a"), graph.stage(double, "b")
    with pytest.raises(hr.UserError) as caught:
        connect(graph, a, b)
        graph.output("z") if case == "a circle" else None
        if case == "a circle":
            b.output().connect(graph.output("z"))
        graph.build()
    assert message in str(caught.value)


def test_types_are_compared_when_ports_are_connected(artifact):
    graph = pipeline.Graph()
    first, second = graph.stage(artifact, "first"), graph.stage(artifact, "second")
    with pytest.raises(pipeline.PortError, match=r"output '.*' of stage 'first' is float32 .* and input 'x' of stage"):
        first.output(0).connect(second.input("x"))
    graph.input("x").connect(first.input("x"))
    graph.input("x").connect(second.input("x"))  # one input may feed several stages


def test_groups_share_a_thread_and_other_stages_do_not():
    names = {}

    def note(key):
        def stage(x):
            names[key] = threading.get_ident()
            return x

        return stage

    stages = [("a", "host"), ("b", "host"), ("host", None), ("c", None)]
    chain = [pipeline.Stage(note(name), name=name, **({"group": group} if group else {})) for name, group in stages]
    with pipeline.chain(chain) as pipe:
        assert list(pipe.map(range(5))) == list(range(5))
    assert names["a"] == names["b"]
    assert len(set(names.values())) == 3


def test_wrong_stages(artifact):
    graph = pipeline.Graph()
    with pytest.raises(hr.UserError, match=r"a stage's code is a compiled model, .*, got int"):
        graph.stage(3)
    with pytest.raises(hr.UserError, match="name its inputs"):
        graph.stage(lambda *x: x)
    with pytest.raises(hr.UserError, match="give the path of its artifact"):
        graph.stage(hr.load(artifact), replicas=2)
    with pytest.raises(hr.UserError, match="replicas is 0"):
        graph.stage(double, replicas=0)
    with pytest.raises(hr.UserError, match="when_full is 'never'"):
        pipeline.chain([double], when_full="never")
    with pytest.raises(hr.UserError, match="stage 'double' has 1 outputs, and stage 'stage0' takes 2 inputs"):
        pipeline.chain([double, lambda a, b: a])
    with pytest.raises(hr.UserError, match="at least one stage"):
        pipeline.chain([])
    with pytest.raises(hr.UserError, match=r"processor 9999 was asked for; [^\n]*\n  in: group 'double'"):
        pipeline.chain([pipeline.Stage(double, cpus=[9999])])


def test_a_build_of_relay_is_a_stage():
    x = hr.relay.var("x", shape=(2,), dtype="float32")
    lib = hr.relay.build(hr.ir.IRModule.from_expr(hr.relay.Function([x], x + x)), "llvm")
    with pipeline.chain([lib, lib]) as pipe:
        np.testing.assert_array_equal(pipe.submit(np.array([1, 2], np.float32)).wait().numpy(), [4, 8])


def test_python_ends_while_a_pipeline_runs():
    program = """
import time
import headrace.pipeline as pipeline
def slow(x):
    time.sleep(0.05)
    return x
pipe = pipeline.chain([slow, slow])
tickets = [pipe.submit(n) for n in range(8)]
print("submitted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "submitted\n", "")


# --- files


def save_chain(artifact, path):
    """Saves a chain of a function, a program and a function; returns its results for 20 images."""
    with pipeline.chain([prepare, artifact, read], max_inflight=5) as pipe:
        pipe.save(path)
        return lambda images: list(pipe.map(images))


def prepare(image):
    return image[None]


def read(scores):
    return int(np.argmax(scores))


FUNCTIONS = {"prepare": prepare, "read": read}


def test_a_saved_pipeline_runs_as_the_one_that_was_saved(artifact, images, tmp_path):
    with pipeline.chain([prepare, artifact, read], max_inflight=5) as pipe:
        expected = list(pipe.map(images[:60]))
        pipe.save(tmp_path / "first.so")
    (tmp_path / "first.so").rename(tmp_path / "moved")
    with pipeline.load(tmp_path / "moved", functions=FUNCTIONS) as loaded:
        assert (loaded.inputs, loaded.outputs, loaded.state) == (["image"], ["output0"], "running")
        assert list(loaded.map(images[:60])) == expected
        with pytest.raises(hr.UserError, match=r"was loaded from a file, .* copy that file"):
            loaded.save(tmp_path / "again.so")
    assert [path.name for path in tmp_path.iterdir()] == ["moved"]


def test_models_of_any_kind_are_saved(artifact, images, tmp_path):
    """By a path, as a compiled model of a file, and as a module of relay.build; equal ones once."""
    graph = pipeline.Graph()
    built = hr.relay.build(hr.relay.frontend.from_onnx(DIGITS, {"x": (1, 1, 8, 8)})[0])
    codes = [artifact, hr.load(artifact), built]
    stages = [graph.stage(code, name=f"s{i}", threads=1) for i, code in enumerate(codes)]
    for stage in stages:
        graph.input("x").connect(stage.input("x"))
        stage.output().connect(graph.output(stage.name))
    graph.save(tmp_path / "all.so")
    assert (tmp_path / "all.so").stat().st_size < 2.5 * artifact.stat().st_size
    model = hr.load(artifact)
    with pipeline.load(tmp_path / "all.so") as pipe:
        for image in images[:5]:
            for result in pipe.submit(image[None]).wait():
                np.testing.assert_allclose(result.numpy(), model(image[None]).numpy(), rtol=1e-5)


def test_options_of_stages_are_saved(artifact, tmp_path):
    graph = pipeline.Graph()
    first = graph.stage(artifact, name="first", cpus=[0], threads=1, replicas=2, time_limit=7.5, backend="native")
    graph.input("x").connect(first.input("x"))
    first.output().connect(graph.output("y"))
    graph.save(tmp_path / "p.so", max_inflight=3)
    plan = hr._core.read_pipeline_plan(str(tmp_path / "p.so"))
    (stage,) = plan.stages
    assert (stage.name, stage.replicas, stage.threads, stage.time_limit, stage.backend) == (
        "first",
        2,
        1,
        7.5,
        "native",
    )
    assert (plan.groups, plan.max_inflight, plan.models) == ([("first", [0])], 3, ["first"])
    with pipeline.load(tmp_path / "p.so", pinned=False) as pipe:
        assert pipe.metrics()["stages"][0]["replicas"] == 2
        assert pipe._max_inflight == 3
    with pipeline.load(tmp_path / "p.so", max_inflight=9) as pipe:
        assert pipe._max_inflight == 9


def num_threads():
    return len(list(Path("/proc/self/task").iterdir()))


def test_stages_with_several_threads_have_their_own(artifact, images, tmp_path):
    """So that they run at the same time: two stages of two threads make four, and replicas have theirs, too."""
    graph = pipeline.Graph()
    for name, replicas in (("a", 1), ("b", 1), ("c", 2)):
        stage = graph.stage(artifact, name=name, threads=2, replicas=replicas)
        graph.input("x").connect(stage.input("x"))
        stage.output().connect(graph.output(name))
    graph.save(tmp_path / "p.so")
    del graph
    before = num_threads()
    with pipeline.load(tmp_path / "p.so") as pipe:
        assert num_threads() - before >= 4 + 4  # four for the groups, and one more for each program
        (a, b, c) = pipe.submit(images[0][None]).wait()
        np.testing.assert_array_equal(a.numpy(), b.numpy())
        np.testing.assert_array_equal(a.numpy(), c.numpy())
    del pipe
    models = [hr.load(artifact, threads=2, own_threads=True) for _ in range(3)]
    assert num_threads() - before >= 3
    assert models[0].threads == 2


def test_first_values_of_parameters(tmp_path):
    def scale(x, w):
        return x * w

    weight = np.arange(4, dtype="float32")
    graph = pipeline.Graph()
    stage = graph.stage(scale)
    graph.input("x").connect(stage.input("x"))
    graph.param("weights", "w", weight).connect(stage.input("w"))
    stage.output().connect(graph.output("y"))
    graph.save(tmp_path / "scaled.so")
    weight[:] = -1  # was copied
    for pipe in (graph.build(), pipeline.load(tmp_path / "scaled.so", functions={"scale": scale})):
        with pipe:
            np.testing.assert_array_equal(pipe.submit(2.0).wait(), np.arange(4, dtype="float32") * 2)
            pipe.set_params("weights", {"w": np.ones(4, "float32")})
            np.testing.assert_array_equal(pipe.submit(2.0).wait(), np.full(4, 2, "float32"))


def test_functions_of_one_name_are_told_apart(tmp_path):
    def make(amount):
        def step(x):
            return x + amount

        return step

    one, ten = make(1), make(10)
    with pipeline.chain([one, ten, one, pipeline.Stage(lambda x: -x, name="minus")]) as pipe:
        assert pipe.submit(0).wait() == -12
        pipe.save(tmp_path / "p.so")
    with pytest.raises(hr.MissingError, match="needs the function 'step0' for its stage 'step0'"):
        pipeline.load(tmp_path / "p.so", functions={"step": one})
    with pipeline.load(tmp_path / "p.so", functions={"step": one, "step0": ten, "minus": lambda x: -x}) as pipe:
        assert pipe.submit(0).wait() == -12
    graph = pipeline.Graph()
    for index, code in enumerate([lambda x: x, one, ten]):
        stage = graph.stage(code, name=["step", "a", "step1"][index])
        graph.input(f"x{index}").connect(stage.input(0))
        stage.output().connect(graph.output(f"y{index}"))
    graph.save(tmp_path / "names.so")
    plan = hr._core.read_pipeline_plan(str(tmp_path / "names.so"))
    assert len({stage.function for stage in plan.stages}) == 3
    with (
        pipeline.chain([pipeline.Stage(one, name="first"), pipeline.Stage(lambda x: x, name="step")]) as pipe,
        pytest.raises(hr.UserError, match=r"two stages call different functions of the name 'step', .* another name"),
    ):
        pipe.save(tmp_path / "no.so")


def test_registered_functions_get_what_given_ones_get(artifact, images, tmp_path):
    """Arrays of numpy, as in the graph that was saved."""

    def double_of(x):
        assert isinstance(x, np.ndarray)
        return x * 2

    with pipeline.chain([artifact, double_of]) as pipe:
        expected = pipe.submit(images[0][None]).wait()
        pipe.save(tmp_path / "p.so")
    with pytest.raises(hr.MissingError, match="needs the function 'double_of'"):
        pipeline.load(tmp_path / "p.so")
    hr.register_func("double_of", double_of)
    with pipeline.load(tmp_path / "p.so") as pipe:
        np.testing.assert_array_equal(pipe.submit(images[0][None]).wait(), expected)
    hr.register_func("double_of", lambda x: x * 4, override=True)
    with pipeline.load(tmp_path / "p.so") as pipe:
        np.testing.assert_array_equal(pipe.submit(images[0][None]).wait(), expected * 2)


def test_a_mistyped_function_is_found_before_anything_starts(artifact, tmp_path):
    save_chain(artifact, tmp_path / "p.so")
    before = num_threads()
    with pytest.raises(hr.UserError, match="calls no function 'extra'; it calls prepare, read"):
        pipeline.load(tmp_path / "p.so", functions={**FUNCTIONS, "extra": read})
    assert num_threads() == before


def test_threads_of_a_loaded_model_are_saved(artifact, tmp_path):
    with pipeline.chain([hr.load(artifact, threads=2)]) as pipe:
        pipe.save(tmp_path / "p.so")
    (stage,) = hr._core.read_pipeline_plan(str(tmp_path / "p.so")).stages
    assert stage.threads == 2


def test_what_is_saved_is_what_runs(artifact, images, tmp_path):
    """A graph that grows after build, and a file that is replaced, change nothing."""
    model = tmp_path / "model.so"
    model.write_bytes(artifact.read_bytes())
    graph = pipeline.Graph()
    first = graph.stage(model)
    graph.input("x").connect(first.input("x"))
    first.output().connect(graph.output("y"))
    with graph.build() as pipe:
        graph.stage(lambda x: x, name="unfinished")
        pipe.save(tmp_path / "p.so")
        with pipeline.load(tmp_path / "p.so") as loaded:
            assert loaded.outputs == ["y"]
        model.unlink()
        with pytest.raises(hr.UserError, match=r"stage 'model': the file '.*model\.so' is gone or has changed"):
            pipe.save(tmp_path / "q.so")
        model.write_bytes(artifact.read_bytes())
        with pytest.raises(hr.UserError, match="is gone or has changed since the stage was made"):
            pipe.save(tmp_path / "q.so")
    with pytest.raises(hr.UserError, match=r"max_inflight is 1048577; it lies from 1 to 1048576"):
        graph.save(tmp_path / "q.so", max_inflight=2**20 + 1)
    with pytest.raises(hr.UserError, match="parameter 'w' is complex64, which no program takes"):
        graph.param("g", "w", np.ones(2, "complex64"))


def test_what_cannot_be_saved_is_named(artifact, tmp_path):
    in_memory = hr.compile(DIGITS, shapes={"x": (1, 1, 8, 8)})
    with (
        pipeline.chain([in_memory]) as pipe,
        pytest.raises(hr.UserError, match="stage 'stage0' runs a model that was compiled in memory"),
    ):
        pipe.save(tmp_path / "no.so")
    with pipeline.chain([artifact]) as pipe:
        with pytest.raises(hr.UserError, match="nowhere"):
            pipe.save(tmp_path / "nowhere" / "no.so")
        with pytest.raises(hr.UserError, match="path: expected a path"):
            pipe.save(3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"needs the function 'prepare' for its stage 'prepare', .*\(functions=\{\"prepare\": f\} in Python\)"),
        ({"functions": {**FUNCTIONS, "extra": read}}, "calls no function 'extra'; it calls prepare, read"),
        ({"functions": {"prepare": 3}}, r"functions\['prepare'\]: expected a function, got int"),
        ({"functions": 3}, "functions: expected"),
        ({"functions": FUNCTIONS, "max_inflight": 0}, "max_inflight is 0"),
        ({"functions": FUNCTIONS, "when_full": "never"}, "when_full is 'never'"),
    ],
)
def test_wrong_options_of_load_are_named(artifact, tmp_path, options, message):
    save_chain(artifact, tmp_path / "p.so")
    with pytest.raises(hr.UserError, match=message):
        pipeline.load(tmp_path / "p.so", **options)


def test_files_that_are_no_pipeline_are_refused(artifact, tmp_path):
    save_chain(artifact, tmp_path / "p.so")
    with pytest.raises(hr.UserError, match=r"is a pipeline of 3 stages, not a model; run it with headrace.pipeline"):
        hr.load(tmp_path / "p.so")
    with pytest.raises(hr.UserError, match="has no pipeline: it is a model"):
        pipeline.load(artifact)
    with pytest.raises(hr.UserError, match="there is no file"):
        pipeline.load(tmp_path / "nothing")
    content = (tmp_path / "p.so").read_bytes()
    (tmp_path / "short").write_bytes(content[:-1])
    with pytest.raises(hr.UserError, match="copy the whole file"):
        pipeline.load(tmp_path / "short", functions=FUNCTIONS)


def test_a_split_model_gives_the_results_of_the_whole(artifact, images, tmp_path):
    shapes = {"x": (1, 1, 8, 8)}
    report = pipeline.split(DIGITS, tmp_path / "two.so", shapes=shapes, stages=2, replans=1)
    assert report["measured"]
    assert 1 <= report["plans"] <= 2
    assert report["bytes"] == (tmp_path / "two.so").stat().st_size
    assert 0 < report["lower_bound_seconds"] <= report["period_seconds"]
    model = hr.load(artifact)
    with pipeline.load(tmp_path / "two.so") as pipe:
        assert (pipe.inputs, pipe.outputs) == (["x"], ["probabilities"])
        assert len(pipe.metrics()["stages"]) == len(report["stages"])
        for image, result in zip(images[:20], pipe.map(image[None] for image in images[:20]), strict=True):
            np.testing.assert_allclose(result.numpy(), model(image[None]).numpy(), atol=1e-6)
    estimated = pipeline.split(DIGITS, tmp_path / "e.so", shapes=shapes, stages=3, measure=False, cpus=[[0], [0], [0]])
    assert not estimated["measured"]


@pytest.mark.backends("ccompiler")
def test_stages_of_a_split_model_have_backends_memory_and_replicas(images, tmp_path, monkeypatch):
    monkeypatch.delenv("LD_PRELOAD", raising=False)  # a sanitizer's, which the program of the stages has by itself
    report = pipeline.split(
        DIGITS,
        tmp_path / "u.so",
        shapes={"x": (1, 1, 8, 8)},
        measure=False,
        backends=[["ccompiler"], ()],
        memory=1 << 33,
        replicas=2,
        isolation="process",
    )
    assert {stage["backend"] for stage in report["stages"]} <= {"ccompiler, native", "native"}
    assert all(stage["replicas"] in (1, 2) for stage in report["stages"])
    with pipeline.load(tmp_path / "u.so") as pipe:
        assert pipe.submit(images[:1]).wait().shape == (1, 10)


def test_a_relay_program_is_split(tmp_path):
    x = hr.relay.var("x", shape=(2, 8), dtype="float32")
    weight = hr.relay.const(np.eye(8, dtype="float32"))
    hidden = hr.relay.nn.relu(hr.relay.nn.dense(x, weight))
    module = hr.IRModule.from_expr(hr.relay.Function([x], hr.relay.nn.dense(hidden, weight)))
    pipeline.split(module, tmp_path / "p.so", measure=False)
    with pipeline.load(tmp_path / "p.so") as pipe:
        given = np.linspace(-1, 1, 16, dtype="float32").reshape(2, 8)
        np.testing.assert_allclose(pipe.submit(given).wait().numpy(), np.maximum(given, 0))
    for name in ("shapes", "bound"):
        with pytest.raises(hr.UserError, match=f"{name}: is for model files, and the model is an IRModule"):
            pipeline.split(module, tmp_path / "no.so", **{name: {"x": (4, 8)}})
    for wrong in (3, None, x):
        with pytest.raises(hr.UserError, match="model: expected a path or an IRModule"):
            pipeline.split(wrong, tmp_path / "no.so")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stages": 0}, "0 stages were asked for"),
        ({"threads": 0}, "0 threads for a stage"),
        ({"cpus": [[0]]}, "processors are given for 1 stages, and there are 2"),
        ({"replans": -1}, "replans is -1"),
        pytest.param(
            {"target": ["llvm", "ccompiler"]},
            "target: stages are compiled natively",
            marks=pytest.mark.backends("ccompiler"),
        ),
        ({"shapes": {"y": (1,)}}, "'y'"),
        ({"cpus": [[0], [-1]]}, r"processor -1 was asked for; this process may use .*\n  in: cpus\[1\]"),
        ({"cpus": [[0], [99999]]}, r"processor 99999 was asked for; .*\n  in: cpus\[1\]"),
        ({"cpus": [[0, 0], [0]]}, r"processor 0 is named twice; name it once\n  in: cpus\[0\]"),
        ({"cpus": [[0], []]}, r"cpus\[1\]: it is empty; name processors of that place"),
        ({"cpus": []}, "cpus: it is empty; give a list of processors for each stage, or leave it out for any"),
        ({"cpus": 0}, "cpus: expected a list of processors for each stage, got int"),
        ({"cpus": [0, 1]}, r"cpus\[0\]: expected a list of processors' numbers, got int"),
        ({"cpus": [[0], "1"]}, r"cpus\[1\]: expected a list of processors' numbers, got str"),
        ({"backends": [["nobody"], []]}, "there is no backend 'nobody'"),
        ({"backends": "onednn"}, "backends"),
        ({"memory": [1, 2, 3]}, "memory is given for 3 stages, and there are 2"),
        ({"memory": 10}, "memory"),
        ({"replicas": 3}, "3 replicas were asked for"),
        ({"isolation": "jail"}, "isolation is 'jail'; it is 'thread' or 'process'"),
    ],
)
def test_wrong_options_of_split_are_named(tmp_path, options, message):
    given = {"shapes": {"x": (1, 1, 8, 8)}, **options}
    with pytest.raises(hr.UserError, match=message):
        pipeline.split(DIGITS, tmp_path / "no.so", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replicas": 10**6}, "replicas is 1000000; a stage has from 1 to 1024"),
        ({"name": 3}, "name: expected a str, got int"),
        ({"backend": 3}, "backend: expected a str, got int"),
        ({"name": "join", "inputs": ["a", "b", "a"]}, "stage 'join' has the input 'a' twice; give each its own name"),
        ({"name": "join", "outputs": ["y", "y"]}, "stage 'join' has the output 'y' twice; give each its own name"),
        ({"name": "join", "cpus": [0, 0]}, "processor 0 is named twice; name it once\n  in: stage 'join'"),
        ({"outputs": "scores"}, "outputs: expected a list of str, got one str; write ['scores']"),
    ],
)
def test_a_stage_says_what_is_wrong_with_its_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.UserError, match=re.escape(message)):
        pipeline.chain([pipeline.Stage(lambda x: x, **options)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"failures_in_row": -1}, "failures_in_row is -1; 0 never refuses, and 1 is the least that does"),
        ({"stop_seconds": "x"}, "stop_seconds: expected seconds, 0 to 1000000, got 'x'"),
    ],
)
def test_a_pipeline_says_what_is_wrong_with_its_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(hr.UserError, match=re.escape(message)):
        pipeline.chain([lambda x: x], **options)


def test_times_of_a_submission_are_seconds() -> None:
    with pipeline.chain([lambda x: x]) as pipe:
        for name in ("deadline", "timeout"):
            with pytest.raises(hr.UserError, match=f"{name}: expected seconds, got 'a'"):
                pipe.submit(1, **{name: "a"})


def test_memory_of_a_split_is_in_bytes(tmp_path: Path) -> None:
    with pytest.raises(hr.UserError, match=r"memory is '512M'; it is a number of bytes, such as 512 << 20"):
        pipeline.split("none.onnx", tmp_path / "x.so", stages=2, memory="512M")


def test_an_open_ticket_keeps_its_pipeline():
    p = pipeline.chain([lambda x: x + 1])
    kept = weakref.ref(p)
    ticket = p.submit(np.ones(3, "float32"))
    del p
    gc.collect()
    np.testing.assert_array_equal(ticket.wait(timeout=10), np.full(3, 2))
    gc.collect()
    assert kept() is None


def test_results_that_nobody_reads_are_bounded_on_request():
    with pipeline.chain([abs], max_inflight=1, max_unread=2) as pipe:
        tickets = [pipe.submit(-1) for _ in range(3)]
        for _ in range(2):
            with pytest.raises(pipeline.PipelineFull, match=r"the results of 3 requests are not read.*max_unread"):
                pipe.submit(-1, timeout=0.02)
        assert tickets.pop().wait(timeout=10) == 1
        tickets.append(pipe.submit(-2, timeout=10))
        del tickets[0]
        assert pipe.submit(-3, timeout=10).wait(timeout=10) == 3
    with pytest.raises(hr.UserError, match="max_unread is -1"):
        pipeline.chain([abs], max_unread=-1)


def test_an_output_that_is_given_twice_is_not_shared():
    graph = pipeline.Graph()
    stage = graph.stage(lambda x: x, "same", inputs=["x"])
    graph.input("x").connect(stage.input("x"))
    for name in ("a", "b"):
        stage.output().connect(graph.output(name))
    with graph.build() as pipe:
        first, second = (np.asarray(out) for out in pipe.submit(np.zeros(3, "float32")).wait(timeout=10))
        assert first.ctypes.data != second.ctypes.data
