"""Functions over programs that old programs call: recast, ChangeBatch, Defunctionalization of a function, analyses."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402


def convolutions(count, recast_at=()):
    """A chain of convolutions; those at some places in int8, between casts."""
    params = [relay.var("x", shape=(1, 2, 6, 6))]
    y = params[0]
    for i in range(count):
        params.append(relay.var(f"w{i}", shape=(2, 2, 3, 3)))
        if i in recast_at:
            args = [relay.cast(y, "int8"), relay.cast(params[-1], "int8")]
            y = relay.cast(relay.nn.conv2d(*args, padding=(1, 1), out_dtype="int32"), "float32")
        else:
            y = relay.nn.conv2d(y, params[-1], padding=(1, 1), out_dtype="float32")
    return relay.Function(params, y)


@pytest.mark.parametrize(("count", "skipped"), [(1, []), (2, []), (2, [0]), (3, [-1, 1])])
def test_recast(count, skipped):
    made = relay.transform.recast(convolutions(count), "int8", "int32", skip_layers=skipped)
    hr.ir.assert_structural_equal(made, convolutions(count, {*range(count)} - {i % count for i in skipped}))


def test_recast_of_a_module_goes_back_to_the_dtypes_that_were():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    mod = hr.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w) + relay.const(1.0)))
    made = relay.transform.recast(mod, "float16", "float16", ["nn.dense", "add"])
    assert relay.transform.InferType()(made)["main"].ret_type == relay.TensorType((2, 4))
    data, weight = np.ones((2, 3), "float32"), np.full((4, 3), 1 / 3, "float32")
    got = relay.create_executor(mod=made).evaluate()(data, weight).numpy()
    np.testing.assert_allclose(got, 2, rtol=2e-3)
    assert "float16" not in str(mod["main"])
    with pytest.raises(hr.UserError, match=r"recast: split gives \(.*only ops that give one tensor"):
        relay.transform.recast(relay.split(x, 2)[0], "int8", "int32", ["split"])
    with pytest.raises(hr.UserError, match="recast: ops: expected a list of str, got int"):
        relay.transform.recast(x, "int8", "int32", ops=3)
    with pytest.raises(hr.UserError, match="recast: skip_layers: expected a list of int, got int"):
        relay.transform.recast(x, "int8", "int32", skip_layers=3)


def test_change_batch():
    x, w = relay.var("x", shape=(1, 3)), relay.var("w", shape=(4, 3))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w))))
    changed = relay.transform.ChangeBatch({mod["main"].params[0]: 0}, batch_size=5)(mod)
    assert changed["main"].checked_type.ret_type == relay.TensorType((5, 4))
    assert [param.name_hint for param in changed["main"].params] == ["x", "w"]
    other = relay.var("x", shape=(1, 3))
    hr.ir.assert_structural_equal(relay.transform.ChangeBatch({other: 0})(mod), mod)
    with pytest.raises(hr.UserError, match=r"ChangeBatch: %x is a Tensor.*, which has no axis 2"):
        relay.transform.ChangeBatch({mod["main"].params[0]: 2})(mod)
    with pytest.raises(hr.UserError, match="ChangeBatch: data: expected a dict"):
        relay.transform.ChangeBatch([x])
    with pytest.raises(hr.UserError, match="ChangeBatch: an axis of data: expected an int, got 'N'"):
        relay.transform.ChangeBatch({x: "N"})
    with pytest.raises(hr.UserError, match="ChangeBatch: batch_size is -3; give 0 or more"):
        relay.transform.ChangeBatch({x: 0}, -3)


HIGHER = """#[version = "0.0.5"]
def @simple[A, B](%f: fn(A) -> B, %x: A) -> B {
  %f(%x)
}
def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] {
  %0 = fn[A](%y: A) -> A {
    %y
  };
  @simple(%0, %x)
}
"""


def test_defunctionalization_of_a_function():
    mod = relay.fromtext(HIGHER)
    made = mod.copy()
    made["main"] = relay.transform.Defunctionalization(made["main"], made)
    hr.ir.assert_structural_equal(made["main"], relay.transform.Defunctionalization()(mod)["main"])
    typed = relay.transform.InferType()(made)
    data = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(relay.create_executor(mod=typed).evaluate()(data).numpy(), data)
    with pytest.raises(hr.UserError, match="func is not a function of the module"):
        relay.transform.Defunctionalization(relay.Function([], relay.const(1.0)), mod)
    with pytest.raises(hr.UserError, match="Defunctionalization: mod: expected an IRModule"):
        relay.transform.Defunctionalization(mod["main"])


def test_fused_functions_that_are_equal_are_one():
    x = relay.var("x", shape=(1, 2, 6, 6))
    y = x
    for i in range(3):
        y = relay.nn.relu(relay.nn.conv2d(y, relay.var(f"w{i}", shape=(2, 2, 3, 3)), padding=(1, 1)))
    (fused,) = relay.analysis.extract_fused_functions(hr.IRModule.from_expr(y)).values()
    assert relay.analysis.list_op_freqs(hr.IRModule.from_expr(fused)) == {"nn.conv2d": 1, "nn.relu": 1}


def test_intermediate_values_by_number():
    x = relay.var("x", shape=(2, 4))
    root = relay.exp(x)
    halves = relay.split(root, 2, axis=1)
    steps = [root, halves.astuple(), halves[1], relay.negative(halves[1])]
    mod = hr.IRModule.from_expr(steps[-1])
    for i, step in enumerate(steps):
        got = relay.analysis.extract_intermdeiate_expr(mod, i)
        hr.ir.assert_structural_equal(got, hr.IRModule.from_expr(step))
    with pytest.raises(hr.UserError, match="expr_id is 4; main has 4 such values"):
        relay.analysis.extract_intermdeiate_expr(mod, 4)


def test_a_function_that_is_annotated_in_full_has_its_type():
    mod = hr.IRModule()
    mod.import_from_std("prelude.rly")
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    some = mod.get_type("List")[0]
    want = relay.FuncType([relay.FuncType([a], b), some(a)], some(b), [a, b])
    assert mod["map"].checked_type == want
    x = relay.var("x", shape=(2,))
    assert relay.Function([x], x, relay.TensorType((2,))).checked_type == relay.FuncType(
        [x.type_annotation], x.type_annotation
    )
    hole = relay.TupleType([relay.TensorType((2,)), relay.IncompleteType()])
    for open_one in (relay.Function([x], x), relay.Function([relay.var("y")], x, relay.TensorType((2,)))):
        with pytest.raises(hr.UserError, match="has no type yet"):
            _ = open_one.checked_type
    with pytest.raises(hr.UserError, match="has no type yet"):
        _ = relay.Function([x], x, hole).checked_type


def test_type_parameters_of_a_function_type_come_first():
    a, b, c = (relay.TypeVar(name) for name in "abc")
    assert relay.analysis.all_type_vars(relay.FuncType([b], c, [a])) == [a, b, c]
    assert relay.analysis.free_type_vars(relay.FuncType([b], c, [a])) == [b, c]


def test_cells_and_tuples_as_arguments():
    mod = hr.IRModule()
    mod.import_from_std("prelude.rly")
    cell = relay.backend.interpreter.RefValue(hr.nd.array(np.ones(3, "float32")))
    np.testing.assert_array_equal(cell.value.numpy(), np.ones(3))
    identity = relay.create_executor(mod=mod).evaluate(mod.get_global_var("id"))
    assert identity(cell).same_as(cell)
    scalar = relay.TensorType((), "int64")
    x = relay.var("x", relay.TupleType([scalar, relay.TupleType([scalar, relay.TensorType((2,))])]))
    second = relay.create_executor().evaluate(relay.Function([x], relay.TupleGetItem(relay.TupleGetItem(x, 1), 1)))
    np.testing.assert_array_equal(second((10, (8, [1.0, 2.0]))).numpy(), [1, 2])
    with pytest.raises(hr.UserError, match=r"argument 'x': expected .*, got 3 values"):
        second((1, 2, 3))


def test_names_of_a_modules_supply_begin_with_the_modules_name():
    mod = hr.IRModule()
    x = relay.var("x")
    known = relay.GlobalVar("test")
    mod[known] = relay.Function([x], x)
    supply = hr.ir.supply.GlobalVarSupply(mod)
    assert supply.unique_global_for("test", False).same_as(known)
    assert supply.unique_global_for("test").name_hint == "tvmgen_default_test"
    assert hr.ir.supply.GlobalVarSupply([mod.with_attr("mod_name", "net")]).fresh_global("test").name_hint == "net_test"


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_debug_shows_a_value(kind, capsys):
    seen = []
    x = relay.var("x", shape=(2,))
    watched = relay.op.debug(x + x, debug_func=lambda value: seen.append(value.numpy()))
    function = relay.Function([x], relay.exp(relay.op.debug(watched)))
    got = relay.create_executor(kind).evaluate(function)(np.array([1, 2], "float32"))
    np.testing.assert_allclose(got.numpy(), np.exp([2, 4]), rtol=1e-6)
    np.testing.assert_array_equal(seen, [[2, 4]])
    assert "[2. 4.]" in capsys.readouterr().out
    with pytest.raises(hr.UserError, match="debug: debug_func: expected a function"):
        relay.op.debug(x, 3)


def test_support_levels_are_relays():
    levels = {"exp": 1, "tanh": 1, "ceil": 3, "floor": 3, "trunc": 3, "round": 3, "abs": 3, "negative": 3}
    assert {name: relay.op.get(name).support_level for name in levels} == levels
