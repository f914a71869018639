"""Decorators and helpers of headrace.testing, in files of tests as users of TVM write them."""

import subprocess
import sys

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

FILE = """
import sys

import headrace as hr
from headrace import testing


@testing.uses_gpu
def test_everywhere():
    for target, dev in testing.enabled_targets():
        assert (target, dev) == ("llvm", hr.cpu())


@testing.uses_gpu()
@testing.requires_llvm
@testing.requires_llvm()
def test_of_the_cpu():
    pass


@testing.requires_gpu
def test_of_a_gpu():
    raise AssertionError


@testing.requires_cuda()
def test_of_cuda():
    raise AssertionError


@testing.parametrize_targets
def test_of_enabled_targets(target, dev):
    assert (target, dev) == ("llvm", hr.cpu())


@testing.parametrize_targets("llvm -num-cores=1", "cuda", "nvptx -libs=cudnn")
def test_of_targets(dev, target):
    assert (target, dev) == ("llvm -num-cores=1", hr.cpu())


@testing.parametrize_targets("llvm", "cuda -libs=cudnn")
def test_of_targets_alone(target):
    assert hr.Target(target).kind == "llvm"


size = testing.parameter(1, 2)
kind = testing.parameter(by_dict={"small": "s", "large": "l"})


def test_of_parameters(size, kind):
    assert size in (1, 2) and kind in "sl"


class TestOfClass:
    width = testing.parameter(3, 5, ids=["three", "five"])

    def test_width(self, width):
        assert width in (3, 5)


if __name__ == "__main__":
    testing.main()
"""
PASSED = [
    "TestOfClass::test_width[five]",
    "TestOfClass::test_width[three]",
    "test_everywhere",
    "test_of_enabled_targets[llvm]",
    "test_of_parameters[1-large]",
    "test_of_parameters[1-small]",
    "test_of_parameters[2-large]",
    "test_of_parameters[2-small]",
    "test_of_targets[llvm -num-cores=1]",
    "test_of_targets_alone[llvm]",
    "test_of_the_cpu",
]


def test_a_file_of_tests(tmp_path):
    path = tmp_path / "test_mine.py"
    path.write_text(FILE)
    done = subprocess.run(
        [sys.executable, path, "-vrs", "-p", "no:cacheprovider", "-W", "error", "--strict-markers"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    passed = [line.partition("::")[2].partition(" PASSED")[0] for line in lines if " PASSED" in line]
    assert sorted(passed) == PASSED
    assert "11 passed, 5 skipped" in lines[-1]
    assert "programs run on the CPU, and code is made for llvm" in done.stdout


def test_targets_that_are_none():
    with pytest.raises(hr.UserError, match="a target of kind llvm takes no option 'libs'"):
        hr.testing.parametrize_targets("llvm -libs=cblas")
    with pytest.raises(hr.UserError, match="there is no kind of target 'lvm'"):
        hr.testing.parametrize_targets("lvm")
    with pytest.raises(hr.UserError, match=r"parametrize_targets: the test 'no_target' takes neither target nor dev"):

        @hr.testing.parametrize_targets
        def no_target():
            pass

    with pytest.raises(hr.UserError, match="parameter: give the values, or by_dict"):
        hr.testing.parameter()
    with pytest.raises(hr.UserError, match="parameter: give the values, or by_dict"):
        hr.testing.parameter(1, by_dict={"one": 1})


def test_devices():
    assert hr.testing.device_enabled("llvm -num-cores=2")
    assert not hr.testing.device_enabled("cuda")
    with pytest.raises(hr.UserError, match="there is no kind of target 'cdua'"):
        hr.testing.device_enabled("cdua")


def test_the_package_needs_no_pytest():
    program = "import sys; import headrace.testing; print('pytest' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
