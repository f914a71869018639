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


@pytest.mark.parametrize("model", [b"", b"no model"])
def test_bytes_that_are_no_model(model):
    with pytest.raises(hr.UserError, match=f"the model of {len(model)} bytes") as raised:
        hr.compile(model)
    assert "/proc/" not in str(raised.value)


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
