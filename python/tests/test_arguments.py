"""Arguments that cannot be meant: one sentence each, which names the argument and the input."""

from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

MODELS = Path(__file__).parents[2] / "models"
DIGITS = MODELS / "digits.onnx"
ONE = {"x": (1, 1, 8, 8)}
X = np.zeros((1, 1, 8, 8), np.float32)


@pytest.fixture(scope="module")
def model():
    return hr.compile(DIGITS, shapes=ONE, opt_level=0)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, r'as in dims=\{"n": 1\}$'),
        ({"shapes": {"x": (None, 1, 8, 8)}}, "shapes: input 'x': dimension 0: expected an int, got None"),
        ({"shapes": {"x": (2.0, 1, 8, 8)}}, "shapes: input 'x': dimension 0: expected an int, got 2.0"),
        ({"shapes": {"x": (1 << 70, 1, 8, 8)}}, "shapes: input 'x': dimension 0: .* out of range"),
        ({"shapes": {"x": 2}}, "shapes: input 'x': expected a tuple of ints, got 2"),
        ({"shapes": {"x": (True, 1, 8, 8)}}, "shapes: input 'x': dimension 0: expected an int, got True"),
        ({"shapes": ONE, "output": "a\0b"}, r"output: 'a\\x00b' has a NUL character"),
        ({"shapes": ONE, "output": "\udcff"}, r"output: '\\udcff' is not text in UTF-8"),
        ({"shapes": ONE, "cpu": "\udcff"}, r"cpu: '\\udcff' is not text in UTF-8"),
        ({"shapes": {"x": "1,1,8,8"}}, "shapes: input 'x': expected a tuple of ints"),
        ({"shapes": [(1, 1, 8, 8)]}, "shapes: expected a dict by name, as in .*, got list"),
        ({"shapes": {0: (1, 1, 8, 8)}}, "shapes: a key: expected a str, got int"),
        ({"bound": [X]}, "bound: expected a dict by name, as in .*, got list"),
        ({"bound": {"x": None}}, "bound input 'x': None is not a tensor"),
        ({"shapes": ONE, "opt_level": "3"}, "opt_level: expected an int, got '3'"),
        ({"shapes": ONE, "threads": 1 << 40}, "threads: .* out of range"),
        ({"shapes": ONE, "cpu": None}, "cpu: expected a str, got None"),
        ({"shapes": ONE, "output": b"x.so"}, "output: expected a path .*, got bytes"),
        ({"shapes": ONE, "disabled_passes": "FoldConstant"}, r"disabled_passes: .* write \['FoldConstant'\]"),
        ({"shapes": ONE, "disabled_passes": 3}, "disabled_passes: expected a list of str, got int"),
        ({"shapes": ONE, "disabled_passes": [3]}, r"disabled_passes\[0\]: expected a str, got int"),
    ],
)
def test_compile_names_the_argument(options, says):
    with pytest.raises(hr.UserError, match=says):
        hr.compile(DIGITS, **options)


@pytest.mark.parametrize("model", [b"model.onnx", None, 3])
def test_a_model_is_a_path(model):
    with pytest.raises(hr.UserError, match=r"model: expected a path|is text, not an ONNX model"):
        hr.compile(model)  # which takes bytes of ONNX, too
    with pytest.raises(hr.UserError, match="artifact: expected a path"):
        hr.load(model)
    with pytest.raises(hr.UserError, match="path: expected a path"):
        hr.runtime.load_module(model)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f(None), "input 'x': None is not a tensor"),
        (lambda f: f("x"), "input 'x': str is not a tensor"),
        (lambda f: f({"x": X}), "input 'x': dict is not a tensor"),
        (lambda f: f([[1], [2, 3]]), "input 'x': list does not become an array"),
        (lambda f: f(np.array(["text"])), "input 'x': ndarray of <U4 cannot be shared by DLPack"),
        (lambda f: f(X, None), "input 1: None is not a tensor"),
        (lambda f: f.run(X), r"inputs: expected a list .*, got ndarray; write run\(\[x\]\)"),
        (lambda f: f.run(f(X)), "inputs: expected a list .*, got NDArray"),
        (lambda f: f.run("x"), "inputs: expected a list .*, got str"),
        (lambda f: hr.nd.array(None), "data: None is not a tensor"),
    ],
)
def test_a_call_names_the_input(model, call, says):
    with pytest.raises(hr.UserError, match=says):
        call(model)


def test_a_graph_executor_names_the_input(tmp_path):
    path = tmp_path / "digits.so"
    hr.compile(DIGITS, shapes=ONE, opt_level=0, output=path)
    m = hr.graph_executor.GraphModule(hr.runtime.load_module(path)["default"](hr.cpu()))
    for call in (lambda: m.set_input("x", None), lambda: m.run(x=None)):
        with pytest.raises(hr.UserError, match="input 'x': None is not a tensor"):
            call()
    with pytest.raises(hr.UserError, match="no input 'y'"):
        m.set_input("y", X)


def test_numpy_integers_are_integers():
    f = hr.compile(DIGITS, shapes={"x": np.array([1, 1, 8, 8])}, opt_level=np.int64(0))
    assert f.inputs[0].shape == (1, 1, 8, 8)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hr.load("a\0b"), r"artifact: 'a\\x00b' has a NUL character"),
        (lambda: hr.compile("\udcff"), r"model: '\\udcff' is not text in UTF-8"),
        (lambda: hr.relay.var("\udcff"), "is not text in UTF-8"),
        (lambda: hr.device("cpu", 1 << 40), "dev_id: 1099511627776 is out of range"),
        (lambda: hr.device("cpu", -1), "the device id must be 0 or more, got -1"),
        (lambda: hr.get_global_func(5), "name: expected a str, got int"),
        (lambda: hr.graph_executor.GraphModule(5), r'expected a graph executor, lib\["default"\].*, got int'),
        (lambda: hr.graph_executor.GraphModule(None), "got None"),
        (lambda: hr.relay.var("x", shape=(1, -5)), "var: dimension 1 of shape is -5"),
        (lambda: hr.relay.var("x", shape=3), "var: shape: expected a tuple of dimensions, got int"),
        (lambda: hr.relay.var("x", shape="abc"), "var: shape: expected a tuple of dimensions, got str"),
        (lambda: hr.relay.Function([1], 2), r"expected Array\[relay.Var\], got object.Array whose item 0 is int"),
        (lambda: hr.nd.array(X).__dlpack__(max_version="a"), "max_version: expected a tuple of two ints, got 'a'"),
        (lambda: hr.nd.array(X).__dlpack__(dl_device=5), "dl_device: expected a tuple of two ints, got 5"),
        (lambda: hr.nd.array(np.ma.masked_array(X, X == 0)), r"data: a masked array .*; give x.filled\(value\)"),
    ],
)
def test_nonsense_is_told(call, says):
    with pytest.raises(hr.UserError, match=says):
        call()


def test_what_a_name_holds_is_told_whole():
    x = hr.relay.var("x", shape=(1, 3, 8, 8))
    with pytest.raises(hr.UserError, match=r"NC\\x00HW"):
        hr.relay.transform.InferType()(hr.IRModule.from_expr(hr.relay.nn.max_pool2d(x, layout="NC\0HW")))


def test_an_executor_is_none_but_of_the_cpu(tmp_path):
    path = tmp_path / "one.so"
    hr.compile(DIGITS, shapes=ONE, opt_level=0, output=path)
    lib = hr.runtime.load_module(path)
    with pytest.raises(hr.UserError, match="there is one CPU"):
        lib["default"](hr.cpu(5))
    with pytest.raises(hr.UserError, match="got an empty module"):
        hr.graph_executor.GraphModule(lib)


def test_data_of_the_other_byte_order_names_the_cast():
    data = X.astype(X.dtype.newbyteorder())
    with pytest.raises(hr.UserError, match=r"data: [<>]f4 is in the other byte order; .* data\.astype\('float32'\)"):
        hr.nd.array(data)
    assert (hr.nd.array(data.astype("float32")).numpy() == X).all()


def test_dtypes_have_their_names(model):
    with pytest.raises(hr.UserError, match="complex64"):
        model(X.astype(np.complex64))


class OwnError:
    """Tensors whose exporters fail in a way of their own."""

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return 1 // 0


class OwnArrayError:
    def __array__(self, dtype=None, copy=None):
        raise KeyError("mine")


@pytest.mark.parametrize(("tensor", "error"), [(OwnError(), ZeroDivisionError), (OwnArrayError(), KeyError)])
def test_errors_of_exporters_come_as_they_are(tensor, error):
    with pytest.raises(error):
        hr.nd.array(tensor)
