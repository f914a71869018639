"""Ops that Python registers: in programs, passes, the interpreter and compiled code; numpy says what they give."""

import itertools
import keyword
import subprocess
import sys
import traceback

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay, tir, transform  # noqa: E402
from headrace.graph_executor import GraphModule  # noqa: E402
from headrace.relay.op import OpPattern  # noqa: E402

X = np.array([[1, -2, 3], [0.5, 4, -1]], "float32")
_numbers = itertools.count()


def new_op(*arguments, relation="Identity"):
    """A new op of these arguments."""
    op = relay.op.register(f"usertest.op{next(_numbers)}", "An op of a test.")
    for name in arguments or ("data",):
        op.add_argument(name, "Tensor", f"The {name}.")
    return op.add_type_rel(
        "Identity" if relation == "Identity" else "Of this test", None if relation == "Identity" else relation
    )


def scale():
    """data * factor"""
    op = new_op().add_attr("factor", "float", 2.0, "What it is multiplied by.")
    relay.op.register_compute(
        op.name, lambda attrs, inputs, out_type: tir.compute(out_type.shape, lambda *i: inputs[0][i] * attrs.factor)
    )
    return op


def program(call, *shapes):
    """A module of `call`, a function of variables."""
    params = [relay.var(f"x{i}", shape=shape) for i, shape in enumerate(shapes)]
    return transform.Sequential([relay.transform.InferType()])(
        hr.IRModule.from_expr(relay.Function(params, call(*params)))
    )


def built(mod):
    return relay.build(mod, "llvm")


def run(lib, *inputs):
    module = GraphModule(lib["default"](hr.cpu()))
    for i, value in enumerate(inputs):
        module.set_input(i, value)
    module.run()
    return module.get_output(0).numpy()


def result(mod, *inputs):
    """What the program gives, interpreted and compiled, which must be the same."""
    plain = relay.create_executor("debug", mod).evaluate()(*inputs).numpy()
    np.testing.assert_array_equal(run(built(mod), *inputs), plain)
    return plain


def groups(mod):
    """The ops of each fused group, the groups sorted."""
    fused = relay.transform.FuseOps()(mod)
    found = []

    def visit(expr):
        if isinstance(expr, relay.Function) and expr.attrs.get("Primitive"):
            found.append(sorted(relay.analysis.list_op_freqs(hr.IRModule.from_expr(expr.without_attr("Primitive")))))

    relay.analysis.post_order_visit(fused["main"], visit)
    return sorted(found)


# --- what computes an op


def test_a_compute_form():
    op = scale()
    np.testing.assert_array_equal(result(program(lambda x: op(x, factor=2.5), (2, 3)), X), X * np.float32(2.5))
    np.testing.assert_array_equal(result(program(lambda x: op(x), (2, 3)), X), X * 2)
    call = relay.Call(op, [relay.var("x", shape=(2,))], op.make_attrs(factor=3))
    assert (call.attrs.factor, call.attrs["factor"], call.attrs.keys()) == (3.0, 3.0, ["factor"])


def test_a_compute_form_fuses():
    op = scale()
    mod = program(lambda x, w: relay.nn.relu(op(relay.nn.dense(x, w, units=2))), (2, 3), (2, 3))
    assert groups(mod) == [sorted(["nn.dense", op.name, "nn.relu"])]
    w = np.array([[1, 2, 0], [0, 0, -1]], "float32")
    np.testing.assert_array_equal(result(mod, X, w), np.maximum(X @ w.T * 2, 0))
    assert op.why_opaque == ""


def test_a_reduction_of_two_stages():
    def centre(attrs, inputs, out_type):
        (x,) = inputs
        k = tir.reduce_axis((0, x.shape[1]))
        mean = tir.compute((x.shape[0],), lambda i: tir.sum(x[i, k] / x.shape[1].astype(x.dtype), axis=k), "mean")
        return tir.compute(x.shape, lambda i, j: x[i, j] - mean[i], "centred")

    op = new_op()
    assert relay.op.register_compute(op.name)(centre) is centre
    mod = program(lambda x: op(x), (2, 4))
    x = np.array([[1, 2, 3, 2], [0, 8, -4, 0]], "float32")
    np.testing.assert_array_equal(result(mod, x), x - x.mean(axis=1, keepdims=True))
    assert relay.op.why_opaque(mod["main"].body) == "it has 2 stages"


def test_several_results():
    def relation(arg_types, attrs):
        return relay.TupleType([arg_types[0], arg_types[0]])

    op = new_op(relation=relation)

    @relay.op.register_compute(op.name)
    def both(attrs, inputs, out_type):
        assert [str(field) for field in out_type.fields] == ["Tensor[(2, 3), float32]"] * 2
        (x,) = inputs
        return [tir.compute(x.shape, lambda *i: x[i]), tir.compute(x.shape, lambda *i: -x[i])]

    mod = program(lambda x: relay.TupleGetItem(op(x), 1), (2, 3))
    np.testing.assert_array_equal(result(mod, X), -X)


def test_operands_in_a_tuple():
    op = new_op("data", relation=lambda arg_types, attrs: arg_types[0].fields[0])

    @relay.op.register_compute(op.name)
    def difference(attrs, inputs, out_type):
        a, b = inputs
        return tir.compute(a.shape, lambda *i: a[i] - b[i])

    mod = program(lambda x, y: op(relay.Tuple([x, y])), (2, 3), (2, 3))
    np.testing.assert_array_equal(result(mod, X, X[::-1].copy()), X - X[::-1])


KINDS = ["form", "loops", "function"]


def difference(kind):
    """a - b * c, where c is a scalar."""
    op = new_op("a", "b", "c")
    if kind == "form":
        relay.op.register_compute(
            op.name, lambda attrs, t, out_type: tir.compute(out_type.shape, lambda *i: t[0][i] - t[1][i] * t[2][()])
        )
    elif kind == "loops":
        text = """#[tir_version = "1"]
prim_func @f(a: Buffer[(n), float32], b: Buffer[(n), float32], c: Buffer[(), float32]) -> (y: Buffer[(n), float32]) {
  for i in serial(n) { y[i] = a[i]; y[i] = y[i] - b[i] * c[]; }
}
"""
        relay.op.register_compute(op.name, tir.parse(text))
        assert op.why_opaque
    else:
        relay.op.register_packed_func(op.name, lambda a, b, c, y: y.copyfrom(a.numpy() - b.numpy() * c.numpy()))
    return op


@pytest.mark.parametrize("kind", KINDS)
def test_operands_may_be_one_tensor_or_a_constant(kind):
    op = difference(kind)
    x, y = np.array([1, 2, 4], "float32"), np.array([10, 20, 30], "float32")
    np.testing.assert_array_equal(result(program(lambda v: op(v, v, relay.const(3.0)), (3,)), x), x - x * 3)
    mod = program(lambda v, w: op(w, relay.nn.relu(v), relay.const(2.0)), (3,), (3,))
    np.testing.assert_array_equal(result(mod, x, y), y - x * 2)


@pytest.mark.parametrize("kind", KINDS)
def test_operands_may_be_a_tuple_of_another_op(kind):
    op = new_op(relation=lambda arg_types, attrs: arg_types[0].fields[0])
    if kind == "form":
        relay.op.register_compute(
            op.name, lambda attrs, t, out_type: tir.compute(out_type.shape, lambda i: t[0][i] - t[1][i])
        )
    elif kind == "loops":
        text = """#[tir_version = "1"]
prim_func @f(a: Buffer[(n), float32], b: Buffer[(n), float32]) -> (y: Buffer[(n), float32]) {
  for i in serial(n) { y[i] = a[i]; y[i] = y[i] - b[i]; }
}
"""
        relay.op.register_compute(op.name, tir.parse(text))
    else:
        relay.op.register_packed_func(op.name, lambda a, b, y: y.copyfrom(a.numpy() - b.numpy()))
    mod = program(lambda x: op(relay.split(x, 2).astuple()), (4,))
    np.testing.assert_array_equal(result(mod, np.array([5, 6, 1, 3], "float32")), [4, 3])


@pytest.mark.parametrize("kind", ["form", "loops"])
def test_a_product_takes_what_follows(kind):
    op = new_op("a", "b", relation=lambda t, attrs: relay.TensorType((t[0].shape[0], t[1].shape[1])))

    def product(attrs, inputs, out_type):
        a, b = inputs
        k = tir.reduce_axis((0, a.shape[1]))
        return tir.compute(out_type.shape, lambda i, j: tir.sum(a[i, k] * b[k, j], axis=k))

    if kind == "form":
        relay.op.register_compute(op.name, product)
    else:
        relay.op.register_prim_func(
            op.name, lambda attrs, inputs, out: tir.create_prim_func([*inputs, product(attrs, inputs, out)])
        )
    mod = program(lambda x, w: relay.nn.relu(op(relay.nn.relu(x), w) + relay.const(1.0)), (5, 7), (7, 9))
    assert groups(mod) == sorted([["nn.relu"], sorted([op.name, "add", "nn.relu"])])
    random = np.random.default_rng(5)
    x, w = (random.integers(-4, 5, shape).astype("float32") for shape in ((5, 7), (7, 9)))
    np.testing.assert_array_equal(result(mod, x, w), np.maximum(np.maximum(x, 0) @ w + 1, 0))


def test_scalars_empty_tensors_and_no_operands():
    op = scale()
    assert result(program(lambda x: op(x), ()), np.float32(3)) == 6
    empty = np.zeros((0, 3), "float32")
    assert result(program(lambda x: op(x), (0, 3)), empty).shape == (0, 3)
    same = new_op()
    relay.op.register_packed_func(same.name, lambda x, y: y.copyfrom(x.numpy()))
    assert result(program(lambda x: same(x), (0, 3)), empty).shape == (0, 3)
    count = relay.op.register(f"usertest.op{next(_numbers)}").set_num_inputs(0).add_attr("size", "int")
    count.add_type_rel("Count", lambda arg_types, attrs: relay.TensorType((attrs.size,)))
    relay.op.register_compute(
        count.name, lambda attrs, inputs, out_type: tir.compute(out_type.shape, lambda i: i.astype("float32"))
    )
    np.testing.assert_array_equal(result(program(lambda x: x + count(size=3), (3,)), np.ones(3, "float32")), [1, 2, 3])


def test_assertions_of_loops_are_told():
    op = new_op()
    text = """#[tir_version = "1"]
prim_func @f(x: Buffer[(n), float32]) -> (y: Buffer[(n), float32]) {
  for i in serial(n) { assert x[i] < 2f, "an element is too large"; y[i] = x[i]; }
}
"""
    relay.op.register_compute(op.name, tir.parse(text))
    mod = program(lambda x: op(x), (3,))
    np.testing.assert_array_equal(result(mod, np.array([0, 1, -5], "float32")), [0, 1, -5])
    for call in (relay.create_executor("debug", mod).evaluate(), lambda x: run(built(mod), x)):
        with pytest.raises(hr.UserError, match="an element is too large"):
            call(np.array([0, 1, 2], "float32"))


def test_loops():
    op = new_op()
    text = """#[tir_version = "1"]
prim_func @triple(x: Buffer[(n, 3), float32]) -> (y: Buffer[(n, 3), float32]) {
  for i in serial(n) { for j in serial(3) { y[i, j] = x[i, j] * 3f; } }
}
"""
    relay.op.register_compute(op.name, tir.parse(text))
    mod = program(lambda x: relay.nn.relu(op(x)), (2, 3))
    assert groups(mod) == [sorted([op.name, "nn.relu"])]
    np.testing.assert_array_equal(result(mod, X), np.maximum(X * 3, 0))


def test_opaque_loops():
    op = new_op()
    text = """#[tir_version = "1"]
prim_func @running(x: Buffer[(n), float32]) -> (y: Buffer[(n), float32]) {
  y[0] = x[0];
  for i in serial(n - 1) { y[i + 1] = y[i] + x[i + 1]; }
}
"""
    relay.op.register_compute(op.name, tir.parse(text))
    mod = program(lambda x: op(relay.negative(x)), (4,))
    assert groups(mod) == [["negative"], [op.name]]
    assert op.why_opaque
    x = np.array([1, 2, -4, 8], "float32")
    np.testing.assert_array_equal(result(mod, x), np.cumsum(-x))


def test_loops_for_each_call():
    op = new_op().add_attr("step", "int", 1)

    @relay.op.register_prim_func(op.name)
    def roll(attrs, inputs, out_type):
        (x,) = inputs
        n = int(x.shape[0])
        return tir.create_prim_func([x, tir.compute((n,), lambda i: x[(i + attrs.step) % n])])

    x = np.arange(5, dtype="float32")
    np.testing.assert_array_equal(result(program(lambda v: op(v, step=2), (5,)), x), np.roll(x, -2))


def test_a_python_function(tmp_path):
    op = new_op("a", "b")

    @relay.op.register_packed_func(op.name)
    def largest(a, b, out):
        out.numpy()[...] = np.maximum(a.numpy(), b.numpy())

    mod = program(lambda x, y: relay.negative(op(relay.abs(x), y)), (2, 3), (2, 3))
    y = np.full_like(X, 2)
    np.testing.assert_array_equal(result(mod, X, y), -np.maximum(np.abs(X), 2))
    assert f"the function '{op.name}' computes it" in op.why_opaque
    # The artifact says what it needs, and who does not have it is told so.
    path = str(tmp_path / "net.so")
    built(mod).export_library(path)
    code = f"import headrace as hr; hr.runtime.load_module({path!r})['default'](hr.cpu())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"needs the function '{op.name}'" in done.stderr
    np.testing.assert_array_equal(run(hr.runtime.load_module(path), X, y), -np.maximum(np.abs(X), 2))


def test_a_function_of_another_name():
    op = new_op()
    relay.op.register_packed_func(op.name, "usertest.later")
    mod = program(lambda x: op(x), (2, 3))
    with pytest.raises(hr.UserError, match=r"there is no global function 'usertest\.later'"):
        relay.create_executor("debug", mod).evaluate()(X)

    @hr.register_func("usertest.later")
    def later(x, out):
        out.copyfrom(x.numpy() + 1)

    np.testing.assert_array_equal(result(mod, X), X + 1)


def test_exceptions_of_functions_reach_the_caller():
    op = new_op()

    @relay.op.register_packed_func(op.name)
    def fails(x, out):
        raise KeyError("the sensor is off")

    mod = program(lambda x: op(x), (2, 3))
    with pytest.raises(KeyError, match="the sensor is off") as caught:
        relay.create_executor("debug", mod).evaluate()(X)
    assert "in fails" in "".join(traceback.format_tb(caught.value.__traceback__))
    lib = built(mod)
    with pytest.raises(KeyError, match="the sensor is off") as caught:
        run(lib, X)
    assert "in fails" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_arrays_of_a_call_end_with_it():
    op, kept = new_op(), []

    @relay.op.register_packed_func(op.name)
    def keeps(x, out):
        out.copyfrom(x.numpy())
        kept.append(x.numpy())

    with pytest.raises(hr.UserError, match="keeps an array that was passed to it, whose memory ends with the call"):
        run(built(program(lambda x: op(x), (2, 3))), X)
    kept.clear()


def test_a_function_cannot_use_the_module_that_calls_it():
    op, modules = new_op(), []

    @relay.op.register_packed_func(op.name)
    def calls_back(x, out):
        modules[0].run()

    lib = built(program(lambda x: op(x), (2, 3)))
    modules.append(GraphModule(lib["default"](hr.cpu())))
    modules[0].set_input("x0", X)
    with pytest.raises(hr.UserError, match="the module is running: a function that it calls cannot use it"):
        modules[0].run()


# --- types


def test_relations_see_symbols_and_attributes():
    def pooled(arg_types, attrs):
        (data,) = arg_types
        return relay.TensorType([data.shape[0], data.shape[1] // attrs.size], data.dtype)

    op = new_op(relation=pooled).add_attr("size", "int")
    n = tir.Var("n")
    x = relay.var("x", relay.TensorType([n, 6]))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], op(x, size=2))))
    assert mod["main"].body.checked_type == relay.TensorType([n, 3])


def test_an_op_has_a_result():
    op = new_op(relation=lambda arg_types, attrs: relay.TupleType([]))
    with pytest.raises(hr.UserError, match=rf"{op.name}: its type relation gave \(\); an op gives a tensor or a tuple"):
        program(lambda x: op(x), (2,))


def test_elementwise_forms_follow_sizes_that_the_data_tells():
    op = scale()
    mod = program(lambda x: op(relay.cast(relay.argwhere(x), "float32"), factor=0.5), (2, 3))
    x = np.array([[0, 1, 0], [2, 0, 3]], "float32")
    np.testing.assert_array_equal(result(mod, x), np.argwhere(x) * 0.5)
    counted = new_op()
    relay.op.register_compute(
        counted.name,
        lambda attrs, inputs, out_type: tir.compute(
            out_type.shape, lambda i, j: inputs[0][i, j] * inputs[0].shape[0].astype("float32")
        ),
    )
    mod = program(lambda x: counted(relay.cast(relay.argwhere(x), "float32")), (2, 3))
    with pytest.raises(hr.UserError, match="has a size that only the data tells"):
        built(mod)


def test_a_relation_that_cannot_tell_yet():
    seen = []

    def relation(arg_types, attrs):
        seen.append(len(arg_types))
        return arg_types[0]

    op = new_op(relation=relation)
    x = relay.var("x")
    function = relay.Function([x], op(x))
    mod = hr.IRModule.from_expr(relay.Function([], function(relay.const(X))))
    assert relay.transform.InferType()(mod)["main"].body.checked_type == relay.TensorType((2, 3))
    assert seen


def test_errors_of_relations_keep_their_traceback():
    def relation(arg_types, attrs):
        raise ZeroDivisionError("in the relation")

    op = new_op(relation=relation)
    with pytest.raises(ZeroDivisionError, match="in the relation") as caught:
        program(lambda x: op(x), (2,))
    assert "in relation" in "".join(traceback.format_tb(caught.value.__traceback__))
    odd = new_op(relation=lambda arg_types, attrs: 3)
    with pytest.raises(hr.UserError, match="its type relation gave 3, which is no type"):
        program(lambda x: odd(x), (2,))
    never = new_op(relation=lambda arg_types, attrs: None)
    with pytest.raises(hr.UserError, match=never.name):
        program(lambda x: never(x), (2,))
    with pytest.raises(hr.UserError, match="there is no type relation 'Concat'"):
        new_op().add_type_rel("Concat")


# --- attributes


def test_attributes_of_every_kind():
    op = new_op()
    given = {
        "integer": ("int", 3),
        "real": ("float", 0.5),
        "flag": ("bool", True),
        "text": ("str", 'a "b"'),
        "kind": ("dtype", "int8"),
        "size": ("shape", (2, 3)),
        "integers": ("Array[int]", [1, -1]),
        "reals": ("Array[float]", [1, 2.5]),
    }
    for name, (kind, _) in given.items():
        op.add_attr(name, kind, doc=f"The {name}.")
    x = relay.var("x", shape=(2,))
    call = op(x, **{name: value for name, (_, value) in given.items()})
    assert dict(zip(call.attrs.keys(), map(call.attrs.__getitem__, call.attrs.keys()), strict=True)) == {
        name: value for name, (_, value) in given.items()
    }
    mod = hr.IRModule.from_expr(relay.Function([x], call))
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    ir.assert_structural_equal(ir.load_json(ir.save_json(mod)), mod)
    assert [(row["name"], row["kind"]) for row in op.attrs_schema] == [(n, kind) for n, (kind, _) in given.items()]
    with pytest.raises(AttributeError, match="there is no attribute 'other'; the attributes: integer, real"):
        _ = call.attrs.other


def test_errors_of_attributes():
    op = scale()
    x = relay.var("x", shape=(2,))
    with pytest.raises(hr.UserError, match="has no attribute 'speed'; its attributes: factor"):
        op(x, speed=1)
    with pytest.raises(hr.UserError, match="attribute 'factor': expected float, got \"fast\""):
        op(x, factor="fast")
    with pytest.raises(hr.UserError, match="there is no kind 'double'"):
        op.add_attr("other", "double")
    with pytest.raises(hr.UserError, match="there is an attribute 'factor' already"):
        op.add_attr("factor")
    with pytest.raises(hr.UserError, match="needs its attributes"):
        relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], relay.Call(op, [x]))))
    with pytest.raises(hr.UserError, match="takes no attributes"):
        new_op()(x, axis=1)


def test_names_that_no_parameter_can_have():
    op = scale()
    attrs = type(op.make_attrs())
    taken = [name for name in dir(attrs) if not name.startswith("__")]
    assert {"keys", "values", "copy_with"} <= set(taken)
    for name in [*taken, "attrs", "items", "get", "self", "span", "args", "__dir__", *keyword.kwlist]:
        with pytest.raises(hr.UserError, match=f"{op.name}: '{name}' cannot name an attribute: "):
            op.add_attr(name, "int", 1)
    for name in ["span", "args", "left hand", *keyword.kwlist]:
        with pytest.raises(hr.UserError, match=f"{op.name}: '{name}' cannot name an argument: "):
            op.add_argument(name)
    with pytest.raises(hr.UserError, match="there is an argument 'data' already"):
        op.add_argument("data")
    with pytest.raises(hr.UserError, match="there is an attribute 'factor' already"):
        op.add_argument("factor")
    # What is not refused is given and read.
    op.add_attr("match", "int", 1).add_attr("name", "str", "x").add_argument("type")
    function = getattr(relay.usertest, op.name.partition(".")[2])
    call = function(relay.var("x"), relay.var("y"), match=5, name="z")
    assert (call.attrs.match, call.attrs.name, len(call.args)) == (5, "z", 2)


# --- the op itself


def test_its_function_is_found_and_documented():
    op = scale()
    function = getattr(relay.usertest, op.name.partition(".")[2])
    x = relay.var("x", shape=(2,))
    ir.assert_structural_equal(function(x, factor=4.0), op(x, factor=4.0), map_free_vars=True)
    assert "factor : float, default 2.0" in function.__doc__
    op.add_attr("shift", "float", 0.0)
    assert "shift" in getattr(relay.usertest, op.name.partition(".")[2]).__doc__
    with pytest.raises(AttributeError, match="there is no such op"):
        _ = relay.usertest.nothing


def test_open_attributes():
    op = new_op()
    assert op.get_attr("target.mychip") is None
    assert not op.has_attr("target.mychip")
    op.set_attr("target.mychip", True)
    assert op.get_attr("target.mychip") is True

    @ir.register_op_attr("nn.relu", "usertest.predicate")
    def predicate(call):
        return "yes"

    relu = relay.op.get("nn.relu")
    assert relu.get_attr("usertest.predicate")(None) == "yes"
    relu.reset_attr("usertest.predicate")
    assert relu.get_attr("usertest.predicate") is None
    assert relu.get_attr("TOpPattern") == OpPattern.ELEMWISE
    with pytest.raises(hr.UserError, match=r"the attribute 'Eval' of op 'nn\.relu' is set in C"):
        relu.set_attr("Eval", 1)
    with pytest.raises(hr.UserError, match=r"'nn.relu' is an op of Headrace, which is not changed"):
        relay.op.register_pattern("nn.relu", OpPattern.OPAQUE)


def test_patterns():
    op = scale()
    relay.op.register_pattern(op.name, OpPattern.OPAQUE)
    mod = program(lambda x: relay.nn.relu(op(x)), (2, 3))
    assert groups(mod) == [["nn.relu"], [op.name]]
    assert op.get_attr("TOpPattern") == OpPattern.OPAQUE
    with pytest.raises(hr.UserError, match="there is no op pattern 5"):
        relay.op.register_pattern(op.name, 5)


def test_what_relay_set_is_reset():
    op = scale()
    relay.op.register_pattern(op.name, OpPattern.OPAQUE)
    relay.op.register_stateful(op.name)
    assert op.has_attr("TOpPattern")
    assert op.get_attr("TOpIsStateful") is True
    op.reset_attr("TOpPattern")
    op.reset_attr("TOpIsStateful")
    assert not op.has_attr("TOpPattern")
    assert op.get_attr("TOpIsStateful") is False
    assert groups(program(lambda x: relay.nn.relu(op(x)), (2, 3))) == [["nn.relu", op.name]]


@pytest.mark.parametrize("by_key", [False, True])
def test_a_legalisation_is_an_attribute(by_key):
    def as_relu(attrs, inputs, types):
        return relay.nn.relu(inputs[0])

    op = scale()
    if by_key:
        op.set_attr("FTVMLegalize", as_relu)
    else:
        relay.op.register_legalize(op.name, as_relu)
    mod = program(lambda x: op(x), (2, 3))
    assert op.has_attr("FTVMLegalize")
    x = relay.var("x", shape=(1,))
    assert relay.analysis.list_op_freqs(hr.IRModule.from_expr(op.get_attr("FTVMLegalize")(None, [x], []))) == {
        "nn.relu": 1
    }
    assert relay.analysis.list_op_freqs(relay.transform.Legalize()(mod)) == {"nn.relu": 1}
    op.reset_attr("FTVMLegalize")
    assert not op.has_attr("FTVMLegalize")
    assert relay.transform.Legalize()(mod).same_as(mod)


def test_effects_are_kept():
    op = scale()
    relay.op.register_stateful(op.name)
    x = relay.var("x", shape=(2,))
    a, b = relay.var("a"), relay.var("b")
    body = relay.Let(a, op(x), relay.Let(b, relay.exp(x), x))
    mod = relay.transform.DeadCodeElimination()(
        relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], body)))
    )
    assert relay.analysis.list_op_freqs(mod) == {op.name: 1}


def test_names_and_overrides():
    op = scale()
    with pytest.raises(hr.UserError, match="is registered already"):
        relay.op.register(op.name)
    with pytest.raises(hr.UserError, match=r"'nn.relu' is an op of Headrace"):
        relay.op.register("nn.relu", override=True)
    other = relay.op.register(op.name, "Another.", override=True)
    assert not other.same_as(op)
    assert relay.op.get(op.name).same_as(other)
    assert other.description == "Another."


@pytest.mark.parametrize(
    "name", ["if", "let", "fn", "match", "def", "type", "import", "free_var", "meta", "True", "nan"]
)
def test_words_of_the_text_form_name_no_op(name):
    with pytest.raises(hr.UserError, match=f"'{name}' cannot name an op: it means something else in text"):
        relay.op.register(name)


@pytest.mark.parametrize("name", ["usertest.class", "usertest.lambda.two"])
def test_names_that_python_cannot_write(name):
    op = relay.op.register(name).add_argument("data").add_type_rel("Identity")
    relay.op.register_compute(
        name, lambda attrs, inputs, out_type: tir.compute(out_type.shape, lambda *i: -inputs[0][i])
    )
    mod = program(lambda x: relay.op.get(name)(x), (2, 3))
    assert mod["main"].body.op.same_as(op)
    np.testing.assert_array_equal(result(mod, X), -X)
    assert ir.structural_equal(relay.fromtext(mod.astext()), mod)


def test_names_that_relay_has_already():
    # In a process of its own: other tests ask for the function of each op by its name.
    program = (
        "from headrace import relay\n"
        "before = relay.var\n"
        "op = relay.op.register('var').add_argument('data').add_type_rel('Identity')\n"
        "assert relay.var is before\n"
        "print(relay.op.get('var')(relay.var('x', shape=(2,))).op.same_as(op))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_numbers_of_arguments():
    op = new_op("a", "b")
    assert op.num_inputs == 2
    with pytest.raises(hr.UserError, match=r"2 arguments \(a, b\), got 1"):
        program(lambda x: op(x), (2,))
    many = new_op().set_num_inputs(-1).set_support_level(3)
    assert (many.num_inputs, many.support_level) == (-1, 3)
    assert program(lambda x: many(x, x, x), (2,))["main"].body.checked_type == relay.TensorType((2,))
    with pytest.raises(hr.UserError, match="support level 11"):
        many.set_support_level(11)
    with pytest.raises(hr.UserError, match="-2 inputs"):
        many.set_num_inputs(-2)


def test_errors_of_computes():
    op = new_op()
    mod = program(lambda x: op(x), (2, 3))
    assert op.why_opaque == "nothing says how it is computed"
    with pytest.raises(hr.UserError, match="the op has no reference evaluation"):
        relay.create_executor("debug", mod).evaluate()(X)

    def check(compute, message):
        relay.op.register_compute(op.name, compute)
        with pytest.raises(hr.UserError, match=message):
            relay.create_executor("debug", mod).evaluate()(X)
        with pytest.raises(hr.UserError, match=message):
            built(mod)

    check(lambda attrs, inputs, out_type: 3, "the compute gave 3; expected a tir.Tensor, a list of them")
    check(
        lambda attrs, inputs, out_type: tir.compute((3, 2), lambda i, j: inputs[0][j, i]),
        r"gives Tensor\[\(3, 2\), float32\] as result 0, and its type says",
    )
    check(
        lambda attrs, inputs, out_type: tir.compute((2, 3), lambda i, j: inputs[0][i, j].astype("float64")),
        r"gives Tensor\[\(2, 3\), float64\] as result 0",
    )
    check(
        lambda attrs, inputs, out_type: tir.compute((2, 3), lambda i, j: inputs[0][i, j + 1]),
        f"{op.name}: its compute form reads 'data' outside: index 1 is `.*`, which goes from 1 to 3, and the dimension "
        "has 3 elements",
    )
    kept = []

    def keeps(attrs, inputs, out_type):
        kept.append(inputs[0])
        return tir.compute(out_type.shape, lambda i, j: kept[0][i, j])

    check(keeps, f"{op.name}: its compute: the placeholder 'data' is none of the inputs")
    with pytest.raises(hr.UserError, match="expected a function or a PrimFunc, got int"):
        relay.op.register_compute(op.name, 3)

    def fails(attrs, inputs, out_type):
        raise IndexError("in the compute")

    relay.op.register_compute(op.name, fails)
    with pytest.raises(IndexError, match="in the compute"):
        built(mod)


@pytest.mark.parametrize("name", sorted({*transform.pass_registry()} - {"FirstOrderGradient"}))
def test_passes_keep_what_programs_compute(name):
    double, halve = scale(), new_op()
    relay.op.register_packed_func(halve.name, lambda x, out: out.copyfrom(x.numpy() / 2))
    mod = program(lambda x, w: halve(double(relay.nn.dense(x, w, units=2), factor=3.0)), (2, 3), (2, 3))
    x, w = np.array([[1, -2, 3], [0, 4, -1]], "float32"), np.array([[1, 2, 0], [0, 0, -1]], "float32")
    after = getattr(relay.transform, name)()(mod)
    got = relay.create_executor("debug", after).evaluate()(x, w).numpy()
    np.testing.assert_array_equal(got, x @ w.T * 1.5)


def test_constants_are_folded_by_evaluation():
    op = scale()
    mod = hr.IRModule.from_expr(relay.Function([], op(relay.const(X), factor=3.0)))
    folded = relay.transform.FoldConstant()(relay.transform.InferType()(mod))["main"].body
    np.testing.assert_array_equal(folded.data.numpy(), X * 3)


def test_gradients_are_refused_by_name():
    op = scale()
    with pytest.raises(hr.UserError, match=f"{op.name}: the op has no gradient"):
        relay.transform.FirstOrderGradient()(program(lambda x: op(x), (2,)))


def test_a_function_that_gives_its_result_is_told_to_write_it():
    op = new_op("data")
    relay.op.register_packed_func(op.name, lambda data, out: np.sort(data.numpy()))
    with pytest.raises(hr.UserError, match=f"{op.name}: its function gave a ndarray; it has to write its results"):
        result(program(lambda x: op(x), (3,)), np.array([3, 1, 2], "float32"))
