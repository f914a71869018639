"""Stages that take several requests in one call, and those that take any number of rows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from pathlib import Path

import headrace as hr
import numpy as np
import pytest
from headrace import pipeline, relay

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
PROGRAM = Path(hr.__file__).parents[2] / "bin/headrace"


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """The digits model as artifacts, by their batch."""
    folder = tmp_path_factory.mktemp("batches")
    paths = {batch: folder / f"digits{batch}.so" for batch in (1, 2, 8)}
    for batch, path in paths.items():
        hr.compile(DIGITS, shapes={"x": (batch, 1, 8, 8)}, threads=1, output=path)
    return paths


@pytest.fixture(scope="module")
def alone(artifacts):
    """The scores of the model for one image at a time."""
    model = hr.load(artifacts[1])
    return lambda image: model(image[None]).numpy()


class Recorder:
    """A function for batches that notes what it was called with, and waits for `gate` at the first call."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.calls: list[list[int]] = []
        self.gate, self.is_called = gate, threading.Event()

    def __call__(self, xs):
        self.calls.append(list(xs))
        self.is_called.set()
        if self.gate is not None:
            assert self.gate.wait(60)
        if 13 in xs:
            raise ValueError("13 is bad")
        return [x + 100 for x in xs]


def held_pipe(**options):
    """A pipeline whose first call holds request 0 until the gate opens."""
    gate = threading.Event()
    recorder = Recorder(gate)
    pipe = pipeline.chain([pipeline.Stage(recorder, inputs=["x"], **options)], failures_in_row=0)
    first = pipe.submit(0)
    assert recorder.is_called.wait(60)
    return pipe, recorder, gate, first


def test_requests_that_have_arrived_share_a_call():
    pipe, recorder, gate, first = held_pipe(max_batch=4)
    others = [pipe.submit(x) for x in range(1, 7)]
    gate.set()
    assert [ticket.wait(60) for ticket in [first, *others]] == [100 + x for x in range(7)]
    assert recorder.calls == [[0], [1, 2, 3, 4], [5, 6]]
    (stage,) = pipe.metrics()["stages"]
    assert (stage["items"], stage["batches"]) == (7, 3)
    assert stage["waited"] > 0
    assert "batches, 2.3 requests each, which waited" in pipeline.format_metrics(pipe.metrics())
    pipe.drain()


def test_the_first_request_waits_at_most_max_delay():
    recorder = Recorder()
    stage = pipeline.Stage(recorder, inputs=["x"], max_batch=3, max_delay=0.2)
    with pipeline.chain([stage]) as pipe:
        begin = time.monotonic()
        assert [ticket.wait(60) for ticket in [pipe.submit(1), pipe.submit(2)]] == [101, 102]
        assert time.monotonic() - begin >= 0.2
        assert [ticket.wait(60) for ticket in [pipe.submit(x) for x in range(3)]] == [100, 101, 102]
    assert recorder.calls == [[1, 2], [0, 1, 2]]


def test_order_holds_in_a_stream():
    with pipeline.chain(
        [lambda x: x, pipeline.Stage(Recorder(), inputs=["x"], max_batch=5, max_delay=0.001), lambda y: y - 100]
    ) as pipe:
        assert list(pipe.map(x for x in range(500) if x != 13)) == [x for x in range(500) if x != 13]


def test_a_function_may_return_an_array_with_a_row_for_each_request():
    def scale(frames):
        return np.stack(frames) * 2

    with pipeline.chain([pipeline.Stage(scale, max_batch=4, max_delay=0.01)]) as pipe:
        frames = [np.full((2, 3), x, np.float32) for x in range(20)]
        for x, result in enumerate(pipe.map(frames)):
            np.testing.assert_array_equal(result, np.full((2, 3), 2 * x, np.float32))


def test_several_outputs_and_parameters():
    def split(xs, w):
        assert isinstance(xs, list)
        assert w.shape == (1,)
        return [x + float(w[0]) for x in xs], [{"x": x} for x in xs]

    graph = pipeline.Graph()
    stage = graph.stage(split, outputs=["sum", "object"], max_batch=4, max_delay=0.01)
    graph.input("x").connect(stage.input("xs"))
    graph.param("weights", "w", np.array([0.5], np.float32)).connect(stage.input("w"))
    stage.output("sum").connect(graph.output("sum"))
    stage.output("object").connect(graph.output("object"))
    with graph.build() as pipe:
        assert list(pipe.map(range(30))) == [(x + 0.5, {"x": x}) for x in range(30)]


def test_a_failed_call_fails_its_requests_and_names_the_batch():
    pipe, _, gate, first = held_pipe(max_batch=3)
    others = [pipe.submit(x) for x in (1, 13, 2, 3)]
    gate.set()
    assert first.wait(60) == 100
    for ticket in others[:3]:
        with pytest.raises(pipeline.StageFailed, match=r"in a batch of 3 requests, from 1 to 3: .*13 is bad") as caught:
            ticket.wait(60)
        assert isinstance(caught.value.cause, ValueError)
    assert others[3].wait(60) == 103
    pipe.drain()


def test_only_a_bad_request_fails_where_each_is_tried_alone():
    pipe, recorder, gate, _ = held_pipe(max_batch=3, retry_alone=True)
    others = [pipe.submit(x) for x in (1, 13, 2)]
    gate.set()
    assert others[0].wait(60) == 101
    assert others[2].wait(60) == 102
    with pytest.raises(pipeline.StageFailed, match=r"request 2 failed in stage 'stage\d*': .*13 is bad"):
        others[1].wait(60)
    assert recorder.calls == [[0], [1, 13, 2], [1], [13], [2]]
    pipe.drain()


def test_cancelled_requests_are_left_out():
    pipe, recorder, gate, _ = held_pipe(max_batch=3)
    others = [pipe.submit(x) for x in (1, 2, 3)]
    assert others[1].cancel()
    gate.set()
    assert [others[0].wait(60), others[2].wait(60)] == [101, 103]
    assert recorder.calls == [[0], [1, 3]]
    pipe.drain()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda xs: xs[1:], "returned 1 values for output 'output0'; it was called for 2 requests"),
        (lambda xs: 7, "returned a int for output 'output0'; called for several requests, it returns a sequence"),
    ],
)
def test_wrong_results_are_named(function, message):
    with pipeline.chain([pipeline.Stage(function, max_batch=2, max_delay=60)]) as pipe:
        tickets = [pipe.submit(x) for x in range(2)]
        for ticket in tickets:
            with pytest.raises(pipeline.StageFailed, match=message):
                ticket.wait(60)


def test_programs_of_several_batches(artifacts, alone, images):
    """Each image gets the scores that it gets alone, whatever batch it is in."""
    stage = pipeline.Stage(artifacts, max_delay=0.002)
    with pipeline.chain([lambda image: image[None], stage, lambda scores: scores]) as pipe:
        for image, scores in zip(images[:101], pipe.map(images[:101]), strict=True):
            np.testing.assert_allclose(scores, alone(image), rtol=1e-5, atol=1e-6)
        assert pipe.metrics()["stages"][1]["batches"] < 101


def test_a_program_with_rows_that_no_request_fills(artifacts, alone, images):
    with pipeline.chain([pipeline.Stage(artifacts[8], max_batch=8)]) as pipe:
        for image in images[:10]:
            scores = pipe.submit(image[None]).wait(60).numpy()
            assert scores.shape == (1, 10)
            np.testing.assert_allclose(scores, alone(image), rtol=1e-5, atol=1e-6)


def test_a_wrong_tensor_fails_alone(artifacts, images):
    stages = [lambda x: x, pipeline.Stage(artifacts[8], max_batch=3, max_delay=60)]
    with pipeline.chain(stages) as pipe:
        tickets = [pipe.submit(x) for x in (images[0][None], images[0], images[1][None])]
        assert tickets[0].wait(60).shape == (1, 10)
        assert tickets[2].wait(60).shape == (1, 10)
        with pytest.raises(pipeline.StageFailed, match="input 'x'"):
            tickets[1].wait(60)


def test_what_requests_share_is_a_parameter(tmp_path):
    x, w = relay.var("x", shape=(4, 2)), relay.var("w", shape=(2,))
    built = relay.build(hr.IRModule.from_expr(relay.Function([x, w], x * w)), "llvm")
    graph = pipeline.Graph()
    stage = graph.stage(built, "scale", max_batch=4, max_delay=0.01)
    graph.input("x").connect(stage.input("x"))
    graph.param("weights", "w", np.array([2, 3], np.float32)).connect(stage.input("w"))
    stage.output().connect(graph.output("y"))
    with graph.build() as pipe:
        rows = [np.array([[i, -i]], np.float32) for i in range(30)]
        for i, y in enumerate(pipe.map(rows)):
            np.testing.assert_array_equal(y.numpy(), np.array([[2 * i, -3 * i]], np.float32))
    wrong = pipeline.Graph()
    stage = wrong.stage(built, "scale", max_batch=4)
    wrong.input("x").connect(stage.input("x"))
    wrong.input("w").connect(stage.input("w"))
    stage.output().connect(wrong.output("y"))
    with pytest.raises(hr.UserError, match="input 'w' of stage 'scale' has no batch as its first dimension"):
        wrong.build()
    with pytest.raises(hr.UserError, match="input 'w' of stage 'scale' has no batch as its first dimension"):
        wrong.save(tmp_path / "wrong.so")


def test_a_saved_pipeline_takes_batches(artifacts, alone, images, tmp_path):
    def best(scores):
        return [int(np.argmax(one)) for one in scores]

    path = tmp_path / "pipe.so"
    stages = [
        lambda image: image[None],
        pipeline.Stage(artifacts, name="digits", max_delay=0.002, retry_alone=True),
        pipeline.Stage(best, max_batch=16),
    ]
    with pipeline.chain(stages) as pipe:
        pipe.save(path)
    first, digits, _ = hr._core.read_pipeline_plan(str(path)).stages
    assert first.batch is None
    batch = digits.batch
    assert (batch.max_batch, batch.max_delay, batch.retry_alone, batch.any_rows) == (8, 0.002, True, False)
    functions = {"stage0": stages[0], "best": best}
    with pipeline.load(path, functions=functions) as pipe:
        expected = [int(np.argmax(alone(image))) for image in images[:60]]
        assert list(pipe.map(images[:60])) == expected
        assert pipe.metrics()["stages"][1]["batches"] > 0


@pytest.mark.skipif(not PROGRAM.exists(), reason="the package is installed without the build's programs")
def test_the_program_shows_and_runs_batches(artifacts, tmp_path):
    graph = pipeline.Graph()
    stage = graph.stage(artifacts, "digits", max_delay=0.01)
    graph.input("x").connect(stage.input("x"))
    stage.output().connect(graph.output("y"))
    path = tmp_path / "pipe.so"
    graph.save(path)

    # A sanitized program brings the sanitizer that a sanitized build preloads for Python.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}

    def say(*arguments):
        command = [PROGRAM, "pipeline", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout

    report = json.loads(say("inspect", path, "--json"))["stages"][0]["batch"]
    assert {key: report[key] for key in ("max_batch", "max_delay_seconds", "retry_alone", "any_rows")} == {
        "max_batch": 8,
        "max_delay_seconds": 0.01,
        "retry_alone": False,
        "any_rows": False,
    }
    assert len(report["others"]) == 2
    assert re.search(r"^digits .* 8 +[\d.]+ .?B$", say("inspect", path), re.M)
    ran = json.loads(say("run", path, "--requests", "40", "--json"))
    (stage,) = ran["metrics"]["stages"]
    assert stage["items"] == 40
    assert 0 < stage["batches"] < 40
    assert stage["wait_seconds"] > 0
    assert re.search(r"^digits: \d+ batches, [\d.]+ requests each, which waited ", say("run", path), re.M)


def test_a_request_with_any_number_of_rows(artifacts, alone, images):
    """Pages with several crops each: the crops of all pages share calls, and come back page by page."""
    stage = pipeline.Stage(artifacts, max_delay=0.002, rows="any")
    pages, at = [], 0
    for crops in (3, 0, 1, 11, 8, 2, 5):
        pages.append(images[at : at + crops])
        at += crops
    with pipeline.chain([lambda page: page, stage, lambda scores: scores]) as pipe:
        for page, scores in zip(pages, pipe.map(pages), strict=True):
            assert scores.shape == (len(page), 10)
            for image, row in zip(page, scores, strict=True):
                np.testing.assert_allclose(row, alone(image)[0], rtol=1e-5, atol=1e-6)


def test_functions_get_the_rows_of_all_requests():
    seen = []

    def read(crops):
        seen.append(len(crops))
        return [f"{crop.sum():.0f}" for crop in crops]

    with pipeline.chain([pipeline.Stage(read, max_batch=6, max_delay=60, rows="any")]) as pipe:
        tickets = [pipe.submit(np.full((rows, 2), rows, np.float32)) for rows in (1, 2, 3)]
        assert [ticket.wait(60) for ticket in tickets] == [["2"], ["4", "4"], ["6", "6", "6"]]
        lists = [pipe.submit(["a"]), pipe.submit([])]
        pipe.drain()
        for ticket in lists:
            with pytest.raises(pipeline.StageFailed):  # texts have no sum
                ticket.wait(60)
    assert seen == [6, 1]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[1:], "the function got 3 rows and returned 2"),
        (lambda x: 7, "not iterable"),
    ],
)
def test_wrong_rows_are_named(function, message):
    with pipeline.chain([pipeline.Stage(function, max_batch=3, max_delay=60, rows="any")]) as pipe:
        ticket = pipe.submit(np.zeros((3, 2)))
        with pytest.raises(pipeline.StageFailed, match=message):
            ticket.wait(60)


def test_rows_of_two_inputs_and_outputs():
    graph = pipeline.Graph()
    stage = graph.stage(lambda x, y: (x + y, x - y), outputs=["a", "b"], max_batch=4, max_delay=0.01, rows="any")
    for name in ("x", "y"):
        graph.input(name).connect(stage.input(name))
    for name in ("a", "b"):
        stage.output(name).connect(graph.output(name))
    with graph.build() as pipe:
        a, b = pipe.submit(np.ones((2, 2)), np.ones((2, 2))).wait(60)
        np.testing.assert_array_equal(a, np.full((2, 2), 2.0))
        np.testing.assert_array_equal(b, np.zeros((2, 2)))
        with pytest.raises(pipeline.StageFailed, match=r"have \[2\] and \[3\] rows"):
            pipe.submit(np.ones((2, 2)), np.ones((3, 2))).wait(60)


def test_wrong_options_of_batches(artifacts):
    def function(x):
        return x

    def refusal(code, **options):
        with pytest.raises(hr.UserError) as caught:
            pipeline.chain([pipeline.Stage(code, **options)])
        return str(caught.value)

    assert "max_batch is 0; it lies from 1 to 65536" in refusal(function, max_batch=0)
    assert "max_batch: expected an int" in refusal(function, max_batch="8")
    assert "max_delay: expected seconds" in refusal(function, max_batch=2, max_delay=-1)
    assert "rows is 'some'; it is 'any', or None" in refusal(function, max_batch=2, rows="some")
    assert "give a max_batch" in refusal(function, max_delay=0.1)
    assert "give a max_batch" in refusal(function, retry_alone=True)
    assert "give a max_batch" in refusal(function, rows="any")
    assert "the dict of programs is empty" in refusal({})
    assert "the dict of programs has the batch 'one'" in refusal({"one": artifacts[1]})
    assert "a dict of programs has compiled models, paths of artifacts or modules, got function" in refusal(
        {1: function}
    )
    assert "the program for the batch 4 has the batch 2" in refusal({1: artifacts[1], 4: artifacts[2]})
    assert "is 16, and the largest batch of its programs is 8" in refusal(artifacts, max_batch=16)
    assert "is 2, and the largest batch of its programs is 1" in refusal(artifacts[1], max_batch=2)
