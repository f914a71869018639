"""Functions of regions that are called directly: what they are given is checked before a backend sees it."""

import headrace as hr
import numpy as np
import pytest
from headrace import relay

pytestmark = pytest.mark.backends("onednn", "examplejson")


def array(*shape, dtype="float32"):
    return hr.nd.array(np.ones(shape, dtype))


@pytest.fixture
def dense():
    """A region of onednn: (64, 128) and (256, 128) give (64, 256)."""
    x, w = relay.var("x", shape=(64, 128)), relay.var("w", shape=(256, 128))
    module = hr.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    return relay.build(module, ["llvm", "onednn"]).get_lib().get_function("tvmgen_default_onednn_main_0", True)


def test_a_region_computes_where_its_tensors_fit(dense):
    out = hr.nd.empty((64, 256))
    dense(array(64, 128), array(256, 128), out)
    np.testing.assert_array_equal(out.numpy(), np.full((64, 256), 128, "float32"))


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ([], "the region takes 3 tensors, its inputs and its outputs, and got 0"),
        ([(64, 128)], "takes 3 tensors, its inputs and its outputs, and got 1"),
        (
            [(64, 128), (256, 128), (1,)],
            r"argument 2 is a tensor of float32 and shape \(1\); .* float32 of shape \(64, 256\)",
        ),
        ([(1,), (256, 128), (64, 256)], r"argument 0 is a tensor of float32 and shape \(1\)"),
        ([(64, 128), (256, 128), ()], r"argument 2 is a tensor of float32 and shape \(\)"),
    ],
)
def test_tensors_of_other_shapes_are_refused(dense, tensors, says):
    with pytest.raises(hr.UserError, match=says):
        dense(*(array(*shape) for shape in tensors))


def test_tensors_of_other_dtypes_are_refused(dense):
    with pytest.raises(hr.UserError, match=r"argument 0 is a tensor of float64 .*; the region takes float32"):
        dense(array(64, 128, dtype="float64"), array(256, 128), array(64, 256))


@pytest.fixture(params=["onednn", "examplejson"])
def add(request):
    """A region that adds two tensors of (2, 3)."""
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x, y], relay.add(x, y))), ["llvm", request.param])
    return lib.get_lib().get_function(f"tvmgen_default_{request.param}_main_0", True)


def read_only_array():
    value = np.zeros((2, 3), "float32")
    value.flags.writeable = False
    return value


@pytest.mark.parametrize(
    "output",
    [
        read_only_array,
        lambda: np.frombuffer(b"\0" * 24, "float32").reshape(2, 3),
        lambda: relay.const(np.zeros((2, 3), "float32")).data,
    ],
    ids=["array", "bytes", "constant"],
)
def test_outputs_that_are_read_only_are_refused(add, output):
    out = output()
    with pytest.raises(hr.UserError, match=r"argument 2.* is read-only, and"):
        add(array(2, 3), array(2, 3), out)
    np.testing.assert_array_equal(np.asarray(out.numpy() if hasattr(out, "numpy") else out), np.zeros((2, 3)))


def test_inputs_may_be_read_only(add):
    out = hr.nd.empty((2, 3))
    add(read_only_array(), array(2, 3), out)
    np.testing.assert_array_equal(out.numpy(), np.ones((2, 3), "float32"))
