"""What Relay's own programs do that no other test here does: found by running its tests against this package."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, te, tir  # noqa: E402


def test_parse_infers_types_where_it_can():
    head = '#[version = "0.0.5"]\n'
    mod = relay.parse(head + "def @main(%x: Tensor[(2), float32]) { nn.relu(%x) }")
    assert mod["main"].checked_type.ret_type == relay.TensorType((2,))
    assert (
        relay.fromtext("\n    " + head + "    def @main(%x: int) { %x }")["main"].checked_type.ret_type.dtype == "int32"
    )
    ill = relay.parse(head + "def @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }")
    with pytest.raises(hr.UserError, match="cannot be broadcast"):
        relay.transform.InferType()(ill)


def test_binds_may_be_expressions():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    value = relay.const(np.array([1, 2], "float32"))
    for bound in (value, relay.negative(relay.negative(value))):
        got = relay.create_executor().evaluate(relay.add(x, y), {x: bound, y: np.ones(2, "float32")})
        assert got.numpy().tolist() == [2, 3]


def test_parameters_of_one_name():
    first, second = (relay.var("x", shape=(2,)) for _ in range(2))
    function = relay.Function([first, second, relay.var("x_1", shape=(2,))], relay.subtract(first, second))
    for kind in ("debug", "graph"):
        run = relay.create_executor(kind).evaluate(function)
        assert run(*(np.full(2, v, "float32") for v in (5, 3, 1))).numpy().tolist() == [2, 2]


def test_types_say_dtypes_and_types_of_functions_are_set_in_place():
    int32 = relay.scalar_type("int32")
    assert relay.const(1, int32).data.dtype == "int32"
    x, f = relay.var("x", int32), relay.var("f")
    function = relay.Function([x, f], relay.Call(f, [x]), int32)
    relay.transform.InferTypeLocal(function)
    assert function.checked_type == relay.FuncType([int32, relay.FuncType([int32], int32)], int32)
    assert x.vid.same_as(x.vid) and x.vid != f.vid and (x.vid.name_hint, len({x.vid, x.vid})) == ("x", 1)


def test_divisions_of_indices_and_short_names_of_dtypes():
    n = te.var("n")
    assert tir.indexdiv(n, 4) == tir.floordiv(n, 4) and tir.indexmod(n, 4) == tir.floormod(n, 4)
    assert (hr.DataType("float"), relay.TensorType((), "int").dtype) == ("float32", "int32")


def test_fill_values_of_another_dtype_are_cast():
    value = relay.var("v", shape=())
    made = relay.create_executor().evaluate(relay.Function([value], relay.full(value, (1, 2), "int8")))(np.float32(3.7))
    assert (made.dtype, made.numpy().tolist()) == ("int8", [[3, 3]])


@pytest.mark.parametrize("count", [None, 2, 4])
def test_sums_of_segments(count):
    rows, ids = np.arange(6, dtype="float32").reshape(3, 2), np.array([1, 0], "int32")
    data, segments = relay.var("d", shape=(3, 2)), relay.var("i", shape=(2,), dtype="int32")
    run = relay.create_executor().evaluate(relay.Function([data, segments], relay.segment_sum(data, segments, count)))
    assert run(rows, ids).numpy().tolist() == [[2, 3], [0, 1]] + [[0, 0]] * ((count or 2) - 2)


def test_mean_and_deviation():
    x = relay.var("x", shape=(2, 3))
    data = np.array([[1, 2, 6], [0, 0, 3]], "float32")
    got = relay.create_executor().evaluate(relay.Function([x], relay.mean_std(x, 1, True).astuple()))(data)
    for field, expected in zip(got, (data.mean(1, keepdims=True), data.std(1, keepdims=True)), strict=True):
        np.testing.assert_allclose(field.numpy(), expected, rtol=1e-6)
