"""examples/two-models runs two models one after another, and its results are theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
onnx = pytest.importorskip("onnx")
hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from onnx import TensorProto, helper  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "two-models" / "two_models.py"


def blur(path: Path) -> Path:
    """A model that averages neighbouring pixels of an image of 8 x 8."""
    node = helper.make_node("AveragePool", ["image"], ["smooth"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1, 8, 8]) for name in ("image", "smooth")]
    model = helper.make_model(
        helper.make_graph([node], "blur", ports[:1], ports[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = 8
    onnx.save(model, path)
    return path


def digits(path: Path) -> Path:
    """The digits model for one image at a time."""
    model = onnx.load(ROOT / "models" / "digits.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    onnx.save(model, path)
    return path


def run(folder: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROGRAM, *args]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=120, check=False)


def test_two_models(tmp_path):
    images = np.load(ROOT / "models" / "digits_images.npy")[:20, None]
    np.save(tmp_path / "frames.npy", images)
    done = run(tmp_path, blur(tmp_path / "blur.onnx"), digits(tmp_path / "digits.onnx"), "--frames", "frames.npy")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "20 results of the shape (1, 10)"
    assert [line.split()[0] for line in lines[2:4]] == ["first", "second"]
    assert "20 of 20 requests succeeded" in done.stdout


def test_models_that_do_not_fit(tmp_path):
    done = run(tmp_path, digits(tmp_path / "digits.onnx"), blur(tmp_path / "blur.onnx"))
    assert done.returncode == 1
    assert (
        "of stage 'first' is float32 (1, 10), and input 'image' of stage 'second' is float32 (1, 1, 8, 8): "
        "they must have the same type" in done.stderr
    )


def test_a_model_that_is_not_there(tmp_path):
    done = run(tmp_path, "no.onnx", model := digits(tmp_path / "digits.onnx"))
    assert done.returncode == 1
    assert done.stderr == "two_models.py: cannot read the ONNX model 'no.onnx': No such file or directory\n"
    done = run(tmp_path, model, model, "--frames", "no.npy")
    assert done.stderr.startswith("two_models.py: cannot read the frames 'no.npy': ")


def test_the_pair_of_the_page(tmp_path):
    done = run(tmp_path, PROGRAM.parent / "blur.relay", ROOT / "models" / "digits.onnx", "--dim", "n=1")
    assert done.stderr == ""
    assert done.stdout.startswith("100 results of the shape (1, 10)\n")
    done = run(tmp_path, PROGRAM.parent / "blur.relay", ROOT / "models" / "digits.onnx")
    assert (done.returncode, "(n)" in done.stderr) == (1, True)
    done = run(tmp_path, PROGRAM.parent / "blur.relay", ROOT / "models" / "digits.onnx", "--dim", "m=1")
    assert done.returncode == 1
    assert done.stderr == "two_models.py: --dim m=1: no input of the two models has a dimension 'm'\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--cpus", "0"), "argument --cpus: expected two processors, as in 0,1, got '0'"),
        (("--cpus", "0,x"), "argument --cpus: expected two processors, as in 0,1, got '0,x'"),
        (("--dim", "n"), "argument --dim: expected NAME=SIZE, as in n=1, got 'n'"),
    ],
)
def test_wrong_usage(tmp_path, arguments, says):
    done = run(tmp_path, "first.onnx", "second.onnx", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
