"""Dataflow patterns: nodes, what matches, rewriting, splitting, the text form. dataflow_pattern_intents.txt is a table
of what Relay's tests want and the tests here that hold it."""

from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay  # noqa: E402
from headrace.relay import dataflow_pattern as dfp  # noqa: E402
from headrace.relay.dataflow_pattern import (  # noqa: E402
    DFPatternCallback,
    FunctionPattern,
    TupleGetItemPattern,
    dominates,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    rewrite,
    wildcard,
)

ELEMWISE, BROADCAST = 0, 1


def equal(a, b):
    return ir.structural_equal(a, b)


def names(text):
    """Variables without types by their names."""
    return [relay.Var(name) for name in text.split()]


def any_conv():
    return is_op("nn.conv2d")(wildcard(), wildcard())


def elementwise():
    return wildcard().has_attr({"TOpPattern": ELEMWISE})(wildcard())


def rewriter(pattern, replace, **options):
    class Rewriter(DFPatternCallback):
        def __init__(self):
            super().__init__(**options)
            self.pattern = pattern

        def callback(self, pre, post, node_map):
            return replace(pre, post, node_map)

    return Rewriter()


# ---- nodes


def test_nodes_have_their_classes_and_fields():
    x = relay.var("x", shape=(4, 1))
    assert isinstance(is_expr(x), dfp.ExprPattern) and is_expr(x).expr.same_as(x)
    assert isinstance(is_var("x"), dfp.VarPattern) and is_var("x").name == "x"
    assert isinstance(is_constant(), dfp.ConstantPattern)
    assert isinstance(wildcard(), dfp.WildcardPattern)
    a, b = wildcard(), wildcard()
    call = is_op("add")(a, b)
    assert isinstance(call, dfp.CallPattern) and call.args[0].same_as(a) and call.args[1].same_as(b)
    function = FunctionPattern([a, b], call)
    assert isinstance(function, FunctionPattern) and len(function.params) == 2 and function.body.same_as(call)
    pair = is_tuple([a, b])
    assert isinstance(pair, dfp.TuplePattern) and pair.fields[0].same_as(a) and pair[1].same_as(b) and len(pair) == 2
    item = is_tuple_get_item(pair, 1)
    assert isinstance(item, TupleGetItemPattern) and item.tuple.same_as(pair) and item.index == 1
    assert is_tuple_get_item(pair).index == -1
    either = is_op("add") | is_op("subtract")
    assert isinstance(either, dfp.AltPattern) and either.right.expr.name == "subtract"


def test_nodes_of_types_attributes_and_scopes():
    ttype = relay.TensorType((10, 10), "float32")
    typed = has_type(ttype)
    assert isinstance(typed, dfp.TypePattern) and typed.type.same_as(ttype)
    assert isinstance(has_dtype("float16"), dfp.DataTypePattern) and has_dtype("float16").dtype == "float16"
    shaped = has_shape([10, 10])
    assert isinstance(shaped, dfp.ShapePattern) and [int(dim) for dim in shaped.shape] == [10, 10]
    marked = is_op("add").has_attr({"TOpPattern": ELEMWISE})
    assert isinstance(marked, dfp.AttrPattern) and marked.attrs["TOpPattern"] == ELEMWISE
    x, y = is_var("x"), is_var("y")
    branch = is_if(is_op("less")(x, y), x, y)
    assert isinstance(branch, dfp.IfPattern)
    assert isinstance(branch.cond, dfp.CallPattern) and branch.false_branch.same_as(y)
    let = is_let(x, is_op("less")(x, y), x)
    assert isinstance(let, dfp.LetPattern)
    assert isinstance(let.var, dfp.VarPattern) and isinstance(let.value, dfp.CallPattern) and let.body.same_as(x)
    dominator = dominates(x, y, let)
    assert isinstance(dominator, dfp.DominatorPattern) and dominator.child.same_as(let)


# ---- matching


def test_ops_match_by_identity():
    add, subtract = relay.op.get("add"), relay.op.get("subtract")
    assert is_op("add").match(add)
    assert not is_op("add").match(subtract)
    either = is_op("add") | is_op("subtract")
    assert either.match(add) and either.match(subtract) and not either.match(relay.op.get("exp"))


def test_sums_and_products_match_in_both_orders():
    x, y = names("x y")
    for op, expr in (("add", lambda a, b: a + b), ("multiply", lambda a, b: a * b)):
        pattern = is_op(op)(is_var("x"), is_var("y"))
        assert pattern.match(expr(x, y)) and pattern.match(expr(y, x))
        assert not pattern.match(expr(x, x))
    for op, expr in (("subtract", lambda a, b: a - b), ("divide", lambda a, b: a / b)):
        pattern = is_op(op)(is_var("x"), is_var("y"))
        assert pattern.match(expr(x, y)) and not pattern.match(expr(y, x))


def test_calls_match_by_op_and_number_of_arguments():
    x, y = names("x y")
    add = is_op("add")(wildcard(), wildcard())
    assert add.match(x + y) and not add.match(x - y)
    any_call = wildcard()(None)
    assert any_call.match(relay.nn.relu(x)) and any_call.match(x + y) and not any_call.match(x)
    assert not is_op("add")(wildcard()).match(x + y)


def test_functions_match_by_parameters_and_body():
    x, y = names("x y")
    a, b = wildcard(), wildcard()
    pattern = FunctionPattern([a, b], a + b)
    assert pattern.match(relay.Function([x, y], x + y))
    assert not pattern.match(relay.Function([x, y], x - y))
    any_params = FunctionPattern(None, wildcard())
    assert any_params.match(relay.Function([x], x)) and any_params.match(relay.Function([x, y], x + y))


def test_branches_match_by_their_parts():
    x, y = names("x y")
    pattern = is_if(is_op("less")(is_var("x"), is_var("y")), is_var("x"), is_var("y"))
    assert pattern.match(relay.If(x < y, x, y))
    assert not pattern.match(relay.If(x > y, x, y))
    assert not pattern.match(relay.If(x < y, y, x))


def test_lets_match_by_their_parts():
    x, y, let = names("x y let")
    var = is_var("let")
    pattern = is_let(var, is_op("less")(is_var("x"), is_var("y")), var)
    assert pattern.match(relay.Let(let, x < y, let))
    assert not pattern.match(relay.Let(let, x > y, let))
    assert not pattern.match(relay.Let(let, x < y, let * x))


def test_optional_parts_may_be_missing():
    x, w, b = names("x w b")
    conv = relay.nn.conv2d(x, w)
    inner = is_op("nn.relu")(any_conv().optional(lambda p: is_op("nn.bias_add")(p, wildcard())))
    assert inner.match(relay.nn.relu(conv)) and inner.match(relay.nn.relu(relay.nn.bias_add(conv, b)))
    assert not inner.match(relay.tanh(conv))
    assert not inner.match(relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, w), b)))
    assert not inner.match(relay.nn.relu(conv + w))
    outer = any_conv().optional(is_op("nn.relu")).optional(is_op("tanh"))
    relu, tanh = relay.nn.relu(conv), relay.tanh(conv)
    for expr in (conv, relu, tanh, relay.tanh(relu)):
        assert outer.match(expr)
    assert not outer.match(relay.nn.relu(tanh))


def test_constants_match_when_they_are_bound():
    pattern = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), is_constant()), wildcard())
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(3, 3, 3, 3))
    b = relay.var("b", shape=(3,))
    function = relay.Function([x, w, b], relay.nn.bias_add(relay.nn.conv2d(x, w), b))
    assert not pattern.match(function.body)
    bound = relay.build_module.bind_params_by_name(function, {"w": np.ones((3, 3, 3, 3), "float32")})
    assert pattern.match(bound.body)


def test_tuples_match_by_their_fields():
    x, y = names("x y")
    add = relay.op.get("add")
    three = is_tuple((is_var("x"), wildcard(), is_op("add")))
    whole = relay.Tuple((x, y, add))
    assert three.match(whole)
    assert not is_tuple((is_var("x"), wildcard(), is_op("add"), wildcard())).match(whole)
    assert is_tuple_get_item(three, 1).match(relay.TupleGetItem(whole, 1))
    assert not is_tuple_get_item(three, 1).match(relay.TupleGetItem(whole, 2))
    assert all(is_tuple_get_item(three).match(relay.TupleGetItem(whole, i)) for i in range(3))
    concat = is_op("concatenate")(is_tuple(None))
    for fields in ((x,), (x, y), (x, y, x)):
        assert concat.match(relay.concatenate(relay.Tuple(fields), axis=0))


def test_types_dtypes_and_shapes():
    x = relay.var("x", shape=(10, 10), dtype="float32")
    n = relay.var("n", shape=(10, 10), dtype="int32")
    want = has_type(relay.TensorType((10, 10), "float32"))
    assert want.match(x) and not want.match(n)
    assert has_dtype("float32").match(x) and not has_dtype("float32").match(n)
    assert has_shape((10, 10)).match(x) and not has_shape((10, 5)).match(n)
    assert has_shape((10, 10), is_op("exp")(wildcard())).match(relay.exp(x))  # inferred
    assert is_op("exp")(wildcard().has_dtype("int32")).match(relay.exp(x)) is False


def test_a_type_that_cannot_be_inferred_is_an_error():
    with pytest.raises(hr.UserError, match="type"):
        has_dtype("float32", is_op("add")(wildcard(), wildcard())).match(relay.Var("x") + relay.Var("y"))


def test_attributes_of_ops():
    x, y, z = names("x y z")
    add = is_op("add").has_attr({"TOpPattern": BROADCAST})(wildcard(), wildcard())
    assert add.match(x + y) and not add.match(x - y) and not add.match(relay.Let(z, x + y, z))
    assert not is_op("nn.dense").has_attr({"TOpPattern": ELEMWISE})(wildcard(), wildcard()).match(relay.nn.dense(x, y))
    assert not is_op("add").has_attr({"NoSuchAttribute": 1}).match(relay.op.get("add"))


def test_attributes_of_functions():
    x, y = names("x y")
    pattern = wildcard().has_attr({"Composite": "add"})
    function = relay.Function([x, y], x + y)
    assert pattern.match(function.with_attr("Composite", "add"))
    assert not pattern.match(function.with_attr("RandomTest", "add"))
    assert not pattern.match(function.with_attr("Composite", "conv_bias"))


def test_attributes_of_calls():
    x, y = names("x y")
    conv = relay.nn.conv2d(x, y, kernel_size=[3, 3])
    assert any_conv().has_attr({"data_layout": "NCHW"}).match(conv)
    assert any_conv().has_attr({"kernel_size": [3, 3]}).match(conv)
    assert any_conv().has_attr({}).match(conv)
    for wrong in ({"data_layout": "NHWC"}, {"RandomAttr": "NCHW"}, {"kernel_size": [2, 1]}, {"kernel_size": [3]}):
        assert not any_conv().has_attr(wrong).match(conv)
    assert is_op("cast")(wildcard()).has_attr({"dtype": "float32"}).match(relay.cast(x, "float32"))
    assert not is_op("cast")(wildcard()).has_attr({"dtype": "int8"}).match(relay.cast(x, "float32"))


def test_attributes_of_calls_that_are_of_no_op():
    a, b = names("a b")
    attrs = relay.nn.conv2d(a, b, data_layout="NHWC").attrs
    pattern = wildcard()(wildcard()).has_attr({"data_layout": "NHWC"})
    assert pattern.match(relay.Call(a, [b], attrs=attrs))
    assert not pattern.match(relay.Call(a, [b]))
    assert not pattern.match(relay.Call(a, [b], attrs=relay.nn.conv2d(a, b).attrs))
    assert wildcard()(wildcard()).has_attr({}).match(relay.Call(a, [b], attrs=attrs))
    assert wildcard()(wildcard()).has_attr({}).match(relay.Call(a, [b]))


def diamond_pattern():
    conv = any_conv()
    return is_op("add")(is_op("nn.relu")(conv), is_op("nn.leaky_relu")(conv))


def test_a_shared_part_stands_for_one_expression():
    x, w = names("x w")
    conv = relay.nn.conv2d(x, w)
    relu, leaky = relay.nn.relu(conv), relay.nn.leaky_relu(conv, alpha=0)
    assert diamond_pattern().match(relu + leaky)
    assert not diamond_pattern().match(leaky) and not diamond_pattern().match(relu)
    assert not diamond_pattern().match((relu + leaky) + conv)
    other = relay.nn.leaky_relu(relay.nn.conv2d(*names("y v")), alpha=0)
    assert not diamond_pattern().match(relu + other)


def dominator(path=None):
    return dominates(any_conv(), elementwise() if path is None else path, is_op("add")(wildcard(), wildcard()))


def classic(x, w):
    conv = relay.nn.conv2d(x, w)
    return relay.nn.relu(relay.nn.relu(conv)) + relay.nn.leaky_relu(conv, alpha=0)


def deeper(x, w):
    conv = relay.nn.conv2d(x, w)
    return relay.tanh(relay.nn.relu(relay.nn.relu(conv))) + relay.nn.leaky_relu(conv, alpha=0)


def single(x, w):
    relu = relay.nn.relu(relay.nn.relu(relay.nn.conv2d(x, w)))
    return relu + relay.tanh(relu)


def nested(x, w):
    conv = relay.nn.conv2d(x, w)
    relu = relay.nn.relu(conv)
    return relay.tanh(relu + relu) + relay.nn.leaky_relu(conv, alpha=0)


def fuzzy_dominator():
    return dominator(elementwise() | is_op("add")(wildcard(), wildcard()))


def test_dominators_match_any_way_between():
    for make in (classic, deeper, single):
        assert dominator().match(make(*names("x w")))
    assert fuzzy_dominator().match(nested(*names("x w")))


def test_variables_and_constants_beside_the_way_are_free():
    x, w, b, y = names("x w b y")
    way = wildcard().has_attr({"TOpPattern": 0})(None) | wildcard().has_attr({"TOpPattern": 1})(None)
    pattern = wildcard().has_attr({"TOpPattern": 2})(wildcard()).dominates(any_conv(), way)
    relu = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w), b))
    assert pattern.match(relay.reshape(relu, [-1, 2, 8]))
    assert pattern.match(relay.reshape(relay.add(relay.const(1.0), relu), [-1, 2, 8]))
    assert not pattern.match(relay.reshape(relay.add(relu, relay.nn.relu(y)), [-1, 2, 8])), "nothing leads to the conv"
    assert not pattern.match(relay.reshape(relay.nn.bias_add(y, b), [-1, 2, 8]))
    # Free variables are inputs of the part.
    parted = pattern.partition(relay.reshape(relu, [-1, 2, 8]))
    assert [arg.name_hint for arg in parted.args] == ["x", "w", "b"]
    assert relay.analysis.free_vars(parted.op) == []


def test_dominators_refuse_other_ways():
    x, w, y, v = names("x w y v")
    conv = relay.nn.conv2d(x, w)
    other = relay.nn.conv2d(y, v)
    assert not dominator().match(relay.nn.relu(conv) + relay.nn.leaky_relu(other, alpha=0))
    assert not dominator().match(nested(x, w)), "add is not elementwise"
    assert not dominator().match(relay.nn.relu(x) + relay.nn.leaky_relu(conv, alpha=0))
    assert not dominator().match(relay.nn.relu(relay.nn.relu(x)) + relay.tanh(x))


def test_a_dominator_has_one_parent():
    relu_path = dominator(is_op("nn.relu")(wildcard()))
    x, w = names("x w")
    first = relay.nn.conv2d(x, w)
    second = relay.nn.conv2d(relay.tanh(first), w)
    assert not relu_path.match(relay.nn.relu(second) + relay.nn.relu(first))
    assert not relu_path.match(second + relay.nn.relu(first))


def test_dominators_with_types():
    x = relay.var("x", shape=(1, 3, 12, 12))
    w = relay.var("w", shape=(3, 3, 3, 3))

    def typed(dtype, shape):
        return dominates(
            any_conv(), elementwise().has_dtype(dtype), is_op("add")(wildcard(), wildcard()).has_shape(shape)
        )

    assert typed("float32", [1, 3, 10, 10]).match(classic(x, w))
    assert not typed("float32", [1, 1, 10, 10]).match(classic(x, w))
    assert not typed("float16", [1, 3, 10, 10]).match(classic(x, w))


# ---- rewriting


def test_rewrite_replaces_matches():
    x, y = names("x y")
    to_subtract = rewriter(is_op("add")(wildcard(), wildcard()), lambda pre, post, _: post.args[0] - post.args[1])
    assert is_op("subtract")(wildcard(), wildcard()).match(rewrite(to_subtract, x + y))
    assert is_op("subtract")(wildcard(), wildcard()).match(to_subtract.rewrite(x + y))
    a, b = names("a b")
    function = relay.Function([a, b], relay.nn.relu(relay.nn.conv2d(a, b)))
    assert is_op("subtract")(wildcard(), wildcard()).match(rewrite(to_subtract, function(x, y) + y))


def test_rewrite_inlines_a_composite():
    x, y, a, b = names("x y a b")
    function = relay.Function([x, y], x + y).with_attr("Composite", "add")
    pattern = wildcard().has_attr({"Composite": "add"})(wildcard(), wildcard())
    out = rewrite(rewriter(pattern, lambda pre, post, _: post.args[0] + post.args[1]), relay.abs(function(a, b)))
    assert is_op("abs")(is_op("add")(wildcard(), wildcard())).match(out)


def test_rewrite_by_what_it_gets_changes_nothing():
    x, y = names("x y")
    a, b = wildcard(), wildcard()
    inner = is_op("add")(a, b)
    pattern = is_op("add")(inner, is_op("add")(inner, a))
    n0 = relay.add(x, relay.add(y, y))
    out = relay.add(relay.add(x, n0), n0)
    seen = []
    same = rewrite(rewriter(pattern, lambda pre, post, _: seen.append(pre) or post), out)
    assert same.same_as(out) and len(seen) == 1 and seen[0].same_as(out)


class BatchNorm(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x, self.var, self.mean, self.beta, self.gamma = (wildcard() for _ in range(5))
        self.eps = is_constant()
        self.pattern = self.gamma * (self.x - self.mean) / is_op("sqrt")(self.var + self.eps) + self.beta

    def callback(self, pre, post, node_map):
        x, var, mean, beta, gamma, eps = (
            node_map[part][0] for part in (self.x, self.var, self.mean, self.beta, self.gamma, self.eps)
        )
        return relay.nn.batch_norm(x, gamma, beta, mean, var, epsilon=eps.data.numpy().item())[0]


def bn_parts():
    return names("x var mean beta gamma")


def arithmetic(x, var, mean, beta, gamma, eps=None):
    return gamma * (x - mean) / relay.sqrt(var + (relay.const(1e-5) if eps is None else eps)) + beta


def fused(x, var, mean, beta, gamma):
    return relay.nn.batch_norm(x, gamma, beta, mean, var, epsilon=float(np.float32(1e-5)))[0]


def test_arithmetic_becomes_batch_norm():
    parts = bn_parts()
    x, var, mean, beta, gamma = parts
    assert equal(rewrite(BatchNorm(), arithmetic(*parts)), fused(*parts))
    fake = gamma * (x - mean) / relay.sqrt(var + relay.const(1e-5)) - beta
    assert rewrite(BatchNorm(), fake).same_as(fake)
    assert equal(rewrite(BatchNorm(), arithmetic(arithmetic(*parts), *parts[1:])), fused(fused(*parts), *parts[1:]))
    assert equal(rewrite(BatchNorm(), arithmetic(fake, *parts[1:])), fused(fake, *parts[1:]))


def test_products_and_quotients_match_in_each_others_place():
    parts = bn_parts()
    x, var, mean, beta, gamma = parts
    root = relay.sqrt(var + relay.const(1e-5))
    for other in (
        beta + gamma * (x - mean) / root,
        (gamma * (x - mean)) / root + beta,
        ((x - mean) * gamma) / root + beta,
        gamma * ((x - mean) / root) + beta,
        ((x - mean) / root) * gamma + beta,
        (gamma / root) * (x - mean) + beta,
    ):
        assert equal(rewrite(BatchNorm(), other), fused(*parts))
    a, b, c = names("a b c")
    pattern = (is_var("a") / is_var("b")) * is_var("c")
    assert pattern.match((a * c) / b) and pattern.match((c * a) / b) and pattern.match(c * (a / b))
    assert not pattern.match((a * b) / c)


def test_dominators_are_removed_one_after_another():
    x, w = names("x w")
    data, weight = wildcard(), wildcard()
    path = elementwise() | is_op("add")(wildcard(), wildcard())
    pattern = dominates(is_op("nn.conv2d")(data, weight), path, is_op("add")(wildcard(), wildcard()))
    remove = rewriter(pattern, lambda pre, post, found: relay.nn.conv2d(found[data][0], found[weight][0]))
    want = x
    for _ in range(4):
        want = relay.nn.conv2d(want, w)
    assert equal(remove.rewrite(nested(single(deeper(classic(x, w), w), w), w)), want)


def test_several_callbacks_simplify_until_nothing_changes():
    zero = is_expr(relay.const(0)) | is_expr(relay.const(0.0))
    one = is_expr(relay.const(1)) | is_expr(relay.const(1.0))

    def law(part, pattern):
        return rewriter(pattern, lambda pre, post, found: found[part][0])

    parts = [wildcard() for _ in range(4)]
    laws = [
        law(parts[0], parts[0] + zero),
        law(parts[1], parts[1] - zero),
        law(parts[2], parts[2] * one),
        law(parts[3], parts[3] / one),
        law(zero, zero * wildcard()),
        law(zero, zero / wildcard()),
    ]
    x, y = names("x y")
    for n0, n1 in ((relay.const(0), relay.const(1)), (relay.const(0.0), relay.const(1.0))):
        for expr in (x + n0, n0 + x, x - n0, x * n1, n1 * x, x / n1):
            assert rewrite(laws, expr).same_as(x)
        assert rewrite(laws, x * n0).same_as(n0) and rewrite(laws, n0 / x).same_as(n0)
    i0, i1 = relay.const(0), relay.const(1)
    assert equal(rewrite(laws, (x + i0 * y) / i1 + (y * i1) - i0 / x), x + y)


def test_rewrite_sees_a_function_whole():
    x, w, b, a, v = names("x w b a v")
    params = [wildcard(), wildcard()]
    pattern = FunctionPattern(params, wildcard())(wildcard(), wildcard()) + wildcard()
    function = relay.Function([a, v], relay.nn.conv2d(a, v))
    out = rewrite(rewriter(pattern, lambda pre, post, _: x + w), function(x, w) + b + b)
    assert equal(out, x + w + b)


def test_rewrite_enters_matches_of_data_types():
    mod = hr.IRModule({})
    relay.prelude.Prelude(mod)
    to_subtract = rewriter(is_op("add")(wildcard(), wildcard()), lambda pre, post, _: post.args[0] - post.args[1])
    for name in ("map", "length"):
        if name in mod:
            function = mod[name]
            rewritten = rewrite(to_subtract, function, mod)
            assert relay.analysis.list_op_freqs(hr.IRModule.from_expr(rewritten)).get("add", 0) == 0


def concat_of(*fields):
    return relay.concatenate(relay.Tuple(fields), axis=0)


def drop_last(once):
    def shorter(pre, post, _):
        fields = list(post.args[0])[:-1]
        return concat_of(*fields) if fields else post.args[0][0]

    return rewriter(is_op("concatenate")(None), shorter, rewrite_once=once)


def test_rewrite_once_takes_part_in_one_round():
    x, y, z = names("x y z")
    assert rewrite(drop_last(False), concat_of(x, y, z)).same_as(x)
    assert equal(rewrite(drop_last(True), concat_of(x, y, z)), concat_of(x, y))
    more_relu = rewriter(is_op("nn.softmax")(None), lambda pre, post, _: relay.nn.relu(post), rewrite_once=True)
    softmax = relay.nn.softmax(concat_of(x, y, z))
    assert equal(rewrite([more_relu, drop_last(True)], softmax), relay.nn.relu(relay.nn.softmax(concat_of(x, y))))
    assert equal(rewrite([more_relu, drop_last(False)], softmax), relay.nn.relu(relay.nn.softmax(x)))


def test_a_rewrite_that_does_not_rest_names_its_callback():
    class Endless(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("exp")(wildcard()) | is_op("tanh")(wildcard())

        def callback(self, pre, post, node_map):
            return (relay.tanh if post.op.name == "exp" else relay.exp)(post.args[0])

    with pytest.raises(hr.UserError, match="does not come to rest: after 100 rounds the callback Endless"):
        rewrite(Endless(), relay.exp(relay.Var("x")))


def test_a_rewrite_that_grows_names_its_callback():
    class Doubling(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("exp")(wildcard())

        def callback(self, pre, post, node_map):
            fresh = [relay.exp(post.args[0]) for _ in range(400)]
            return relay.Tuple(fresh)

    with pytest.raises(hr.UserError, match="the callback Doubling made a program of"):
        rewrite(Doubling(), relay.exp(relay.Var("x")))


def test_a_callback_must_give_an_expression():
    x = relay.Var("x")
    with pytest.raises(hr.UserError, match="the callback Rewriter gave None for a match"):
        rewrite(rewriter(is_op("exp")(wildcard()), lambda *_: None), relay.exp(x))
    with pytest.raises(hr.UserError, match="pattern is None"):
        rewrite(DFPatternCallback(), x)
    with pytest.raises(hr.UserError, match="is not a DFPatternCallback"):
        rewrite(3, x)

    def fails(*_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        rewrite(rewriter(is_op("exp")(wildcard()), fails), relay.exp(x))


def test_types_are_there_when_a_callback_requires_them():
    x = relay.var("x", shape=(2, 3))
    shapes = []

    def look(pre, post, _):
        shapes.append([int(dim) for dim in pre.checked_type.shape])
        return relay.tanh(post.args[0])

    rewrite(rewriter(is_op("exp")(wildcard()), look, require_type=True), relay.exp(relay.exp(x)))
    assert shapes == [[2, 3], [2, 3]]


def repeating(kind):
    """cast(cast(... dense)), in three ways of writing it."""
    dense = is_op("nn.dense")(wildcard(), wildcard())
    again = wildcard()
    if kind == "argument":
        whole = is_op("cast")(again)
        again.redirect_to(whole | dense)
    else:
        whole = is_op("cast")(again | dense if kind == "left" else dense | again)
        again.redirect_to(whole)
    return whole, again


@pytest.mark.parametrize("kind", ["argument", "left", "right"])
def test_a_redirected_wildcard_repeats(kind):
    data = relay.var("data", shape=(2, 8))
    out = relay.nn.dense(data, relay.const(np.zeros((4, 8), "float32")))
    for _ in range(6):
        out = relay.cast(out, "float32")
    pattern, again = repeating(kind)
    relu = rewriter(pattern, lambda pre, post, _: relay.nn.relu(post), rewrite_once=True)
    assert equal(rewrite(relu, out), relay.nn.relu(out))
    assert not pattern.match(relay.cast(relay.exp(data), "float32"))
    again.redirect_to(None)
    assert again.redirected_to() is None


def test_a_repetition_may_branch():
    leaf, left, right = is_var("x"), wildcard(), wildcard()
    tree = is_op("maximum")(left, right) | leaf
    left.redirect_to(tree)
    right.redirect_to(tree)
    x = relay.Var("x")
    a = relay.maximum(relay.maximum(x, x), relay.maximum(x, relay.maximum(x, x)))
    assert tree.match(a)
    assert not tree.match(relay.maximum(a, relay.exp(x)))
    left.redirect_to(None)
    right.redirect_to(None)


def test_a_long_repetition_takes_no_stack():
    x = relay.Var("x")
    out = x
    for _ in range(100_000):
        out = relay.exp(out)
    again = wildcard()
    pattern = is_op("exp")(again | is_var())
    again.redirect_to(pattern)
    assert pattern.match(out)
    assert not pattern.match(relay.tanh(out))
    again.redirect_to(None)


# ---- splitting


def split(params, body, name, **attrs):
    attrs = {"PartitionedFromPattern": name, **attrs}
    return relay.Function(params, body, attrs=attrs)


def conv_bias_relu(x, w, b):
    return relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w), b))


CBR = "nn.conv2d_nn.bias_add_nn.relu_"


def test_two_patterns_split_one_after_another():
    bias = is_op("nn.bias_add")(any_conv(), wildcard())
    relu = is_op("nn.relu")(bias)
    x, w, b, w2, b2 = names("x w b w2 b2")
    out = relay.nn.bias_add(relay.nn.conv2d(conv_bias_relu(x, w, b), w2), b2)
    for pattern, label in ((relu, "conv_bias_relu"), (bias, "conv_bias")):
        out = pattern.partition(out, {"Composite": label})
    p, q = names("a b c"), names("a b c")
    first = split(p, conv_bias_relu(*p), CBR, Composite="conv_bias_relu")
    body = relay.nn.bias_add(relay.nn.conv2d(q[0], q[1]), q[2])
    second = split(q, body, "nn.conv2d_nn.bias_add_", Composite="conv_bias")
    assert equal(out, second(first(x, w, b), w2, b2))


NAMES = {
    classic: "nn.conv2d_nn.relu_nn.relu_nn.leaky_relu_add_",
    deeper: "nn.conv2d_nn.relu_nn.relu_tanh_nn.leaky_relu_add_",
    single: "nn.conv2d_nn.relu_nn.relu_tanh_add_",
    nested: "nn.conv2d_nn.relu_add_tanh_nn.leaky_relu_add_",
}


def dominated(make):
    x, w = names("x w")
    return split([x, w], make(x, w), NAMES[make])


def test_dominators_are_split():
    x, w = names("x w")
    out = dominator().partition(classic(x * x, w * w))
    assert equal(out, dominated(classic)(x * x, w * w))
    out = fuzzy_dominator().partition(nested(single(deeper(classic(x, w), w), w), w))
    want = x
    for make in (classic, deeper, single, nested):
        want = dominated(make)(want, w)
    assert equal(out, want)


def bn_function(eps):
    p = names("gamma x mean var beta")
    gamma, x, mean, var, beta = p
    return split(p, arithmetic(x, var, mean, beta, gamma, eps), "subtract_multiply_add_sqrt_divide_add_")


def test_inputs_are_in_the_order_of_the_pattern():
    x, var, mean, beta, gamma = bn_parts()
    eps = relay.const(1e-5)
    once = arithmetic(x, var, mean, beta, gamma, eps)
    assert equal(BatchNorm().pattern.partition(once), bn_function(eps)(gamma, x, mean, var, beta))
    twice = arithmetic(once, var, mean, beta, gamma, eps)
    inner = bn_function(eps)(gamma, x, mean, var, beta)
    assert equal(BatchNorm().pattern.partition(twice), bn_function(eps)(gamma, inner, mean, var, beta))


def test_parts_that_are_used_elsewhere_are_not_split():
    x, var, mean, beta, gamma = bn_parts()
    item = TupleGetItemPattern(is_op("nn.batch_norm")(*(wildcard() for _ in range(5))), 0)
    norm = relay.nn.batch_norm(x, gamma, beta, mean, var)
    out = norm[0] + norm[0]
    assert item.partition(out).same_as(out)
    w = relay.Var("w")
    conv = relay.nn.conv2d(x, w)
    out = relay.nn.relu(conv) + conv
    assert is_op("nn.relu")(any_conv()).partition(out).same_as(out)


def test_any_number_of_fields_are_inputs():
    x, y = names("x y")
    concat = is_op("concatenate")(is_tuple(None))
    for fields in ((x,), (x, y), (x, y, x + y)):
        p = names(" ".join(f"p{i}" for i in range(len(fields))))
        assert equal(concat.partition(concat_of(*fields)), split(p, concat_of(*p), "Tuple_concatenate_")(*fields))


def test_any_number_of_arguments_are_inputs():
    x, y, z, b = names("x y z b")
    pattern = FunctionPattern(None, wildcard() + wildcard())(None) + wildcard()
    bodies = {1: lambda p: p[0] + p[0], 2: lambda p: p[0] + p[1], 3: lambda p: p[0] + p[1] + p[2]}
    for count, body in bodies.items():
        p = names(" ".join(f"p{i}" for i in range(count)))
        inner = relay.Function(p, body(p))
        args = [x, y, z][:count]
        q = names(" ".join(f"q{i}" for i in range(count + 1)))
        label = "add_" * (count - 1 if count > 1 else 1) + "FunctionCall_add_"
        want = split(q, inner(*q[:-1]) + q[-1], label)(*args, b)
        assert equal(pattern.partition(inner(*args) + b), want)


def test_a_check_decides():
    pattern = is_op("nn.relu")(is_op("nn.conv2d")(is_var("x"), wildcard()))
    x, w = names("x w")

    def is_nchw(root):
        return root.args[0].attrs.data_layout == "NCHW"

    p = names("x w")
    want = split(p, relay.nn.relu(relay.nn.conv2d(*p)), "nn.conv2d_nn.relu_")(x, w)
    assert equal(pattern.partition(relay.nn.relu(relay.nn.conv2d(x, w)), check=is_nchw), want)
    other = relay.nn.relu(relay.nn.conv2d(x, w, data_layout="NHWC"))
    assert pattern.partition(other, check=is_nchw).same_as(other)


def test_a_check_that_says_why_not_refuses():
    x = relay.var("x", shape=(4,))
    expr = relay.nn.relu(relay.exp(x))
    pattern = is_op("nn.relu")(is_op("exp")(wildcard()))
    refusal = hr.backend.Refusal("SHAPE_UNSUPPORTED", "it is too small")
    for answer, is_taken in (
        (True, True),
        (1, True),
        (np.True_, True),
        ([0], True),
        (False, False),
        (0, False),
        (None, False),
        ("it is too small", False),
        ("", False),
        (refusal, False),
    ):
        split = pattern.partition(expr, {"Composite": "mine.pair"}, check=lambda root, answer=answer: answer)
        assert ("Composite" in str(split)) is is_taken, answer
        table = [("mine.pair", pattern, lambda root, answer=answer: answer)]
        merged = relay.transform.MergeComposite(table)(hr.IRModule.from_expr(relay.Function([x], expr)))
        assert ("Composite" in str(merged)) is is_taken, answer


def test_a_check_sees_types():
    pattern = is_op("nn.relu")(any_conv())
    for batch, count in ((1, 1), (2, 0)):
        x, w = relay.var("x", shape=(batch, 10, 10, 10)), relay.var("w", shape=(10, 10, 3, 3))
        relu = relay.testing.run_infer_type(relay.nn.relu(relay.nn.conv2d(x, w)))
        out = pattern.partition(relu, check=lambda root: root.args[0].checked_type.shape[0] == 1)
        assert (out.op.type_key == "relay.Function") == bool(count)
        assert out.same_as(relu) or out.op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.relu_"


def test_optional_parts_are_split():
    x, w, b = names("x w b")
    inner = is_op("nn.relu")(any_conv().optional(lambda p: is_op("nn.bias_add")(p, wildcard())))
    outer = is_op("nn.bias_add")(any_conv(), wildcard()).optional(lambda p: is_op("nn.relu")(p))
    p = names("x w b")
    want = split(p, conv_bias_relu(*p), CBR)(x, w, b)
    for pattern in (inner, outer):
        assert equal(pattern.partition(conv_bias_relu(x, w, b)), want)


@pytest.mark.parametrize("body", ["conv", "anything"])
def test_a_called_function_is_split_with_its_call(body):
    x, w, b, a, v = names("x w b a v")
    pa, pv = wildcard(), wildcard()
    inside = is_op("nn.conv2d")(pa, pv) if body == "conv" else wildcard()
    pattern = FunctionPattern([pa, pv], inside)(wildcard(), wildcard()) + wildcard()
    function = relay.Function([a, v], relay.nn.conv2d(a, v))
    p = names("x w b")
    want = split(p, function(p[0], p[1]) + p[2], "nn.conv2d_FunctionCall_add_")(x, w, b) + b
    assert equal(pattern.partition(function(x, w) + b + b), want)


def test_one_of_two_functions_is_split():
    x, w, b, a, v = names("x w b a v")
    pa, pv = wildcard(), wildcard()

    def either(op):
        return FunctionPattern([pa, pv], is_op(op)(is_op("nn.conv2d")(pa, pv)))

    args = wildcard(), wildcard()
    pattern = either("sigmoid")(*args) | either("nn.relu")(*args)
    function = relay.Function([a, v], relay.nn.relu(relay.nn.conv2d(a, v)))
    p = names("x w")
    want = split(p, function(*p), "nn.conv2d_nn.relu_FunctionCall_")(x, w) + b
    assert equal(pattern.partition(function(x, w) + b), want)


def test_constants_are_embedded_or_inputs_as_the_pattern_says():
    x, w, b = names("x w b")
    c = relay.const(1)
    p, q = names("x b"), names("x w b")
    embedded = split(p, conv_bias_relu(p[0], c, p[1]), CBR)(x, b)
    with_w, with_c = (split(q, conv_bias_relu(*q), CBR)(x, weight, b) for weight in (w, c))
    of_w, of_c = conv_bias_relu(x, w, b), conv_bias_relu(x, c, b)

    def parts(weight):
        return is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), weight), wildcard()))

    for weight, want_w, want_c in (
        (wildcard(), with_w, with_c),
        (is_var(), with_w, of_c),
        (is_constant(), of_w, embedded),
        (is_expr(c), of_w, embedded),
        (is_var() | is_constant(), with_w, embedded),
        (is_constant() | is_var(), with_w, embedded),
    ):
        assert equal(parts(weight).partition(of_w), want_w)
        assert equal(parts(weight).partition(of_c), want_c)


def test_a_use_outside_that_flows_into_the_root_only_is_kept():
    head = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32], %y: Tensor[(4), float32]) {\n'
    mod = hr.relay.parse(head + "  %0 = exp(%x); %1 = add(%0, %y); %2 = sigmoid(%1); negative(multiply(%1, %2)) }")
    pattern = is_op("multiply")(is_op("add")(is_op("exp")(wildcard()), wildcard()), wildcard())
    out = hr.IRModule.from_expr(pattern.partition(mod["main"]))
    assert ir.structural_equal(
        relay.transform.InferType()(out),
        relay.transform.InferType()(
            hr.relay.parse(
                head
                + """  %0 = exp(%x); %1 = add(%0, %y); %2 = sigmoid(%1);
                %5 = fn (%a, %b, %c, PartitionedFromPattern="exp_add_multiply_") {
                  %3 = exp(%a); %4 = add(%3, %b); multiply(%4, %c) };
                negative(%5(%x, %y, %2)) }"""
            )
        ),
    )


def test_an_input_of_two_parts_is_one_parameter():
    x, w, left, right = names("x w left right")
    pattern = is_op("add")(is_op("multiply")(wildcard(), wildcard()), is_op("add")(wildcard(), wildcard()))
    conv = relay.nn.conv2d(x, w)
    p = names("l m r")
    want = split(p, p[0] * p[1] + (p[1] + p[2]), "multiply_add_add_")(left, conv, right)
    assert equal(pattern.partition(left * conv + (conv + right)), want)


def test_what_a_split_function_captures_is_an_input():
    x, y, a = names("x y a")
    pattern = FunctionPattern(None, wildcard())(None)
    function = relay.Function([a], a + y)
    out = pattern.partition(relay.exp(function(x)))
    assert [str(var) for var in relay.analysis.free_vars(out.args[0].op)] == []
    assert [arg.same_as(var) for arg, var in zip(out.args[0].args, (x, y), strict=True)] == [True, True]


# ---- texts and errors


def test_texts_read_back():
    again = wildcard()
    again.redirect_to(is_op("cast")(again) | is_op("nn.dense")(wildcard(), is_constant()))
    conv = any_conv().has_attr({"data_layout": "NCHW", "kernel_size": [3, 3], "groups": 1})
    for pattern in (
        conv.optional(is_op("nn.relu")),
        again,
        diamond_pattern(),
        is_tuple(None),
        is_tuple_get_item(is_tuple([is_var("a b"), is_var()])),
        is_if(wildcard(), is_expr(relay.const(1.5)), wildcard()),
        is_let(is_var(), FunctionPattern(None, wildcard())(None), wildcard()),
        fuzzy_dominator(),
        has_type(relay.TensorType((1, relay.Any()), "float32")).has_dtype("int8").has_shape((3, 4)),
    ):
        text = str(pattern)
        assert str(dfp.from_text(text)) == text
    assert str(conv.optional(is_op("nn.relu"))) == (
        '%0 = nn.conv2d(_, _)[attrs data_layout="NCHW", kernel_size=[3, 3], groups=1];\n(%0 or nn.relu(%0))'
    )
    again.redirect_to(None)


def test_a_wrong_text_has_a_place():
    with pytest.raises(hr.UserError, match=r"<pattern>:1:9: .*nn.conv2e"):
        dfp.from_text("nn.relu(nn.conv2e(_, _))")
    with pytest.raises(hr.UserError, match="expected a str, got int"):
        dfp.from_text(3)


def test_patterns_are_saved_and_compared():
    pattern = diamond_pattern()
    again = ir.load_json(ir.save_json(pattern))
    assert ir.structural_equal(pattern, again) and ir.structural_hash(pattern) == ir.structural_hash(again)
    w = wildcard()
    assert not ir.structural_equal(is_op("add")(w, w), is_op("add")(wildcard(), wildcard()))
    w.redirect_to(is_op("exp")(w))
    with pytest.raises(hr.UserError, match="redirected has no JSON; write the pattern as text"):
        ir.save_json(w)
    w.redirect_to(None)


def test_wrong_arguments_are_reported():
    for call, message in (
        (lambda: wildcard()(3), "an argument of a pattern: expected a pattern, got int"),
        (lambda: wildcard() | 3, r"\|: expected a pattern, got int"),
        (lambda: is_op("nn.conv2e"), "nn.conv2d"),
        (lambda: is_op(3), "op_name: expected a str, got int"),
        (lambda: dfp.match(3, relay.Var("x")), "match: pattern: expected a pattern, got int"),
        (lambda: wildcard().match(3), "match: expr"),
        (lambda: wildcard().has_attr([1]), "attrs: expected a dict, got list"),
        (lambda: is_tuple([1]), "a field: expected a pattern, got int"),
    ):
        with pytest.raises(hr.UserError, match=message):
            call()
    w = wildcard()
    with pytest.raises(hr.UserError, match="cannot be redirected to itself"):
        w.redirect_to(w)


def test_every_intent_of_relay_has_a_test():
    folder = Path(__file__).parent
    rows = [
        [part.strip() for part in line.split("|")]
        for line in (folder / "dataflow_pattern_intents.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert len(rows) == 104 and len({(row[0], row[1]) for row in rows}) == 104
    tests = {"patterns": Path(__file__), "composites": folder / "test_merge_composite.py"}
    for suite, _, test in rows:
        assert f"def {test}(" in tests[suite].read_text(), test
