"""headrace.relay as its users type it: ops, scopes, texts, analyses, executors, build."""

import inspect
import json
import platform
import re
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay  # noqa: E402


def type_of(expr):
    """The type that inference gives."""
    return relay.transform.InferTypeLocal(expr.astuple() if isinstance(expr, relay.TupleWrapper) else expr)


def evaluate(expr, *args):
    """The result of the interpreter."""
    return relay.create_executor("debug").evaluate(relay.Function(relay.analysis.free_vars(expr), expr))(*args)


X = np.linspace(-1, 1, 2 * 3 * 8 * 8, dtype="float32").reshape(2, 3, 8, 8)


def x4():
    return relay.var("x", shape=(2, 3, 8, 8))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda x: relay.nn.conv2d(x, relay.var("w", shape=(4, 3, 3, 3))), (2, 4, 6, 6)),
        (lambda x: relay.nn.conv2d(x, relay.var("w", shape=(4, 3, 3, 3)), strides=2, padding=1), (2, 4, 4, 4)),
        (lambda x: relay.nn.conv2d(x, relay.var("w"), (1, 1), (1, 1), channels=5, kernel_size=(3, 3)), (2, 5, 8, 8)),
        (lambda x: relay.nn.max_pool2d(x, pool_size=2, strides=2), (2, 3, 4, 4)),
        (lambda x: relay.nn.avg_pool2d(x, (2, 2), (2, 2)), (2, 3, 4, 4)),
        (lambda x: relay.nn.global_avg_pool2d(x), (2, 3, 1, 1)),
        (lambda x: relay.nn.batch_flatten(x), (2, 192)),
        (lambda x: relay.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (2, 3, 10, 10)),
        (lambda x: relay.nn.pad(x, pad_width=((0, 0), (0, 0), (1, 1), (0, 0)), pad_value=1.5), (2, 3, 10, 8)),
        (lambda x: relay.reshape(x, (2, -1)), (2, 192)),
        (lambda x: relay.reshape(x, newshape=-1), (384,)),
        (lambda x: relay.reshape(x, relay.const(np.array([6, 64], "int64"))), (6, 64)),
        (lambda x: relay.transpose(x, axes=(0, 2, 3, 1)), (2, 8, 8, 3)),
        (lambda x: relay.transpose(x), (8, 8, 3, 2)),
        (lambda x: relay.squeeze(relay.expand_dims(x, axis=0), axis=0), (2, 3, 8, 8)),
        (lambda x: relay.concatenate([x, x], axis=1), (2, 6, 8, 8)),
        (lambda x: relay.stack([x, x], axis=0), (2, 2, 3, 8, 8)),
        (lambda x: relay.split(x, 3, axis=1)[1], (2, 1, 8, 8)),
        (lambda x: relay.split(x, [1], axis=1)[1], (2, 2, 8, 8)),
        (lambda x: relay.strided_slice(x, begin=[0, 0, 0, 0], end=[1, 3, 8, 4]), (1, 3, 8, 4)),
        (lambda x: relay.take(x, relay.const([0, 2]), axis=1), (2, 2, 8, 8)),
        (lambda x: relay.sum(x, axis=1), (2, 8, 8)),
        (lambda x: relay.mean(x, axis=(2, 3), keepdims=True), (2, 3, 1, 1)),
        (lambda x: relay.argmax(x, 1), (2, 8, 8)),
        (lambda x: relay.variance(x, axis=1), (2, 8, 8)),
        (lambda x: relay.broadcast_to(relay.const(1.0), (2, 2)), (2, 2)),
        (lambda x: relay.tile(x, (1, 2, 1, 1)), (2, 6, 8, 8)),
        (lambda x: relay.image.resize2d(x, (16, 16)), (2, 3, 16, 16)),
        (lambda x: relay.zeros((2, 2), "int8"), (2, 2)),
        (lambda x: relay.full(3, (2, 2), "float32"), (2, 2)),
        (lambda x: relay.arange(10, dtype="int32"), (10,)),
        (lambda x: relay.nn.softmax(x, axis=1), (2, 3, 8, 8)),
        (lambda x: relay.where(relay.less(x, relay.const(0.0)), x, relay.negative(x)), (2, 3, 8, 8)),
        (lambda x: relay.clip(x, 0, 6), (2, 3, 8, 8)),
        (lambda x: relay.nn.dropout(x), (2, 3, 8, 8)),
        (lambda x: relay.gather(x, 1, relay.const(np.zeros((2, 1, 8, 8), "int32"))), (2, 1, 8, 8)),
        (lambda x: relay.nn.dense(relay.nn.batch_flatten(x), relay.var("w"), units=10), (2, 10)),
    ],
)
def test_ops_are_called_as_relay_users_call_them(make, shape):
    assert type_of(make(x4())).shape == list(shape)


def test_ops_compute():
    x = x4()
    np.testing.assert_allclose(evaluate(relay.std(x, axis=1), X).numpy(), X.std(axis=1), atol=1e-6)
    pair = evaluate(relay.mean_variance(x, axis=1).astuple(), X)
    np.testing.assert_allclose(pair[1].numpy(), X.var(axis=1), atol=1e-6)
    np.testing.assert_array_equal(evaluate(relay.arange(2, 10, 3, "int32")).numpy(), [2, 5, 8])
    np.testing.assert_array_equal(evaluate(relay.split(x, 3, axis=1)[2], X).numpy(), X[:, 2:])


def test_every_op_has_a_function_with_a_signature_and_docs():
    for name in ir.Op.list_op_names():
        function = relay
        for part in name.split("."):
            function = getattr(function, part)
        assert "Parameters" in function.__doc__, name
        assert "Returns" in function.__doc__, name
        assert inspect.signature(function), name
    parameters = inspect.signature(relay.nn.conv2d).parameters
    assert list(parameters)[:7] == ["data", "weight", "strides", "padding", "dilation", "groups", "channels"]
    assert parameters["data_layout"].default == "NCHW"


def parameters_of(function):
    """The text of a function's parameters with their defaults, without their types."""
    signature = inspect.signature(function)
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return str(inspect.Signature(plain))


def test_attributes_have_the_defaults_of_their_rank():
    assert parameters_of(relay.nn.max_pool2d) == (
        "(data, pool_size=(1, 1), strides=(1, 1), dilation=(1, 1), padding=(0, 0), layout='NCHW', out_layout='', "
        "ceil_mode=False, *, span=None)"
    )
    assert parameters_of(relay.nn.conv1d_transpose) == (
        "(data, weight, strides=(1,), padding=(0,), dilation=(1,), channels=None, kernel_size=None, groups=1, "
        "data_layout='NCW', kernel_layout='IOW', out_layout='', output_padding=(0,), out_dtype=None, *, span=None)"
    )
    x = relay.var("x", shape=(1, 2, 5, 5, 5))
    attrs = relay.nn.avg_pool3d(x, pool_size=2, padding=1).attrs
    assert type(attrs).__name__ == "AvgPool3DAttrs"
    assert (attrs.layout, attrs.strides, attrs.padding) == ("NCDHW", (1, 1, 1), (1,) * 6)
    assert relay.nn.conv3d(x, relay.var("w")).attrs.kernel_layout == "OIDHW"
    assert relay.nn.adaptive_max_pool1d(relay.var("y")).attrs.layout == "NCW"
    text = relay.Function([x], relay.nn.max_pool3d(x, 2, layout="NCDHW")).astext()
    assert "nn.max_pool3d(%x, pool_size=[2, 2, 2], padding=[0, 0, 0, 0, 0, 0])" in text


def test_weight_gradient_names_its_layouts_as_relay_does():
    x, g = relay.var("x", shape=(2, 3, 5, 5)), relay.var("g", shape=(2, 4, 3, 3))
    call = relay.nn.conv2d_backward_weight(g, x, kernel_size=3, kernel_layout="HWIO")
    assert (call.attrs.grad_layout, call.attrs.data_layout, call.attrs.kernel_layout) == ("NCHW", "NCHW", "HWIO")
    assert parameters_of(relay.nn.conv2d_backward_weight) == (
        "(grad, data, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, kernel_size=None, "
        "grad_layout='NCHW', data_layout='NCHW', kernel_layout='OIHW', out_dtype=None, *, span=None)"
    )
    data, gradient = np.ones((2, 3, 5, 5), "float32"), np.ones((2, 4, 3, 3), "float32")
    for weight, shape in ((call, (3, 3, 3, 4)), (relay.nn.conv2d_backward_weight(g, x), (4, 3, 3, 3))):
        result = relay.create_executor("debug").evaluate(relay.Function([g, x], weight))(gradient, data)
        np.testing.assert_array_equal(result.numpy(), np.full(shape, 18, "float32"))


def test_ops_that_are_registered_later_are_found():
    assert relay.op.get("add").name == "add"
    assert relay.op.nn.relu is relay.nn.relu
    with pytest.raises(AttributeError, match=r"headrace\.relay\.nn has no 'conv9d', and there is no such op"):
        relay.nn.conv9d  # noqa: B018


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: relay.nn.conv2d(x4()), TypeError, r"conv2d\(\) missing 1 required positional argument: 'weight'"),
        (
            lambda: relay.nn.relu(x4(), nonsense=1),
            TypeError,
            r"relu\(\) got an unexpected keyword argument 'nonsense'",
        ),
        (lambda: relay.nn.relu("x"), hr.UserError, "nn.relu: data: expected an expression, got str"),
        (
            lambda: relay.nn.conv2d(x4(), x4(), data_layout=3),
            hr.UserError,
            "field 'data_layout' of relay.attrs.Conv2DAttrs",
        ),
        (lambda: relay.op.get("nn.conv"), hr.UserError, "there is no op 'nn.conv'"),
        (lambda: relay.var("x", relay.TensorType((1,)), shape=(1,)), hr.UserError, "give one of them"),
        (lambda: relay.const("text"), hr.UserError, "const: expected a number"),
        (lambda: relay.var("x") + 1, hr.UserError, r"write relay.const\(1, dtype\)"),
        (lambda: relay.add(x4(), x4()).checked_type, hr.UserError, "run relay.transform.InferType"),
        (lambda: relay.create_executor("vm"), hr.UserError, "there is no kind 'vm'"),
        (lambda: relay.build(3), hr.UserError, "expected an IRModule or a function, got int"),
        (lambda: relay.parse("nonsense"), hr.UserError, "version"),
        (lambda: relay.parse(3), hr.UserError, "source: expected a str, got int"),
        (lambda: relay.ScopeBuilder().get(), hr.UserError, "call ret"),
        (lambda: relay.bind(relay.Function([], relay.const(1)), {"x": relay.const(1)}), hr.UserError, "no parameter x"),
        (lambda: relay.transform.Nonsense, AttributeError, "there is no pass 'Nonsense'; hr.transform.pass_registry"),
    ],
)
def test_errors(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_fields_of_a_call():
    x = relay.var("x", shape=(4, 6))
    call = relay.split(x, 2, axis=1).astuple()
    assert isinstance(call[1], relay.TupleGetItem)
    np.testing.assert_array_equal(evaluate(call[1], np.ones((4, 6), "float32")).numpy(), np.ones((4, 3)))
    with pytest.raises(TypeError, match="not iterable"):
        list(call)


def test_operators():
    x = relay.var("x", shape=(3,))
    values = np.array([1, 2, 4], "float32")
    for expr, want in [
        (x + x, values * 2),
        (x + 1, values + 1),
        (2 - x, 2 - values),
        (x * 3.0, values * 3),
        (1 / x, 1 / values),
        (-x, -values),
        (x > 1.5, values > 1.5),
        ((x <= 2).astype("int32"), (values <= 2).astype("int32")),
    ]:
        np.testing.assert_array_equal(evaluate(expr, values).numpy(), want)
    assert (x + 1).args[1].data.dtype == "float32"


def test_const_refuses_floats_that_float32_does_not_hold():
    for value in (1e300, [1.0, -1e39], np.array([1e300])):
        with pytest.raises(hr.UserError, match='too large for float32, which floats are; give dtype="float64"'):
            relay.const(value)
    assert relay.const(1e300, "float64").data.numpy() == 1e300
    assert np.isinf(relay.const(float("inf")).data.numpy())


def test_constants():
    assert relay.const(1).data.dtype == "int32"
    assert relay.const(1.0).data.dtype == "float32"
    assert relay.const(True).data.dtype == "bool"
    assert relay.const([1.5, 2]).data.dtype == "float32"
    for wide in (np.float64(1), np.ones(2), np.sqrt(2.0)):
        assert relay.const(wide).data.dtype == "float32"
        assert relay.const(wide, "float64").data.dtype == "float64"
    assert relay.const(np.array([1, -(2**31)])).data.dtype == "int32"
    assert relay.const(np.zeros((0,), "int64")).data.dtype == "int32"
    assert relay.const(hr.nd.array(np.ones(2))).data.dtype == "float64"
    assert relay.const(np.float16(1)).data.dtype == "float16"
    for large in (2**31, [0, 2**40], np.array([-(2**31) - 1])):
        with pytest.raises(hr.UserError, match='is not an int32, which integers are; give dtype="int64"'):
            relay.const(large)
        assert relay.const(large, "int64").data.dtype == "int64"
    assert relay.const(1, "int8").data.dtype == "int8"
    assert relay.const(1.5, "bfloat16").data.dtype == "bfloat16"
    array = np.zeros(2, "float32")
    constant = relay.const(array)
    array[0] = 1
    assert constant.data.numpy()[0] == 0


def test_scope_builder():
    x = relay.var("x", shape=(), dtype="float32")
    cond = relay.var("cond", shape=(), dtype="bool")
    sb = relay.ScopeBuilder()
    with sb.if_scope(cond):
        one = sb.let("one", relay.const(1.0))
        sb.ret(relay.add(x, one))
    with sb.else_scope():
        sb.ret(x)
    f = relay.Function([x, cond], sb.get())
    run = relay.create_executor("debug").evaluate(f)
    assert run(np.float32(2), np.bool_(True)).numpy() == 3
    assert run(np.float32(2), np.bool_(False)).numpy() == 2


def test_text_round_trip():
    x = relay.var("x", shape=(2, 2))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.add(x, relay.const(np.arange(2, dtype="float32")))))
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    ir.assert_structural_equal(relay.fromtext(mod.astext()), mod)
    assert "meta[relay.Constant]" in relay.const(np.arange(64.0)).astext(show_meta_data=False)
    assert isinstance(relay.parse_expr("free_var %x: int32; %x + 1"), relay.Call)
    assert isinstance(relay.fromtext('#[version = "0.0.5"]\nfree_var %x: int32;\n%x'), relay.Var)
    assert str(mod).startswith('#[version = "0.0.5"]')
    assert relay.astext(mod) == mod.astext()


def test_types_are_shown():
    x = relay.var("x", shape=(2, 2))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.nn.relu(relay.negative(x))))
    shown = mod.astext(show_types=True)
    assert "%0 = negative(%x) /* ty=Tensor[(2, 2), float32] */;" in shown
    assert shown == relay.astext(mod, show_types=True)
    assert mod["main"].body.astext(show_types=True).endswith("nn.relu(%0) /* ty=Tensor[(2, 2), float32] */\n")
    assert relay.parse(shown).astext(show_types=False) == mod.astext(show_types=False)
    assert relay.parse(mod.astext(show_types=False)).astext() == shown
    assert mod.astext() == shown


def _read_type(text):
    """The type that the text names, in a program with the data type List and the type parameters A and B."""
    definitions = '#[version = "0.0.5"]\ntype List[A] { Nil, }\n'
    return relay.parse(f"{definitions}def @main[A, B](%x: {text}) {{ %x }}")["main"].params[0].type_annotation


def test_types_read_back():
    a, b, c = (relay.TypeVar(name) for name in "ABC")
    n = hr.tir.Var("n", "int64")
    relu = relay.TypeRelation("nn.relu", [c, b], 1, None)
    softmax = relay.TypeRelation("nn.softmax", [c, b], 1, relay.nn.softmax(relay.var("x"), axis=0).attrs)
    for typ, text in [
        (relay.scalar_type("int32"), "int32"),
        (relay.TensorType((n, relay.Any(), n // 2)), "Tensor[(n, ?, floordiv(n, 2)), float32]"),
        (relay.TupleType([a]), "(A,)"),
        (relay.RefType(a), "ref(A)"),
        (relay.TypeCall(relay.GlobalTypeVar("List"), [a]), "List[A]"),
        (relay.IncompleteType(), "_"),
        (relay.FuncType([c], b, [c], [relu]), "fn [C](C) -> B where [nn.relu(C) -> B]"),
        (relay.FuncType([c], b, [c], [softmax]), "fn [C](C) -> B where [nn.softmax(C, axis=0) -> B]"),
    ]:
        assert str(typ) == text
        assert ir.structural_equal(_read_type(text), typ, map_free_vars=True)


def test_attributes_show_data_types_by_name():
    x = relay.var("x", shape=(2,))
    assert str(relay.cast(x, "int8").attrs) == "relay.attrs.CastAttrs(dtype=int8)"
    assert "out_dtype=bfloat16" in repr(relay.nn.conv2d(x, x, out_dtype="bfloat16").attrs)
    assert relay.cast(x, "int8").attrs.dtype == "int8"


def test_a_type_that_is_shared_reads_back():
    a, n = relay.TypeVar("A"), hr.tir.Var("n", "int64")
    sized = relay.FuncType([relay.TensorType((n,)), a], a, [a])
    f = relay.var("f", relay.TupleType([sized, sized]))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([f, relay.var("g", sized)], f)))
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)
    assert ir.structural_hash(relay.parse(mod.astext())) == ir.structural_hash(mod)
    unknown = '#[version = "0.0.5"]\ndef @main(%x: (_, _)) -> _ { let %y: _ = %x; %y }'
    ir.assert_structural_equal(relay.parse(unknown), relay.parse(unknown))


def test_extern_types_have_no_constructors():
    text = '#[version = "0.0.5"]\nextern type Storage\n\ndef @main(%s: Storage) -> Storage {\n  %s\n}\n'
    mod = relay.parse(text)
    assert mod.astext() == text
    typed = relay.transform.InferType()(mod)
    assert str(typed["main"].checked_type) == "fn (Storage) -> Storage"
    matched = relay.parse(text.replace("  %s\n", "  match (%s) { _ => { %s }, }\n"))
    with pytest.raises(hr.UserError, match="a value of Storage cannot be matched: the type is extern"):
        relay.transform.InferType()(matched)


def test_constraints_of_functions_are_asked():
    a = relay.TypeVar("A")
    attrs = relay.transpose(relay.var("x")).attrs
    keeps = relay.FuncType([a], a, [a], [relay.TypeRelation("transpose", [a, a], 1, attrs)])
    f = relay.var("f", keeps)

    def infer(shape):
        x = relay.var("x", shape=shape)
        return relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([f, x], f(x))))

    assert str(infer((2, 2))["main"].checked_type.ret_type) == "Tensor[(2, 2), float32]"
    with pytest.raises(hr.UserError, match=r"the constraint transpose\(A, \.\.\.\) -> A .* the op gives"):
        infer((2, 3))
    unknown = relay.FuncType([a], a, [a], [relay.TypeRelation("Broadcast", [a, a], 1, None)])
    with pytest.raises(hr.UserError, match="names no op, and only the relations of ops can be asked"):
        relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([relay.var("f", unknown)], relay.const(1))))


def test_modules():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule()
    mod["f"] = relay.Function([x], relay.nn.relu(x))
    f = mod.get_global_var("f")
    mod.Add("main", relay.Function([x], f(x)))
    assert [var.name_hint for var in mod.get_global_vars()] == ["f", "main"]
    assert "f" in mod
    assert "g" not in mod
    with pytest.raises(hr.UserError, match="has a function '@f' already"):
        mod.Add("f", mod["main"])
    mod.Add("f", relay.Function([x], x), update=True)
    assert mod["f"].body.same_as(x)
    assert mod[f].body.same_as(x)
    with pytest.raises(hr.UserError, match="no function '@g'; it has: @f, @main"):
        mod["g"]
    copy = mod.copy()
    copy["g"] = mod["f"]
    assert "g" not in mod
    assert mod.with_attr("key", 1).get_attr("key") == 1


def test_data_types_and_matches():
    mod = hr.IRModule()
    mod.import_from_std("prelude.rly")
    cons, nil = mod.get_constructor("List", "Cons"), mod.get_constructor("List", "Nil")
    data = relay.var("l", relay.TypeCall(mod.get_global_type_var("List"), [relay.scalar_type("int32")]))
    head = relay.var("h")
    clause = relay.Clause(relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternWildcard()]), head)
    match = relay.Match(data, [clause], complete=False)
    missing = relay.analysis.unmatched_cases(match, mod)
    assert [pattern.constructor.name_hint for pattern in missing] == ["Nil"]
    whole = relay.Match(data, [clause, relay.Clause(relay.PatternConstructor(nil), relay.const(0))])
    assert relay.analysis.unmatched_cases(whole, mod) == []
    mod["main"] = relay.Function([], relay.Let(data, cons(relay.const(4), nil()), whole))
    assert relay.create_executor("debug", mod).evaluate()().numpy() == 4


def test_analysis():
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    f = relay.Function([x], relay.add(x, y))
    assert relay.analysis.free_vars(f) == [y]
    assert relay.analysis.all_vars(f) == [x, y]
    assert relay.analysis.bound_vars(f) == [x]
    order = []
    relay.analysis.post_order_visit(f, lambda e: order.append(e.type_key))
    assert order[-2:] == ["relay.Call", "relay.Function"]
    assert relay.analysis.well_formed(f)
    assert not relay.analysis.well_formed(hr.IRModule.from_expr(relay.Function([x], relay.Let(x, x, x))))
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    typ = relay.FuncType([a, b], a, [a])
    assert relay.analysis.free_type_vars(typ) == [b]
    assert relay.analysis.bound_type_vars(typ) == [a]
    assert relay.analysis.check_kind(typ) == relay.TypeKind.Type
    mod = hr.IRModule.from_expr(relay.nn.relu(relay.nn.relu(x)))
    assert relay.analysis.list_op_freqs(mod) == {"nn.relu": 2}


def test_fusion_borders():
    x, w = relay.var("x", shape=(4, 2)), relay.var("w", shape=(3, 2))
    dense = relay.nn.dense(relay.exp(x), w)
    mod = hr.IRModule.from_expr(relay.abs(relay.nn.relu(dense)))
    (border,) = relay.analysis.fusion_borders(mod)
    assert border.producer.op.name == "exp" and [user.op.name for user in border.users] == ["nn.dense"]
    assert border.reason == "FUSE_KINDS" and "'nn.dense', whose kind is anchor" in border.message
    with hr.transform.PassContext(config={"relay.FuseOps.max_depth": 2}):
        reasons = [border.reason for border in relay.analysis.fusion_borders(mod)]
        assert reasons == ["FUSE_KINDS", "FUSE_DEPTH"]
        assert len(relay.analysis.extract_fused_functions(relay.transform.FuseOps()(mod))) == 3
    with hr.transform.PassContext(opt_level=0):
        assert {border.reason for border in relay.analysis.fusion_borders(mod)} == {"FUSE_KINDS", "FUSE_DEPTH"}
    with hr.transform.PassContext(disabled_pass=["FuseOps"]):
        assert relay.analysis.fusion_borders(mod) == []


def test_bind():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    f = relay.Function([x, y], relay.subtract(x, y))
    bound = relay.bind(f, {"y": relay.const(2.0)})
    assert len(bound.params) == 1
    assert relay.create_executor().evaluate(bound)(5.0 * np.ones((), "float32")).numpy() == 3
    assert relay.bind_params_by_name(f, {"x": np.float32(1) * np.ones((), "float32"), "z": np.zeros(1)}).params == [y]
    with pytest.raises(hr.UserError, match=r"parameter 'x' is .*float32.*int32"):
        relay.bind_params_by_name(f, {"x": np.ones((), "int32")})


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_executors_agree_with_numpy(kind):
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    mod = hr.IRModule.from_expr(relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w))))
    a, b = np.random.default_rng(1).normal(size=(2, 3)).astype("float32"), np.ones((4, 3), "float32")
    run = relay.create_executor(kind, mod, hr.cpu(), "llvm").evaluate()
    np.testing.assert_allclose(run(a, b).numpy(), np.maximum(a @ b.T, 0), atol=1e-6)
    np.testing.assert_allclose(run(a, w=b).numpy(), np.maximum(a @ b.T, 0), atol=1e-6)
    with pytest.raises(hr.UserError, match="missing: w"):
        run(a)
    with_params = relay.create_executor(kind, mod, params={"w": b}).evaluate()
    np.testing.assert_allclose(with_params(a).numpy(), np.maximum(a @ b.T, 0), atol=1e-6)


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_an_executor_takes_the_module_as_it_is_when_it_evaluates(kind):
    x, data = relay.var("x", shape=(2,)), np.array([-1, 2], "float32")
    mod = hr.IRModule({"f": relay.Function([x], relay.nn.relu(x))})
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], relay.Call(mod.get_global_var("f"), [y]))
    executor = relay.create_executor(kind, mod)
    before = executor.evaluate()
    np.testing.assert_array_equal(executor.evaluate()(data).numpy(), [0, 2])
    mod.update_func("f", relay.Function([x], relay.negative(x)))
    np.testing.assert_array_equal(executor.evaluate()(data).numpy(), [1, -2])
    np.testing.assert_array_equal(before(data).numpy(), [0, 2])


@hr.instrument.pass_instrument
class ProgramsAfter:
    """The program after each pass that ran."""

    def __init__(self):
        self.texts = {}

    def run_after_pass(self, mod, info):
        self.texts[info.name] = str(mod)


def exp_module():
    x = relay.var("x", shape=(2,))
    return hr.IRModule.from_expr(relay.Function([x], relay.exp(x)))


def test_an_executor_compiles_in_the_context_where_it_evaluates():
    data = np.array([0, 1], "float32")
    executor = relay.create_executor("graph", exp_module())
    for level in (3, 4):
        seen = ProgramsAfter()
        with hr.transform.PassContext(opt_level=level, instruments=[seen]):
            run = executor.evaluate()
        assert seen.texts
        assert ("FastMath" in seen.texts) == (level == 4)
        seen.texts.clear()
        with hr.transform.PassContext(instruments=[seen]):
            np.testing.assert_allclose(run(data).numpy(), np.exp(data), rtol=1e-5)
        assert not seen.texts


@pytest.mark.parametrize("level", [3, 4])
def test_a_build_has_the_level_of_its_context(level):
    seen = ProgramsAfter()
    with hr.transform.PassContext(opt_level=level, instruments=[seen]):
        lib = relay.build(exp_module())
    assert ("FastMath" in seen.texts) == (level == 4)
    assert ("fast_exp" in seen.texts.get("FastMath", "")) == (level == 4)
    m = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    data = np.array([0.5, 1], "float32")
    m.run(x=data)
    np.testing.assert_allclose(m.get_output(0).numpy(), np.exp(data), rtol=1e-5)


def test_an_output_has_the_size_that_the_data_tells():
    x = relay.var("x", shape=(3, 4))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.transpose(relay.argwhere(x))))
    m = hr.graph_executor.GraphModule(relay.build(mod)["default"](hr.cpu()))
    for data in (np.eye(3, 4, dtype="float32"), np.zeros((3, 4), "float32"), np.ones((3, 4), "float32")):
        m.run(x=data)
        np.testing.assert_array_equal(m.get_output(0).numpy(), np.argwhere(data).T)
        run = relay.create_executor("graph", mod).evaluate()
        np.testing.assert_array_equal(run(data).numpy(), np.argwhere(data).T)
    assert m.get_output_info()[0]["output0"] == (2, 12)  # the most there can be


def test_stop_fusion_is_an_annotation():
    x = relay.var("x", shape=(2,))
    call = relay.annotation.stop_fusion(relay.exp(x))
    assert call.op.name == "annotation.stop_fusion"
    data = np.array([0, 1], "float32")
    run = relay.create_executor("graph", hr.IRModule.from_expr(relay.Function([x], relay.negative(call)))).evaluate()
    np.testing.assert_allclose(run(data).numpy(), -np.exp(data), rtol=1e-6)


@pytest.mark.skipif(
    platform.machine() != "x86_64" or "avx512_fp16" in Path("/proc/cpuinfo").read_text(), reason="has avx512fp16"
)
def test_a_build_for_another_processor(tmp_path):
    x = relay.var("x", shape=(4,))
    target = hr.Target("llvm -mcpu=x86-64-v3 -mattr=+avx512fp16")
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), target)
    lib.export_library(tmp_path / "lib.so")
    assert "vmax" in lib.get_lib().get_source("s")
    with pytest.raises(hr.MissingError, match="needs CPU features that this machine lacks"):
        lib["default"](hr.cpu())
    with pytest.raises(hr.MissingError, match="needs CPU features that this machine lacks"):
        hr.runtime.load_module(tmp_path / "lib.so")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="compiles for a machine that is not x86-64")
@pytest.mark.parametrize("target", ["llvm -mcpu=x86-64-v3 -mattr=+avx512fp16", "llvm -mtriple=aarch64-linux-gnu"])
def test_a_build_for_another_machine_is_unpacked(target):
    x = relay.var("x", shape=(4,))
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), target)
    with pytest.warns(DeprecationWarning):
        graph, module, params = lib
    assert (module, params) == (lib.get_lib(), {})
    assert graph == lib.get_graph_json() == lib.get_executor_config() == lib.graph_json
    nodes = json.loads(graph)["nodes"]
    assert [node["op"] for node in nodes] == ["null", "tvm_op"]
    assert nodes[1]["attrs"]["func_name"] in lib.get_source("ll")
    if "avx512_fp16" not in Path("/proc/cpuinfo").read_text() or "aarch64" in target:
        with pytest.raises(hr.MissingError, match=r"this machine"):
            hr.contrib.graph_executor.create(graph, module, hr.cpu())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="compiles for a machine that is not x86-64")
def test_a_build_for_another_architecture(tmp_path):
    x = relay.var("x", shape=(4,))
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))), "llvm -mtriple=aarch64-linux-gnu")
    lib.export_library(tmp_path / "lib.so")
    assert (tmp_path / "lib.so").read_bytes()[18:20] == b"\xb7\0"  # e_machine: AArch64
    with pytest.raises(
        hr.MissingError, match=r"program 'default' .* holds code for aarch64, and this machine is x86_64"
    ):
        lib["default"](hr.cpu())
    with pytest.raises(hr.MissingError, match="holds code for aarch64, and this machine is x86_64"):
        hr.runtime.load_module(tmp_path / "lib.so")


def test_build_and_export(tmp_path):
    x, w = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3))
    mod = hr.IRModule.from_expr(relay.Function([x, w], relay.nn.dense(x, w)))
    weight = np.ones((4, 3), "float32")
    with hr.transform.PassContext(opt_level=3):
        lib = relay.build(mod, target=hr.Target("llvm"), params={"w": weight})
    m = hr.graph_executor.GraphModule(lib["default"](hr.cpu(0)))
    data = np.arange(6, dtype="float32").reshape(2, 3)
    m.set_input("x", data)
    m.run()
    np.testing.assert_allclose(m.get_output(0).numpy(), data @ weight.T)
    path = tmp_path / "lib.so"
    lib.export_library(path)
    again = hr.graph_executor.GraphModule(hr.runtime.load_module(path)["default"](hr.cpu()))
    again.run(x=data)
    np.testing.assert_allclose(again.get_output(0).numpy(), data @ weight.T)
    with pytest.raises(
        hr.UserError, match="there is no format 'cc'; a compiled module is saved as one of so, o, ll, s, asm, c"
    ):
        lib.module.save(str(path), "cc")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda x: relay.reshape(x, [-1, 2.5]), "reshape: newshape: expected whole numbers, got 2.5"),
        (lambda x: relay.transpose(x, axes=(0, "1")), "transpose: axes: expected whole numbers, got '1'"),
        (lambda x: relay.reshape(x, [True, 4]), "expected whole numbers, got True"),
        (lambda x: relay.sum(x, axis=1.5), "sum: axis: expected a list of whole numbers, got 1.5"),
        (lambda x: relay.zeros((np.float32(2),), "float32"), "zeros: shape: expected whole numbers, got "),
    ],
)
def test_sizes_are_whole_numbers(make, says):
    with pytest.raises(hr.UserError, match=re.escape(says)):
        make(relay.var("x", shape=(2, 2)))
    assert relay.reshape(relay.var("x", shape=(2, 2)), [np.int32(1), np.array(4)]).attrs.newshape == (1, 4)


def test_results_of_no_elements_and_huge_sizes():
    zeros = relay.Function([], relay.zeros([0, 2**40, 2**40], "float32"))
    for kind in ("debug", "graph"):
        assert relay.create_executor(kind).evaluate(zeros)().shape == (0, 2**40, 2**40)


@pytest.mark.parametrize("dtype", ["foo", "float0", "float32x0", "bfloat17", ""])
def test_a_variable_without_a_shape_has_a_dtype_that_there_is(dtype):
    for annotation in ({}, {"shape": (2,)}, {"type_annotation": relay.TensorType((2,))}):
        with pytest.raises(hr.UserError, match="is not a dtype"):
            relay.var("x", dtype=dtype, **annotation)
    assert relay.var("x", dtype="int8").type_annotation is None
