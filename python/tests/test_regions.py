"""Regions for other compilers: support of ops, annotations, merging, partitioning and what undoes it."""

from __future__ import annotations

import contextlib
import inspect

import headrace as hr
import numpy as np
import pytest
from headrace import relay
from headrace.relay import transform
from headrace.relay.dataflow_pattern import is_op, wildcard

HEAD = '#[version = "0.0.5"]\n'


@pytest.fixture
def compiler():
    """The name of a compiler that supports nn.relu, abs, add and exp while a test runs."""
    name = "regions_test"
    ops = ["nn.relu", "abs", "add", "exp"]
    for op in ops:
        relay.op.contrib.register_extern_op(op, name)
    yield name
    for op in ops:
        relay.op.get(op).reset_attr(f"target.{name}")


def module_of(result, *params):
    return transform.InferType()(hr.IRModule.from_expr(relay.Function(list(params), result)))


def ops_in(module):
    """The names of all op calls of @main, in order of evaluation."""
    names = []
    relay.analysis.post_order_visit(
        module["main"],
        lambda e: names.append(e.op.name) if isinstance(e, relay.Call) and hasattr(e.op, "name") else None,
    )
    return names


def regions_of(module):
    return {str(var.name_hint): f for var, f in module.functions.items() if f.attrs and "Compiler" in f.attrs}


def run(module, *inputs):
    result = relay.create_executor("debug", mod=module).evaluate()(*inputs)
    return [r.numpy() for r in result] if not hasattr(result, "numpy") else [result.numpy()]


def assert_same_results(before, after, *inputs):
    for a, b in zip(run(before, *inputs), run(after, *inputs), strict=True):
        np.testing.assert_array_equal(a, b)


def partition(module, targets, **options):
    passes = [transform.AnnotateTarget(targets), transform.MergeCompilerRegions(), transform.PartitionGraph(**options)]
    return hr.transform.Sequential(passes)(module)


# Names and signatures of Relay's


def test_signatures_are_relays():
    assert list(inspect.signature(transform.AnnotateTarget).parameters) == ["targets", "include_non_call_ops"]
    partition_graph = ["mod_name", "bind_constants", "extern_target"]
    assert list(inspect.signature(transform.PartitionGraph).parameters) == partition_graph
    assert list(inspect.signature(transform.MergeCompilerRegions).parameters) == []
    for name in ("OutlineCompilerFunctionsWithExistingGlobalSymbols", "MarkCompilerFunctionsAsExtern"):
        assert list(inspect.signature(getattr(transform, name)).parameters) == ["compiler_filter"]
    assert transform.AnnotateTarget(["a", "b"], include_non_call_ops=False).info.name == "AnnotateTarget"
    assert transform.PartitionGraph("net", False).info.name == "PartitionGraph"


def test_annotations_have_all_their_names():
    x = relay.var("x", shape=(2,))
    begin = relay.annotation.compiler_begin(x, "gpu")
    assert begin.op.name == "annotation.compiler_begin"
    assert begin.attrs.compiler == "gpu"
    end = relay.op.annotation.compiler_end(begin, "gpu")
    assert end.op.name == "annotation.compiler_end"
    assert relay.annotation.subgraph_start is relay.annotation.subgraph_begin is relay.annotation.compiler_begin
    assert relay.annotation.subgraph_end is relay.annotation.compiler_end
    pair = relay.annotation.compiler_end(relay.Tuple([x, x]), "gpu")
    assert str(transform.InferTypeLocal(pair)).startswith("(Tensor")
    text = module_of(relay.annotation.compiler_end(relay.exp(begin), "gpu"), x).astext()
    assert 'annotation.compiler_begin(%x, compiler="gpu")' in text
    hr.ir.assert_structural_equal(hr.ir.load_json(hr.ir.save_json(begin)), begin, map_free_vars=True)


def test_a_compiler_needs_a_name():
    x = relay.var("x", shape=(2,))
    with pytest.raises(hr.UserError, match="the compiler has no name"):
        module_of(relay.annotation.compiler_begin(x, ""), x)


# Support


def test_checks_of_both_forms_see_types():
    seen = []

    @hr.ir.register_op_attr("nn.relu", "target.two_forms")
    def old_form(attrs, args):
        seen.append((attrs, args[0].checked_type.dtype))
        return True

    @hr.ir.register_op_attr("clip", "target.two_forms")
    def new_form(call):
        seen.append((call.attrs.a_max, call.args[0].checked_type.dtype))
        return call.attrs.a_max < 5

    x = relay.var("x", shape=(4,))
    module = module_of(relay.clip(relay.clip(relay.nn.relu(x), 0, 3), 0, 9), x)
    after = partition(module, "two_forms")
    assert seen == [(None, "float32"), (3.0, "float32"), (9.0, "float32")]
    (region,) = regions_of(after).values()
    assert "clip" in str(region) and "a_max=9" not in str(region)
    assert_same_results(module, after, np.float32([-1, 1, 4, 20]))
    for op in ("nn.relu", "clip"):
        relay.op.get(op).reset_attr("target.two_forms")


def test_an_error_of_a_check_is_raised_as_it_is():
    def refuse(call):
        raise KeyError("no table of this op")

    relay.op.contrib.register_extern_op("tanh", "raises", refuse)
    x = relay.var("x", shape=(4,))
    with pytest.raises(KeyError, match="no table of this op"):
        transform.AnnotateTarget("raises")(module_of(relay.tanh(x), x))
    relay.op.get("tanh").reset_attr("target.raises")


def test_register_extern_op_takes_a_bool_or_a_function():
    register = relay.op.contrib.register_extern_op
    x = relay.var("x", shape=(4,))
    module = module_of(relay.cosh(x), x)
    for check, count in ((True, 1), (False, 0), (lambda call: len(call.args) == 1, 1), (lambda call: 0, 0)):
        register("cosh", "checked", check)
        assert len(regions_of(partition(module, ["checked"]))) == count
    with pytest.raises(hr.UserError, match="check is 3; it is a bool or a function of the call"):
        register("cosh", "checked", 3)
    relay.op.get("cosh").reset_attr("target.checked")
    with pytest.raises(hr.UserError, match="no_such_op"):
        register("no_such_op", "checked")


def regions_given(compiler):
    """The regions that the function relay.ext.`compiler` gets: a list that grows."""
    given = []

    def compile_region(function):
        given.append(function)
        raise RuntimeError("it compiles nothing")

    hr.register_func(f"relay.ext.{compiler}", compile_region)
    return given


def test_pattern_tables_count_in_a_compile():
    from headrace.relay.op.contrib.register import get_pattern_table, register_pattern_table

    pattern = is_op("nn.relu")(is_op("tanh")(wildcard()))
    x = relay.var("x", shape=(4,))
    module = module_of(relay.nn.relu(relay.tanh(x)), x)
    answers = [True]

    @register_pattern_table("tabled")
    def table():
        return [("tabled.one", pattern, lambda root: answers[0])]

    given = regions_given("tabled")
    for compile_module in (
        lambda: hr.compile(module, backends=["tabled"]),
        lambda: relay.build(module, ["llvm", "tabled"]),
    ):
        given.clear()
        with contextlib.suppress(RuntimeError):
            compile_module()
        (function,) = given
        assert function.body.op.attrs["Composite"] == "tabled.one"
    partitioned = partition(transform.MergeComposite(get_pattern_table("tabled"))(module), ["tabled"])
    assert len(regions_of(partitioned)) == 1  # Relay's own passes agree
    answers[0] = "it is refused"
    given.clear()
    hr.compile(module, backends=["tabled"])
    assert not given


def test_wrong_pattern_tables_are_errors_of_the_compile():
    register = relay.op.contrib.register_pattern_table
    x = relay.var("x", shape=(4,))
    module = module_of(relay.tanh(x), x)
    assert relay.op.contrib.get_pattern_table("no_such_compiler") is None
    regions_given("listed")
    for table, message in (
        ([1], "cannot be read: entry 0 of the pattern table is a int"),
        ([("other.one", is_op("tanh")(wildcard()))], "has a pattern 'other.one'; names .* must begin with 'listed.'"),
    ):
        register("listed", table)
        assert relay.op.contrib.register.get_pattern_table("listed") == table
        with pytest.raises(hr.UserError, match=message):
            hr.compile(module, backends=["listed"])


# Annotating and merging


def test_each_user_gets_an_end(compiler):
    x = relay.var("x", shape=(4,))
    r = relay.nn.relu(x)
    before = module_of(relay.add(relay.tanh(r), relay.sigmoid(r)), x)

    begin = relay.annotation.compiler_begin
    end = relay.annotation.compiler_end
    r = relay.nn.relu(begin(x, compiler))
    a = relay.tanh(begin(end(r, compiler), "default"))
    b = relay.sigmoid(begin(end(r, compiler), "default"))
    out = relay.add(begin(end(a, "default"), compiler), begin(end(b, "default"), compiler))
    expected = module_of(end(out, compiler), x)
    hr.ir.assert_structural_equal(transform.AnnotateTarget(compiler)(before), expected)


def test_two_runs_are_one(compiler):
    relay.op.contrib.register_extern_op("tanh", "second")
    x = relay.var("x", shape=(4,))
    module = module_of(relay.add(relay.tanh(relay.abs(x)), relay.concatenate([x], 0)), x)
    once = transform.AnnotateTarget([compiler, "second"])(module)
    twice = transform.AnnotateTarget("second")(transform.AnnotateTarget(compiler)(module))
    hr.ir.assert_structural_equal(once, twice)
    relay.op.get("tanh").reset_attr("target.second")


def test_the_passes_write_types_of_results(compiler):
    x = relay.var("x", shape=(4,))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.tanh(relay.exp(x))))
    four = relay.TensorType((4,), "float32")
    for one in (transform.AnnotateTarget(compiler), transform.MergeCompilerRegions(), transform.PartitionGraph()):
        mod = one(mod)
        assert mod["main"].ret_type == four, one.info.name
        assert mod["main"].body.checked_type == four
    (region,) = regions_of(mod).values()
    assert region.ret_type == four


def test_a_result_that_is_used_twice_is_one_item(compiler):
    x = relay.var("x", shape=(4, 4))
    pieces = relay.split(x, 2)
    relay.op.contrib.register_extern_op("split", compiler)
    try:
        body = relay.Tuple([relay.abs(pieces[0]), relay.tanh(pieces[1]), relay.log(pieces[1])])
        mod = partition(module_of(body, x), compiler)
    finally:
        relay.op.get("split").reset_attr(f"target.{compiler}")
    _, tanh, log = mod["main"].body.fields
    assert isinstance(tanh.args[0], relay.TupleGetItem)
    assert tanh.args[0].same_as(log.args[0])


def test_a_diamond_is_two_regions(compiler):
    x = relay.var("x", shape=(4,))
    o1 = relay.abs(x)
    o2 = relay.nn.relu(o1)
    other = relay.tanh(o1)
    module = module_of(relay.tanh(relay.add(o2, other)), x)
    after = partition(module, compiler)
    assert len(regions_of(after)) == 2
    assert "annotation.compiler_begin" not in after.astext()
    assert_same_results(module, after, np.float32([-1, 0, 1, 2]))


# Partitioning


class AnnotateAdds(relay.ExprMutator):
    """Marks by hand: whole graphs between the additions and the results."""

    def visit_call(self, call):
        call = super().visit_call(call)
        if call.op.name == "add":
            begins = [relay.annotation.subgraph_begin(arg, "gcc") for arg in call.args]
            return relay.annotation.subgraph_end(relay.Call(call.op, begins, call.attrs), "gcc")
        return call


def test_annotations_by_hand():
    x = relay.var("x", shape=(3,))
    before = relay.Function([x], relay.multiply(relay.add(x, relay.const(1.0)), relay.add(x, x)))
    module = transform.InferType()(hr.IRModule.from_expr(AnnotateAdds().visit(before)))
    after = transform.PartitionGraph()(module)
    assert sorted(regions_of(after)) == ["tvmgen_default_gcc_main_0", "tvmgen_default_gcc_main_1"]
    assert ops_in(after) == ["multiply"]
    assert_same_results(module, after, np.float32([1, 2, 3]))


def test_names_and_attributes(compiler):
    x = relay.var("x", shape=(4,))
    after = partition(module_of(relay.exp(x), x), compiler, mod_name="my-net")
    ((name, region),) = regions_of(after).items()
    assert name == "tvmgen_my_net_regions_test_main_0"
    assert region.attrs["global_symbol"] == name
    assert (region.attrs["Primitive"], region.attrs["Inline"], region.attrs["Compiler"]) == (1, 1, compiler)
    assert [p.name_hint for p in region.params] == ["regions_test_0_i0"]


def test_constants_inside_and_outside(compiler):
    x = relay.var("x", shape=(2,))
    module = module_of(relay.add(relay.exp(x), relay.const(np.float32([1, 2]))), x)
    for bind, count in ((True, 1), (False, 2)):
        after = partition(module, compiler, bind_constants=bind)
        (region,) = regions_of(after).values()
        assert len(region.params) == count
        assert_same_results(module, after, np.float32([1, 2]))


def test_results_leave_once_and_flat(compiler):
    x = relay.var("x", shape=(2,))
    a = relay.exp(x)
    b = relay.abs(a)
    module = module_of(relay.Tuple([a, relay.Tuple([b, a]), relay.tanh(b)]), x)
    after = partition(module, compiler)
    (region,) = regions_of(after).values()
    assert len(region.ret_type.fields) == 2
    value = relay.create_executor("debug", mod=after).evaluate()(np.float32([-1, 2]))
    np.testing.assert_array_equal(value[1][1].numpy(), value[0].numpy())


def test_the_optimize_hook(compiler):
    seen = []

    @hr.register_func(f"relay.ext.{compiler}.optimize", override=True)
    def optimize(module):
        seen.append(module["main"].body.op.name)
        return module

    x = relay.var("x", shape=(2,))
    module = module_of(relay.exp(x), x)
    assert_same_results(module, partition(module, compiler), np.float32([-1, 2]))
    assert seen == ["exp"]


def test_types_of_the_prelude_stay(compiler):
    module = hr.IRModule()
    module.import_from_std("prelude.rly")
    x = relay.var("x", shape=(2,))
    module["main"] = relay.Function([x], relay.exp(x))
    module = transform.InferType()(module)
    after = partition(module, compiler)
    assert len(after.type_definitions) == len(module.type_definitions) > 0
    assert_same_results(module, after, np.float32([-1, 2]))


def test_a_partitioned_module_is_text_and_json(compiler):
    x = relay.var("x", shape=(2,))
    after = partition(module_of(relay.tanh(relay.add(x, relay.const(np.ones(2, "float32")))), x), compiler)
    hr.ir.assert_structural_equal(relay.parse(after.astext()), after)
    hr.ir.assert_structural_equal(hr.ir.load_json(hr.ir.save_json(after)), after)


def test_mobilenet_keeps_its_results():
    name = "mobile"
    ops = ("nn.conv2d", "nn.relu", "nn.batch_norm", "nn.bias_add", "nn.softmax", "nn.dense")
    for op in ops:
        relay.op.contrib.register_extern_op(op, name, lambda call: call.args[0].checked_type.dtype == "float32")
    module, params = relay.testing.mobilenet.get_workload(batch_size=1, image_shape=(3, 32, 32), num_classes=10)
    module["main"] = relay.build_module.bind_params_by_name(module["main"], params)
    module = transform.InferType()(module)
    after = partition(module, name)
    assert "annotation.compiler" not in after.astext(show_meta_data=False)
    assert 1 <= len(regions_of(after)) <= 3
    assert_same_results(module, after, np.random.default_rng(1).random((1, 3, 32, 32), np.float32))
    for op in ops:
        relay.op.get(op).reset_attr(f"target.{name}")


# Functions for other compilers in and out of @main


def test_outline_mark_and_inline(compiler):
    x = relay.var("x", shape=(2,))
    module = module_of(relay.tanh(relay.exp(relay.abs(x))), x)
    after = partition(module, compiler)
    (var,) = [v for v in after.get_global_vars() if v.name_hint != "main"]
    back = transform.InlineCompilerFunctionsBoundTo([var])(after)
    hr.ir.assert_structural_equal(back, module)

    text = HEAD + (
        "def @main(%x: Tensor[(2), float32]) {\n"
        '  %0 = fn (%a: Tensor[(2), float32], Compiler="one", global_symbol="one_0") { exp(%a) };\n'
        '  let %f = fn (%a: Tensor[(2), float32], Compiler="two", global_symbol="two_0") { abs(%a) };\n'
        "  %f(%0(%x))\n}\n"
    )
    module = relay.parse(text)
    only = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols("one")(module)
    assert sorted(v.name_hint for v in only.get_global_vars()) == ["main", "one_0"]
    both = transform.OutlineCompilerFunctionsWithExistingGlobalSymbols()(module)
    assert sorted(v.name_hint for v in both.get_global_vars()) == ["main", "one_0", "two_0"]
    assert_same_results(module, both, np.float32([-1, 2]))
    marked = transform.MarkCompilerFunctionsAsExtern("two")(both)
    assert dict(marked["two_0"].attrs) == {"Extern": 1}
    assert marked["one_0"].attrs["Compiler"] == "one"


def test_wrong_arguments_say_what_is_wanted():
    x = relay.var("x", shape=(2,))
    module = module_of(relay.exp(x), x)
    assert transform.AnnotateTarget()(module).same_as(module)
    with pytest.raises(hr.UserError, match="'default' names no compiler"):
        transform.AnnotateTarget("default")(module)
    with pytest.raises(hr.UserError, match=r"relay\.AnnotateTarget\.targets.*str or Array\[str\]"):
        transform.AnnotateTarget(3)
    with pytest.raises(hr.UserError, match="takes 2 arguments"):
        transform.PartitionGraph("a", True, 3)
    with pytest.raises(hr.UserError, match="@main is not marked Compiler"):
        transform.InlineCompilerFunctionsBoundTo([module.get_global_var("main")])(module)
