"""Tests Relay programs in their own spelling: parameters, arrays, values, texts, imports, and errors."""

import importlib
import subprocess
import sys

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

X = np.arange(6, dtype="float32").reshape(2, 3)
W = np.arange(12, dtype="float32").reshape(4, 3)


def dense_function():
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    return relay.Function([x, w], relay.nn.dense(x, w))


def bound_library():
    return relay.build(hr.IRModule.from_expr(dense_function()), params={"w": W, "unused": X})


def executor(lib):
    return hr.graph_executor.GraphModule(lib["default"](hr.cpu()))


# --- parameters that were bound at the build


@pytest.mark.parametrize("is_loaded", [False, True])
def test_bound_parameters_are_taken_again(is_loaded, tmp_path):
    lib = bound_library()
    params = lib.get_params()
    if is_loaded:
        lib.export_library(tmp_path / "dense.so")
        lib = hr.runtime.load_module(tmp_path / "dense.so")
    m = executor(lib)
    m.set_input(x=X, **params)
    m.set_input("w", W.T.copy().T)  # not dense
    m.load_params(relay.save_param_dict({**params, "other": X}))
    m.run()
    np.testing.assert_array_equal(m.get_output(0).numpy(), X @ W.T)
    assert m.get_num_inputs() == 1


def test_bound_parameters_are_nobodys_memory():
    x, w = relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    given = hr.nd.array(np.full(2, 2, "float32"))
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x, w], x + w)), "llvm", params={"w": given})
    given[:] = 9
    lib.get_params()["w"][:] = 11
    module = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    module.set_input(**lib.get_params())
    module.set_input("x", np.zeros(2, "float32"))
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), [2, 2])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (W + 1, "the parameter 'w' is a constant of the program since it was compiled, and this tensor has other"),
        (W.astype("float64"), "parameter 'w' has dtype float64, the program takes float32"),
        (W[:2], r"parameter 'w' has shape \(2, 3\), the program takes \(4, 3\)"),
        (W.reshape(12), r"parameter 'w' has 1 dimensions, the program takes \(4, 3\)"),
    ],
)
def test_other_values_for_a_bound_parameter(value, message):
    m = executor(bound_library())
    with pytest.raises(hr.UserError, match=message):
        m.set_input("w", value)
    with pytest.raises(hr.UserError, match=message):
        m.set_input(w=value)
    with pytest.raises(hr.UserError, match=message):
        m.load_params(relay.save_param_dict({"w": value}))


def test_names_of_no_input():
    m = executor(bound_library())
    with pytest.raises(hr.UserError, match="there is no input 'y'; the inputs are x"):
        m.set_input(y=X)
    for call in (m.get_input, lambda key: m.set_input_zero_copy(key, hr.nd.array(W))):
        with pytest.raises(hr.UserError, match="no input 'w': the parameter was bound when the program was compiled"):
            call("w")


def test_inputs_that_are_bound_by_compile(tmp_path):
    x = np.full((1, 1, 8, 8), 0.5, "float32")
    path = tmp_path / "bound.so"
    hr.compile("models/digits.onnx", bound={"x": x}, opt_level=0, output=path)
    m = executor(hr.runtime.load_module(path))
    m.set_input("x", x)
    with pytest.raises(hr.UserError, match="this tensor has other elements"):
        m.set_input("x", x + 1)


# --- arrays


def test_an_array_is_a_copy():
    x = X.copy()
    a = hr.nd.array(x, hr.cpu(0))
    x[:] = 0
    np.testing.assert_array_equal(a.numpy(), X)
    shared = hr.nd.from_dlpack(x)
    x[0, 0] = 7
    assert shared[0, 0] == 7
    with pytest.raises(hr.UserError, match=r"device: expected a Device, as headrace.cpu\(\), got str"):
        hr.nd.array(x, "cpu")
    with pytest.raises(hr.UserError, match="device: expected a Device"):
        hr.nd.empty((2,), "float32", 1)


def test_items_of_an_array_are_written():
    a = hr.nd.empty((2, 3))
    a[:] = X
    np.testing.assert_array_equal(a.numpy(), X)
    a[0] = 5
    a[1, 1:] = [8, 9]
    assert a.numpy().tolist() == [[5, 5, 5], [3, 8, 9]]
    a[:] = hr.nd.array(-X)
    np.testing.assert_array_equal(a.numpy(), -X)
    with pytest.raises(ValueError, match="could not broadcast"):
        a[:] = np.zeros((3, 3))
    with pytest.raises(IndexError):
        a[2] = 0


def test_a_copy_on_a_device():
    a = hr.nd.array(X)
    b = a.copyto(hr.cpu())
    a[:] = 0
    np.testing.assert_array_equal(b.numpy(), X)
    c = hr.nd.empty((2, 3))
    assert b.copyto(c).same_as(c)
    np.testing.assert_array_equal(c.numpy(), X)
    with pytest.raises(hr.UserError, match="target: expected an NDArray or a Device, got str"):
        a.copyto("cpu")


# --- what the evaluator gives


def lists():
    prelude = relay.prelude.Prelude()
    return prelude, prelude.get_ctor("List", "Cons"), prelude.get_ctor("List", "Nil")


def to_list(value, cons):
    found = []
    while value.constructor.tag == cons.tag:
        head, value = value.fields
        found.append(int(head.numpy()))
    return found


def test_values_of_data_types():
    p, cons, nil = lists()
    items = nil()
    for i in (3, 2, 1):
        items = cons(relay.const(i), items)
    x = relay.create_executor("debug", p.mod).evaluate(items)
    assert isinstance(x, relay.backend.interpreter.ConstructorValue)
    assert (x.constructor.name_hint, x.tag, len(x), len(x.fields)) == ("Cons", cons.tag, 2, 2)
    assert x.constructor == cons
    assert int(x[0].numpy()) == 1
    assert to_list(x, cons) == [1, 2, 3]
    assert hr.ir.structural_equal(hr.ir.load_json(hr.ir.save_json(x)), x, map_free_vars=True)


def test_values_of_data_types_as_arguments():
    p, cons, nil = lists()
    ex = relay.create_executor("debug", p.mod)
    v = relay.var("v", p.mod.get_global_type_var("List")(relay.scalar_type("int32")))
    total = ex.evaluate(relay.Function([v], p.sum(v)))
    value = ex.evaluate(nil())
    assert int(total(value).numpy()) == 0
    n = relay.var("n", relay.scalar_type("int32"))
    push = ex.evaluate(relay.Function([n, v], cons(n, v)))
    for i in (1, 2, 3):
        value = push(np.int32(i), value)
    assert to_list(value, cons) == [3, 2, 1]
    assert int(total(value).numpy()) == 6
    one_more = relay.Function([v], cons(relay.const(1), v))
    many = ex.evaluate(p.iterate(one_more, relay.const(5000))(nil()))
    assert to_list(many, cons) == [1] * 5000
    kept = ex.evaluate(relay.Function([v], v))(many)
    assert to_list(kept, cons) == [1] * 5000


def test_values_of_references():
    r = relay.var("r")
    body = relay.Let(r, relay.RefCreate(relay.const(1)), relay.Tuple([r, relay.RefWrite(r, relay.const(5))]))
    cell, nothing = relay.create_executor("debug").evaluate(body)
    assert isinstance(cell, relay.backend.interpreter.RefValue)
    assert int(cell.value.numpy()) == 5
    assert len(nothing) == 0
    with pytest.raises(hr.UserError, match="the value is not a reference"):
        hr.get_global_func("relay.backend.ReadRef")(1)


def test_a_pattern_of_another_kind_of_value():
    p, cons, nil = lists()
    ex = relay.create_executor("debug", p.mod)
    any_ = relay.PatternWildcard()
    of_data = relay.Clause(relay.PatternConstructor(cons, [any_, any_]), relay.const(1))
    of_tuple = relay.Clause(relay.PatternTuple([]), relay.const(1))
    with pytest.raises(hr.UserError, match=r"a value of \(int32, int32\) is matched against Cons of List"):
        ex.evaluate(relay.Match(relay.Tuple([relay.const(1), relay.const(1)]), [of_data], complete=False))
    with pytest.raises(hr.UserError, match=r"a pattern of 0 items does not fit List\[_\]"):
        ex.evaluate(relay.Match(nil(), [of_tuple], complete=False))


def test_types_are_applied_by_a_call():
    data, t = relay.GlobalTypeVar("Box"), relay.TypeVar("t")
    assert data(t) == relay.TypeCall(data, [t])
    assert data(t, relay.scalar_type("int32")).args == [t, relay.scalar_type("int32")]
    assert t(data) == relay.TypeCall(t, [data])


def test_the_prelude():
    mod = hr.IRModule()
    p = relay.prelude.Prelude(mod)
    assert p.mod is mod
    assert p.map == mod.get_global_var("map")
    assert [c.name_hint for c in p.get_type("List")] == ["List", "Cons", "Nil"]
    with pytest.raises(AttributeError, match="no function 'nowhere'"):
        _ = p.nowhere


# --- texts


def test_texts_of_names():
    x = relay.var("x", shape=(2, 3))
    assert str(x) == "free_var %x: Tensor[(2, 3), float32];\n%x"
    assert repr(x) == "Var(x, ty=Tensor[(2, 3), float32])"
    assert (str(relay.var("y")), repr(relay.var("y"))) == ("free_var %y;\n%y", "Var(y)")
    assert (str(relay.GlobalVar("f")), repr(relay.GlobalVar("f"))) == ("@f", "GlobalVar(f)")
    assert (str(relay.op.get("nn.relu")), repr(relay.op.get("nn.relu"))) == ("nn.relu", "Op(nn.relu)")
    _, cons, _ = lists()
    assert (str(cons), repr(cons)) == ("Cons", "Constructor(Cons)")


# --- imports


@pytest.mark.parametrize(
    ("place", "name", "same"),
    [
        ("relay.function", "Function", relay.Function),
        ("relay.adt", "Match", relay.Match),
        ("relay.adt", "PatternWildcard", relay.PatternWildcard),
        ("relay.expr", "Call", relay.Call),
        ("relay.ty", "TensorType", relay.TensorType),
        ("relay.op", "get", relay.op.get),
        ("relay.op.op", "register", relay.op.register),
        ("relay.op.nn", "conv2d", relay.nn.conv2d),
        ("relay.op.image", "resize2d", relay.image.resize2d),
        ("relay.op.annotation", "on_device", relay.annotation.on_device),
        ("relay.build_module", "build", relay.build),
        ("relay.expr_functor", "ExprMutator", relay.ExprMutator),
        ("relay.scope_builder", "ScopeBuilder", relay.ScopeBuilder),
        ("relay.param_dict", "save_param_dict", relay.save_param_dict),
        ("relay.prelude", "Prelude", relay.prelude.Prelude),
        ("relay.testing", "run_infer_type", relay.testing.run_infer_type),
        ("ir.instrument", "pass_instrument", hr.instrument.pass_instrument),
        ("ir.transform", "PassContext", hr.transform.PassContext),
        ("parser", "fromtext", relay.fromtext),
        ("contrib.graph_executor", "GraphModule", hr.graph_executor.GraphModule),
    ],
)
def test_a_module_at_relays_place(place, name, same):
    module = importlib.import_module(f"headrace.{place}")
    assert getattr(module, name) is same
    found = hr
    for part in place.split("."):  # as an attribute, too
        found = getattr(found, part)
    assert getattr(found, name) is same
    program = f"import headrace.{place}\nfrom headrace.{place} import {name}\n"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_imports_that_are_nowhere():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'headrace\.relay\.nowhere'"):
        importlib.import_module("headrace.relay.nowhere")
    with pytest.raises(AttributeError, match="module 'headrace' has no attribute 'nowhere'"):
        _ = hr.nowhere
    with pytest.raises(AttributeError, match="export one to ONNX"):
        _ = relay.testing.darknet
    assert not hasattr(relay, "vm")


def test_helpers_of_tests():
    x = relay.var("x", shape=(2,))
    assert relay.testing.run_infer_type(x + relay.const(1.0)).checked_type == relay.TensorType((2,))
    function = relay.testing.run_infer_type(relay.Function([x], x))
    assert isinstance(function.checked_type, relay.FuncType)
    one = relay.testing.run_opt_pass(relay.const(1) + relay.const(2), relay.transform.FoldConstant())
    assert int(one.data.numpy()) == 3
    with pytest.raises(hr.UserError, match="expected an expression"):
        relay.testing.run_infer_type(5)


# --- errors


def test_two_parameters_of_one_name():
    a, b = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.Function([a, relay.var("y", shape=(2,)), b], a + b))
    with pytest.raises(hr.UserError, match=r"parameters 0 and 2 of @main are both named 'x'.*; rename one"):
        relay.build(mod)
    assert relay.create_executor("debug", mod).evaluate()(X[0, :2], X[0, :2], X[0, :2]).numpy().tolist() == [0, 2]
    unnamed = relay.var("", shape=(2,))
    with pytest.raises(hr.UserError, match="parameter 0 of @main has no name"):
        relay.build(hr.IRModule.from_expr(relay.Function([unnamed], unnamed)))


def test_errors_name_the_function():
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 5))
    good, bad = relay.Function([x], relay.nn.relu(x)), relay.Function([x, y], x + y)
    mod = hr.IRModule({"first": good, "second": bad, "third": good})
    with pytest.raises(hr.UserError, match="cannot be broadcast") as told:
        relay.transform.InferType()(mod)
    assert told.value.place == "@second"
    assert str(told.value).endswith("\n  at: add\n  in: @second")
    mod["third"] = relay.Function([y], relay.nn.dense(y, relay.const(W)))
    with pytest.raises(hr.UserError, match=r"(?s)2 type errors:.*in: @second.*in: @third"):
        relay.transform.InferType()(mod)


def test_errors_of_texts_name_the_line():
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) {\n  add(%x, %y)\n}\n'
    with pytest.raises(hr.UserError) as told:
        relay.transform.InferType()(relay.parse(text))
    assert told.value.place == "from_string:3:3"
    assert told.value.op == "add"
    assert str(told.value) == (
        "add: shapes (2) and (3) cannot be broadcast: axis 0 is 2 and 3\n"
        "  at: add\n"
        "  in: from_string:3:3\n"
        "      add(%x, %y)\n"
        "      ^^^^^^^^^^^"
    )
    body = relay.parse(text)["main"].body
    with pytest.raises(hr.UserError, match=r"in: from_string:3:3$"):  # an expression has no text
        relay.transform.InferType()(hr.IRModule.from_expr(body))


def test_a_text_without_its_weights():
    mod = hr.IRModule.from_expr(relay.concatenate([relay.const(np.full((40, 40), i)) for i in range(5)], 0))
    short = mod.astext(show_meta_data=False)
    with pytest.raises(hr.UserError, match="no data for constant 0 and 4 more") as told:
        relay.parse(short)
    assert str(told.value).count("there is no data") == 1
    assert "in Python weights=" in str(told.value)


def test_calls_that_are_not_whole():
    x = relay.var("x", shape=(2, 3))
    for call, message in [
        (relay.Call(relay.op.get("add"), [x]), r"add takes 2 arguments \(lhs, rhs\), got 1"),
        (relay.Call(relay.op.get("nn.softmax"), [x]), r"no attributes.* relay\.nn\.softmax\(\.\.\.\) makes them"),
    ]:
        with pytest.raises(hr.UserError, match=message):
            relay.transform.InferType()(hr.IRModule.from_expr(call))


@pytest.mark.parametrize("program", [dense_function(), relay.const(1.0)])
def test_a_pass_of_what_is_no_module(program):
    with pytest.raises(hr.UserError, match=r"InferType is a pass over a module, got \w+; write IRModule.from_expr"):
        relay.transform.InferType()(program)


@pytest.mark.parametrize("name", ["model.onnx", "model.relay"])
def test_loading_a_model(name):
    with pytest.raises(hr.UserError, match=f"'{name}' is a model, which headrace.compile compiles"):
        hr.load(name)


def test_a_list_of_targets():
    assert relay.build(hr.IRModule.from_expr(dense_function()), ["llvm"]).target == hr.Target("llvm")
    for compile_for in (
        lambda target: relay.build(hr.IRModule.from_expr(dense_function()), target),
        lambda target: hr.compile("models/digits.onnx", target=target),
    ):
        with pytest.raises(hr.UserError, match="got 2 targets of kind llvm in a list of 2"):
            compile_for((hr.Target("llvm"), "llvm"))


def test_open_shapes_of_a_model():
    with pytest.raises(hr.UserError, match=r'as in shape=\{"x": \(1, 1, 8, 8\)\}$'):
        relay.frontend.from_onnx("models/digits.onnx")
    with pytest.raises(hr.UserError, match=r'as in dims=\{"n": 1\}$'):
        hr.compile("models/digits.onnx")
