"""Mistakes of newcomers to pipelines: each is an error at once, which names the place and the remedy."""

from __future__ import annotations

import copy
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")

MODEL = Path(__file__).parents[2] / "models" / "digits.onnx"
IMAGE = np.zeros((1, 1, 8, 8), "float32")


@pytest.mark.parametrize(
    ("use", "kind", "place"),
    [
        (np.argmax, hr.UserError, ""),
        (lambda ticket: np.asarray([ticket]), hr.UserError, ""),
        (lambda ticket: IMAGE + ticket, hr.UserError, ""),
        (lambda ticket: ticket.numpy(), AttributeError, "no attribute 'numpy': "),
        (lambda ticket: ticket.result(), AttributeError, "no attribute 'result': "),
        (lambda ticket: ticket[0], TypeError, "not subscriptable: "),
        (lambda ticket: [*ticket], TypeError, ""),
    ],
)
def test_a_ticket_is_not_a_result(use, kind, place):
    with pipeline.chain([lambda x: x]) as pipe:
        ticket = pipe.submit(IMAGE)
        with pytest.raises(kind, match=f"{place}a Ticket is not a result; call its wait\\(\\)"):
            use(ticket)
        assert not hasattr(ticket, "shape")
        assert copy.copy(ticket).seq == ticket.seq
        np.testing.assert_array_equal(ticket.wait(), IMAGE)


def test_a_ticket_is_not_an_input_of_a_model(artifact):
    with pipeline.chain([artifact]) as pipe:
        for wrong in (lambda: pipe.submit(pipe.submit(IMAGE)), lambda: pipe.push({"x": pipe.submit(IMAGE)})):
            with pytest.raises(hr.UserError, match=r"^input 'x': a Ticket is not a result; call its wait\(\)"):
                wrong()
        with pytest.raises(hr.UserError, match="'x': list does not become an array"):
            pipe.submit([pipe.submit(IMAGE)])
    with pipeline.chain([lambda ticket: ticket.wait()]) as other, pipeline.chain([abs]) as pipe:
        assert other.submit(pipe.submit(-3)).wait() == 3  # a function takes any object


@pytest.mark.parametrize("wait", ["wait", "exception", "map", "as_completed"])
def test_a_callback_does_not_wait_for_its_own_pipeline(wait):
    """It runs in the thread that would compute the result."""
    raised, ended = [], threading.Event()
    waits = {
        "wait": lambda pipe: pipe.submit(2).wait(),
        "exception": lambda pipe: pipe.submit(2).exception(timeout=60),
        "map": lambda pipe: list(pipe.map([1, 2])),
        "as_completed": lambda pipe: list(pipeline.as_completed([pipe.submit(2)])),
    }

    def callback(ticket):
        assert ticket.wait() == 1  # it is done
        try:
            with pytest.raises(TimeoutError):
                pipe.submit(2).wait(timeout=0)
            assert other.submit(-3).wait() == 3
            waits[wait](pipe)
        except Exception as error:
            raised.append(error)
        ended.set()

    gate = threading.Event()
    with pipeline.chain([lambda x: gate.wait(10) and x]) as pipe, pipeline.chain([abs]) as other:
        pipe.submit(1).add_done_callback(callback)
        gate.set()
        assert ended.wait(10)
    assert [type(error) for error in raised] == [hr.UserError]
    assert "is not done, and a callback runs in a thread of the pipeline and must not wait" in str(raised[0])
    assert "wait in a thread of your own" in str(raised[0])


def test_a_callback_in_a_full_pipeline_hears_why_it_is_refused():
    raised, ended, gate = [], threading.Event(), threading.Event()

    def callback(ticket):
        try:
            for _ in range(2):
                pipe.submit(2)
        except pipeline.PipelineFull as error:
            raised.append(str(error))
        ended.set()

    with pipeline.chain([lambda x: gate.wait(10) and x], max_inflight=1) as pipe:
        pipe.submit(1).add_done_callback(callback)
        gate.set()
        assert ended.wait(10)
    assert len(raised) == 1
    assert raised[0].startswith("the pipeline is full: ")
    assert raised[0].endswith("must not wait for it; submit in a thread of your own")


def test_a_callback_in_a_thread_of_the_user_may_wait():
    """A request that is done, or that the user's thread ends, calls back in that thread."""
    seen, begun, gate = [], threading.Event(), threading.Event()

    def stage(x):
        if x == 1:
            begun.set()
            gate.wait(10)
        return x

    def callback(ticket):
        gate.set()
        seen.append(pipe.submit(2).wait(timeout=10))

    with pipeline.chain([stage]) as pipe:
        done = pipe.submit(5)
        done.wait()
        done.add_done_callback(callback)
        gate.clear()
        pipe.submit(1)
        assert begun.wait(10)
        waiting = pipe.submit(3)
        waiting.add_done_callback(callback)
        waiting.cancel()
    assert seen == [2, 2]


@pytest.mark.parametrize("name", ["victim.onnx", "victim.RELAY", "frames.npy", "stages.json", "reader.py"])
def test_a_pipeline_is_not_written_to_a_file_of_another_kind(name, artifact, tmp_path):
    victim = tmp_path / name
    victim.write_text("precious")
    graph = pipeline.Graph()
    stage = graph.stage(artifact)
    graph.input("x").connect(stage.input("x"))
    stage.output().connect(graph.output("y"))
    remedy = re.escape(f"give it a name that ends in .so, as {victim.stem}.so")
    with pipeline.chain([artifact]) as pipe:
        for write in (
            lambda: pipe.save(victim),
            lambda: graph.save(victim),
            lambda: pipeline.split(MODEL, str(victim), shapes={"x": (1, 1, 8, 8)}, measure=False),
        ):
            with pytest.raises(hr.UserError, match=f"^cannot write '.*{name}': .*{remedy}$"):
                write()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pipeline.chain([abs], max_inflght=3), "chain() got an .* 'max_inflght'; did you mean max_inflight=?"),
        (lambda: pipeline.chain([abs], nothing=3), "chain() got an .* 'nothing'; it takes max_inflight, when_full, "),
        (lambda: pipeline.chain([abs], cpus=[0]), "chain() takes no cpus, an option .*; write Stage(code, cpus=...)"),
        (lambda: pipeline.Stage(abs, cpu=[0]), "Stage() got an .* 'cpu'; did you mean cpus=?"),
        (lambda: pipeline.Stage(abs, nothing=0), "Stage() got an .* 'nothing'; it takes name, inputs, outputs, "),
        (lambda: pipeline.Graph().stage(abs, replica=2), "stage() got an .* 'replica'; did you mean replicas=?"),
        (lambda: pipeline.Graph().build(warmup=True), "build() got an .* 'warmup'; did you mean warm_up=?"),
        (lambda: pipeline.split("m.onnx", "m.so", stage=2), "split() got an .* 'stage'; did you mean stages=?"),
        (lambda: pipeline.load("m.so", funcs={}), "load() got an .* 'funcs'; did you mean functions=?"),
    ],
)
def test_a_misspelt_option_has_a_suggestion(call, message):
    with pytest.raises(TypeError, match="^" + re.escape(message).replace(re.escape(".*"), ".*")):
        call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpus": 1}, "cpus: expected a list of processors' numbers, as in cpus=[0, 1], got 1"),
        ({"cpus": "0,1"}, "cpus: expected a list of processors' numbers, as in cpus=[0, 1], got '0,1'"),
        ({"cpus": ["a"]}, "cpus: expected an int, got 'a'"),
        ({"replicas": 0}, "replicas is 0; a stage has from 1 to 1024"),
        ({"threads": -1}, "threads is -1; 0 is as many as the model says"),
        ({"isolation": "jail"}, "isolation is 'jail'; it is 'thread' or 'process'"),
        ({"pure": True}, "pure is of stages with isolation='process'"),
        ({"device": "gpu"}, "device: gpu is not a CPU"),
        ({"time_limit": -1}, "time_limit: expected seconds, 0 to 1000000, got -1"),
        ({"max_batch": 0}, "max_batch is 0; it lies from 1 to"),
        ({"group": 3}, "group: expected a str, got int"),
        ({"backends": "onednn"}, "backends: expected a list of str, got one str"),
        ({"fallback": "other"}, "fallback"),
    ],
)
def test_a_wrong_option_of_a_stage_names_the_stage(options, message):
    with pytest.raises(hr.UserError, match=f"^stage 'second': {re.escape(message)}"):
        pipeline.chain([abs, pipeline.Stage(lambda x: x, name="second", **options)])


@pytest.mark.parametrize("name", ["detector.onnx", "detector.relay"])
def test_a_model_is_not_loaded_as_a_pipeline(name, tmp_path):
    shutil.copy(MODEL, tmp_path / name)
    model, file = str(tmp_path / name), str(tmp_path / "detector.so")
    remedy = f"pipeline.split('{model}', '{file}'), and load('{file}')"
    with pytest.raises(hr.UserError, match=f"'{model}' is a model, .* {re.escape(remedy)}$"):
        pipeline.load(tmp_path / name)


def test_a_pipeline_that_ran_and_was_stopped_does_not_start():
    pipe = pipeline.chain([abs])
    pipe.start()  # it runs
    assert pipe.submit(-1).wait() == 1
    pipe.stop()
    with pytest.raises(pipeline.PipelineStopped, match="is stopped, and cannot be started; make a new one"):
        pipe.start()


def test_the_name_of_a_function_needs_a_process():
    with pytest.raises(hr.UserError, match=r"^stage 'loads': .* 'json:loads'; .* needs isolation='process'"):
        pipeline.chain(["json:loads"])
    with pipeline.chain([pipeline.Stage("json:loads", isolation="process", inputs=["text"])]) as pipe:
        assert pipe.submit("[1]").wait(timeout=60) == [1]
