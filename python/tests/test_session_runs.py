"""Runs of sessions: feeds, names of outputs, initialisers and models, as onnxruntime takes and refuses them."""

import queue
import threading

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pytest.importorskip("onnx")
from headrace import session as hs  # noqa: E402
from session_kit import B, TensorProto, W, X, helper, identity, model_of, onnx, scaled  # noqa: E402


@pytest.fixture(scope="module")
def pair():
    """A session of ours and onnxruntime's, of the same model."""
    ort = pytest.importorskip("onnxruntime")
    data = scaled().SerializeToString()
    return hr.InferenceSession(data), ort.InferenceSession(data, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("wanted", [None, [], ("Z",), ["Z", "Y"], ["Y", "Y"]])
def test_names_of_outputs(pair, wanted):
    ours, theirs = (session.run(wanted, {"X": X}) for session in pair)
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)
        assert our.dtype == their.dtype


@pytest.mark.parametrize(
    "feed",
    [
        X.tolist(),
        [[1, 2], [3, 4]],
        np.asfortranarray(X),
        np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
        X[::-1],
        X[:, [1, 0]],
        np.ones((0, 2), np.float32),
        np.ones((1, 2), np.float32),
    ],
    ids=["list", "ints", "fortran", "strided", "reversed", "columns", "empty", "row"],
)
def test_feeds_that_run(pair, feed):
    ours, theirs = (session.run(["Z"], {"X": feed})[0] for session in pair)
    np.testing.assert_array_equal(ours, theirs)
    assert ours.shape == theirs.shape


@pytest.mark.parametrize(
    ("wanted", "feed", "says"),
    [
        (["Q"], {"X": X}, "no output 'Q'; it has Y, Z"),
        ([""], {"X": X}, "no output ''"),
        (None, {}, "the inputs are X; missing: X; unknown: none"),
        (None, {"X": X, "q": X}, "missing: none; unknown: q"),
        (None, {"X": X.astype(np.float64)}, r"input 'X': expected tensor\(float\), got tensor\(double\)"),
        (None, {"X": X.astype(np.int32)}, r"input 'X': expected tensor\(float\), got tensor\(int32\)"),
        (None, {"X": X[0]}, r"input 'X': expected rank 2, as in shape \['n', 2\], got rank 1: \[2\]"),
        (None, {"X": X[None]}, "got rank 3"),
        (None, {"X": np.ones((3, 3), np.float32)}, r"input 'X': expected shape \['n', 2\], got \[3, 3\]"),
        (None, {"X": [[1.0, 2.0], [3.0]]}, "input 'X'"),
        (None, {"X": "abc"}, "input 'X'"),
        (None, {"X": b"ab"}, "input 'X'"),
        (None, {"X": None}, "input 'X': None is not a tensor"),
        (None, {"X": X.astype(object)}, "input 'X'"),
        (None, {"X": []}, "input 'X': expected rank 2"),
        (None, {"X": 1.0}, "input 'X': expected rank 2"),
    ],
)
def test_runs_that_are_refused(pair, wanted, feed, says):
    ours, theirs = pair
    with pytest.raises(hr.UserError, match=says):
        ours.run(wanted, feed)
    with pytest.raises(Exception, match=r"."):  # its classes have only Exception in common
        theirs.run(wanted, feed)


def test_errors_are_both_of_the_classes_that_programs_catch(pair):
    for caught in (ValueError, RuntimeError, hs.SessionError, hr.UserError):
        with pytest.raises(caught, match="no output 'Q'"):
            pair[0].run(["Q"], {"X": X})


def test_ports_are_described_alike(pair):
    for of in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        ours, theirs = (getattr(session, of)() for session in pair)
        assert [(arg.name, arg.type, arg.shape) for arg in ours] == [(arg.name, arg.type, arg.shape) for arg in theirs]
    assert [arg.name for arg in pair[0].get_overridable_initializers()] == ["W"]


def test_old_models_have_no_overridable_initializers():
    ort = pytest.importorskip("onnxruntime")
    model = scaled()
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("B", TensorProto.FLOAT, [2]))
    data = model.SerializeToString()
    assert hr.InferenceSession(data).get_overridable_initializers() == []
    assert list(ort.InferenceSession(data).get_overridable_initializers()) == []


def test_a_run_may_give_an_initializer_that_is_an_input(pair):
    feed = {"W": np.array([5, 6], np.float32), "X": X}
    ours, theirs = (session.run(None, feed) for session in pair)
    for our, their in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(our, their)
    np.testing.assert_array_equal(pair[0].run(["Y"], {"X": X})[0], X * W)  # and the next run has its own again
    with pytest.raises(hs.SessionError, match="unknown: B"):
        pair[0].run(None, {"X": X, "B": B})
    with pytest.raises(hs.SessionError, match="input 'W': expected shape"):
        pair[0].run(None, {"X": X, "W": np.ones(3, np.float32)})


def test_initializers_beside_the_model_cannot_be_made_inputs(tmp_path):
    onnx.save_model(scaled(), tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    session = hr.InferenceSession(tmp_path / "m.onnx")
    np.testing.assert_array_equal(session.run(["Z"], {"X": X})[0], X * W + B)
    with pytest.raises(hs.SessionError, match="initialiser 'B' is in a file beside the model"):
        session.run(None, {"X": X, "W": W})


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_dtypes_and_their_names(dtype):
    ort = pytest.importorskip("onnxruntime")
    data = identity(dtype, [None, 2]).SerializeToString()
    ours, theirs = hr.InferenceSession(data), ort.InferenceSession(data)
    assert ours.get_inputs()[0].type == theirs.get_inputs()[0].type
    assert ours.get_inputs()[0].shape == theirs.get_inputs()[0].shape
    x = np.arange(8).reshape(4, 2).astype(dtype)
    (y,) = ours.run(None, {"X": x})
    np.testing.assert_array_equal(y, x)
    assert y.dtype == x.dtype


def test_outputs_share_no_memory_with_inputs():
    model = model_of(
        [helper.make_node("Add", ["X", "B"], ["Y"])],
        [("X", TensorProto.FLOAT, [2])],
        [("Y", TensorProto.FLOAT, [2]), ("X", TensorProto.FLOAT, [2])],
        [onnx.numpy_helper.from_array(B, "B")],
    )
    session = hr.InferenceSession(model)
    kept = []
    for i in range(4):
        x = np.full(2, i, np.float32)
        kept.append(session.run(None, {"X": x}))
        assert not np.shares_memory(kept[-1][1], x)
        x[:] = -1
    for i, (y, x) in enumerate(kept):
        np.testing.assert_array_equal(y, [i + 1, i + 1])
        np.testing.assert_array_equal(x, [i, i])


@pytest.mark.parametrize("of", [bytes, bytearray, memoryview, onnx.load_from_string])
def test_models_in_memory(of):
    session = hr.InferenceSession(of(scaled().SerializeToString()))
    np.testing.assert_array_equal(session.run(["Y"], {"X": X})[0], X * W)


@pytest.mark.parametrize("of", [str, lambda path: path])
def test_models_by_path(tmp_path, of):
    onnx.save(scaled(), tmp_path / "m.onnx")
    np.testing.assert_array_equal(hr.InferenceSession(of(tmp_path / "m.onnx")).run(["Y"], {"X": X})[0], X * W)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (3, "path_or_bytes: expected a path, the bytes of an ONNX model or an onnx.ModelProto, got int"),
        (None, "path_or_bytes: .*got None"),
        (b"garbage", "the model of 7 bytes"),
        (b"", "path_or_bytes: got bytes without content.* or its path"),
        (onnx.ModelProto(), "path_or_bytes: the onnx.ModelProto has no graph; make a model with onnx.helper"),
        ("/nowhere/m.onnx", "/nowhere/m.onnx"),
    ],
)
def test_models_that_are_none(model, says):
    with pytest.raises(hr.UserError, match=says) as raised:
        hr.InferenceSession(model)
    assert "/proc/" not in str(raised.value)


def test_errors_of_a_proto_name_its_graph():
    model = model_of([helper.make_node("Nonsense", ["X"], ["Y"])], [("X", TensorProto.FLOAT, [2])], [("Y", 1, [2])])
    with pytest.raises(hr.UserError, match="Nonsense") as raised:
        hr.InferenceSession(model)
    assert "/proc/" not in str(raised.value)
    assert "/proc/" not in str(getattr(raised.value, "place", ""))


def test_model_metadata(pair):
    ort = pytest.importorskip("onnxruntime")
    model = scaled(producer_name="maker", producer_version="3", doc_string="about it", domain="a.b", model_version=7)
    helper.set_model_props(model, {"key": "värde", "empty": ""})
    data = model.SerializeToString()
    ours, theirs = (package.InferenceSession(data).get_modelmeta() for package in (hr, ort))
    names = [name for name in dir(theirs) if not name.startswith("_")]
    assert {name: getattr(ours, name) for name in names} == {name: getattr(theirs, name) for name in names}
    assert ours.custom_metadata_map == {"key": "värde", "empty": ""}


def test_descriptions_that_are_no_utf8_are_shown():
    doc = bytes([6 << 3 | 2, 4]) + b"caf\xe9"  # ModelProto.doc_string
    session = hr.InferenceSession(scaled().SerializeToString() + doc)
    assert session.get_modelmeta().description == "caf\\xe9"
    np.testing.assert_array_equal(session.run(["Z"], {"X": X})[0], X * W + B)


def test_metadata_of_a_relay_text_is_empty(tmp_path):
    path = tmp_path / "m.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n')
    session = hr.InferenceSession(path)
    assert session.get_modelmeta().producer_name == ""
    assert session.get_overridable_initializers() == []


def test_run_async(pair):
    for wanted, feed in ((["Y"], {"X": X}), (["Q"], {"X": X})):
        told = queue.Queue()
        pair[0].run_async(wanted, feed, lambda *given, told=told: told.put(given), "mine")
        outputs, data, error = told.get(timeout=20)
        assert data == "mine"
        if wanted == ["Y"]:
            assert error == ""
            np.testing.assert_array_equal(outputs[0], X * W)
        else:
            assert outputs == []
            assert "no output 'Q'" in error
    with pytest.raises(hs.SessionError, match="callback: expected a function, got int"):
        pair[0].run_async(None, {"X": X}, 3, None)


def test_threads_share_a_session(pair):
    wrong = []

    def work(scale):
        for _ in range(5):
            (y,) = pair[0].run(["Y"], {"X": X * scale}, hr.RunOptions())
            if not (y == X * scale * W).all():
                wrong.append(y)

    threads = [threading.Thread(target=work, args=(np.float32(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
