"""Tests the computations of ops that Python registers: forms, loops and functions, against numpy."""

import subprocess
import sys
import traceback

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, tir  # noqa: E402
from headrace.graph_executor import GraphModule  # noqa: E402
from user_ops_kit import X, built, groups, new_op, program, result, run, scale  # noqa: E402


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
    count = relay.op.register("usertest.count").set_num_inputs(0).add_attr("size", "int")
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
