"""headrace.peer, which the programs start: the lines that they read, and peers that only take some models."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
onnx = pytest.importorskip("onnx", reason="onnx is not in .venv")

from headrace import _peer_ncnn, _peer_runtime  # noqa: E402

NCNN = "it is not in .venv (./dev setup --peers installs it)"


def write_model(path, op="Neg", dtype=np.float32, result=None, inputs=("x",), shape=(2,)):
    """A model with one op; `inputs`: those of the model, of which the op reads the last."""
    kind, kind_of_result = (onnx.helper.np_dtype_to_tensor_dtype(np.dtype(one)) for one in (dtype, result or dtype))
    node = onnx.helper.make_node(op, [inputs[-1]], ["y"])
    declared = [onnx.helper.make_tensor_value_info(name, kind, shape) for name in inputs]
    results = [onnx.helper.make_tensor_value_info("y", kind_of_result, None)]
    graph = onnx.helper.make_graph([node], "g", declared, results)
    opsets = [onnx.helper.make_opsetid("", 13)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return str(path)


def serve(peer, model, feed, requests, folder):
    """The lines that the peer answers, and its outputs."""
    (folder / "inputs.json").write_text(json.dumps({"names": list(feed)}))
    for i, array in enumerate(feed.values()):
        np.save(folder / f"input_{i}.npy", array)
    done = subprocess.run(
        [sys.executable, "-m", "headrace.peer", peer, model, "--folder", str(folder)],
        input=requests,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines(), [np.load(path) for path in sorted(folder.glob("output_*.npy"))]


def test_without_numpy_it_says_what_to_install(tmp_path):
    missing = tmp_path / "numpy.py"
    missing.write_text("raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "headrace.peer", "onnxruntime", "--check"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"missing No module named 'numpy'; install it for {sys.executable}\n"


@pytest.mark.parametrize("peer", ["onnxruntime", "openvino", "openvino-default", "ncnn", "torch-compile"])
def test_a_check_says_which_package_is_missing(peer):
    needed = {"ncnn": ["ncnn", "pnnx", "onnx"], "torch-compile": ["torch", "onnx2torch", "torchvision", "onnx"]}
    packages = needed.get(peer, [peer.removesuffix("-default")])
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    done = subprocess.run(
        [sys.executable, "-m", "headrace.peer", peer, "--check"], capture_output=True, text=True, check=True, timeout=60
    )
    line = f"missing there is no package {missing[0]}; install it for {sys.executable}" if missing else f"ready {peer}"
    assert done.stdout == line + "\n"


def test_a_signature_leaves_out_what_has_a_value(tmp_path):
    path = write_model(tmp_path / "m.onnx", inputs=("w", "x"))
    model = onnx.load(path)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(2, np.float32), "w"))
    onnx.save(model, path)
    assert _peer_runtime.read_signature(path) == (["x"], {"y": "float32"})


def test_stderr_of_other_languages_is_captured(capfd):
    with _peer_runtime.captured_stderr() as lines:
        os.write(2, b"from C++\n")
        print("from Python", file=sys.__stderr__)
    os.write(2, b"after\n")
    assert (lines, capfd.readouterr().err) == (["from C++", "from Python"], "after\n")


class Converter:
    """A stand-in for pnnx: a shell script, found as the package pnnx is."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        (folder / "pnnx").mkdir()
        (folder / "pnnx/__init__.py").write_text("raise ImportError('it imports torch')\n")
        monkeypatch.syspath_prepend(str(folder))
        (folder / "work").mkdir()
        self.model = write_model(folder / "m.onnx", inputs=("b", "a"))

    def convert(self, script, dtype=np.float32):
        """Converts a model with the inputs b and a by the script."""
        program = self.folder / "pnnx/pnnx"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        feed = {"b": np.zeros((2, 3), dtype), "a": np.zeros((1, 4), np.int64)}
        return _peer_ncnn._convert(self.model, feed, self.folder / "work")


@pytest.fixture
def converter(tmp_path, monkeypatch):
    return Converter(tmp_path, monkeypatch)


def test_the_converter_is_told_sizes_and_float32(converter):
    work = converter.folder / "work"
    text = converter.convert(f'echo "$@" > {work}/net.py; cat "$1" > {converter.folder}/seen')
    words = text.split()
    assert words[:3] == [f"{work}/model.onnx", "fp16=0", "inputshape=[2,3]f32,[1,4]i64"]
    assert all(word.split("=")[1].startswith(str(work)) for word in words[3:])  # nothing is written elsewhere
    assert onnx.load(converter.folder / "seen") == onnx.load(converter.model)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo one; echo bad op; echo; exit 7", "it ended with code 7 after 'bad op'"),
        ("echo it dies; kill -SEGV $$", "it ended with signal SIGSEGV after 'it dies'"),
        ("exit 0", "it ended with code 0 after ''"),
    ],
)
def test_a_converter_that_fails_gives_its_last_line(converter, script, reason):
    with pytest.raises(ValueError, match="pnnx cannot convert the model: " + reason):
        converter.convert(script)


def test_inputs_that_ncnn_does_not_have(converter):
    with pytest.raises(ValueError, match=r"inputs of float32, int64, int32; 'b' \(input 0\) is of float64"):
        converter.convert("exit 0", np.float64)


def test_batch_axes_are_those_of_the_program_that_pnnx_writes():
    program = """
        in1 = torch.rand(1, 3, dtype=torch.float)
            ex.input("in1", ncnn.Mat(in1.numpy(), batch_index=233).clone())
            ex.input("in0", ncnn.Mat(in0.numpy(), batch_index=1).clone())
            out.append(torch.from_numpy(out0.numpy(batch_index=0)))
    """
    assert _peer_ncnn._batch_axes(program, "in", 2) == [1, 233]
    assert _peer_ncnn._batch_axes(program, "out", 1) == [0]
    with pytest.raises(ValueError, match=r"the program that pnnx writes has in: \[0, 1\], and the model has 3"):
        _peer_ncnn._batch_axes(program, "in", 3)


def test_outputs_that_ncnn_does_not_compute():
    class Extractor:
        def extract(self, name):
            return (0, name) if name == "out0" else (-100, None)

    assert _peer_ncnn._extract(Extractor(), 1) == ["out0"]
    with pytest.raises(ValueError, match=r"ncnn cannot compute output 1 \(code -100\)"):
        _peer_ncnn._extract(Extractor(), 2)


def test_ncnn_keeps_its_inputs(tmp_path):
    """Negation works in place in ncnn; each run must see the input as it was given."""
    pytest.importorskip("ncnn", reason=NCNN)
    model = write_model(tmp_path / "m.onnx", shape=("n",), inputs=("z", "x"))
    feed = {"x": np.array([1, -4, 7], np.float32), "z": np.ones(2, np.float32)}
    lines, (result,) = serve("ncnn", model, feed, "time\ntime\nsave\n", tmp_path)
    assert lines[0].startswith("ready ") and lines[3] == "saved 1"
    assert all(float(line) > 0 for line in lines[1:3])
    np.testing.assert_array_equal(result, [-1, 4, -7])
    assert sorted(path.name for path in tmp_path.glob("m*")) == ["m.onnx"]


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({"op": "ThresholdedRelu"}, "ncnn cannot load what pnnx made of the model: layer ThresholdedRelu not exists"),
        ({"op": "Shape", "result": np.int64}, "ncnn gives outputs of float32; 'y' is of int64"),
    ],
)
def test_models_that_ncnn_cannot_take(tmp_path, model, reason):
    pytest.importorskip("ncnn", reason=NCNN)
    path = write_model(tmp_path / "m.onnx", **model)
    (line,), _ = serve("ncnn", path, {"x": np.ones(2, np.float32)}, "", tmp_path)
    assert line.startswith("error " + reason)
