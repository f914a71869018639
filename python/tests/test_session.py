"""InferenceSession as users of onnxruntime call it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

MODELS = Path(__file__).parents[2] / "models"
DIGITS = MODELS / "digits.onnx"
CPU = "CPUExecutionProvider"


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """y = x * s, x of ["n", 2]."""
    onnx = pytest.importorskip("onnx")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "s"], ["y"])],
        "scaled",
        [helper.make_tensor_value_info("x", float32, ["n", 2]), helper.make_tensor_value_info("s", float32, [2])],
        [helper.make_tensor_value_info("y", float32, ["n", 2])],
    )
    path = tmp_path_factory.mktemp("session") / "scaled.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def test_bound_inputs_are_no_inputs(scaled):
    s = np.array([2, 3], np.float32)
    session = hr.InferenceSession(scaled, bound={"s": s})
    assert [arg.name for arg in session.get_inputs()] == ["x"]
    for n in (1, 3):
        x = np.ones((n, 2), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x * s)
    with pytest.raises(hr.UserError, match="unknown: s"):
        session.run(None, {"x": s, "s": s})


@pytest.mark.parametrize("wrap", [lambda a: a, hr.nd.from_dlpack])
def test_bound_inputs_are_not_the_callers_memory(scaled, wrap):
    s = np.array([2, 3], np.float32)
    session = hr.InferenceSession(scaled, bound={"s": wrap(s)})
    for n in (1, 3):
        np.testing.assert_array_equal(session.run(None, {"x": np.ones((n, 2), np.float32)})[0], [[2, 3]] * n)
        s[:] = 9


def test_feeds_may_be_in_any_order(scaled):
    x, s = np.ones((2, 2), np.float32), np.array([2, 3], np.float32)
    np.testing.assert_array_equal(hr.InferenceSession(scaled).run(None, {"s": s, "x": x})[0], x * s)


def test_onnxruntime_arguments(images):
    positional = hr.InferenceSession(str(DIGITS), None, [CPU])
    named = hr.InferenceSession(DIGITS, sess_options=None, providers=[CPU])
    assert positional.get_providers() == named.get_providers() == [CPU]
    feed = {"x": images[:1]}
    np.testing.assert_array_equal(positional.run(None, feed, None)[0], named.run(None, feed)[0])


def test_no_names_are_all_outputs(tmp_path):
    ort = pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    names = ["y", "z"]
    nodes = [helper.make_node(op, ["x"], [name]) for op, name in zip(("Neg", "Abs"), names, strict=True)]
    ports = [helper.make_tensor_value_info(name, float32, [2]) for name in ("x", *names)]
    graph = helper.make_graph(nodes, "two", ports[:1], ports[1:])
    path = tmp_path / "two.onnx"
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    session, peer = hr.InferenceSession(path), ort.InferenceSession(path)
    feed = {"x": np.array([-1, 2], np.float32)}
    for wanted in (None, [], ["z"], ["z", "y"]):
        for ours, theirs in zip(session.run(wanted, feed), peer.run(wanted, feed), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_model_bytes(images):
    feed = {"x": images[:2]}
    session = hr.InferenceSession(DIGITS.read_bytes())
    np.testing.assert_array_equal(session.run(None, feed)[0], hr.InferenceSession(DIGITS).run(None, feed)[0])


def test_model_bytes_leave_no_file(tmp_path):
    script = """
import os, pathlib, signal, sys
import headrace as hr
from headrace import relay

class Graph:
    name = "digits"

class ModelProto:
    graph = Graph()
    def HasField(self, name):
        return True
    def SerializeToString(self):
        return pathlib.Path(sys.argv[1]).read_bytes()

session = hr.InferenceSession(ModelProto().SerializeToString())
relay.frontend.from_onnx(ModelProto(), {"x": (1, 1, 8, 8)})
print(os.listdir(os.environ["TMPDIR"]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, DIGITS],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-9, "[]\n", "")
    assert list(tmp_path.iterdir()) == []


def test_model_bytes_have_their_data_themselves():
    onnx = pytest.importorskip("onnx")
    model = onnx.load(DIGITS)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="0")  # a descriptor's name, were the others beside it
    with pytest.raises(hr.UserError, match="external"):
        hr.InferenceSession(model.SerializeToString(), shapes={"x": (1, 1, 8, 8)})


def test_shapes_given_are_shapes_told():
    session = hr.InferenceSession(DIGITS, shapes={"x": (2, 1, 8, 8)}, opt_level=0)
    assert session.get_inputs()[0].shape == [2, 1, 8, 8]
    assert session.get_outputs()[0].shape == [2, 10]
    assert hr.InferenceSession(DIGITS).get_outputs()[0].shape == ["n", 10]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sess_options": object()}, "sess_options: expected headrace.session.SessionOptions, got object"),
        (
            {"providers": [CPU], "provider_options": [{}, {}]},
            "providers and provider_options differ in length: 1 and 2",
        ),
        ({"providers": CPU}, r"providers: expected a list of str, got one str; write \['CPU"),
        ({"shapes": {"q": (1,)}}, "shapes: the model has no input q"),
        ({"bound": {"q": [1.0]}}, "bound: the model has no input q"),
        ({"bound": {"x": None}}, "bound input 'x': None is not a tensor"),
        ({"opt_level": 7}, "opt_level is 7"),
        ({"threads": -1}, "number of threads is -1"),
        ({"disabled_passes": ["Nonsense"]}, "no pass 'Nonsense'"),
        ({"disabled_passes": "FoldConstant"}, "disabled_passes: expected a list of str"),
        ({"cpu": 3}, "cpu: expected a str, got int"),
        ({"cpu": "nonsense"}, "nonsense"),
    ],
)
def test_options_are_checked_at_once(options, says):
    with pytest.raises(hr.UserError, match=says):
        hr.InferenceSession(DIGITS, **options)


def test_unknown_options_are_refused_at_once():
    with pytest.raises(TypeError, match="foo"):
        hr.InferenceSession(DIGITS, foo=1)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((None, np.zeros((1, 1, 8, 8), np.float32)), "input_feed: expected a dict by name, .*got ndarray"),
        (("probabilities", {}), r"output_names: .*write \['probabilities'\]"),
        ((None, {"x": None}), "input 'x': None is not a tensor"),
        ((None, {"x": [1.0]}, object()), "run_options: "),
    ],
)
def test_runs_name_the_argument(arguments, says):
    with pytest.raises(hr.UserError, match=says):
        hr.InferenceSession(DIGITS).run(*arguments)


def test_a_model_file_that_changes(scaled, tmp_path):
    feed = {"x": np.ones((2, 2), np.float32), "s": np.array([2, 3], np.float32)}
    path = tmp_path / "model.onnx"
    path.write_bytes(scaled.read_bytes())
    session = hr.InferenceSession(path)
    first = session.run(None, feed)[0]
    path.write_bytes(DIGITS.read_bytes())
    np.testing.assert_array_equal(session.run(None, feed)[0], first)
    with pytest.raises(hr.UserError, match=r"model\.onnx' was written to after this session was made"):
        session.run(None, feed | {"x": np.ones((3, 2), np.float32)})


def test_a_model_file_that_is_written_to_in_place(scaled, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(scaled.read_bytes())
    session = hr.InferenceSession(path)
    stamp = path.stat()
    with path.open("r+b") as file:
        file.write(path.read_bytes()[:1])
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(hr.UserError, match=r"model\.onnx' was written to after this session was made"):
        session.run(None, {"x": np.ones((3, 2), np.float32), "s": np.array([2, 3], np.float32)})


def test_external_data_that_changes(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    weights = onnx.numpy_helper.from_array(np.array([2, 3], np.float32), "s")
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "s"], ["y"])],
        "scaled",
        [helper.make_tensor_value_info("x", float32, ["n", 2])],
        [helper.make_tensor_value_info("y", float32, ["n", 2])],
        [weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    session = hr.InferenceSession(path)
    session.run(None, {"x": np.ones((1, 2), np.float32)})
    (tmp_path / "w.bin").write_bytes(np.array([5, 7], np.float32).tobytes())
    with pytest.raises(hr.UserError, match=r"w\.bin' was written to after this session was made"):
        session.run(None, {"x": np.ones((2, 2), np.float32)})


@pytest.mark.backends("ccompiler")
def test_backends_of_a_session(tmp_path):
    options = hr.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = hr.InferenceSession(
        DIGITS, options, backends=["ccompiler"], backend_options={"ccompiler": {"cc": "gcc"}}, fallback="none"
    )
    images = np.load(MODELS / "digits_images.npy")[:2]
    (got,) = session.run(None, {"x": images})
    (wanted,) = hr.InferenceSession(DIGITS).run(None, {"x": images})
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    steps = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
    assert any("ccompiler" in step["args"].get("code", "") for step in steps)


@pytest.mark.backends("ccompiler")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backends": ["nope"]}, "nope"),
        ({"backends": "ccompiler"}, "backends"),
        ({"backends": ["ccompiler"], "backend_options": {"ccompiler": {"speed": 3}}}, "speed"),
        ({"placement": "cost"}, "no backend is named"),
        ({"backends": ["ccompiler"], "placement": "best"}, "placement"),
        ({"backends": ["ccompiler"], "costs": "costs.json"}, "without placement by cost"),
        ({"fallback": "maybe"}, "fallback"),
    ],
)
def test_wrong_backends_of_a_session(arguments, message):
    """They are refused when the session is made, also if nothing is compiled yet: the digits' batch is open."""
    with pytest.raises(hr.UserError, match=message):
        hr.InferenceSession(DIGITS, **arguments)


def test_a_session_of_a_file_without_an_ending(tmp_path):
    (tmp_path / "digits").write_bytes(DIGITS.read_bytes())
    (tmp_path / "program").write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n')
    assert hr.InferenceSession(tmp_path / "digits").get_modelmeta().graph_name != ""
    session = hr.InferenceSession(tmp_path / "program")
    assert session.get_modelmeta().graph_name == ""
    np.testing.assert_array_equal(session.run(None, {"x": np.float32([-1, 2])})[0], [0, 2])
