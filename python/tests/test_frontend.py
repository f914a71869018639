"""Models as programs, and the names of Relay that are not here."""

from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace.relay.frontend import from_onnx  # noqa: E402

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"


@pytest.fixture(scope="module")
def image():
    return np.random.default_rng(1).standard_normal((1, 1, 8, 8)).astype("float32")


def interpreted(mod, x):
    return relay.create_executor("debug", mod).evaluate()(x).numpy()


def test_a_model_is_a_module_that_passes_take(image):
    mod, params = from_onnx(DIGITS, {"x": (1, 1, 8, 8)})
    assert params == {}
    wanted = hr.compile(DIGITS, shapes={"x": (1, 1, 8, 8)})(image)
    folded = relay.transform.FoldConstant()(mod)
    np.testing.assert_allclose(interpreted(folded, image), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        relay.create_executor("graph", mod).evaluate()(image).numpy(), wanted, rtol=1e-4, atol=1e-5
    )


def test_a_proto_is_read_too(image):
    onnx = pytest.importorskip("onnx")
    mod, _ = relay.frontend.from_onnx(onnx.load(str(DIGITS)), {"x": (1, 1, 8, 8)}, "float32", opset=13)
    again, _ = from_onnx(str(DIGITS), {"x": [1, 1, 8, 8]})
    assert hr.ir.structural_equal(mod, again)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: from_onnx("missing.onnx"), "missing.onnx"),
        (lambda: from_onnx(DIGITS), r"leaves these dimensions open: x\[0\] \(n\)"),
        (lambda: from_onnx(3), "model: expected a path, the bytes of an ONNX model or an onnx.ModelProto, got int"),
        (lambda: from_onnx(b""), "model: got bytes without content, which is not an ONNX model"),
        (lambda: from_onnx(DIGITS, {"z": (1,)}), "'z'"),
        (lambda: from_onnx(DIGITS, {"x": (1, 1, "8", 8)}), "shape: input 'x': dimension 2 is '8'; .* give a number"),
        (lambda: from_onnx(DIGITS, {"x": (None, 1, 8, 8)}), "shape: input 'x': dimension 0 is None"),
        (lambda: from_onnx(DIGITS, {"x": (relay.Any(), 1, 8, 8)}), "shape: input 'x': dimension 0 is"),
        (lambda: from_onnx(DIGITS, {"x": (-1, 1, 8, 8)}), "shape: input 'x': dimension 0 is -1"),
        (lambda: from_onnx(DIGITS, {"x": 3}), "shape: input 'x': expected a tuple of ints, got 3"),
        (lambda: from_onnx(DIGITS, [1]), "shape: expected a dict"),
        (lambda: from_onnx(DIGITS, dtype="int8"), "from_onnx: dtype is 'int8'; leave it out"),
        (lambda: from_onnx(DIGITS, dtype={"x": "float32"}), "from_onnx: dtype is {'x': 'float32'}; leave it out"),
        (lambda: from_onnx(DIGITS, opset=13), "from_onnx: opset is 13; leave it out: the model says its own$"),
        (lambda: from_onnx(DIGITS, freeze_params=False), "weights are constants"),
        (
            lambda: hr.compile(relay.Function([], relay.const(1.0))),
            "got Function; IRModule.from_expr makes a module of it",
        ),
        (lambda: hr.compile(hr.IRModule()), "the module has no function '@main'"),
        (
            lambda: relay.transform.FuseOps(inline=1),
            r"takes 2 arguments \(fuse_opt_level, max_depth\): got an unexpected keyword argument 'inline'",
        ),
        (lambda: relay.transform.InferType(1), "pass InferType takes no arguments: too many positional arguments"),
        (lambda: hr.nd.empty((2,), "float99"), "numpy has no dtype 'float99'"),
        (lambda: hr.nd.empty((-1,)), "sizes are 0 or more"),
        (lambda: hr.nd.empty((2.5,)), "shape: expected an int, got 2.5"),
    ],
)
def test_mistakes(call, says):
    with pytest.raises(hr.UserError, match=says):
        call()


@pytest.mark.parametrize("opset", [11, True, "13", 13.5])
def test_another_opset_than_the_models_is_refused(opset):
    onnx = pytest.importorskip("onnx")
    with pytest.raises(hr.UserError, match=f"opset is {opset!r}; leave it out: the model says its own, which is 13"):
        from_onnx(onnx.load(str(DIGITS)), {"x": (1, 1, 8, 8)}, opset=opset)


def test_a_proto_is_called_by_its_name():
    onnx = pytest.importorskip("onnx")
    model = onnx.load(str(DIGITS))
    model.graph.name = "reader"
    with pytest.raises(hr.UserError, match=r"model: the onnx.ModelProto has no graph; make a model with onnx.helper"):
        from_onnx(onnx.ModelProto())
    assert hr.ir.structural_equal(
        from_onnx(DIGITS.read_bytes(), {"x": (1, 1, 8, 8)})[0], from_onnx(model, {"x": (1, 1, 8, 8)})[0]
    )
    for shape, says in ((None, r"the model 'reader' leaves these dimensions open: x\[0\]"), ({"z": (1,)}, "'z'")):
        with pytest.raises(hr.UserError, match=says) as told:
            from_onnx(model, shape)
        assert "model.onnx" not in str(told.value) + told.value.place
    assert told.value.place == "the model 'reader'"


def test_names_of_relay_that_are_not_here():
    with pytest.raises(AttributeError, match="from_pytorch': export the model to ONNX"):
        relay.frontend.from_pytorch  # noqa: B018
    with pytest.raises(AttributeError, match="has no 'AnnotateMemoryScope': there are no textures"):
        relay.transform.AnnotateMemoryScope  # noqa: B018


def test_the_first_argument_of_fuse_ops_is_relays_level():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.nn.relu(relay.exp(x)))
    text = {level: str(relay.transform.FuseOps(level)(mod)) for level in (-1, 0, 2)}
    assert text[-1] == text[2] == str(relay.transform.FuseOps()(mod))
    assert text[0] == str(relay.transform.FuseOps(max_depth=1)(mod)) != text[2]
    assert hr.nd.empty(3).shape == (3,)
