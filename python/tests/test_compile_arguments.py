"""Tests the models that headrace.compile takes."""

from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
SHAPES = {"x": (2, 1, 8, 8)}


def twice():
    x = relay.var("x", shape=(2, 2), dtype="float32")
    return hr.IRModule.from_expr(relay.Function([x], relay.add(x, x)))


@pytest.mark.parametrize("of", [bytes, bytearray, memoryview])
def test_bytes(images, of):
    from_file = hr.compile(DIGITS, shapes=SHAPES)(images[:2])
    from_bytes = hr.compile(of(DIGITS.read_bytes()), shapes=SHAPES)
    np.testing.assert_array_equal(from_bytes(images[:2]).numpy(), from_file.numpy())
    assert from_bytes.path is None


def test_a_proto(images):
    onnx = pytest.importorskip("onnx")
    np.testing.assert_array_equal(
        hr.compile(onnx.load(DIGITS), shapes=SHAPES)(x=images[:2]).numpy(),
        hr.compile(str(DIGITS), shapes=SHAPES)(images[:2]).numpy(),
    )


def test_a_module(tmp_path):
    x = np.array([[1, 2], [3, 4]], np.float32)
    for output in (None, tmp_path / "m.so"):
        f = hr.compile(twice(), output=output)
        np.testing.assert_array_equal(f(x).numpy(), 2 * x)
        np.testing.assert_array_equal(f(x=x).numpy(), 2 * x)
    np.testing.assert_array_equal(hr.load(tmp_path / "m.so")(x).numpy(), 2 * x)


def test_a_module_is_not_changed():
    mod = twice()
    hr.compile(mod)
    assert hr.ir.structural_equal(mod, twice())


@pytest.mark.parametrize("options", [{"shapes": SHAPES}, {"bound": {"x": [1.0]}}, {"weights": "w.safetensors"}])
def test_a_module_has_its_shapes_and_constants_itself(options):
    with pytest.raises(hr.UserError, match="shapes, dims, bound and weights are for models in files"):
        hr.compile(twice(), **options)


@pytest.mark.parametrize("model", [3, None, [DIGITS], np.zeros(2), twice()["main"], object])
def test_other_types(model):
    with pytest.raises(hr.UserError, match="model: expected a path"):
        hr.compile(model)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (b"no model", "the model of 8 bytes is text, not an ONNX model"),
        (b"\x08\x0a", "the model of 2 bytes has no graph: it is not an ONNX model; give one that an exporter wrote"),
        (b"", "model: got bytes without content, which is not an ONNX model; give the bytes of an .onnx file"),
        (bytearray(), "model: got bytearray without content"),
        (memoryview(b""), "model: got memoryview without content"),
        ("", "model: the path is empty; name the file of an ONNX model or of Relay text"),
    ],
)
def test_bytes_and_paths_that_are_no_model(model, says):
    with pytest.raises(hr.UserError, match=says) as raised:
        hr.compile(model)
    assert "/proc/" not in str(raised.value)


def test_protos_that_are_no_model():
    onnx = pytest.importorskip("onnx")
    says = "model: the onnx.ModelProto has no graph; make a model with onnx.helper.make_model, or read one with"
    for model in (onnx.ModelProto(), onnx.ModelProto(ir_version=10)):
        with pytest.raises(hr.UserError, match=says):
            hr.compile(model)


@pytest.mark.parametrize(("name", "shown"), [("net", "the model 'net'"), ("", "the onnx.ModelProto")])
def test_messages_name_a_proto_as_it_was_given(name, shown):
    onnx = pytest.importorskip("onnx")
    port = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], name or "unnamed", [port], [port])
    graph.name = name
    opset = onnx.helper.make_opsetid("", 17)
    with pytest.raises(hr.UserError, match=f"^{shown} leaves these dimensions open: x"):
        hr.compile(onnx.helper.make_model(graph, opset_imports=[opset]))
    graph.output[0].name = "y"
    without = onnx.helper.make_model(graph)
    del without.opset_import[:]
    with pytest.raises(hr.UserError, match=f"^{shown} imports no version of the default.*add one to its opset_import"):
        hr.compile(without, shapes={"x": (1,)})


def test_dimensions_by_name() -> None:
    f = hr.compile(DIGITS, dims={"n": 3})
    assert [arg.shape for arg in f.inputs] == [(3, 1, 8, 8)]
    for dims, message in (
        ({"m": 1}, "dimension 'm', but the named dimensions of the model's inputs are: n"),
        ({"n": -1}, "negative size -1"),
        ({"n": "a"}, "dims: 'n': expected an int, got 'a'"),
        ({"n": True}, "dims: 'n': expected an int, got True"),
        ([1], "dims: expected a dict by name, as in dims="),
    ):
        with pytest.raises(hr.UserError, match=message):
            hr.compile(DIGITS, dims=dims)
    with pytest.raises(hr.UserError, match=r'x\[0\] \(n\); give them sizes, as in dims=\{"n": 1\}'):
        hr.compile(DIGITS)
    with pytest.raises(hr.UserError, match="shapes, dims, bound and weights are for models in files"):
        hr.compile(twice(), dims={"n": 1})


def test_the_cache_tells_dimensions_apart(tmp_path: Path) -> None:
    for count in (1, 2):
        assert hr.compile(DIGITS, dims={"n": count}, cache=tmp_path).inputs[0].shape[0] == count
