"""Tests memory that may not be written: constants of programs, and arrays that numpy holds read-only."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402


def twice():
    x = relay.var("x", shape=(2,))
    return hr.graph_executor.GraphModule(relay.build(relay.Function([x], x + x), "llvm")["default"](hr.cpu()))


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros(2, "float32"))
    return np.load(tmp_path / "zeros.npy", mmap_mode="r")


def test_no_output_goes_into_a_constant():
    constant = relay.const(np.zeros(2, "float32"))
    m = twice()
    for take in (m.set_output_zero_copy, m.get_output):
        with pytest.raises(hr.UserError, match="argument 1: the tensor is read-only, and an output is written into it"):
            take(0, constant.data)
    m.run(x=np.ones(2, "float32"))
    assert constant.data.numpy().tolist() == [0, 0]


def test_no_output_goes_into_a_file_mapped_for_reading(mapped):
    m = twice()
    m.run(x=np.ones(2, "float32"))
    for take in (m.set_output_zero_copy, m.get_output):
        with pytest.raises(hr.UserError, match="read-only"):
            take(0, mapped)
    assert m.get_output(0).numpy().tolist() == [2, 2]


def test_an_output_goes_where_it_may():
    m = twice()
    out = hr.nd.empty((2,))
    m.set_output_zero_copy(0, out)
    m.run(x=np.ones(2, "float32"))
    assert out.numpy().tolist() == [2, 2]


def test_an_input_set_for_reading_is_lent_for_reading(mapped):
    m = twice()
    m.set_input_zero_copy("x", mapped)
    view = m.get_input("x").numpy()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    m.run()
    assert m.get_output(0).numpy().tolist() == [0, 0]


def test_the_interpreter_lends_constants_for_reading():
    evaluate = relay.create_executor("debug").evaluate(relay.Function([], relay.const(np.array([1, 2], "float32"))))
    with pytest.raises(hr.UserError, match="for reading only"):
        evaluate()[0] = 9
    assert evaluate().numpy().tolist() == [1, 2]
