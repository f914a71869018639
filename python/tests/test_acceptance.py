"""Habits of Relay programs that no other suite tests; running Relay's own tests on this package showed them."""

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


def test_the_parts_of_a_build_by_their_old_names():
    lib = relay.build(hr.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,)))), "llvm")
    assert lib.lib is lib.get_lib()
    assert lib.graph_json == lib.get_graph_json()
    run = hr.graph_executor.create(lib.graph_json, lib.lib, hr.cpu())
    run.set_input(0, np.zeros(2, "float32"))
    run.run()
    assert run.get_output(0).numpy().tolist() == [1, 1]


def test_devices_of_a_dict_of_targets_may_be_scalar_expressions():
    mod = hr.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,))))
    assert relay.build(mod, {tir.IntImm("int32", 1): "llvm"}).target.kind.name == "llvm"
    with pytest.raises(hr.UserError, match="is for the CPU"):
        relay.build(mod, {tir.IntImm("int32", 2): "llvm"})


def test_saved_parameters_are_a_bytearray():
    saved = relay.save_param_dict({"w": np.ones(2, "float32")})
    assert isinstance(saved, bytearray)
    assert relay.load_param_dict(saved)["w"].numpy().tolist() == [1, 1]


def test_a_type_without_parameters_is_one_type():
    mod = hr.IRModule()
    mod.import_from_std("nat.rly")
    nat = mod.get_global_type_var("nat")
    assert nat().same_as(nat)
    mod = relay.transform.InferType()(mod)
    assert mod["nat_double"].checked_type == relay.FuncType([nat()], nat())


def test_gradients_are_checked_on_an_executor():
    x = relay.var("x", shape=(2,), dtype="float64")
    for kind in ("debug", "graph"):
        relay.testing.check_grad(relay.Function([x], relay.exp(x)), executor_kind=kind)
    with pytest.raises(hr.UserError, match="there is no kind 'vm'"):
        relay.testing.check_grad(relay.Function([x], relay.exp(x)), executor_kind="vm")


def test_names_are_given_once():
    names = hr.ir.supply.NameSupply("p")
    assert [names.fresh_name("a"), names.fresh_name("a"), names.fresh_name("a", False)] == ["p_a", "p_a1", "a"]
    assert names.reserve_name("b") == "p_b"
    assert (names.contains_name("b"), names.contains_name("b", False), names.contains_name("c")) == (True, False, False)
    assert names.fresh_name("b") == "p_b1"


def test_global_names_are_given_once():
    mod = hr.IRModule.from_expr(relay.exp(relay.var("x", shape=(2,))))
    main = mod.get_global_var("main")
    for given in (mod, [mod]):
        supply = hr.ir.supply.GlobalVarSupply(given)
        assert supply.unique_global_for("main", False).same_as(main)
        assert supply.fresh_global("main", False).name_hint == "main1"
        made = supply.unique_global_for("other")
        assert supply.unique_global_for("other").same_as(made)
        with pytest.raises(hr.UserError, match="there is another GlobalVar 'main' already"):
            supply.reserve_global(relay.GlobalVar("main"))
        supply.reserve_global(relay.GlobalVar("main"), allow_conflict=True)
        assert supply.unique_global_for("main", False).same_as(main)
    assert hr.ir.supply.GlobalVarSupply(hr.ir.supply.NameSupply("p")).fresh_global("a").name_hint == "p_a"
    for wrong in (3, [3], "mod"):
        with pytest.raises(hr.UserError, match="value: expected a NameSupply, an IRModule or a list"):
            hr.ir.supply.GlobalVarSupply(wrong)
    with pytest.raises(hr.UserError, match="global_var: expected a GlobalVar"):
        hr.ir.supply.GlobalVarSupply().reserve_global("main")
