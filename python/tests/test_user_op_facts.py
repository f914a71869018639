"""Tests facts of ops that Python registers: views, factors that commute, layouts, sizes, work, types of results."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay, tir  # noqa: E402
from user_ops_kit import X, built, groups, new_op, program, result, run, scale  # noqa: E402


def freqs(mod):
    return {str(op): count for op, count in relay.analysis.list_op_freqs(mod).items()}


@pytest.mark.parametrize(
    ("factors", "sign", "folds"), [("any", -1, True), ("positive", 1, True), ("positive", -1, False)]
)
def test_scales_move_past_ops_that_commute(factors, sign, folds):
    op = scale()
    relay.op.register_commuting_factors(op.name, factors)
    weights, by = np.ones((2, 3), "float32"), np.array([2, sign * 3], "float32")

    def call(x):
        return relay.multiply(op(relay.nn.dense(x, relay.const(weights))), relay.const(by))

    mod = program(call, (2, 3))
    folded = relay.transform.FoldScaleAxis()(mod)
    assert ("multiply" not in freqs(folded)) == folds
    np.testing.assert_allclose(result(folded, X), result(mod, X), rtol=1e-5)


def test_a_function_tells_which_factors_commute():
    asked = []
    op = scale()

    @relay.op.register_commuting_factors(op.name)
    def factors(attrs, axis):
        asked.append((attrs.factor, axis))
        return "any" if axis == 1 else None

    def call(x, by):
        return relay.multiply(op(relay.nn.dense(x, relay.const(np.ones((2, 3), "float32")))), by)

    along = program(lambda x: call(x, relay.const(np.array([2, -3], "float32"))), (2, 3))
    assert "multiply" not in freqs(relay.transform.FoldScaleAxis()(along))
    of_all = program(lambda x: call(x, relay.const(np.float32(2))), (2, 3))
    assert "multiply" in freqs(relay.transform.FoldScaleAxis()(of_all))
    assert set(asked) == {(2.0, 1), (2.0, None)}


def test_what_tells_the_factors_is_checked():
    op = scale()
    with pytest.raises(hr.UserError, match=f"{op.name}: it commutes with factors 'all'; expected one of positive, any"):
        relay.op.register_commuting_factors(op.name, "all")
    relay.op.register_commuting_factors(op.name, lambda attrs, axis: 5)
    mod = program(
        lambda x: relay.nn.dense(op(relay.multiply(x, relay.const(2.0))), relay.const(np.ones((2, 3), "float32"))),
        (2, 3),
    )
    with pytest.raises(
        hr.UserError, match=f"{op.name}: its commuting factors are 5; expected 'positive', 'any' or None"
    ):
        relay.transform.FoldScaleAxis()(mod)


def test_a_view_is_left_alone_and_costs_nothing():
    op = new_op(relation=lambda arg_types, attrs: ir.TensorType([6], arg_types[0].dtype))
    relay.op.register_compute(
        op.name,
        lambda attrs, inputs, out_type: tir.compute(out_type.shape, lambda i: inputs[0][i // 3, i % 3]),
    )
    mod = program(lambda x: relay.nn.relu(op(relay.negative(x))), (2, 3))
    assert groups(mod) == [sorted(["nn.relu", op.name, "negative"])]
    relay.op.register_keeps_elements(op.name)
    assert sorted(groups(mod)) == sorted([["nn.relu"], [op.name], ["negative"]])
    np.testing.assert_allclose(result(mod, X), np.maximum(-X, 0).reshape(6))
    both = program(lambda x: relay.reshape(op(x), newshape=(3, 2)), (2, 3))
    assert op.name not in freqs(relay.transform.SimplifyExpr()(both))


def test_a_view_keeps_the_elements():
    op = new_op(relation=lambda arg_types, attrs: ir.TensorType([5], arg_types[0].dtype))
    relay.op.register_keeps_elements(op.name)
    with pytest.raises(hr.UserError, match=r"keeps the elements of its first argument, .*, and gives Tensor"):
        program(lambda x: op(x), (2, 3))
    with pytest.raises(
        hr.UserError, match=f"{op.name}: it keeps elements as 'all'; expected one of view, broadcast, note"
    ):
        relay.op.register_keeps_elements(op.name, "all")


def places():
    """An op that gives the indices at which a vector is not 0; its bounded form is one that fills a buffer."""
    bounded = new_op(
        relation=lambda arg_types, attrs: ir.TupleType(
            [ir.TensorType(arg_types[0].shape, "int64"), ir.TensorType([1], "int64")]
        )
    )

    @relay.op.register_packed_func(bounded.name)
    def find(data, out, count):
        found = np.flatnonzero(data.numpy())
        rows = np.full(data.shape, -1, "int64")
        rows[: len(found)] = found
        out.copyfrom(rows)
        count.copyfrom(np.array([len(found)], "int64"))

    op = new_op(relation=lambda arg_types, attrs: ir.TensorType([relay.Any()], "int64"))

    @relay.op.register_bounded_form(op.name)
    def form(attrs, inputs):
        return bounded(inputs[0])

    return op


def test_a_result_of_unknown_size_is_compiled_by_its_bounded_form():
    op = places()
    data = np.array([0, 3, 0, 4, 5], "float32")
    np.testing.assert_array_equal(run(built(program(lambda x: op(x), (5,))), data), [1, 3, 4])
    np.testing.assert_array_equal(run(built(program(lambda x: relay.negative(op(x)), (5,))), data), [-1, -3, -4])


def test_what_follows_a_result_of_unknown_size_says_so():
    op = places()
    after = new_op()

    @relay.op.register_packed_func(after.name)
    def twice(data, out):
        out.copyfrom(data.numpy() * 2)

    mod = program(lambda x: after(op(x)), (5,))
    data = np.array([0, 3, 0, 4, 5], "float32")
    with pytest.raises(hr.UserError, match="has a data-dependent size"):
        built(mod)
    relay.op.register_treats_apart(after.name, lambda attrs, argument, axis, result_axis: axis == result_axis)
    np.testing.assert_array_equal(run(built(mod), data), [2, 6, 8])
    relay.op.register_treats_apart(after.name, lambda attrs, argument, axis, result_axis: "yes")
    with pytest.raises(hr.UserError, match=f'{after.name}: whether it treats indices apart is "yes"; expected a bool'):
        built(mod)


def test_a_bounded_form_is_checked():
    op = new_op(relation=lambda arg_types, attrs: ir.TensorType([relay.Any()], "float32"))
    relay.op.register_bounded_form(op.name, lambda attrs, inputs: inputs[0])
    with pytest.raises(hr.UserError, match=f"{op.name}: its bounded form gives Tensor.* it gives a tuple of a tensor"):
        built(program(lambda x: op(x), (5,)))
    relay.op.register_bounded_form(op.name, lambda attrs, inputs: 5)
    with pytest.raises(hr.UserError, match=f"{op.name}: its bounded form gave no expression but 5"):
        built(program(lambda x: op(x), (5,)))


def test_layouts_are_kept_with_axes_renumbered():
    op = new_op().add_attr("axis", "int", 1)
    relay.op.register_compute(
        op.name, lambda attrs, inputs, out_type: tir.compute(out_type.shape, lambda *i: inputs[0][i])
    )
    relay.op.register_keep_layout(op.name, ["axis"])
    weights = relay.const(np.ones((2, 3, 1, 1), "float32"))
    mod = program(lambda x: op(relay.nn.conv2d(x, weights)), (1, 3, 4, 4))
    converted = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(mod)
    last = converted["main"].body
    assert last.op.name == "layout_transform"
    assert last.args[0].op.name == op.name
    assert last.args[0].attrs.axis == 3
    with pytest.raises(hr.UserError, match=f"{op.name}: 'axes' is not an attribute of kind int"):
        relay.op.register_keep_layout(op.name, ["axes"])


def test_ops_of_headrace_keep_their_facts():
    with pytest.raises(hr.UserError, match=r"'nn\.relu' is an op of Headrace, which is not changed"):
        relay.op.register_keeps_elements("nn.relu")


def taken_by(name, cost, mod):
    """The names of the ops that a backend, which needs `cost` seconds for every call, takes by cost."""
    taken = []

    class Taking(hr.backend.Backend):
        version = "1"

        def supports(self, call):
            return True

        def compile(self, regions, options):
            for region in regions:
                taken.extend(freqs(hr.IRModule.from_expr(region.function)))
            return [b"" for _ in regions]

        def load(self, data):
            raise AssertionError("nothing runs")

    Taking.name = name
    Taking.cost = lambda self, call: cost
    Taking.border = lambda self, type: 0.0
    hr.backend.register(Taking())
    hr.compile(mod, backends=[name], placement="cost")
    return taken


def test_work_decides_where_an_op_runs():
    op = scale()
    mod = program(lambda x: op(x), (2, 3))
    assert taken_by("test_work_unknown", 1e-3, mod) == []
    seen = []

    @relay.op.register_work(op.name)
    def work(attrs, arg_types, out_type):
        seen.append((attrs.factor, [str(one) for one in arg_types], str(out_type)))
        return 1e12

    assert taken_by("test_work_known", 1e-3, mod) == [op.name]
    assert set(map(repr, seen)) == {repr((2.0, ["Tensor[(2, 3), float32]"], "Tensor[(2, 3), float32]"))}


@pytest.mark.parametrize(("given", "shown"), [("much", '"much"'), (-1, "-1"), (float("nan"), "nan"), (None, "None")])
def test_work_that_is_no_number_is_an_error(given, shown):
    op = scale()
    relay.op.register_work(op.name, lambda attrs, arg_types, out_type: given)
    message = f"{op.name}: its work is {shown}; expected a number of operations, 0 or more"
    with pytest.raises(hr.UserError, match=message):
        taken_by(f"test_work_{shown}".replace('"', "").replace("-", "minus_"), 1e-3, program(lambda x: op(x), (2, 3)))


def test_mixed_precision_sets_the_out_dtype_of_an_op():
    op = new_op(relation=lambda arg_types, attrs: ir.TensorType(arg_types[0].shape, attrs.out_dtype))
    op.add_attr("out_dtype", "dtype", "float32").add_attr("factor", "float", 3.0)
    relay.op.register_mixed_precision_conversion(op.name, lambda call, small: [0, "float32", small])
    small = relay.transform.ToMixedPrecision()(program(lambda x: op(x, factor=4.0), (2, 3)))
    assert small["main"].ret_type == ir.TensorType((2, 3), "float16")
    assert small["main"].body.attrs.out_dtype == "float16"
    assert small["main"].body.attrs.factor == 4.0


def test_mixed_precision_leaves_an_out_dtype_that_is_no_dtype():
    op = new_op().add_attr("out_dtype", "str", "same")
    relay.op.register_mixed_precision_conversion(op.name, lambda call, small: [0, "float32", small])
    small = relay.transform.ToMixedPrecision()(program(lambda x: op(x), (2, 3)))
    assert small["main"].ret_type == ir.TensorType((2, 3), "float16")
    assert small["main"].body.attrs.out_dtype == "same"
