"""Stages of pipelines in processes of their own."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import headrace as hr
import numpy as np
import pytest
from headrace import pipeline

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
PROGRAM = Path(hr._core.__file__).parents[2] / "bin" / "headrace"
MODULE = '''
import os, time

class Custom(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")

def double(x):
    return x * 2

def pid(x):
    return os.getpid()

def end(x):
    """Ends as its input says."""
    if not isinstance(x, str):
        return x
    if x == "exit":
        os._exit(3)
    if x == "abort":
        os.abort()
    if x == "hang":
        while True:
            pass
    if x == "key":
        raise KeyError("no such key")
    if x == "custom":
        raise Custom("a", "b")
    if x == "lambda":
        return lambda: 1
    return x

def slow(path):
    time.sleep(0.6)
    with open(path, "w"):
        return path

def once(path):
    """Crashes while the file is there, which it removes."""
    if os.path.exists(path):
        os.remove(path)
        os._exit(1)
    return "done"

kept = []

def keep(x):
    kept.append(x)
    return float(sum(array.sum() for array in kept))

def best(scores):
    return [int(one.argmax()) for one in scores]

def split(x):
    return x, {"minus": -x}
number = 3
'''


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    """The digits model for one image and for eight."""
    folder = tmp_path_factory.mktemp("processes")
    paths = {batch: folder / f"digits{batch}.so" for batch in (1, 8)}
    for batch, path in paths.items():
        hr.compile(DIGITS, shapes={"x": (batch, 1, 8, 8)}, threads=1, output=path)
    return paths


@pytest.fixture(scope="module", autouse=True)
def functions(tmp_path_factory):
    """A module with functions for stages, which this process imports, too."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "stage_functions.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    import stage_functions

    yield stage_functions
    sys.path.remove(str(folder))


def stage(code, **options):
    return pipeline.Stage(code, isolation="process", **options)


def children():
    """The processes that this one has started and that have not ended."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            if int(text.rsplit(")", 1)[1].split()[1]) == os.getpid():
                found.add(int(entry.name))
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ends_soon(pid):
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_programs_in_processes_give_the_results_of_the_model(artifacts, images):
    model = hr.load(artifacts[1])
    before = children()
    with pipeline.chain([lambda image: image[None], stage(artifacts[1])]) as pipe:
        for image, scores in zip(images[:30], pipe.map(images[:30]), strict=True):
            np.testing.assert_array_equal(scores.numpy(), model(image[None]).numpy())
        (pid,) = pipe.metrics()["stages"][1]["pids"]
        assert children() - before == {pid}
        assert pipe.metrics()["stages"][0]["pids"] == []
    assert children() == before


def test_batches_of_programs_and_functions_in_processes(artifacts, images, functions):
    expected = [int(np.argmax(hr.load(artifacts[1])(image[None]).numpy())) for image in images[:40]]
    stages = [
        lambda image: image[None],
        stage(artifacts, name="digits", max_delay=0.002),
        stage(functions.best, max_batch=16),
    ]
    with pipeline.chain(stages) as pipe:
        assert list(pipe.map(images[:40])) == expected
        assert all(row["batches"] > 0 for row in pipe.metrics()["stages"][1:])
    rows = [images[:3], images[3:3], images[3:14]]
    with pipeline.chain([stage(artifacts, rows="any")]) as pipe:
        assert [scores.shape for scores in pipe.map(rows)] == [(3, 10), (0, 10), (11, 10)]


def test_functions_by_object_and_by_name(functions):
    with pipeline.chain([stage(functions.double), stage("stage_functions:double", name="again")]) as pipe:
        assert list(pipe.map(range(20))) == [4 * x for x in range(20)]
        assert pipe.inputs == ["x"]
        np.testing.assert_array_equal(pipe.submit(np.arange(6.0)).wait(), 4 * np.arange(6.0))
    with pipeline.chain([stage("stage_functions:split", outputs=["plus", "minus"])]) as pipe:
        assert pipe.submit(3).wait() == (3, {"minus": -3})
    with pipeline.chain([stage("math:sqrt", inputs=["x"])]) as pipe:
        assert pipe.submit(9.0).wait() == 3.0


def test_replicas_have_a_process_each(functions):
    with pipeline.chain([stage(functions.pid, replicas=2)]) as pipe:
        seen = set(pipe.map(range(100)))
        assert seen <= set(pipe.metrics()["stages"][0]["pids"])
        assert os.getpid() not in seen


def test_arrays_that_a_function_keeps_stay_as_they_are():
    with pipeline.chain([stage("stage_functions:keep")]) as pipe:
        assert [pipe.submit(np.full(4, float(i))).wait() for i in range(4)] == [0.0, 4.0, 12.0, 24.0]


@pytest.mark.parametrize(("end", "how"), [("exit", "ended with exit code 3"), ("abort", "killed by signal 6")])
def test_a_crash_loses_its_request_only(end, how):
    with pipeline.chain([stage("stage_functions:end")]) as pipe:
        tickets = [pipe.submit(x) for x in ("a", end, "b")]
        assert [tickets[0].wait(), tickets[2].wait()] == ["a", "b"]
        with pytest.raises(pipeline.StageLost, match=how) as lost:
            tickets[1].wait()
        assert (lost.value.seq, lost.value.stage, type(lost.value.cause)) == (1, "end", ChildProcessError)
        assert how in str(lost.value.cause)
        assert pipe.metrics()["stages"][0]["restarts"] == 1
        assert "end: 1 restarts" in pipeline.format_metrics(pipe.metrics())


def test_a_pure_stage_runs_its_request_again(tmp_path):
    mark = tmp_path / "mark"
    for pure in (True, False):
        mark.touch()
        with pipeline.chain([stage("stage_functions:once", pure=pure)]) as pipe:
            ticket = pipe.submit(str(mark))
            assert (ticket.exception() is None) == pure


def test_a_hang_is_killed_and_only_its_request_times_out():
    with pipeline.chain([stage("stage_functions:end", time_limit=0.5)]) as pipe:
        tickets = [pipe.submit(x) for x in ("a", "hang", "b")]
        assert [tickets[0].wait(), tickets[2].wait()] == ["a", "b"]
        with pytest.raises(pipeline.StageTimeout):
            tickets[1].wait()
        assert pipe.state == "running"


def test_exceptions_arrive_with_their_traceback():
    with pipeline.chain([stage("stage_functions:end")]) as pipe:
        error = pipe.submit("key").exception()
        assert isinstance(error, pipeline.StageFailed)
        assert isinstance(error.cause, KeyError)
        if sys.version_info >= (3, 11):
            assert "stage_functions.py" in error.cause.__notes__[0]
        # A class that cannot be made again from its pickle.
        error = pipe.submit("custom").exception()
        assert isinstance(error.cause, RuntimeError)
        assert "a and b" in str(error.cause)
        error = pipe.submit("lambda").exception()
        assert "cannot pass between a pipeline and a stage in a process of its own" in str(error)
        assert pipe.metrics()["stages"][0]["restarts"] == 0


def test_what_cannot_be_pickled_is_an_error_of_its_request():
    with pipeline.chain([stage("stage_functions:end")]) as pipe:
        error = pipe.submit(lambda: 1).exception()
        assert isinstance(error, pipeline.StageFailed)
        assert "a function cannot pass" in str(error)
        assert pipe.submit("a").wait() == "a"


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (lambda x: x, {}, "cannot be imported by name"),
        ("no_such_module:f", {}, "'no_such_module:f' cannot be imported: ModuleNotFoundError"),
        ("stage_functions:nothing", {}, "'stage_functions:nothing' cannot be imported: AttributeError"),
        ("stage_functions:number", {}, "is a int, and a stage calls a function"),
        ("missing.so", {}, "there is no file 'missing.so'"),
        (Path(__file__), {}, "cannot start"),
        (3, {}, "a function by its name 'module:function', got int"),
        ("math:sqrt", {"time_limit": -1}, "time_limit: expected seconds, 0 to 1000000, got -1"),
    ],
)
def test_codes_that_have_no_process(code, options, text):
    before = children()
    with pytest.raises(hr.UserError, match=re.escape(text)):
        pipeline.Graph().stage(code, isolation="process", **options)
    assert children() == before


def test_wrong_options(functions):
    graph = pipeline.Graph()
    with pytest.raises(hr.UserError, match="isolation is 'machine'; it is 'thread' or 'process'"):
        graph.stage(functions.double, isolation="machine")
    with pytest.raises(hr.UserError, match="pure is of stages with isolation='process'"):
        graph.stage(functions.double, pure=True)
    with pytest.raises(hr.UserError, match="compiled in memory, and a stage with isolation='process' opens its file"):
        graph.stage(hr.compile(DIGITS, shapes={"x": (1, 1, 8, 8)}, threads=1), isolation="process")


def test_a_function_of_the_program_itself_is_refused(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from headrace import pipeline\n"
        "def f(x):\n    return x\n"
        "try:\n    pipeline.Graph().stage(f, isolation='process')\n"
        "except ValueError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert "'f' is of the program itself (__main__)" in done.stdout


def test_saved_pipelines_keep_the_isolation(artifacts, images, tmp_path):
    path = tmp_path / "pipe.so"
    stages = [
        lambda image: image[None],
        stage(artifacts, name="digits", pure=True, max_delay=0.002),
        stage("stage_functions:end", time_limit=20),
    ]
    with pipeline.chain(stages) as pipe:
        expected = [scores.tolist() for scores in pipe.map(images[:10])]
        pipe.save(path)
    plan = hr._core.read_pipeline_plan(str(path)).stages
    assert [(one.isolation, one.is_pure) for one in plan] == [("thread", False), ("process", True), ("process", False)]
    assert plan[2].function == "stage_functions:end"
    before = children()
    with pipeline.load(path, functions={"stage0": stages[0]}) as pipe:
        assert len(children() - before) == 2
        again = [scores.tolist() for scores in pipe.map(images[:10])]
        # The time of arrival decides the batch of a request, and programs of other batches round otherwise.
        np.testing.assert_allclose(again, expected, rtol=1e-4)
        assert pipe.submit(images[0]).wait().shape == (1, 10)
    assert children() == before
    with pytest.raises(hr.UserError, match="calls no function 'stage_functions:end'; it calls stage0"):
        pipeline.load(path, functions={"stage_functions:end": abs})


@pytest.mark.skipif(not PROGRAM.exists(), reason="the package is installed without the build's programs")
def test_the_program_shows_and_runs_processes(artifacts, tmp_path):
    def save(name, code):
        graph = pipeline.Graph()
        made = graph.stage(code, "digits", isolation="process", pure=True)
        graph.input("x").connect(made.input("x"))
        made.output().connect(graph.output("y"))
        graph.save(tmp_path / name)
        return tmp_path / name

    def say(*arguments, check=True):
        return subprocess.run([PROGRAM, "pipeline", *arguments], check=check, capture_output=True, text=True)

    path = save("pipe.so", artifacts[1])
    report = json.loads(say("inspect", path, "--json").stdout)["stages"][0]
    assert (report["isolation"], report["pure"]) == ("process", True)
    assert re.search(r"^digits .* process, pure ", say("inspect", path).stdout, re.M)
    (ran,) = json.loads(say("run", path, "--requests", "20", "--json").stdout)["metrics"]["stages"]
    assert ran["items"] == 20
    assert ran["restarts"] == 0
    assert len(ran["pids"]) == 1
    assert ends_soon(ran["pids"][0])
    path = save("function.so", "stage_functions:double")
    failed = say("run", path, "--input", f"x={tmp_path / 'x.npy'}", check=False)
    assert "in a process of Python, which this program does not start" in failed.stderr


@pytest.mark.parametrize("busy", [False, True])
def test_the_process_ends_when_the_pipelines_was_killed(busy, tmp_path):
    """Also in a call that does not return."""
    program = f"""
import sys, time
sys.path.insert(0, {str(Path(sys.path[0]))!r})
from headrace import pipeline
pipe = pipeline.chain([pipeline.Stage("stage_functions:end", isolation="process")])
if {busy}:
    pipe.submit("hang")
    time.sleep(0.3)
print(*pipe.metrics()["stages"][0]["pids"], flush=True)
time.sleep(100)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as killed:
        pid = int(killed.stdout.readline())
        assert alive(pid)
        killed.send_signal(signal.SIGKILL)
    assert ends_soon(pid)


def test_stop_waits_for_the_call_unless_its_time_is_over(tmp_path):
    for timeout, finishes in ((None, True), (0.1, False)):
        mark = tmp_path / f"mark{finishes}"
        pipe = pipeline.chain([stage("stage_functions:slow")])
        ticket = pipe.submit(str(mark))
        time.sleep(0.1)
        assert pipe.stop(timeout) == []
        assert isinstance(ticket.exception(), pipeline.Stopped)
        assert mark.exists() == finishes


def test_the_end_of_python_ends_the_process():
    program = f"""
import sys
sys.path.insert(0, {str(Path(sys.path[0]))!r})
from headrace import pipeline
pipe = pipeline.chain([pipeline.Stage("stage_functions:end", isolation="process")])
pipe.submit("hang")
print(*pipe.metrics()["stages"][0]["pids"], flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ends_soon(int(done.stdout))


def test_nothing_is_left_after_many_pipelines(functions, artifacts):
    """No descriptor, process or mapping."""

    def belongings():
        gc.collect()  # graphs and their stages refer to each other
        maps = Path("/proc/self/maps").read_text()
        files = [len(list(Path(folder).iterdir())) for folder in ("/proc/self/fd", "/dev/shm")]
        return files, children(), maps.count("headrace-stage")

    def use():
        with pipeline.chain([stage(artifacts[1])]) as pipe:
            pipe.submit(np.zeros((1, 1, 8, 8), "float32")).wait()
            os.kill(pipe.metrics()["stages"][0]["pids"][0], signal.SIGKILL)

    use()
    before = belongings()
    for _ in range(5):
        use()
    assert belongings() == before
