"""Tests the results of calls in Python: NDArrays, descriptions, code for other processors."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"
TWO = {"x": (2, 1, 8, 8)}


def test_an_ndarray_is_a_sequence_of_rows():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    a = hr.nd.array(x)
    assert (a.ndim, len(a)) == (2, 2)
    assert a[1, 2] == 5
    np.testing.assert_array_equal(a[0], x[0])
    np.testing.assert_array_equal(a[:, 1], x[:, 1])
    assert [row.tolist() for row in a] == x.tolist()
    assert repr(a) == "NDArray(shape=(2, 3), dtype=float32)"
    assert repr(hr.nd.array(np.ones(2, "float32"))) == "NDArray(shape=(2,), dtype=float32)"
    assert str(hr.nd.array(np.array([[1, 2], [3, 4]]))) == "[[1 2]\n [3 4]]"
    with pytest.raises(IndexError):
        a[2]
    with pytest.raises(TypeError):
        len(hr.nd.array(1.0))


INDICES = [
    None,
    (),
    ...,
    (..., None),
    (None, 1),
    1,
    -1,
    np.int64(1),
    (1, -1),
    slice(None, None, -1),
    (slice(None), slice(0, 3, 2)),
    [0, 1],
    [1, 1],
    [True, False],
    np.array([1, 0]),
    np.array([[True, False, True], [False, False, True]]),
    True,
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_elements_are_read_and_written_as_numpys_are(index):
    x = np.arange(6, dtype="float32").reshape(2, 3)
    a = hr.nd.array(x)
    np.testing.assert_array_equal(a[index], x[index])
    for value in (7, x[index] * 2, None):
        a[index] = value
        x[index] = value
        np.testing.assert_array_equal(a.numpy(), x)


@pytest.mark.parametrize(
    ("index", "error", "says"),
    [
        (2, IndexError, "index 2 is out of bounds for axis 0 with size 2"),
        (-3, IndexError, "index -3 is out of bounds"),
        ((0, 3), IndexError, "index 3 is out of bounds for axis 1 with size 3"),
        ([0, 5], IndexError, "index 5 is out of bounds"),
        ((0, 0, 0), IndexError, "too many indices"),
        ([True, False, True], IndexError, "boolean index did not match"),
        (1.5, IndexError, "only integers, slices"),
        ("x", IndexError, "only integers, slices"),
        ({}, IndexError, "only integers, slices"),
        (slice(0, 2, 0), ValueError, "slice step cannot be zero"),
        (slice(1.5, None), TypeError, "slice indices must be integers"),
    ],
    ids=str,
)
def test_indices_that_numpy_refuses(index, error, says):
    a = hr.nd.array(np.zeros((2, 3)))
    with pytest.raises(error, match=says):
        a[index]
    with pytest.raises(error, match=says):
        a[index] = 1
    assert not a.numpy().any()


def test_elements_of_another_shape_or_kind():
    a = hr.nd.array(np.zeros((2, 3)))
    for value, says in (([1, 2], "could not broadcast"), ("x", "could not convert string"), ({}, "not 'dict'")):
        with pytest.raises((ValueError, TypeError), match=says):
            a[:] = value
    with pytest.raises(hr.UserError, match="source: None is not a tensor"):
        a.copyfrom(None)
    for target in (None, "cpu", np.zeros((2, 3))):
        with pytest.raises(hr.UserError, match=r"target: expected an NDArray or a Device, got (None|str|ndarray)"):
            a.copyto(target)


def test_read_only_tensors():
    x = np.arange(3.0)
    x.flags.writeable = False
    a = hr.nd.from_dlpack(x)
    with pytest.raises(hr.UserError, match=r"this tensor is for reading only.*headrace.nd.array\(x\) gives a copy"):
        a[0] = 1
    with pytest.raises(hr.UserError, match="read-only"):
        a.copyfrom(x)
    copy = hr.nd.array(a)
    copy[0] = 5
    assert (copy[0], a[0]) == (5, 0)


def test_a_model_says_what_it_is():
    f = hr.compile(DIGITS, shapes=TWO, opt_level=0)
    assert repr(f) == "CompiledModel(x: float32 (2, 1, 8, 8) -> probabilities: float32 (2, 10))"


def test_bfloat16_of_ml_dtypes():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    x = np.arange(6).reshape(2, 3).astype(bfloat16)
    a = hr.nd.array(x)
    assert (a.dtype, a.shape) == ("bfloat16", (2, 3))
    assert a.numpy().dtype == bfloat16
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(hr.nd.array(x[:, ::2]).numpy(), x[:, ::2])
    assert hr.nd.array(x[0, 1]).shape == ()
    a[0] = 7
    assert a.numpy().tolist() == [[7, 7, 7], [3, 4, 5]]
    shared = hr.nd.from_dlpack(x)
    x[0, 0] = 7
    assert shared[0, 0] == 7
    with pytest.raises(hr.UserError, match="dtype bfloat16"):
        hr.compile(DIGITS, shapes=TWO, opt_level=0)(np.zeros((2, 1, 8, 8), bfloat16))


NARROW = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn")
NARROW_INTEGERS = ("int4", "uint4", "int2", "uint2")


@pytest.mark.parametrize("name", (*NARROW, *NARROW_INTEGERS))
def test_narrow_dtypes_of_ml_dtypes(name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    x = np.array([[0, 1, -1], [1, 0, 1]]).astype(dtype)
    a = hr.nd.array(x)
    assert (a.dtype, a.shape) == (name, (2, 3))
    assert a.numpy().dtype == dtype
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(hr.nd.array(x[:, ::2]).numpy(), x[:, ::2])
    assert hr.nd.empty((2,), name).dtype == name
    assert hr.relay.const(x).data.dtype == name


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_codes_of_narrow_floats_are_those_of_ml_dtypes(name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    codes = np.arange(256 if name.startswith("float8") else 16, dtype=np.uint8).view(dtype)
    numbers = codes.astype(np.float32)
    between = (numbers + np.nextafter(np.roll(numbers, -1), np.float32(np.inf))) / 2
    given = np.concatenate([numbers, between, np.float32([np.nan, 1e-9, -1e-9, 0, -0.0])]).astype(np.float32)
    largest = float(np.nanmax(np.where(np.isinf(numbers), np.nan, numbers)))
    x = hr.relay.var("x", shape=codes.shape, dtype=name)
    y = hr.relay.var("y", shape=given.shape, dtype="float32")
    widen = hr.compile(hr.IRModule.from_expr(hr.relay.Function([x], hr.relay.cast(x, "float32"))))
    narrow = hr.compile(hr.IRModule.from_expr(hr.relay.Function([y], hr.relay.cast(y, name))))
    np.testing.assert_array_equal(np.asarray(widen(codes)), numbers)
    wanted = np.clip(given, -largest, largest).astype(dtype)
    got = narrow(given)
    got = got.numpy() if hasattr(got, "numpy") else got
    assert got.dtype == dtype
    # NaNs are equal whatever their sign, and zeros are not.
    same = (got.view(np.uint8) == wanted.view(np.uint8)) | (np.isnan(got.astype(np.float32)) & np.isnan(given))
    assert same.all(), (given[~same], got[~same], wanted[~same])


def test_programs_do_not_compute_with_narrow_numbers():
    for name in ("float8_e5m2", "int4"):
        x = hr.relay.var("x", shape=(4,), dtype=name)
        module = hr.IRModule.from_expr(hr.relay.Function([x], hr.relay.add(x, x)))
        with pytest.raises(hr.UserError, match=f"does not compute with {name}"):
            hr.compile(module)


def test_numpy_needs_ml_dtypes_for_narrow_dtypes(monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = hr.nd.array(np.zeros(2, ml_dtypes.int4))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(hr.UserError, match="numpy has no int4 of its own; install ml_dtypes"):
        a.numpy()
    # numpy knows the names once ml_dtypes was imported.
    code = "import sys; sys.modules['ml_dtypes'] = None; import headrace; headrace.relay.const(1, 'float8_e5m2')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ml_dtypes, which may have it, is missing" in done.stderr


def test_code_for_another_processor_is_written_and_described(tmp_path):
    if "avx512_fp16" in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor is a sapphirerapids")
    path = tmp_path / "cross.so"
    f = hr.compile(DIGITS, shapes=TWO, cpu="sapphirerapids", opt_level=0, threads=2, output=path)
    assert path.stat().st_size > 0
    assert repr(f) == "CompiledModel(x: float32 (2, 1, 8, 8) -> probabilities: float32 (2, 10))"
    assert f.threads == 2
    with pytest.raises(hr.MissingError, match=r"cross\.so"):
        f(np.zeros((2, 1, 8, 8), np.float32))
    with pytest.raises(hr.MissingError, match=r"cross\.so"):
        f._run_into([np.zeros((2, 1, 8, 8), np.float32)], [None])
    with pytest.raises(hr.MissingError, match=r"cross\.so"):
        hr.load(path)


def test_devices_compare_with_anything():
    assert hr.cpu() == hr.device("cpu", 0)
    assert hr.cpu() != hr.cpu(1)
    assert hr.cpu() != 3
    assert hr.cpu() != None  # noqa: E711


@pytest.mark.parametrize("other", [np.float32([1, 2]), [1, 2], (1, 2), 1, 1.5, np.float32(1)], ids=repr)
def test_arrays_are_not_compared_by_element(other):
    """For two NDArrays, == says whether they are one memory, as in TVM; with other arrays a False would mislead."""
    a = hr.nd.array(np.float32([1, 2]))
    message = (
        rf"NDArray == {type(other).__name__}.*: == says whether two NDArrays are one memory; .*: a\.numpy\(\) == b"
    )
    with pytest.raises(TypeError, match=message):
        assert a == other
    with pytest.raises(TypeError, match=message):
        assert a != other


def test_other_objects_are_not_equal_to_arrays():
    class Any:
        def __eq__(self, other):
            return True

        __hash__ = None

    a = hr.nd.array(np.float32([1, 2]))
    assert (a == None, a == "a", a != {}, a == a) == (False, False, True, True)  # noqa: E711
    assert a in [None, a]
    assert a == Any()
    assert a != hr.nd.array(np.float32([1, 2]))


def test_the_truth_of_arrays():
    assert hr.nd.array(np.float32([[0.5]]))
    assert not hr.nd.array(np.float32(0))
    for x in (np.float32([0, 1]), np.zeros((0, 2), "int64")):
        with pytest.raises(
            TypeError, match=rf"an NDArray of {x.size} elements is neither true nor false; write a\.numpy"
        ):
            bool(hr.nd.array(x))
