"""Artifacts called by programs that have apache-tvm-ffi and nothing of Headrace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
hr = pytest.importorskip("headrace")
tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")

DIGITS = Path(__file__).parents[2] / "models" / "digits.onnx"


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("ffi") / "digits.so"
    hr.compile(DIGITS, shapes={"x": (1, 1, 8, 8)}, output=path)
    return path


@pytest.fixture(scope="module")
def main(artifact):
    return tvm_ffi.load_module(artifact)["main"]


def test_the_callers_tensors_are_filled_in(artifact, main, images):
    y = np.zeros((1, 10), np.float32)
    assert main(images[:1], y) is None
    np.testing.assert_array_equal(y, hr.load(artifact, threads=1)(images[:1]).numpy())
    x, out = tvm_ffi.from_dlpack(images[1:2]), tvm_ffi.from_dlpack(np.zeros((1, 10), np.float32))
    main(x, out)
    np.testing.assert_array_equal(np.from_dlpack(out), hr.load(artifact, threads=1)(images[1:2]).numpy())
    main(hr.nd.array(images[:1]), y)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((), TypeError, "expected 2 arguments, 1 inputs and then 1 outputs, got 0"),
        ((np.zeros((1, 1, 8, 8), np.float32),), TypeError, "got 1"),
        ((np.zeros((1, 1, 8, 8), np.float32),) * 3, TypeError, "got 3"),
        ((np.zeros((1, 1, 8, 8), np.float32), 3), TypeError, "argument 1 is not a tensor"),
        ((None, np.zeros((1, 10), np.float32)), TypeError, "argument 0 is not a tensor"),
        (("text", np.zeros((1, 10), np.float32)), TypeError, "argument 0 is not a tensor"),
        (
            (np.zeros((1, 1, 8, 8)), np.zeros((1, 10), np.float32)),
            ValueError,
            r"input 0 must be .*float32\[1, 1, 8, 8\]; it is float64",
        ),
        ((np.zeros((8, 8), np.float32), np.zeros((1, 10), np.float32)), ValueError, "it has 2 dimensions, not 4"),
        (
            (np.zeros((1, 1, 8, 8), np.float32), np.zeros((10, 1), np.float32)),
            ValueError,
            r"output 0 .*its shape is \[10, 1\]",
        ),
        (
            (np.zeros((1, 1, 8, 16), np.float32)[:, :, :, ::2], np.zeros((1, 10), np.float32)),
            ValueError,
            r"input 0 .*; its strides are \[128, 128, 16, 2\], not \[64, 64, 8, 1\]",
        ),
    ],
)
def test_mistakes_are_exceptions(main, arguments, error, says):
    with pytest.raises(error, match=says):
        main(*arguments)


def test_an_output_has_memory_of_its_own(main):
    memory = np.zeros(74, np.float32)
    main(memory[:64].reshape(1, 1, 8, 8), memory[64:].reshape(1, 10))
    with pytest.raises(ValueError, match="output 0 shares memory with input 0; give it memory of its own"):
        main(memory[10:].reshape(1, 1, 8, 8), memory[5:15].reshape(1, 10))


def test_without_headrace_in_the_process(artifact):
    program = (
        "import sys, numpy as np, tvm_ffi\n"
        f"f = tvm_ffi.load_module({str(artifact)!r})['main']\n"
        "y = np.zeros((1, 10), np.float32)\n"
        "f(np.ones((1, 1, 8, 8), np.float32), y)\n"
        "assert not any('headrace' in name for name in sys.modules)\n"
        "assert 'libheadrace' not in open('/proc/self/maps').read()\n"
        "print(abs(float(y.sum()) - 1) < 1e-3)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_file_that_needs_the_runtime_says_so(tmp_path):
    writer = os.environ.get("HEADRACE_WRITE_SPLIT_ARTIFACT")
    if not writer:
        pytest.skip("HEADRACE_WRITE_SPLIT_ARTIFACT is not set: the program that writes such a file was not built")
    subprocess.run([writer, DIGITS, tmp_path / "digits.so"], check=True)
    main = tvm_ffi.load_module(tmp_path / "digits.so")["main"]
    for arguments in ((), (np.zeros((1, 1, 8, 8), np.float32), np.zeros((1, 10), np.float32))):
        with pytest.raises(RuntimeError, match="this file needs libheadrace_rt"):
            main(*arguments)
