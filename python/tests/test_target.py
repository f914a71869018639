"""Targets: text, dict and JSON forms, options, errors; devices and tensors."""

import json

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")


def test_forms_of_one_target():
    text = "llvm -mcpu=x86-64-v3 -mattr=+avx2,-avx512f -num-cores=4"
    target = hr.Target(text)
    assert str(target) == text
    assert target.kind == "llvm"
    assert target.mcpu == "x86-64-v3"
    assert target.features == ["+avx2", "-avx512f"]
    assert target.attrs["num-cores"] == 4
    assert target.keys == ["cpu"]
    assert hr.Target(target.export()) == target
    assert hr.Target(json.dumps(target.export())) == target
    assert hr.Target(target, host=target).host == target
    assert hash(hr.Target(text)) == hash(target)
    assert target.device_type == hr.cpu().device_type


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: hr.Target("lvm"), "no kind of target 'lvm'"),
        (lambda: hr.Target("llvm -nonsense=1"), "no option 'nonsense'"),
        (lambda: hr.Target({"kind": "llvm", "nonsense": 1}), "no option 'nonsense'"),
        (lambda: hr.Target({"mcpu": "x"}), 'needs a "kind"'),
        (lambda: hr.Target('{"kind": '), "target: "),
        (lambda: hr.Target(3), "expected a str, a dict or a Target, got int"),
        (lambda: hr.Target("llvm", host="llvm -mcpu=znver4"), "host: "),
        (lambda: hr.Target({"kind": "llvm", "keys": ["gpu"]}), "the keys of llvm are"),
        (lambda: hr.device("cuda"), "there is no device 'cuda'"),
    ],
)
def test_errors(call, says):
    with pytest.raises(hr.UserError, match=says):
        call()


def test_tensors():
    array = hr.nd.empty((2, 3), "int32")
    assert array.shape == (2, 3)
    array.copyfrom(np.arange(6, dtype="int32").reshape(2, 3))
    np.testing.assert_array_equal(array.asnumpy(), [[0, 1, 2], [3, 4, 5]])
    other = hr.nd.empty((2, 3), "int32", hr.device("cpu", 0))
    assert array.copyto(other).same_as(other)
    np.testing.assert_array_equal(np.from_dlpack(other), array.numpy())
    assert hr.nd.from_dlpack(array).same_as(array)
    assert hr.cpu(0) == hr.device("cpu")
    assert {hr.cpu(0): 1}[hr.device("llvm")] == 1
