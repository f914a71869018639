"""Questions about programs that Relay users ask."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

Feature = relay.analysis.Feature


def test_dtypes():
    x = relay.var("x", shape=(2,), dtype="float16")
    f = relay.Function([x], relay.cast(x, "int8") + relay.const(1, "int8"))
    assert relay.analysis.all_dtypes(f) == {"float16", "int8"}
    typed = relay.testing.run_infer_type(relay.Function([x], relay.cast(relay.cast(x, "float64"), "int32")))
    assert relay.analysis.all_dtypes(typed) == {"float16", "float64", "int32"}
    pair = relay.var("p", relay.TupleType([relay.scalar_type("bool"), relay.TensorType((2,), "uint8")]))
    assert relay.analysis.all_dtypes(pair) == {"bool", "uint8"}


def test_constants():
    one = relay.const(1)
    deep = one
    for _ in range(5000):
        deep = relay.Tuple([deep, one])
    assert relay.analysis.check_constant(one)
    assert relay.analysis.check_constant(relay.Tuple([]))
    assert relay.analysis.check_constant(deep)
    assert not relay.analysis.check_constant(relay.Tuple([one, relay.var("x")]))
    assert not relay.analysis.check_constant(one + one)


def test_basic_block_normal_form():
    x, c = relay.var("x", shape=()), relay.var("c", shape=(), dtype="bool")
    shared = relay.exp(x)
    crossing = relay.Function([c, x], relay.If(c, shared + shared, shared))
    refused = "several blocks use an expression that no let binds around them"
    with pytest.raises(hr.UserError, match=refused):
        relay.analysis.check_basic_block_normal_form(crossing)
    bound = relay.transform.ToBasicBlockNormalForm()(hr.IRModule.from_expr(crossing))["main"]
    assert relay.analysis.check_basic_block_normal_form(bound)
    inside = relay.Function([x], shared + shared)
    assert relay.analysis.check_basic_block_normal_form(inside)
    assert relay.analysis.check_basic_block_normal_form(shared + shared)
    with pytest.raises(hr.UserError, match=refused):
        relay.analysis.check_basic_block_normal_form(crossing.body)


def conv(data, weight_shape, **attrs):
    return relay.nn.conv2d(data, relay.const(np.zeros(weight_shape, "float32")), **attrs)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        # 4 filters of 3x3x2 at 6x6 places
        (lambda: conv(relay.var("x", shape=(1, 2, 8, 8)), (4, 2, 3, 3)), 4 * 3 * 3 * 2 * 6 * 6),
        # a filter of 3x3 for each of 2 channels, at 8x8 places
        (lambda: conv(relay.var("x", shape=(1, 2, 8, 8)), (2, 1, 3, 3), groups=2, padding=1), 2 * 9 * 8 * 8),
        (
            lambda: conv(
                relay.var("x", shape=(5, 8, 8, 2)), (3, 3, 2, 4), data_layout="NHWC", kernel_layout="HWIO", strides=2
            ),
            5 * 4 * 3 * 3 * 2 * 3 * 3,
        ),
        # as Relay counts: each of 4 channels of 17x17 elements meets 2 channels of 3x3, zeros of the stride included
        (
            lambda: relay.nn.conv2d_transpose(
                relay.var("x", shape=(1, 2, 8, 8)), relay.const(np.zeros((2, 4, 3, 3), "float32")), strides=2
            ),
            4 * 17 * 17 * 2 * 9,
        ),
        (
            lambda: relay.nn.conv1d(relay.var("x", shape=(1, 2, 8)), relay.const(np.zeros((4, 2, 3), "float32"))),
            4 * 3 * 2 * 6,
        ),
        (
            lambda: relay.nn.conv3d(
                relay.var("x", shape=(1, 2, 4, 4, 4)), relay.const(np.zeros((4, 2, 3, 3, 3), "float32"))
            ),
            4 * 27 * 2 * 8,
        ),
        (lambda: relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))), 2 * 3 * 4),
        (
            lambda: relay.nn.matmul(relay.var("a", shape=(3, 2)), relay.var("b", shape=(3, 4)), transpose_a=True),
            2 * 3 * 4,
        ),
        (
            lambda: relay.nn.batch_matmul(
                relay.var("a", shape=(5, 2, 3)), relay.var("b", shape=(5, 4, 3)), transpose_b=True
            ),
            5 * 2 * 3 * 4,
        ),
        (lambda: relay.exp(relay.var("x", shape=(7,))), 0),
    ],
)
def test_multiplications(make, count):
    assert relay.analysis.get_total_mac_number(make()) == count
    # A call that is used twice is computed once.
    call = make()
    assert relay.analysis.get_total_mac_number(relay.Function(relay.analysis.free_vars(call), call + call)) == count


def test_multiplications_of_packed_channels():
    x = relay.var("x", shape=(1, 8, 6, 6))
    mod = hr.IRModule.from_expr(relay.Function([x], conv(x, (16, 8, 3, 3), padding=1)))
    plain = relay.analysis.get_total_mac_number(mod["main"])
    packed = relay.transform.ConvertLayout({"nn.conv2d": ["NCHW8c", "OIHW8i8o"]})(relay.transform.InferType()(mod))
    assert plain == 16 * 8 * 9 * 36
    assert relay.analysis.get_total_mac_number(relay.transform.InferType()(packed)["main"]) == plain


def test_multiplications_of_an_open_size():
    n = hr.tir.Var("n")
    call = relay.nn.dense(relay.var("x", shape=(n, 3)), relay.var("w", shape=(4, 3)))
    with pytest.raises(hr.UserError, match=r"get_total_mac_number: .*dimension 0 of .* is n, which is not a number"):
        relay.analysis.get_total_mac_number(call)


def test_features():
    x, y = relay.var("x", shape=()), relay.var("y")
    f = relay.Function([x], relay.Let(y, relay.exp(x), relay.TupleGetItem(relay.Tuple([y, relay.const(1.0)]), 0)))
    named = {Feature.fVar, Feature.fOp, Feature.fCall, Feature.fConstant, Feature.fTuple, Feature.fTupleGetItem}
    expected = named | {Feature.fFunction, Feature.fLet}
    assert relay.analysis.detect_feature(f) == expected
    mod = hr.IRModule({"main": f, "other": relay.Function([], relay.RefRead(relay.RefCreate(relay.const(1.0))))})
    refs = {Feature.fRefCreate, Feature.fRefRead}
    assert relay.analysis.detect_feature(mod) == expected | refs
    assert relay.analysis.detect_feature(relay.GlobalVar("main"), mod) == expected | refs | {Feature.fGlobalVar}
    cell = relay.RefWrite(relay.RefCreate(relay.const(1.0)), relay.const(2.0))
    assert Feature.fRefWrite in relay.analysis.detect_feature(cell)
    assert relay.analysis.detect_feature(relay.If(x, x, x)) == {Feature.fVar, Feature.fIf}


def test_features_of_sharing_and_recursion():
    x = relay.var("x", shape=())
    shared = relay.exp(x)
    assert Feature.fGraph in relay.analysis.detect_feature(shared + shared)
    assert Feature.fGraph not in relay.analysis.detect_feature(relay.exp(x) + relay.exp(x) + x + x)
    loop, a = relay.var("loop"), relay.var("a", shape=())
    recursive = relay.Let(loop, relay.Function([a], loop(a)), loop(x))
    assert Feature.fLetRec in relay.analysis.detect_feature(recursive)
    plain = relay.Let(loop, relay.Function([a], a), loop(x))
    assert Feature.fLetRec not in relay.analysis.detect_feature(plain)


def test_layers():
    x = relay.var("x", shape=(1, 2, 8, 8))
    one = conv(x, (2, 2, 1, 1))
    two = relay.nn.relu(conv(relay.nn.relu(one), (2, 2, 1, 1)))
    f = relay.Function([x], one + two + x)
    assert relay.analysis.count_layers(f, ["nn.conv2d"]) == 2
    assert relay.analysis.count_layers(f, ["nn.conv2d", "nn.relu"]) == 4
    assert relay.analysis.count_layers(f, ["nn.dense"]) == 0
    chain = x
    for _ in range(3000):
        chain = relay.nn.relu(chain)
    assert relay.analysis.count_layers(chain, ["nn.relu"]) == 3000


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("get_calibration_data", "relay.create_executor"),
        ("nowhere", "has no attribute 'nowhere'"),
    ],
)
def test_analyses_that_are_not_there(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(relay.analysis, name)


def calls():
    """`main` calls `b` and twice `a`, which `b` calls, too, and itself."""
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule()
    a, b = relay.GlobalVar("a"), relay.GlobalVar("b")
    mod[a] = relay.Function([x], relay.exp(x), relay.TensorType((2,)))
    y = relay.var("y", shape=(2,))
    mod[b] = relay.Function([y], b(a(y)), relay.TensorType((2,)))
    z = relay.var("z", shape=(2,))
    mod["main"] = relay.Function([z], a(a(b(z))))
    return mod, a, b


def test_a_call_graph_counts_references():
    mod, a, b = calls()
    graph = relay.analysis.CallGraph(mod)
    assert graph.module.same_as(mod)
    assert [graph.ref_count(var) for var in (a, b, "main")] == [3, 2, 0]
    assert [graph.global_call_count(var) for var in (a, "b", "main")] == [0, 2, 3]
    assert [graph.is_recursive(var) for var in (a, b, "main")] == [False, True, False]
    assert graph.print_var("main").splitlines() == ["@main: #refs = 0", "  calls @a x2", "  calls @b x1"]
    assert "@b: #refs = 2" in str(graph)


def test_wrong_call_graphs():
    mod, a, _ = calls()
    with pytest.raises(hr.UserError, match="CallGraph: expected an IRModule, got"):
        relay.analysis.CallGraph(relay.var("x"))
    with pytest.raises(hr.UserError, match=r"the module has no function 'c'; it has a, b, main"):
        relay.analysis.CallGraph(mod).ref_count("c")
    open_mod = hr.IRModule()
    z = relay.var("z", shape=(2,))
    open_mod["main"] = relay.Function([z], a(z))
    with pytest.raises(hr.UserError, match="@main calls @a, which the module does not have"):
        relay.analysis.CallGraph(open_mod)


def test_fused_functions_of_a_module_that_was_not_fused():
    x = relay.var("x", shape=(2, 2))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.exp(x))))
    (fused,) = relay.analysis.extract_fused_functions(mod).values()
    assert fused.attrs["Primitive"] == 1


def test_layers_of_a_module():
    x = relay.var("x", shape=(2, 2))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.exp(relay.exp(x))))
    assert relay.analysis.count_layers(mod, ["exp"]) == 2
