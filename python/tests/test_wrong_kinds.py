"""Arguments of another kind than the one that is wanted: the message names the function, argument and both kinds."""

import re

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay, transform  # noqa: E402

X = relay.var("x", shape=(2,))
F = relay.Function([X], relay.nn.relu(X))
MOD = hr.IRModule.from_expr(F)
TYPE = relay.TensorType((2,))
MATCH = relay.Match(X, [relay.Clause(relay.PatternWildcard(), X)])
WRONG = [None, "x", [X], 3, {}, np.zeros(2), object(), TYPE, MOD]
analysis = relay.analysis


def kind(value):
    return "None" if value is None else type(value).__name__


OF_EXPRESSIONS = {
    "free_vars: expr": analysis.free_vars,
    "all_vars: expr": analysis.all_vars,
    "bound_vars: expr": analysis.bound_vars,
    "post_order_visit: expr": lambda expr: analysis.post_order_visit(expr, print),
    "all_dtypes: expr": analysis.all_dtypes,
    "check_constant: expr": analysis.check_constant,
    "check_basic_block_normal_form: expr": analysis.check_basic_block_normal_form,
    "get_total_mac_number: expr": analysis.get_total_mac_number,
    "InferTypeLocal: expr": relay.transform.InferTypeLocal,
    "from_expr: expr": hr.IRModule.from_expr,
    "bind: expr": lambda expr: relay.bind(expr, {}),
    "ExprVisitor.visit": relay.ExprVisitor().visit,
    "ExprMutator.visit": relay.ExprMutator().visit,
}


@pytest.mark.parametrize("name", OF_EXPRESSIONS)
@pytest.mark.parametrize("value", WRONG, ids=kind)
def test_no_expression(name, value):
    with pytest.raises(hr.UserError, match=f"{name}: expected an expression, got {kind(value)}"):
        OF_EXPRESSIONS[name](value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: relay.const(np.zeros(2, "complex64")),
        lambda: relay.const(1.0, "complex64"),
        lambda: relay.const(hr.nd.array(np.zeros(2, "complex64"))),
        lambda: relay.Constant(np.zeros(2, "complex64")),
        lambda: relay.Constant(hr.nd.array(np.zeros(2, "complex64"))),
        lambda: relay.cast(X, "complex64"),
        lambda: relay.var("y", shape=(2,), dtype="complex64"),
    ],
)
def test_no_program_has_complex_numbers(make):
    with pytest.raises(hr.UserError, match="'complex64' is not a dtype; dtypes are float32, float64, "):
        make()


def test_a_module_where_an_expression_is_wanted():
    with pytest.raises(hr.UserError, match=r"got IRModule; give one of its functions, as mod\['main'\]"):
        analysis.free_vars(MOD)
    with pytest.raises(hr.UserError, match=r"field 'body' of relay.Function: expected relay.Expr, got ir.IRModule"):
        relay.Function([X], MOD)


@pytest.mark.parametrize("ask", [analysis.all_type_vars, analysis.bound_type_vars, analysis.free_type_vars])
@pytest.mark.parametrize("value", [value for value in WRONG if value is not TYPE], ids=kind)
def test_no_expression_and_no_type(ask, value):
    with pytest.raises(hr.UserError, match=f"{ask.__name__}: expr: expected an expression, got {kind(value)}"):
        ask(value)


def test_results_of_an_op_are_an_expression():
    pieces = relay.split(relay.var("p", shape=(4,)), 2)
    assert [var.name_hint for var in analysis.free_vars(pieces)] == ["p"]
    assert hr.IRModule.from_expr(pieces)["main"].body.op.name == "split"


OF_MODULES = {
    "list_op_freqs: mod": analysis.list_op_freqs,
    "extract_fused_functions: mod": analysis.extract_fused_functions,
    "fusion_borders: mod": analysis.fusion_borders,
    "check_kind: mod": lambda mod: analysis.check_kind(TYPE, mod),
    "unmatched_cases: mod": lambda mod: analysis.unmatched_cases(MATCH, mod),
}


@pytest.mark.parametrize("name", OF_MODULES)
@pytest.mark.parametrize("value", [*WRONG[1:-1], F], ids=kind)
def test_no_module(name, value):
    with pytest.raises(hr.UserError, match=f"{name}: expected an IRModule, got {kind(value)}"):
        OF_MODULES[name](value)


OTHERS = [
    (lambda v: analysis.check_kind(v), "check_kind: t: expected ir.Type, got", MOD),
    (lambda v: analysis.unmatched_cases(v), "unmatched_cases: match: expected relay.Match, got", F),
    (lambda v: analysis.well_formed(v), "well_formed: expr: expected ir.IRModule or relay.Expr or tir.PrimFunc", TYPE),
    (lambda v: analysis.find_breaches(v), "find_breaches: mod_or_expr: expected ir.IRModule or", None),
    (lambda v: analysis.post_order_visit(F, v), "post_order_visit: fvisit: expected a function, got", 3),
    (lambda v: analysis.count_layers(F, v), "count_layers: valid_ops: expected a list of str, got", "nn.relu"),
    (lambda v: analysis.count_layers(F, v), "count_layers: valid_ops: expected a list of str, got", None),
    (lambda v: analysis.detect_feature(v), "detect_feature: a: expected an expression, got", "x"),
    (lambda v: analysis.detect_feature(F, v), "detect_feature: b: expected an expression, got", []),
    (lambda v: hr.IRModule(v), "functions: expected a dict, got", MOD),
    (lambda v: hr.IRModule({}, v), "type_definitions: expected a dict, got", X),
    (lambda v: hr.IRModule(attrs=v), "attrs: expected a dict, got", "abc"),
    (lambda v: hr.IRModule({3: v}), "the name of a function: expected a GlobalVar or a str, got int", F),
    (lambda v: hr.IRModule({"f": v}), "function 'f': expected an expression, got", 3),
    (
        lambda v: MOD.copy().update_func(relay.GlobalVar("g"), v),
        "a function of a module: expected an expression, got",
        "x",
    ),
    (lambda v: MOD.copy().update_func("g", v), "function 'g': expected an expression, got", None),
    (lambda v: MOD.copy().__setitem__("g", v), "function 'g': expected an expression, got", "x"),
    (lambda v: MOD.copy().update(v), "functions: expected a dict, got", F),
    (lambda v: MOD.copy().AddTypeDef(v), "AddTypeDef: data: expected relay.TypeData, got", TYPE),
    (lambda v: MOD[v], "a function of a module: expected its name or its GlobalVar, got", TYPE),
    (lambda v: v in MOD, "a function of a module: expected its name or its GlobalVar, got", 3),
    (lambda v: MOD.get_global_var(v), "get_global_var: name: expected a str, got", X),
    (lambda v: MOD.get_global_type_var(v), "get_global_type_var: name: expected a str, got", None),
    (lambda v: MOD.with_attr(v, 1), "with_attr: attr_key: expected a str, got", []),
    (lambda v: MOD.with_attrs(v), "with_attrs: attr_map: expected a dict, got", F),
    (lambda v: F.with_attr(v, 1), "with_attr: expected a str or a dict, got", []),
    (lambda v: ir.make_node(v), "make_node: type_key: expected a str, got", []),
    (lambda v: ir.load_json(v), "load_json: json_str: expected a str, got", MOD),
    (lambda v: relay.astext(v), "astext: expr_or_mod: expected an expression, got", 3),
    (lambda v: relay.op.get(v), "the name of an op: expected a str, got", X),
    (lambda v: relay.bind(F, v), "bind: binds: expected a dict, got", MOD),
    (lambda v: relay.bind_params_by_name(v, {}), "bind_params_by_name: func: expected relay.Function, got", MOD),
    (lambda v: relay.bind_params_by_name(F, v), "bind_params_by_name: params: expected a dict, got", X),
    (lambda v: relay.build(MOD, "llvm", params=v), "params: expected a dict, got", MOD),
    (lambda v: relay.create_executor(mod=MOD).evaluate(v), "evaluate: expr: expected an expression, got", MOD),
    (lambda v: relay.create_executor().evaluate(X, v), "evaluate: binds: expected a dict, got", X),
    (lambda v: relay.create_executor().evaluate(X, {v: 1}), "evaluate: a key of binds: expected relay.Var, got", "x"),
    (lambda v: relay.const(1, v), "const: dtype: expected a str, got", MOD),
    (lambda v: relay.TensorType((2,), v), "dtype: .* is not a dtype", TYPE),
    (lambda v: transform.Sequential(v), "passes: expected a list, got", 3),
    (lambda v: transform.PassContext(instruments=v), "instruments: expected a list, got", 3),
    (lambda v: transform.PassContext(config=v), "config: expected a dict, got", "abc"),
    (lambda v: transform.PassContext(required_pass=v), "required_pass: expected a list of str, got", 3),
    (lambda v: transform.module_pass(v, 0, "p"), "pass_func: expected a function or a class, got", 3),
    (lambda v: transform.Sequential([])(v), "sequential is a pass over a module, got", None),
    (lambda v: relay.testing.run_opt_pass(F, v), "run_opt_pass: opt_pass: expected a Pass, got", 3),
]


@pytest.mark.parametrize(("call", "says", "value"), OTHERS, ids=[says for _, says, _ in OTHERS])
def test_another_kind(call, says, value):
    with pytest.raises(hr.UserError, match=says) as told:
        call(value)
    assert not says.endswith("got") or f"got {'one str' if value == 'nn.relu' else kind(value)}" in str(told.value)


def test_what_cannot_be_passed_is_told_with_its_place():
    with pytest.raises(TypeError, match=r"field 'body' of relay\.Function: a module cannot be passed"):
        relay.Function([X], relay)
    with pytest.raises(TypeError, match="argument 1: a object cannot be passed"):
        ir.structural_equal(F, object())


@pytest.mark.parametrize("level", [-1, 5, 99])
def test_no_level(level, tmp_path):
    says = f"opt_level is {level}; it goes from 0 .each op by itself. to 4"
    with pytest.raises(hr.UserError, match=says):
        transform.PassContext(opt_level=level)
    changed = transform.PassContext().copy_with(opt_level=level)
    with pytest.raises(hr.UserError, match=says), changed:
        pass
    (tmp_path / "model.relay").write_text(MOD.astext())
    with pytest.raises(hr.UserError, match=says):
        hr.compile(tmp_path / "model.relay", opt_level=level)


@pytest.mark.parametrize("level", ["2", True, 2.5, None, [2]])
def test_no_number_for_a_level(level):
    says = f"opt_level: expected an int, got {str(level) if not isinstance(level, str) else repr(level)}"
    for call in (lambda: transform.PassContext(opt_level=level), lambda: hr.compile("x.relay", opt_level=level)):
        with pytest.raises(hr.UserError) as told:
            call()
        assert says in str(told.value)


def test_levels_of_numpy_and_the_ends_of_their_range():
    for level in (0, 4, np.int64(3)):
        with transform.PassContext(opt_level=level) as context:
            assert context.opt_level == level


@pytest.mark.parametrize("value", [2, -1, 1 << 40])
def test_a_number_is_no_bool(value):
    x = relay.var("x", shape=(2, 3))
    with pytest.raises(hr.UserError, match=rf"keepdims.*: expected bool, got int {value}; write true or false"):
        relay.sum(x, keepdims=value)


def test_0_and_1_are_bools():
    x = relay.var("x", shape=(2, 3))
    assert [relay.sum(x, keepdims=v).attrs.keepdims for v in (0, 1, False, True)] == [False, True, False, True]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (200, "int8", "200 does not fit int8 (-128 to 127)"),
        (-1, "uint8", "-1 does not fit uint8 (0 to 255)"),
        (np.array([1.0, 300.7]), "int8", "300.7 does not fit int8"),
        (float("nan"), "int32", "nan does not fit int32"),
    ],
)
def test_constants_fit_their_dtype(value, dtype, text):
    with pytest.raises(hr.UserError, match=re.escape(text)):
        relay.const(value, dtype)
    assert relay.const(127, "int8").data.numpy() == 127
