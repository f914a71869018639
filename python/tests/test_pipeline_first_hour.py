"""The first hour of a new user: two ONNX models as a pipeline in ten lines, and what the likely mistakes say.

Passed when the program of examples/two-models/first_hour.py has at most 10 lines and gives the results of the models
one after another, and when the error of each mistake names the stage or port, and the remedy.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pipeline = pytest.importorskip("headrace.pipeline", reason="built without pipelines")

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "examples/two-models/first_hour.py"
MODEL = ROOT / "models/digits.onnx"


def test_two_onnx_models_are_a_pipeline_in_ten_lines(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    text = PROGRAM.read_text()
    code = [line for line in text.splitlines() if line.strip() and not line.startswith(('"""', "#"))]
    assert len(code) <= 10
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 8, 8]) for name in ("image", "smooth")]
    node = helper.make_node("AveragePool", ["image"], ["smooth"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    first = helper.make_model(
        helper.make_graph([node], "blur", ports[:1], ports[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    first.ir_version = 8
    onnx.save(first, tmp_path / "first.onnx")
    second = onnx.load(MODEL)
    second.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(second, tmp_path / "second.onnx")
    frames = np.load(ROOT / "models/digits_images.npy")[:20, None]
    np.save(tmp_path / "frames.npy", frames)
    ran = subprocess.run(
        [sys.executable, PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    blurred, read = (hr.load(tmp_path / f"{name}.so") for name in ("first", "second"))
    expected = [str(read(blurred(frame)).numpy().argmax()) for frame in frames]
    assert ran.stdout.split() == expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("first-hour")
    hr.compile(MODEL, shapes={"x": (1, 1, 8, 8)}, threads=1, output=made / "digits.so")
    return made


IMAGE = np.zeros((1, 1, 8, 8), "float32")


def submit(*inputs: Any, **options: Any) -> Callable[[], Any]:
    def run() -> Any:
        with pipeline.chain(["digits.so"]) as pipe:
            return pipe.submit(*inputs, **options).wait()

    return run


def unknown_port() -> None:
    graph = pipeline.Graph()
    graph.input("x").connect(graph.stage("digits.so").input("image"))


def unconnected_output() -> None:
    graph = pipeline.Graph()
    used, forgotten = graph.stage("digits.so", "used"), graph.stage("digits.so", "forgotten")
    for stage in (used, forgotten):
        graph.input("x").connect(stage.input("x"))
    used.output().connect(graph.output("scores"))
    graph.build()


def no_source_for_an_output() -> None:
    graph = pipeline.Graph()
    stage = graph.stage("digits.so")
    graph.input("x").connect(stage.input("x"))
    graph.output("digit")
    stage.output().connect(graph.output("scores"))
    graph.build()


def two_sources() -> None:
    graph = pipeline.Graph()
    stage = graph.stage("digits.so")
    graph.input("x").connect(stage.input("x"))
    graph.input("y").connect(stage.input("x"))


def wrong_number_of_results() -> None:
    with pipeline.chain([pipeline.Stage(lambda x: (x, x, x), name="two", outputs=2), lambda a, b: a]) as pipe:
        pipe.submit(1).wait()


def closed() -> None:
    pipe = pipeline.chain(["digits.so"])
    pipe.stop()
    pipe.submit(IMAGE)


def circle() -> None:
    graph = pipeline.Graph()
    first = graph.stage(lambda x, y: x, "first")
    second = graph.stage(lambda x: x, "second")
    graph.input("x").connect(first.input("x"))
    first.output().connect(second.input("x"))
    second.output().connect(first.input("y"))
    second.output().connect(graph.output("y"))
    graph.build()


MISTAKES = {
    "wrong dtype": (submit(IMAGE.astype("float64")), "'x'", "x.astype('float32')"),
    "no batch dimension": (submit(IMAGE[0]), "'x'", "the first dimension is the batch: give x[None]"),
    "a list of arrays": (submit([IMAGE]), "'x'", "each input is an argument of its own"),
    "an ONNX file as a stage": (
        lambda: pipeline.chain([str(MODEL)]),
        "stage 'digits.onnx'",
        f"hr.compile('{MODEL}', output='digits.so')",
    ),
    "no such port": (unknown_port, "stage 'digits' has no input 'image'", "it has x"),
    "an output that goes nowhere": (unconnected_output, "stage 'forgotten'", "connect it to a stage or to an output"),
    "an output without a source": (no_source_for_an_output, "output 'digit'", "connect a stage's output to it"),
    "two sources for one input": (
        two_sources,
        "input 'x' of stage 'digits' has a source: input 'x'",
        "to another port",
    ),
    "a wrong number of results": (wrong_number_of_results, "stage 'two'", "returned 3 values; the stage has 2 outputs"),
    "an input by keyword": (
        submit(x=IMAGE),
        "in a dict: submit({'x': ...})",
        "timeout, deadline and copy are its options",
    ),
    "an unknown option": (submit(IMAGE, dead_line=1), "no option 'dead_line'", "timeout, deadline and copy"),
    "an unknown name in a dict": (submit({"y": IMAGE}), "the inputs are x", "missing: x; unknown: y"),
    "a closed pipeline": (closed, "the pipeline is stopped", "make a new one"),
    "a lambda in a process": (
        lambda: pipeline.chain([pipeline.Stage(lambda x: x, name="own", isolation="process")]),
        "stage 'own'",
        "a function at the top of a module, or its name as 'module:function'",
    ),
    "a circle": (circle, "first, second", "remove a connection between them"),
    "models that do not fit": (
        lambda: pipeline.chain(["digits.so", "digits.so"]),
        "input 'x' of stage 'digits0' is float32 (1, 1, 8, 8)",
        "put a stage between them",
    ),
    "a missing file": (lambda: pipeline.chain(["nothing.so"]), "stage 'nothing'", "there is no file 'nothing.so'"),
    "a chain with other numbers": (
        lambda: pipeline.chain([pipeline.Stage(abs, name="one", inputs=["x"]), lambda a, b: a]),
        "stage 'one' has 1 outputs",
        "Stage(..., outputs=2)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_names_its_place_and_the_remedy(mistake: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, place, remedy = MISTAKES[mistake]
    monkeypatch.chdir(folder)
    with pytest.raises(hr.UserError) as caught:
        call()
    assert place in str(caught.value)
    assert remedy in str(caught.value)
