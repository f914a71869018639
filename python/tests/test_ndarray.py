"""Tests the results of calls in Python: NDArrays, descriptions, code for other processors."""

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
