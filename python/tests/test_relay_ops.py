"""Functions of ops that came late: what they give, beside ops that say the same."""

import inspect

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace.relay.testing import run_infer_type  # noqa: E402


def evaluated(body, **values):
    params = relay.analysis.free_vars(body)
    run = relay.create_executor().evaluate(relay.Function(params, body))
    return run(*[values[param.name_hint] for param in params]).numpy()


@pytest.mark.parametrize("executor", ["debug", "graph"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_halves_go_away_from_zero_or_to_even(dtype, executor):
    x = relay.var("x", shape=(7,), dtype=dtype)
    halves = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 0.25, -3], dtype)
    for function, expected in ((relay.round, [1, 2, 3, -1, -3, 0, -3]), (relay.nearbyint, [0, 2, 2, 0, -2, 0, -3])):
        program = hr.IRModule.from_expr(relay.Function([x], function(x)))
        found = relay.create_executor(executor, program).evaluate()(halves)
        np.testing.assert_array_equal(found.numpy(), expected)


def packed_channels(x, *axes):
    """Channels in parts of 4, the parts last."""
    for axis in axes:
        x = np.moveaxis(x.reshape(*x.shape[:axis], -1, 4, *x.shape[axis + 1 :]), axis + 1, -1)
    return x


def test_convolutions_with_packed_channels():
    random = np.random.default_rng(0)
    data = random.normal(size=(1, 8, 5, 5)).astype("float32")
    kernel = random.normal(size=(4, 8, 3, 3)).astype("float32")
    planes, packed = relay.var("x", shape=(1, 8, 5, 5)), relay.var("x", shape=(1, 2, 5, 5, 4))
    layouts = {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o"}
    w = relay.var("w", shape=(1, 2, 3, 3, 4, 4))
    call = relay.nn.contrib_conv2d_nchwc(packed, w, padding=(1, 1), channels=4, kernel_size=(3, 3), **layouts)
    assert (call.op.name, call.attrs.kernel_layout) == ("nn.conv2d", "OIHW4i4o")
    found = evaluated(call, x=packed_channels(data, 1), w=packed_channels(kernel, 1, 0))
    plain = relay.nn.conv2d(planes, relay.var("w", shape=(4, 8, 3, 3)), padding=1)
    expected = packed_channels(evaluated(plain, x=data, w=kernel), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_depthwise_convolutions_with_packed_channels():
    random = np.random.default_rng(0)
    data = random.normal(size=(1, 8, 5, 5)).astype("float32")
    kernel = random.normal(size=(8, 1, 3, 3)).astype("float32")
    planes, packed = relay.var("x", shape=(1, 8, 5, 5)), relay.var("x", shape=(1, 2, 5, 5, 4))
    layouts = {"data_layout": "NCHW4c", "kernel_layout": "OIHW1i4o"}
    w = relay.var("w", shape=(2, 1, 3, 3, 1, 4))
    call = relay.nn.contrib_depthwise_conv2d_nchwc(packed, w, groups=8, **layouts)
    parts = np.moveaxis(kernel.reshape(2, 4, 1, 3, 3), 1, -1)[..., None, :]
    found = evaluated(call, x=packed_channels(data, 1), w=parts)
    plain = relay.nn.conv2d(planes, relay.var("w", shape=(8, 1, 3, 3)), groups=8)
    expected = packed_channels(evaluated(plain, x=data, w=kernel), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_sparse_matrices_as_relay_takes_them():
    sparse = pytest.importorskip("scipy.sparse", reason="scipy is not in .venv")
    random = np.random.default_rng(3)
    weight = (random.random((6, 6)) * (random.random((6, 6)) < 0.4)).astype("float32")
    rows, data = sparse.csr_matrix(weight), random.random((6, 6), "float32")
    x = relay.var("x", shape=(6, 6))
    np.testing.assert_allclose(evaluated(relay.nn.sparse_dense(x, rows), x=data), data @ weight.T, rtol=1e-5)
    left = relay.nn.sparse_dense(x, sparse.bsr_matrix(weight, blocksize=(2, 3)), True)
    np.testing.assert_allclose(evaluated(left, x=data), weight @ data.T, rtol=1e-5)
    parts = [relay.const(part) for part in (rows.data, rows.indices, rows.indptr)]
    np.testing.assert_allclose(evaluated(relay.nn.sparse_add(x, parts), x=data), data + weight, rtol=1e-6)
    turned = relay.nn.sparse_transpose(rows)
    got = [evaluated(field) for field in turned]
    assert len(turned) == 3
    np.testing.assert_array_equal(sparse.csr_matrix(tuple(got), shape=(6, 6)).toarray(), weight.T)
    with pytest.raises(hr.UserError, match="sparse_add: sparse_mat: expected a matrix in compressed rows"):
        relay.nn.sparse_add(x, data)


def test_sparse_tensors_and_transforms_as_relay_takes_them():
    places, values = relay.const(np.array([[0, 1], [1, 0]])), relay.const(np.array([5, 7], "float32"))
    dense = relay.sparse_to_dense(places, [2, 2], values)
    assert evaluated(dense).tolist() == [[0, 5], [7, 0]]
    moved, shape = relay.sparse_reshape(places, relay.const([2, 2]), relay.const([-1]))
    assert (evaluated(moved).tolist(), evaluated(shape).tolist()) == ([[1], [2]], [4])
    x = relay.var("x", shape=(1, 9))
    signal = np.arange(9, dtype="float32")[None]
    frames = np.stack([signal[0, i : i + 4] for i in range(0, 6, 1)])
    expected = np.fft.rfft(frames, axis=1).T
    got = evaluated(relay.stft(x, 4), x=signal)[0]
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], expected, atol=1e-4)
    re, im = relay.dft(relay.const(np.float32([1, 2, 3, 4])), relay.const(np.zeros(4, "float32")))
    np.testing.assert_allclose(evaluated(re) + 1j * evaluated(im), np.fft.fft([1, 2, 3, 4]), atol=1e-5)


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ((0,), "n_fft: expected 1 or more, got 0"),
        ((2.5,), "n_fft: expected an int, got 2.5"),
        (("8",), "n_fft: expected an int, got '8'"),
        ((None,), "n_fft: expected an int, got None"),
        ((True,), "n_fft: expected an int, got True"),
        ((4, 1, -1), "win_length: expected 1 or more, got -1"),
        ((4, 1, "4"), "win_length: expected an int, got '4'"),
    ],
)
def test_lengths_of_transforms(lengths, told):
    with pytest.raises(hr.UserError, match=f"stft: {told}"):
        relay.stft(relay.var("x", shape=(1, 9)), *lengths)


def test_windows_that_give_their_greatest_sum():
    x, w = relay.var("x", shape=(1, 2, 5, 5)), relay.var("w", shape=(2, 3, 3))
    call = run_infer_type(relay.image.dilation2d(x, w, strides=2, padding=1, dilations=[1, 1]))
    assert call.checked_type == relay.TensorType((1, 2, 3, 3))
    data, weight = np.arange(50, dtype="float32").reshape(1, 2, 5, 5), np.zeros((2, 3, 3), "float32")
    pooled = evaluated(relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1)), x=data)
    np.testing.assert_array_equal(evaluated(call, x=data, w=weight), pooled)


def test_neighbourhoods_that_are_compared():
    x, y = relay.var("x", shape=(1, 3, 10, 10)), relay.var("y", shape=(1, 3, 10, 10))
    call = relay.nn.correlation(x, y, 1, 4, 1, 1, 4, True, "NCHW")
    assert run_infer_type(call).checked_type == relay.TensorType((1, 81, 10, 10))
    data = np.random.default_rng(0).normal(size=(1, 3, 10, 10)).astype("float32")
    found = evaluated(call, x=data, y=data)
    np.testing.assert_allclose(found[:, 40], (data * data).mean(axis=1), rtol=1e-5)  # the displacement of none


def test_a_convolution_with_displaced_taps():
    x, offset = relay.var("x", shape=(1, 4, 6, 6)), relay.var("offset", shape=(1, 18, 6, 6))
    layers = {"padding": (1, 1), "channels": 8, "kernel_size": (3, 3)}
    call = relay.nn.deformable_conv2d(x, offset, relay.var("w"), **layers)
    params = run_infer_type(relay.Function(relay.analysis.free_vars(call), call)).params
    assert params[2].checked_type == relay.TensorType((8, 4, 3, 3))
    random = np.random.default_rng(0)
    sizes = {"x": (1, 4, 6, 6), "w": (8, 4, 3, 3)}
    values = {name: random.normal(size=size).astype("float32") for name, size in sizes.items()}
    down = np.zeros((1, 18, 6, 6), "float32")
    down[:, ::2] = 1  # each tap reads a row below
    found = evaluated(call, offset=down, **values)
    shifted = np.pad(values["x"], ((0, 0), (0, 0), (0, 1), (0, 0)))[:, :, 1:]
    plain = relay.nn.conv2d(x, relay.var("w", shape=(8, 4, 3, 3)), padding=(1, 1))
    expected = evaluated(plain, x=shifted, w=values["w"])
    # The first row differs: its taps above the data read the data's first row here, and the padding there.
    np.testing.assert_allclose(found[:, :, 1:], expected[:, :, 1:], rtol=1e-4, atol=1e-5)


# The parameters of Relay's functions, in their order.
_QNN_PARAMETERS = {
    "add mul subtract": "lhs rhs lhs_scale lhs_zero_point rhs_scale rhs_zero_point output_scale output_zero_point "
    "lhs_axis rhs_axis",
    "abs erf exp hardswish log rsqrt sigmoid sqrt tanh": "x scale zero_point output_scale output_zero_point",
    "avg_pool2d": "data input_scale input_zero_point output_scale output_zero_point pool_size strides padding dilation "
    "ceil_mode count_include_pad layout out_layout",
    "batch_matmul": "x y x_zero_point y_zero_point x_scale y_scale out_dtype",
    "concatenate": "data input_scales input_zero_points output_scale output_zero_point axis",
    "contrib_dense_pack": "data weight input_zero_point kernel_zero_point input_scale kernel_scale kernel_layout units "
    "out_dtype",
    "conv2d": "data kernel input_zero_point kernel_zero_point input_scale kernel_scale kernel_size channels strides "
    "padding dilation groups data_layout kernel_layout out_layout out_dtype",
    "conv2d_transpose": "data weight input_zero_point kernel_zero_point input_scale kernel_scale strides padding "
    "dilation groups channels kernel_size data_layout kernel_layout out_layout output_padding out_dtype",
    "dense": "data weight input_zero_point kernel_zero_point input_scale kernel_scale units out_dtype",
    "dequantize": "data input_scale input_zero_point axis out_dtype",
    "leaky_relu": "x alpha input_scale input_zero_point output_scale output_zero_point",
    "quantize": "data output_scale output_zero_point axis out_dtype",
    "requantize": "data input_scale input_zero_point output_scale output_zero_point axis rounding compute_dtype "
    "out_dtype",
    "simulated_dequantize": "data input_scale input_zero_point axis in_dtype",
    "simulated_quantize": "data output_scale output_zero_point axis out_dtype",
    "softmax": "x scale zero_point output_scale output_zero_point axis",
}


def test_functions_of_quantized_numbers_have_relays_parameters():
    known = {op: names.split() for ops, names in _QNN_PARAMETERS.items() for op in ops.split()}
    assert set(known) == {name for name in relay.qnn.op.__all__ if name != "op"}
    for name, parameters in known.items():
        got = list(inspect.signature(getattr(relay.qnn.op, name)).parameters)
        assert got[: len(parameters)] == parameters, name
    assert inspect.signature(relay.qnn.op.avg_pool2d).parameters["layout"].default == "NHWC"


def test_numbers_are_scales_and_zero_points_of_quantized_operands():
    x = relay.var("x", shape=(2,), dtype="uint8")
    call = relay.qnn.op.tanh(x=x, scale=0.5, zero_point=1, output_scale=0.25, output_zero_point=2)
    assert [arg.data.dtype for arg in call.args[1:]] == ["float32", "int32"] * 2
    image, kernel = relay.var("x", shape=(1, 1, 3, 3), dtype="uint8"), relay.var("w", shape=(1, 1, 2, 2), dtype="int8")
    call = relay.qnn.op.conv2d(image, kernel, 1, 2, 0.5, 0.25, kernel_size=(2, 2), channels=1)
    assert [arg.data.dtype for arg in call.args[2:]] == ["int32", "int32", "float32", "float32"]


def test_simulated_dtypes_are_names_or_operands():
    x, code = relay.var("x", shape=(4,)), relay.var("code", shape=(), dtype="int32")
    values = np.array([-200, -1.5, 0.75, 130], "float32")
    expected = {"int8": [-128, -1, 4, 127], "uint8": [0, 0, 4, 255], "int32": [-398, -1, 4, 262], "disable": values}
    for number, dtype in enumerate(("disable", "int8", "uint8", "int32")):
        call = relay.qnn.op.simulated_quantize(x, 0.5, 2, out_dtype=dtype)
        assert (call.args[1].data.numpy(), call.args[1].data.dtype) == (number, "int32")
        np.testing.assert_array_equal(evaluated(call, x=values), expected[dtype])
        back = relay.qnn.op.simulated_dequantize(x, 0.5, 2, in_dtype=code)
        plain = values if dtype == "disable" else (values - 2) / 2
        np.testing.assert_array_equal(evaluated(back, x=values, code=np.int32(number)), plain)
    with pytest.raises(hr.UserError, match="out_dtype is 'int4'; it is disable, int8, uint8, int32 or an"):
        relay.qnn.op.simulated_quantize(x, 0.5, 2, out_dtype="int4")
    with pytest.raises(hr.UserError, match="in_dtype is 'int4'; it is disable, int8"):
        relay.qnn.op.simulated_dequantize(x, 0.5, 2, in_dtype="int4")


def test_a_packed_quantized_matrix():
    x, w = relay.var("x", shape=(1, 4), dtype="uint8"), relay.var("w", shape=(1, 2, 3, 2), dtype="int8")
    call = relay.qnn.op.contrib_dense_pack(x, w, 1, 0, 0.5, 0.25, kernel_layout="NC3n2c", units=3)
    packed = np.array([[[[1, 2], [5, 6], [9, 10]], [[3, 4], [7, 8], [11, 12]]]], "int8")
    found = evaluated(call, x=np.array([[2, 1, 1, 3]], "uint8"), w=packed)
    np.testing.assert_array_equal(found, [[1 + 2 * 4, 5 + 2 * 8, 9 + 2 * 12]])
