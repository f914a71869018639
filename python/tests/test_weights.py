"""Relay texts whose constants lie in a safetensors file beside them: parsed, built, compiled, run."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

DIGITS = Path(__file__).resolve().parents[2] / "models/digits.onnx"
VERSION = '#[version = "0.0.5"]\n'
EXPR = "add(%x, meta[relay.Constant][0])"
TEXT = VERSION + "def @main(%x: Tensor[(4, 5), float32]) { " + EXPR + " }\n"
WEIGHT = np.arange(20, dtype="float32").reshape(4, 5)
X = np.ones((4, 5), "float32")


@pytest.fixture
def weights(tmp_path):
    """The file, written byte by byte after the format's page."""
    head = {
        "__metadata__": {"format": "headrace.relay", "version": "1"},
        "relay.Constant.0": {"dtype": "F32", "shape": [4, 5], "data_offsets": [0, WEIGHT.nbytes]},
    }
    header = json.dumps(head).encode()
    header += b" " * (-(8 + len(header)) % 64)
    path = tmp_path / "add.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + WEIGHT.tobytes())
    return path


def test_texts_are_parsed(weights):
    for mod in (
        relay.parse(TEXT, weights=weights),
        relay.fromtext(TEXT.removeprefix(VERSION), weights=str(weights)),
        hr.IRModule.from_expr(relay.parse_expr("free_var %x: Tensor[(4, 5), float32];\n" + EXPR, weights=weights)),
        hr.IRModule.from_expr(relay.fromtext("free_var %x: Tensor[(4, 5), float32];\n" + EXPR, weights=weights)),
    ):
        np.testing.assert_array_equal(mod["main"].body.args[1].data.numpy(), WEIGHT)
        np.testing.assert_array_equal(relay.create_executor("debug", mod).evaluate()(X).numpy(), WEIGHT + 1)
        built = hr.graph_executor.GraphModule(relay.build(mod)["default"](hr.cpu()))
        built.run(x=X)
        np.testing.assert_array_equal(built.get_output(0).numpy(), WEIGHT + 1)


def test_constants_in_a_table_are_given_twice(weights):
    with pytest.raises(hr.UserError, match=r"given twice: in the file '.*add.safetensors' and in a table"):
        relay.parse(TEXT, init_meta_table={"relay.Constant": [WEIGHT]}, weights=weights)


def test_files_are_compiled(tmp_path, weights):
    model = tmp_path / "add.relay"
    model.write_text(TEXT)
    np.testing.assert_array_equal(hr.compile(model, weights=weights)(X).numpy(), WEIGHT + 1)
    session = hr.InferenceSession(model, weights=weights)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], WEIGHT + 1)
    written = hr.compile(model, weights=str(weights), output=tmp_path / "add.so")
    np.testing.assert_array_equal(written(X).numpy(), WEIGHT + 1)


def test_errors(tmp_path, weights):
    model = tmp_path / "add.relay"
    model.write_text(TEXT)
    missing = r"no data for constant 0: .*--input-weights FILE; in Python weights="
    for call, says in (
        (lambda: relay.parse(TEXT), missing),
        (lambda: hr.compile(model), missing),
        (lambda: hr.InferenceSession(model), missing),
        (lambda: relay.parse(TEXT, weights=tmp_path / "no"), "cannot read the weights file '.*no': No such file"),
        (lambda: relay.parse(TEXT, weights=model), "is not a weights file"),
        (lambda: relay.parse(TEXT, weights=3), "weights: expected a path"),
        (lambda: hr.compile(model, weights=3), "weights: expected a path"),
        (lambda: hr.InferenceSession(model, weights=3), "weights: expected a path"),
        (lambda: hr.compile(DIGITS, weights=weights), "brings its weights itself"),
        (lambda: hr.InferenceSession(DIGITS, weights=weights), "brings its weights itself"),
        (lambda: hr.compile(model, weights=weights, output=weights), "the model"),
        (lambda: relay.parse(relay.parse(TEXT, weights=weights).astext(), weights=weights), "without a weights file"),
    ):
        with pytest.raises(hr.UserError, match=says):
            call()
    assert weights.stat().st_size > WEIGHT.nbytes
