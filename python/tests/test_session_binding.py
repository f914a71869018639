"""OrtValue and IOBinding, as onnxruntime has them."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
pytest.importorskip("onnx")
from session_kit import B, W, X, scaled  # noqa: E402

OrtValue = hr.OrtValue


@pytest.fixture(scope="module")
def session():
    return hr.InferenceSession(scaled())


@pytest.fixture
def binding(session):
    bound = session.io_binding()
    bound.bind_cpu_input("X", X)
    return bound


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_values_describe_themselves_alike(dtype):
    ort = pytest.importorskip("onnxruntime")
    array = np.arange(6).reshape(3, 2).astype(dtype)
    ours, theirs = (package.OrtValue.ortvalue_from_numpy(array) for package in (hr, ort))
    for name in [
        "shape",
        "data_type",
        "element_type",
        "device_name",
        "has_value",
        "is_tensor",
        "is_sparse_tensor",
        "is_tensor_sequence",
        "tensor_size_in_bytes",
        "data_ptr",
        "__dlpack_device__",
    ]:
        assert getattr(ours, name)() == getattr(theirs, name)(), name
    np.testing.assert_array_equal(ours.numpy(), array)


def test_values_share_memory():
    array = X.copy()
    value = OrtValue.ortvalue_from_numpy(array)
    array[0, 0] = 9
    assert value.numpy()[0, 0] == 9
    assert OrtValue.from_dlpack(value).data_ptr() == OrtValue.from_dlpack(array).data_ptr() == array.ctypes.data
    assert np.asarray(value).ctypes.data == array.ctypes.data
    assert np.asarray(value, dtype=np.float64).dtype == np.float64
    assert np.from_dlpack(value).ctypes.data == array.ctypes.data
    copied = np.array(value)
    copied[:] = 0
    assert value.numpy()[0, 0] == 9


def test_values_of_other_layouts():
    strided = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    np.testing.assert_array_equal(OrtValue.ortvalue_from_numpy(strided).numpy(), strided)
    assert OrtValue.ortvalue_from_numpy(np.array(1.0)).shape() == []
    assert OrtValue.from_dlpack(np.zeros((4, 0), np.float32)).shape() == [4, 0]


@pytest.mark.parametrize("kind", [np.float32, "float32", 1])
def test_values_of_zeros(kind):
    value = OrtValue.ortvalue_from_shape_and_type([3, 2], kind)
    assert (value.data_type(), value.shape()) == ("tensor(float)", [3, 2])
    np.testing.assert_array_equal(value.numpy(), np.zeros((3, 2), np.float32))


def test_values_with_onnx_types():
    value = OrtValue.ortvalue_from_numpy_with_onnx_type(X, 1)
    assert (value.element_type(), value.shape()) == (1, [3, 2])
    pytest.importorskip("ml_dtypes")
    half = OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), 16)
    assert (half.data_type(), half.element_type(), float(half.numpy()[0])) == ("tensor(bfloat16)", 16, 1.0)
    codes = np.array([0x38], np.uint8)
    eight = OrtValue.ortvalue_from_numpy_with_onnx_type(codes, 17)
    assert (eight.data_type(), eight.element_type(), float(eight.numpy()[0])) == ("tensor(float8e4m3fn)", 17, 1.0)
    assert OrtValue.ortvalue_from_shape_and_type([2], "int4").data_type() == "tensor(int4)"


def test_values_written_in_place():
    array = np.zeros((3, 2), np.float32)
    value = OrtValue.ortvalue_from_numpy(array)
    value.update_inplace(X)
    np.testing.assert_array_equal(array, X)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: OrtValue.ortvalue_from_numpy([1.0]), "expected a numpy array, got list"),
        (lambda: OrtValue.ortvalue_from_numpy(np.float32(1)), "expected a numpy array, got float32"),
        (lambda: OrtValue.ortvalue_from_numpy(np.array(["a"])), "tensors of <U1 are not supported"),
        (lambda: OrtValue.ortvalue_from_numpy(X, "cuda", 0), "device 'cuda': tensors are on the CPU"),
        (lambda: OrtValue.ortvalue_from_shape_and_type([3, -2], np.float32), "sizes are 0 or more"),
        (lambda: OrtValue.ortvalue_from_shape_and_type("ab", np.float32), "shape: expected a list of ints, got str"),
        (lambda: OrtValue.ortvalue_from_shape_and_type([1], 99), "element_type: expected the dtype"),
        (lambda: OrtValue.ortvalue_from_shape_and_type([1], "nonsense"), "element_type: expected the dtype"),
        (lambda: OrtValue.ortvalue_from_numpy_with_onnx_type(X, 16), "differ in size"),
        (
            lambda: OrtValue.ortvalue_from_numpy(X).update_inplace(X[:2]),
            r"expected float32\[3, 2\], got float32\[2, 2\]",
        ),
        (lambda: OrtValue.ortvalue_from_numpy(X).update_inplace(3), r"expected float32\[3, 2\], got int"),
    ],
)
def test_values_that_are_refused(make, says):
    with pytest.raises(hr.UserError, match=says):
        make()


def test_a_bound_array(session, binding):
    binding.bind_output("Y")
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * W)
    (value,) = binding.get_outputs()
    assert (value.device_name(), value.data_type()) == ("cpu", "tensor(float)")


def test_outputs_come_in_the_order_of_binding(session, binding):
    for name in ("Z", "Y", "Z"):
        binding.bind_output(name)
    session.run_with_iobinding(binding, hr.RunOptions())
    z, y = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(z, X * W + B)
    np.testing.assert_array_equal(y, X * W)


def test_bound_memory_at_an_address(session):
    for kind in (np.float32, "float32", 1):
        binding = session.io_binding()
        out = np.zeros((3, 2), np.float32)
        binding.bind_input("X", "cpu", 0, kind, [3, 2], X.ctypes.data)
        binding.bind_output("Y", "cpu", 0, kind, (3, 2), out.ctypes.data)
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(out, X * W)
        np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * W)


def test_bound_values(session):
    binding = session.io_binding()
    out = OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    binding.bind_ortvalue_output("Y", out)
    for scale in (1, 2):
        binding.bind_ortvalue_input("X", OrtValue.ortvalue_from_numpy(X * np.float32(scale)))
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(out.numpy(), X * scale * W)
        assert binding.get_outputs()[0] is out


def test_bound_inputs_are_read_when_the_session_runs(session):
    array = X.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("X", array)
    binding.bind_output("Y")
    array[:] = 7
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], array * W)


def test_copies_are_copies(session, binding):
    binding.bind_output("Y")
    session.run_with_iobinding(binding)
    binding.copy_outputs_to_cpu()[0][:] = 0
    np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), X * W)


def test_an_initializer_may_be_bound(session, binding):
    binding.bind_cpu_input("W", np.array([5, 6], np.float32))
    binding.bind_output("Y")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], X * np.float32([5, 6]))


def test_bindings_are_cleared(session, binding):
    binding.bind_output("Y")
    session.run_with_iobinding(binding)
    binding.clear_binding_inputs()
    with pytest.raises(RuntimeError, match="missing: X"):
        session.run_with_iobinding(binding)
    binding.bind_cpu_input("X", X)
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError, match="at least one output"):
        session.run_with_iobinding(binding)
    with pytest.raises(RuntimeError, match="no outputs before run_with_iobinding"):
        binding.get_outputs()


@pytest.mark.parametrize(
    ("bind", "says"),
    [
        (lambda b: b.bind_cpu_input("Q", X), "no input 'Q'; it has X, W"),
        (lambda b: b.bind_cpu_input("X", [[1.0, 2.0]]), "expected a numpy array, got list"),
        (lambda b: b.bind_input("X", "cuda", 0, np.float32, [3, 2], 1), "input 'X': device 'cuda'"),
        (lambda b: b.bind_input("X", "cpu", 0, np.float32, [3, 2], 0), "buffer_ptr is 0"),
        (lambda b: b.bind_input("X", "cpu", 0, None, [3, 2], 1), "input 'X': element_type"),
        (lambda b: b.bind_ortvalue_input("X", X), "input 'X': expected an OrtValue, got ndarray"),
        (lambda b: b.bind_output("Q"), "no output 'Q'; it has Y, Z"),
        (lambda b: b.bind_output("Y", "cuda"), "output 'Y': device 'cuda'"),
        (lambda b: b.bind_output("Y", buffer_ptr=1), "needs element_type and shape"),
        (lambda b: b.bind_ortvalue_output("Y", X), "output 'Y': expected an OrtValue, got ndarray"),
    ],
)
def test_bindings_that_are_refused(session, bind, says):
    with pytest.raises(RuntimeError, match=says):
        bind(session.io_binding())


def addresses_of_results(session, binding, monkeypatch):
    """Where the compiled model wrote the outputs of a run, in the order of binding."""
    made = []
    results_of = session._results
    with monkeypatch.context() as patch:
        patch.setattr(session, "_results", lambda *given: made.extend(results_of(*given)) or made)
        session.run_with_iobinding(binding)
    return [result.numpy().ctypes.data for result in made]


def test_bound_memory_is_written_without_a_copy(session, binding, monkeypatch):
    y, z = (OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32) for _ in "yz")
    binding.bind_ortvalue_output("Z", z)
    binding.bind_output("Y", "cpu", 0, np.float32, (3, 2), y.data_ptr())
    assert addresses_of_results(session, binding, monkeypatch) == [z.data_ptr(), y.data_ptr()]
    np.testing.assert_array_equal(y.numpy(), X * W)
    np.testing.assert_array_equal(z.numpy(), X * W + B)
    z.numpy()[:] = 0
    np.testing.assert_array_equal(session.run(["Z"], {"X": X})[0], X * W + B)
    assert not z.numpy().any()  # runs without the binding do not write there


def test_memory_that_is_bound_twice_holds_the_last_output(session, binding, monkeypatch):
    out = OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
    for names, expected in ((("Y", "Z"), X * W + B), (("Z", "Y"), X * W)):
        binding.clear_binding_outputs()
        for name in names:
            binding.bind_ortvalue_output(name, out)
        assert out.data_ptr() not in addresses_of_results(session, binding, monkeypatch)
        np.testing.assert_array_equal(out.numpy(), expected)


def test_an_output_in_the_memory_of_an_input(session, monkeypatch):
    array = X.copy()
    binding = session.io_binding()
    binding.bind_cpu_input("X", array)
    binding.bind_ortvalue_output("Y", OrtValue.ortvalue_from_numpy(array))
    binding.bind_output("Z")
    assert array.ctypes.data not in addresses_of_results(session, binding, monkeypatch)
    np.testing.assert_array_equal(array, X * W)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[1], X * W + B)


def test_memory_that_is_not_aligned_is_written(session, binding):
    memory = np.zeros(25, np.uint8)
    binding.bind_output("Y", "cpu", 0, np.float32, (3, 2), memory.ctypes.data + 1)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(np.frombuffer(memory[1:].tobytes(), np.float32).reshape(3, 2), X * W)
    assert memory[0] == 0


def test_memory_that_is_read_only_is_refused(session, binding):
    array = np.zeros((3, 2), np.float32)
    array.flags.writeable = False
    with pytest.raises(RuntimeError, match="output 'Y': the memory is read-only"):
        binding.bind_ortvalue_output("Y", OrtValue.ortvalue_from_numpy(array))


def test_a_size_beyond_all_memory_is_refused(binding):
    with pytest.raises(RuntimeError, match=r"input 'X': a tensor of the shape .* is larger than memory can be"):
        binding.bind_input("X", "cpu", 0, np.float32, (1 << 40, 1 << 40), X.ctypes.data)


@pytest.mark.parametrize("shape, dtype", [([5, 2], np.float32), ([3, 2], np.float64)])
def test_memory_that_does_not_fit(session, binding, shape, dtype):
    out = OrtValue.ortvalue_from_shape_and_type(shape, dtype)
    binding.bind_ortvalue_output("Y", out)
    with pytest.raises(RuntimeError, match="output 'Y': the memory is "):
        session.run_with_iobinding(binding)
    assert not out.numpy().any()


def test_bound_inputs_of_another_dtype(session, binding):
    binding.bind_cpu_input("X", X.astype(np.float64))
    binding.bind_output("Y")
    with pytest.raises(RuntimeError, match=r"expected tensor\(float\), got tensor\(double\)"):
        session.run_with_iobinding(binding)


def test_bindings_belong_to_a_session(binding):
    other = hr.InferenceSession(scaled())
    with pytest.raises(ValueError, match="another session made it"):
        other.run_with_iobinding(binding)
    with pytest.raises(ValueError, match="expected an IOBinding, got int"):
        other.run_with_iobinding(3)


def test_runs_with_values(session):
    value = OrtValue.ortvalue_from_numpy(X)
    np.testing.assert_array_equal(session.run(["Y"], {"X": value})[0], X * W)
    (y,) = session.run_with_ort_values(["Y"], {"X": value})
    np.testing.assert_array_equal(y.numpy(), X * W)
    assert len(session.run_with_ort_values(None, {"X": value})) == 2
    np.testing.assert_array_equal(value.numpy(), X)
    for feed, says in (({"X": X}, "expected an OrtValue, got ndarray"), ({}, "missing: X")):
        with pytest.raises(ValueError, match=says):
            session.run_with_ort_values(None, feed)
