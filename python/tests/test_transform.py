"""Passes by name, sequences, contexts, instruments, passes of users."""

import inspect
import re
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import instrument, ir, relay, transform  # noqa: E402


def sample():
    """(x + 0) * (1 + 2), which each of several passes changes."""
    x = relay.var("x", shape=(2,))
    three = relay.add(relay.const(1.0), relay.const(2.0))
    return hr.IRModule.from_expr(relay.Function([x], relay.multiply(relay.add(x, relay.const(0.0)), three)))


def ops(mod):
    return relay.analysis.list_op_freqs(mod)


def test_every_named_pass_is_a_factory():
    for name in transform.pass_registry():
        made = getattr(relay.transform, name)()
        assert made.info.name == name
        assert isinstance(made, transform.Pass)
        assert hr.get_global_func(f"relay._transform.{name}")({}).info.name == name
        assert getattr(relay.transform, name).__doc__
    assert "FoldConstant" in transform.pass_registry()
    assert transform.pass_registry()["FoldConstant"].opt_level == 2


def test_every_pass_of_relay_is_here_by_every_spelling():
    table = Path(__file__).resolve().parents[2] / "src/passes/tests/relay_passes.txt"
    rows = [row.split("|") for row in table.read_text().splitlines() if not row.startswith("#")]
    assert len(rows) == 41
    for row in rows:
        (name,), spellings = (part.split() for part in row)
        assert name in transform.pass_registry()
        for spelling in [name, *spellings]:
            assert getattr(relay.transform, spelling)().info.name == name
            assert hr.get_global_func(f"relay._transform.{spelling}")({}).info.name == name
        for spelling in spellings:
            only = transform.Sequential([getattr(relay.transform, name)()])
            with transform.PassContext(opt_level=4, disabled_pass=[spelling]):
                mod = sample()
                assert only(mod).same_as(relay.transform.InferType()(mod)) or ops(only(mod)) == ops(mod)


def test_legalize_calls_what_was_registered():
    @relay.op.register_legalize("nn.relu")
    def as_maximum(attrs, inputs, types):
        assert [str(t) for t in types] == ["Tensor[(2), float32]"] * 2
        return relay.maximum(inputs[0], relay.const(0.0)) if attrs is None else None

    try:
        x = relay.var("x", shape=(2,))
        mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], relay.nn.relu(x))))
        after = relay.transform.Legalize()(mod)
        assert ops(after) == {"maximum": 1}
        with pytest.raises(hr.UserError, match="no op has an attribute 'FOther'; the usual one is FTVMLegalize"):
            relay.transform.Legalize(legalize_map_attr_name="FOther")(mod)
    finally:
        relay.op.reset_legalize("nn.relu")
    assert relay.transform.Legalize()(mod).same_as(mod)


def test_legalize_tells_of_another_type_at_the_call():
    @relay.op.register_legalize("nn.relu")
    def narrowed(attrs, inputs, types):
        return relay.cast(inputs[0], "float16")

    try:
        x = relay.var("x", shape=(2,))
        body = relay.add(relay.nn.relu(x), x)
        mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], body)))
        with pytest.raises(hr.UserError, match="FTVMLegalize") as error:
            relay.transform.Legalize()(mod)
        assert error.value.op == "nn.relu"
        assert "gives Tensor[(2), float16] for a call that gives Tensor[(2), float32]" in str(error.value)
    finally:
        relay.op.reset_legalize("nn.relu")


@pytest.mark.parametrize("name", sorted(transform.pass_registry()))
def test_passes_keep_what_programs_compute(name):
    mod = sample()
    after = getattr(relay.transform, name)()(mod)
    data = np.array([1, -2], "float32")
    got = relay.create_executor("debug", after).evaluate()(data)
    if name == "FirstOrderGradient":
        got, (gradient,) = got
        np.testing.assert_allclose(gradient.numpy(), [3, 3])
    np.testing.assert_allclose(got.numpy(), data * 3)


def test_a_pass_that_is_called_runs_whatever_the_level():
    folded = relay.transform.FoldConstant()(sample())
    assert ops(folded) == {"multiply": 1, "add": 1}
    with transform.PassContext(opt_level=0):
        assert ops(relay.transform.FoldConstant()(sample())) == {"multiply": 1, "add": 1}
    assert ops(sample()) == {"multiply": 1, "add": 2}


def test_sequences_ask_the_context():
    passes = transform.Sequential([relay.transform.SimplifyExpr(), relay.transform.FoldConstant()])
    assert ops(passes(sample())) == {"multiply": 1}
    with transform.PassContext(opt_level=1):
        assert ops(passes(sample())) == {"multiply": 1, "add": 1}
    lower = transform.Sequential([relay.transform.DeadCodeElimination(), relay.transform.FoldConstant()])
    with transform.PassContext(opt_level=0):
        assert ops(lower(sample())) == {"multiply": 1, "add": 2}
    with transform.PassContext(opt_level=0, required_pass=["FoldConstant"]):
        assert ops(lower(sample())) == {"multiply": 1, "add": 1}
    with transform.PassContext(opt_level=3, disabled_pass=["simplify_expr"]):
        assert ops(passes(sample())) == {"multiply": 1, "add": 1}
    assert isinstance(passes, transform.Pass)
    assert [one.info.name for one in passes.passes] == ["SimplifyExpr", "FoldConstant"]


def test_lists_of_a_context_name_passes():
    mine = transform.module_pass(lambda mod, ctx: mod, opt_level=0, name="MyOwnPass")
    passes = transform.Sequential([relay.transform.FoldConstant(), mine])
    with transform.PassContext(disabled_pass=["PartialEval", "my_own_pass", "UnrollLoop"]):
        assert ops(passes(sample())) == {"multiply": 1, "add": 1}
        relay.build(sample(), "llvm")
    for listed in ("disabled_pass", "required_pass"):
        with transform.PassContext(**{listed: ["FoldConstnt"]}):
            with pytest.raises(hr.UserError, match="there is no pass 'FoldConstnt' to"):
                passes(sample())
            with pytest.raises(hr.UserError, match="there is no pass 'FoldConstnt' to"):
                relay.build(sample(), "llvm")


def test_options_as_relay_calls_them():
    x = relay.var("x", shape=(2,))
    twice = hr.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.exp(x), relay.exp(x)])))
    assert ops(relay.transform.EliminateCommonSubexpr()(twice)) == {"exp": 1}
    assert ops(relay.transform.EliminateCommonSubexpr(lambda call: call.op.name == "exp")(twice)) == {"exp": 2}
    y = relay.var("y")
    once = hr.IRModule.from_expr(relay.Function([x], relay.Let(y, relay.exp(x), relay.abs(y))))
    main = relay.transform.DeadCodeElimination(inline_once=True)(once)["main"]
    assert isinstance(main.body, relay.Call)
    assert isinstance(relay.transform.DeadCodeElimination()(once)["main"].body, relay.Let)
    mod = hr.IRModule({"main": twice["main"], "other": once["main"], "third": once["main"]})
    kept = relay.transform.RemoveUnusedFunctions(["main", "other"])(mod)
    assert sorted(v.name_hint for v in kept.get_global_vars()) == ["main", "other"]
    half = relay.transform.ToMixedPrecision("bfloat16", 0)
    w = relay.var("w", shape=(2, 2))
    product = hr.IRModule.from_expr(relay.Function([w], relay.nn.dense(w, w)))
    assert "bfloat16" in str(half(product))
    with pytest.raises(hr.UserError, match="missing_op_mode must be 0, 1 or 2"):
        relay.transform.ToMixedPrecision("bfloat16", 5)(product)


def test_mixed_precision_of_ops_of_users():
    w = relay.var("w", shape=(2, 2))
    mod = hr.IRModule.from_expr(relay.Function([w], relay.nn.dense(w, w)))
    seen = []

    @relay.op.register_mixed_precision_conversion("nn.dense")
    def never(call, mixed_precision_type):
        seen.append((call.op.name, mixed_precision_type))
        return [relay.op.MIXED_PRECISION_NEVER, mixed_precision_type, mixed_precision_type]

    try:
        assert "float16" not in str(relay.transform.ToMixedPrecision()(mod))
        assert seen == [("nn.dense", "float16")]
    finally:
        relay.op.get("nn.dense").reset_attr("FTVMMixedPrecisionConversionType")
    assert "float16" in str(relay.transform.ToMixedPrecision()(mod))


GRADIENTS = {
    "sort": ("%x: Tensor[(2, 3), float32]", "sort(multiply(%x, %x))"),
    "take": ("%x: Tensor[(4, 3), float32]", "exp(take(%x, const(Tensor[(2), int64], [3, 3]), axis=0))"),
    "slice": ("%x: Tensor[(4, 3), float32]", "exp(strided_slice(%x, begin=[3, 0], end=[-5, 3], strides=[-2, 2]))"),
    "scatter": (
        "%x: Tensor[(3), float32], %u: Tensor[(2), float32]",
        "exp(scatter_elements(%x, const(Tensor[(2), int64], [1, 1]), %u))",
    ),
    "prod": ("%x: Tensor[(2, 3), float32]", "prod(%x, axis=[1])"),
    "layer_norm": (
        "%x: Tensor[(2, 3), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32]",
        "exp(nn.layer_norm(%x, %g, %b))",
    ),
    "conv1d": (
        "%x: Tensor[(2, 4, 6), float32], %k: Tensor[(2, 2, 3), float32]",
        "exp(nn.conv1d(%x, %k, padding=[1, 1], groups=2))",
    ),
    "conv_transpose": (
        "%x: Tensor[(1, 2, 3, 3), float32], %k: Tensor[(2, 2, 3, 3), float32]",
        "tanh(nn.conv2d_transpose(%x, %k, strides=[2, 2]))",
    ),
    "resize": ("%x: Tensor[(1, 1, 3, 3), float32]", "exp(image.resize2d(%x, size=[5, 4]))"),
    "functions": ("%x: Tensor[(2), float32]", "let %f = fn (%a: Tensor[(2), float32]) { sinh(%a) }; %f(%f(%x))"),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_compile(name):
    params, body = GRADIENTS[name]
    mod = relay.parse(f'#[version = "0.0.5"]\ndef @main({params}) {{ {body} }}')
    after = relay.transform.InferType()(relay.transform.FirstOrderGradient()(mod))
    numbers = np.random.default_rng(5)
    args = [
        numbers.uniform(0.2, 0.9, [int(n) for n in param.checked_type.shape]).astype("float32")
        for param in after["main"].params
    ]
    want, got = (relay.create_executor(kind, after).evaluate()(*args) for kind in ("debug", "graph"))
    np.testing.assert_allclose(got[0].numpy(), want[0].numpy(), rtol=1e-4)
    for by_compiler, by_interpreter in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(by_compiler.numpy(), by_interpreter.numpy(), rtol=1e-4, atol=1e-5)


def test_gradients_of_ops_of_users():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.isfinite(x).astype("float32") * relay.round(x)))

    @relay.op.register_gradient("round")
    def straight_through(call, grad):
        return [grad * call.args[0]]

    try:
        result = relay.create_executor("debug", relay.transform.FirstOrderGradient()(mod)).evaluate()(
            np.array([0, 2], "float32")
        )
    finally:
        relay.op.get("round").reset_attr("FPrimalGradient")
    np.testing.assert_allclose(result[1][0].numpy(), [0.0, 2.0])


def test_a_pass_of_python_sees_the_instruments_around_it():
    seen = []

    @transform.module_pass(opt_level=0)
    def outer(mod, ctx):
        seen.append([one.name for one in ctx.instruments])
        return mod

    with transform.PassContext(instruments=[instrument.PassTimingInstrument()]):
        outer(sample())
    assert seen == [["timing"]]


def test_contexts_nest_and_are_of_the_thread():
    assert transform.PassContext.current().opt_level == 2
    with transform.PassContext(opt_level=3, config={"relay.FuseOps.max_depth": 4}) as outer:
        assert transform.PassContext.current().same_as(outer)
        with transform.PassContext(opt_level=1):
            assert transform.PassContext.current().opt_level == 1
        assert transform.PassContext.current().config["relay.FuseOps.max_depth"] == 4
        seen = []
        thread = threading.Thread(target=lambda: seen.append(transform.PassContext.current().opt_level))
        thread.start()
        thread.join()
        assert seen == [2]
    assert not transform.PassContext.is_active()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: transform.PassContext(config={"relay.Nonsense": 1}),
            r"no configuration 'relay\.Nonsense'; there are: .*relay\.FuseOps",
        ),
        (
            lambda: transform.PassContext(config={"relay.FuseOps.max_depth": "x"}),
            "'relay.FuseOps.max_depth': expected int, got str",
        ),
        (lambda: transform.PassContext(disabled_pass="FoldConstant"), "disabled_pass: expected a list of str"),
        (lambda: transform.PassContext(opt_level="3"), "opt_level: expected an int, got '3'"),
        (
            lambda: relay.transform.FoldConstant(depth=1),
            "pass FoldConstant takes no arguments: got an unexpected keyword argument 'depth'",
        ),
        (
            lambda: relay.transform.FuseOps(0, fuse_opt_level=2),
            r"takes 2 arguments \(fuse_opt_level, max_depth\): multiple values for argument 'fuse_opt_level'",
        ),
        (lambda: relay.transform.FuseOps(None, None, 1), r"max_depth\): too many positional arguments"),
        (lambda: relay.transform.FuseOps(max_depth="deep"), "expected int, got str"),
        (
            lambda: relay.transform.ConvertLayout({"nn.conv1d": ["NHWC"]}),
            "'NHWC' is not an order of the letters NCW of 'nn.conv1d'; its axes are NHWC",
        ),
        (
            lambda: transform.PassContext(config={"relay.ConvertLayout.desired_layouts": {"nn.relu": ["NHWC"]}}),
            "'nn.relu' has no layout to convert; these have: nn.conv1d, ",
        ),
        (lambda: transform.Sequential([3]), "passes: expected passes, got int"),
        (lambda: transform.Sequential([relay.transform.FoldConstant]), r"passes: .*; make one: FoldConstant\(\)"),
        (lambda: transform.Sequential([lambda m, c: m]), r"got function; @hr\.transform\.module_pass\(opt_level=0\)"),
        (lambda: transform.PassContext(instruments=[3]), "instruments: expected instruments of passes, got int"),
        (
            lambda: transform.PassContext(instruments=[hr.instrument.PassTimingInstrument]),
            r"instruments: PassTimingInstrument is a class; make one: PassTimingInstrument\(\)",
        ),
        (
            lambda: transform.PassContext().override_instruments([dict]),
            r"instruments: dict is a class; write @hr\.instrument\.pass_instrument above it, and make one: dict\(\)",
        ),
        (lambda: transform.module_pass(lambda m, c: m), "opt_level"),
        (lambda: relay.transform.FoldConstant()(3), "FoldConstant is a pass over a module, got int"),
        (
            lambda: transform.module_pass(lambda m, c: 3, opt_level=0, name="p")(hr.IRModule()),
            "module pass 'p' must give an IRModule",
        ),
        (
            lambda: transform.function_pass(lambda f, m, c: 3, opt_level=0, name="p")(sample()),
            "function pass 'p' must give",
        ),
        (
            lambda: transform.Sequential(
                [transform.module_pass(lambda m, c: m, opt_level=0, name="p", required=["Nope"])]
            )(hr.IRModule()),
            "pass 'p' requires 'Nope', which is not a pass",
        ),
    ],
)
def test_errors(call, says):
    with pytest.raises(hr.UserError, match=says):
        call()


def test_every_option_that_a_pass_reads_is_declared():
    declared = transform.PassContext.list_configs()
    sources = Path(__file__).parents[2] / "src" / "passes"
    files = [file for file in sources.rglob("*.cc") if not file.name.endswith("_test.cc")]
    read = {key for file in files for key in re.findall(r'"(relay\.[A-Z]\w+\.\w+)"', file.read_text())}
    assert "relay.FuseOps.max_depth" in read
    assert "relay.ToMixedPrecision.mixed_precision_type" in read
    assert read - set(declared) == set()


def test_options_tell_their_defaults():
    declared = transform.PassContext.list_configs()
    key = declared["relay.CombineParallelDense.to_batch"]
    assert key == {"type": "bool", "doc": key["doc"], "default": True}
    assert list(declared["relay.RemoveUnusedFunctions.entry_functions"]["default"]) == ["main"]
    assert declared["relay.ConvertLayout.desired_layouts"]["default"] is None
    signature = inspect.signature(relay.transform.CombineParallelDense)
    assert str(signature) == "(min_num_branches=3, to_batch=True, copy_data=True) -> 'Pass'"
    assert "to_batch : bool, default True\n" in relay.transform.CombineParallelDense.__doc__
    assert "fskip : " in relay.transform.EliminateCommonSubexpr.__doc__


# To the last bit where the reference adds; kernels add in their own order.
@pytest.mark.parametrize("to_batch", [True, False])
def test_dense_products_of_one_input_are_combined(to_batch):
    random = np.random.default_rng(5)
    combine = relay.transform.CombineParallelDense(min_num_branches=2, to_batch=to_batch)
    for rows, inputs, outputs, branches in ((1, 3, 4, 2), (5, 16, 33, 3), (8, 7, 1, 5)):
        x = relay.var("x", shape=(rows, inputs))
        ends = []
        for i in range(branches):
            weight = relay.const(random.standard_normal((outputs, inputs)).astype("float32"))
            bias = relay.const(random.standard_normal(outputs).astype("float32"))
            ends.append(relay.nn.relu(relay.nn.bias_add(relay.nn.dense(x, weight), bias)) + relay.const(float(i)))
        mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Tuple(ends)))
        combined = combine(mod)
        freqs = relay.analysis.list_op_freqs(combined)
        assert (freqs.get("nn.batch_matmul", 0), freqs.get("nn.dense", 0)) == ((1, 0) if to_batch else (0, 1))
        data = random.standard_normal((rows, inputs)).astype("float32")
        want = [one.numpy() for one in relay.create_executor("debug", mod).evaluate()(data)]
        for got, expected in zip(relay.create_executor("debug", combined).evaluate()(data), want, strict=True):
            np.testing.assert_array_equal(got.numpy(), expected)
        option = {"relay.CombineParallelDense.to_batch": to_batch, "relay.CombineParallelDense.min_num_branches": 2}
        with transform.PassContext(opt_level=4, config=option):
            lib = relay.build(mod, "llvm")
        module = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
        module.run(x=data)
        for i, expected in enumerate(want):
            np.testing.assert_allclose(module.get_output(i).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_the_form_of_combined_products_is_a_bool():
    mod = hr.IRModule.from_expr(relay.var("x", shape=(2,)))
    with pytest.raises(hr.UserError, match=r"'relay.CombineParallelDense.to_batch': expected bool, got str"):
        relay.transform.CombineParallelDense(to_batch="yes")(mod)


def test_lets_of_constants_are_folded():
    builder = relay.ScopeBuilder()
    x = relay.var("x", shape=(1, 2, 3))
    one = builder.let("t1", relay.const(1.0))
    two = builder.let("t2", relay.add(one, one))
    three = builder.let("t3", relay.add(two, x))
    builder.ret(three)
    folded = relay.transform.FoldConstant()(
        relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], builder.get())))
    )
    builder = relay.ScopeBuilder()
    x = relay.var("x", shape=(1, 2, 3))
    builder.ret(builder.let("t3", relay.add(relay.const(2.0), x)))
    assert hr.ir.structural_equal(
        folded, relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], builder.get())))
    )


@pytest.mark.parametrize(
    ("like", "plain"),
    [
        (lambda x, y: relay.zeros_like(y), lambda x, y: relay.zeros((2, 3), "float32")),
        (lambda x, y: relay.ones_like(y), lambda x, y: relay.ones((2, 3), "float32")),
        (
            lambda x, y: relay.full_like(y, relay.const(2.0)),
            lambda x, y: relay.full(relay.const(2.0), (2, 3), "float32"),
        ),
        (lambda x, y: relay.reshape_like(y, relay.reshape(y, (6,))), lambda x, y: relay.reshape(y, (6,))),
        (lambda x, y: relay.broadcast_to_like(x, y), lambda x, y: relay.broadcast_to(x, (2, 3))),
        (lambda x, y: relay.collapse_sum_like(y, x), lambda x, y: relay.collapse_sum_to(y, (2, 1))),
        (lambda x, y: relay.cast_like(x, relay.const(1, "int8")), lambda x, y: relay.cast(x, "int8")),
    ],
)
def test_what_is_like_another_gets_its_shape(like, plain):
    def module(body):
        x, y = relay.var("x", shape=(2, 1)), relay.var("y", shape=(2, 3))
        return relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x, y], body(x, y))))

    assert hr.ir.structural_equal(relay.transform.SimplifyExpr()(module(like)), module(plain))


def test_options_of_a_pass():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule.from_expr(relay.nn.relu(relay.exp(relay.tanh(x))))

    def groups(fused):
        found = []
        relay.analysis.post_order_visit(
            fused["main"], lambda e: found.append(e) if isinstance(e, relay.Function) else None
        )
        return len(found) - 1

    assert groups(relay.transform.FuseOps()(mod)) == 1
    assert groups(relay.transform.FuseOps(max_depth=1)(mod)) == 3


# By their names these passes do what Relay's do; builds leave to kernels, and to each run, what costs less there.
def test_passes_that_do_more_by_their_names():
    x, w, s = relay.var("x", shape=(2, 3)), relay.var("w", shape=(4, 3)), relay.var("s", shape=(4,))
    g = relay.const(np.ones(4, "float32"))
    mod = hr.IRModule.from_expr(relay.nn.layer_norm(relay.multiply(relay.nn.dense(x, w), s), g, g))
    mod = relay.transform.InferType()(mod)

    def products(after):
        found = ops(after)
        return found.get("multiply", 0), found.get("nn.layer_norm", 0)

    def operand_of_dense(after):
        (dense,) = [e for e in nodes(after) if isinstance(e, relay.Call) and e.op.name == "nn.dense"]
        return dense.args[1]

    def nodes(after):
        found = []
        relay.analysis.post_order_visit(after["main"], found.append)
        return found

    assert isinstance(operand_of_dense(relay.transform.FoldScaleAxis()(mod)), relay.Call)
    assert isinstance(operand_of_dense(relay.transform.FoldScaleAxis(fold_variables=False)(mod)), relay.Var)
    assert products(relay.transform.SimplifyInference()(mod)) == (2, 0)
    assert products(relay.transform.SimplifyInference(False)(mod)) == (1, 1)
    data = [np.random.default_rng(1).uniform(-1, 1, shape).astype("float32") for shape in [(2, 3), (4, 3), (4,)]]
    want = relay.create_executor("debug", mod).evaluate()(*data).numpy()
    for config in ({}, {"relay.FoldScaleAxis.fold_variables": True, "relay.SimplifyInference.unpack_norms": True}):
        with transform.PassContext(opt_level=3, config=config):
            got = relay.create_executor("graph", mod).evaluate()(*data).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_module_and_function_passes():
    seen = []

    @transform.module_pass(opt_level=1, name="Count")
    def count(mod, ctx):
        seen.append((len(mod.functions), ctx.opt_level))
        return mod

    mod = sample()
    assert count(mod).same_as(mod)
    assert count.info.name == "Count"
    assert seen == [(1, 2)]

    @transform.function_pass(opt_level=1)
    def rename(func, mod, ctx):
        return func.with_attr("seen", 1)

    assert rename(mod)["main"].attrs["seen"] == 1
    assert "seen" not in mod["main"].attrs
    marked = hr.IRModule.from_expr(mod["main"].with_attr("SkipOptimization", 1))
    assert rename(marked).same_as(marked)

    @relay.transform.function_pass(opt_level=1)
    class Replace:
        def __init__(self, function):
            self.function = function

        def transform_function(self, func, mod, ctx):
            return self.function

    other = relay.Function([], relay.const(1.0))
    assert isinstance(Replace(other)(mod)["main"].body, relay.Constant)
    prim = transform.prim_func_pass(lambda f, m, c: f, opt_level=0, name="prim")
    assert prim(mod).same_as(mod)


def test_what_a_pass_requires_runs_before_it():
    seen = []

    @transform.module_pass(opt_level=0, required=["fold_constant"])
    def look(mod, ctx):
        seen.append(ops(mod))
        return mod

    look(sample())
    assert seen == [{"multiply": 1, "add": 1}]


def test_what_a_pass_requires_runs_each_time_whatever_the_level_is():
    bodies = []

    @transform.module_pass(opt_level=0, name="Need", required=["ToANormalForm"])
    def need(mod, ctx):
        bodies.append(mod["main"].body.type_key)
        return mod

    mod = sample()
    with transform.PassContext(opt_level=0):
        transform.Sequential([need])(mod)
    with transform.PassContext(opt_level=3):
        transform.Sequential([relay.transform.ToANormalForm(), relay.transform.ToGraphNormalForm(), need])(mod)
    assert bodies == ["relay.Let", "relay.Let"]
    told = "pass Need requires ToANormalForm, which the context disables"
    with transform.PassContext(disabled_pass=["ToANormalForm"]), pytest.raises(hr.UserError, match=told):
        transform.Sequential([need])(mod)


def test_orders_that_passes_declare_are_held():
    forward, backward = relay.transform.ForwardFoldScaleAxis(), relay.transform.BackwardFoldScaleAxis()
    told = "ForwardFoldScaleAxis comes after BackwardFoldScaleAxis, and in this list before it"
    with transform.PassContext(opt_level=3):
        transform.Sequential([backward, forward])(sample())
        with pytest.raises(hr.UserError, match=told):
            transform.Sequential([forward, backward])(sample())
        fuse, law = relay.transform.FuseOps(), relay.transform.SimplifyExpr()
        transform.Sequential([fuse, relay.transform.DefuseOps(), law])(sample())
        with pytest.raises(hr.UserError, match="FuseOps comes after SimplifyExpr"):
            transform.Sequential([fuse, law])(sample())
    mine = transform.module_pass(lambda m, c: m, opt_level=0, name="Mine", runs_after=["SimplifyExpr"])
    with pytest.raises(hr.UserError, match="Mine comes after SimplifyExpr"):
        transform.Sequential([mine, law])(sample())


def test_kinds_of_passes():
    made = transform.module_pass(lambda m, c: m, opt_level=0, name="m")
    of_function = relay.transform.function_pass(lambda f, m, c: f, opt_level=0, name="f")
    prim = hr.tir.transform.prim_func_pass(lambda f, m, c: f, opt_level=0, name="p")
    kinds = [transform.ModulePass, relay.transform.FunctionPass, hr.tir.transform.PrimFuncPass, transform.Sequential]
    passes = [made, of_function, prim, transform.Sequential([made])]
    assert [[isinstance(one, kind) for kind in kinds] for one in passes] == np.eye(4, dtype=bool).tolist()
    assert all(isinstance(one, transform.Pass) for one in passes)
    assert isinstance(relay.transform.FoldConstant(), transform.ModulePass)
    assert [one.name for one in transform.Sequential([made, prim]).passes] == ["m", "p"]


def test_a_trace_is_told_of_each_pass():
    log = []
    quiet = transform.module_pass(lambda m, c: m, opt_level=0, name="quiet", traceable=False)
    passes = transform.Sequential([relay.transform.ToANormalForm(), quiet])
    with transform.PassContext(trace=lambda mod, info, before: log.append((info.name, before, len(mod.functions)))):
        passes(sample())
    assert log == [
        ("sequential", True, 1),
        ("ToANormalForm", True, 1),
        ("ToANormalForm", False, 1),
        ("sequential", False, 1),
    ]


def test_a_sequence_may_be_left_out_of_the_trace():
    log = []
    passes = transform.Sequential([relay.transform.ToANormalForm()], traceable=False)
    assert not passes.info.traceable
    assert transform.Sequential().info.traceable
    with transform.PassContext(trace=lambda mod, info, before: log.append(info.name)):
        passes(sample())
    assert log == ["ToANormalForm"] * 2


def test_infer_type_runs_before_the_passes_that_have_it_in_relay():
    log = []
    assert relay.transform.SimplifyExpr().info.required == ["InferType"]
    with transform.PassContext(trace=lambda mod, info, before: log.append(info.name)):
        made = relay.transform.EliminateCommonSubexpr()(sample())
    assert log == ["InferType"] * 2 + ["EliminateCommonSubexpr"] * 2
    assert made["main"].ret_type == made["main"].checked_type.ret_type


def test_functions_inside_of_functions_get_the_types_of_their_results():
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.Function([y], relay.exp(y))(x)))
    inner = relay.transform.InferType()(mod)["main"].body.op
    assert inner.ret_type == relay.TensorType((2,), "float32")


def test_instruments_leave_in_the_order_in_which_they_entered():
    log = []

    @hr.instrument.pass_instrument
    class Noted:
        def __init__(self, name):
            self.name = name

        def enter_pass_ctx(self):
            log.append(f"{self.name} enters")

        def exit_pass_ctx(self):
            log.append(f"{self.name} leaves")

    with transform.PassContext(instruments=[Noted("a"), Noted("b")]):
        pass
    assert log == ["a enters", "b enters", "a leaves", "b leaves"]


def test_inline_keeps_what_nothing_refers_to():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule()
    for name in ("unused", "used"):
        mod[name] = relay.Function([x], relay.exp(x)).with_attr("Inline", 1)
    y = relay.var("y", shape=(2,))
    mod["main"] = relay.Function([y], mod.get_global_var("used")(y))
    assert {var.name_hint for var in relay.transform.Inline()(mod).functions} == {"main", "unused"}


def test_a_class_of_passes_is_no_pass():
    @transform.module_pass(opt_level=0)
    class Nothing:
        def transform_module(self, mod, context):
            return mod

    with pytest.raises(hr.UserError, match=r"got a function that makes one; make one: Nothing\(\)"):
        transform.Sequential([Nothing])
    with pytest.raises(hr.UserError, match=r"transform: expected a pass, .* make one: Nothing\(\)"):
        transform.ApplyPassToFunction(Nothing, "main")


def test_passes_by_their_global_names_take_their_own_arguments():
    def named(name, *args):
        return hr.get_global_func(f"relay._transform.{name}")(*args)(sample())

    assert ops(named("FoldConstant")) == ops(relay.transform.FoldConstant()(sample()))
    by_place, by_name = named("FuseOps", None, 1), named("FuseOps", {"max_depth": 1})
    hr.ir.assert_structural_equal(by_place, by_name)
    assert not hr.ir.structural_equal(by_place, named("FuseOps"))
    layouts = {"nn.conv2d": ["NHWC", "default"]}
    hr.ir.assert_structural_equal(named("ConvertLayout", layouts), relay.transform.ConvertLayout(layouts)(sample()))
    with pytest.raises(hr.UserError, match="pass FoldConstant takes 0 arguments, got 1"):
        named("FoldConstant", False)


def test_a_pass_over_some_functions():
    x = relay.var("x", shape=(2,))
    both = hr.IRModule({name: relay.Function([x], x + relay.const(0.0)) for name in ("a", "ab")})
    once = transform.ApplyPassToFunction(relay.transform.SimplifyExpr(), "a")(both)
    assert [once[name].body.type_key for name in ("a", "ab")] == ["relay.Var", "relay.Call"]
    every = transform.ApplyPassToFunction(relay.transform.SimplifyExpr(), "a.*")(both)
    assert [every[name].body.type_key for name in ("a", "ab")] == ["relay.Var", "relay.Var"]
    none = transform.ApplyPassToFunction(relay.transform.SimplifyExpr(), "c")
    assert none(both).same_as(both)
    with pytest.raises(hr.UserError, match="no function's name matches 'c'; there are a, ab"):
        transform.ApplyPassToFunction(relay.transform.SimplifyExpr(), "c", True)(both)
    with pytest.raises(hr.UserError, match=r"func_name_regex: '[(]' is not a regular expression"):
        transform.ApplyPassToFunction(relay.transform.SimplifyExpr(), "(")
    with pytest.raises(hr.UserError, match="transform: expected a pass, got int"):
        transform.ApplyPassToFunction(3, "a")


def test_relays_passes_that_are_not_here_may_be_disabled():
    with transform.PassContext(opt_level=3, disabled_pass=["AnnotateMemoryScope"]):
        relay.build(sample(), "llvm")
    told = "there is no pass 'AnnotateMemoryScope' to require"
    with transform.PassContext(required_pass=["AnnotateMemoryScope"]), pytest.raises(hr.UserError, match=told):
        relay.build(sample(), "llvm")


def test_modules_are_printed_around_the_passes_that_are_named():
    texts = []
    told = instrument.PassPrintingInstrument(["SimplifyExpr"], ["FoldConstant"], sink=texts.append)
    with transform.PassContext(instruments=[told]):
        transform.Sequential([relay.transform.SimplifyExpr(), relay.transform.FoldConstant()])(sample())
    assert [text.splitlines()[0] for text in texts] == ["// ---- before SimplifyExpr", "// ---- after FoldConstant"]
    with pytest.raises(hr.UserError, match="print_after_pass_names: expected a list of str, got one str"):
        instrument.PassPrintingInstrument([], "FoldConstant")


@instrument.pass_instrument
class Recorder:
    def __init__(self, log):
        self.log = log

    def enter_pass_ctx(self):
        self.log.append("enter")

    def exit_pass_ctx(self):
        self.log.append("exit")

    def should_run(self, mod, info):
        return info.name != "SimplifyExpr"

    def run_before_pass(self, mod, info):
        self.log.append(f"before {info.name}")

    def run_after_pass(self, mod, info):
        self.log.append(f"after {info.name}")


def test_instruments_see_every_pass():
    log = []
    passes = transform.Sequential([relay.transform.SimplifyExpr(), relay.transform.FoldConstant()])
    with transform.PassContext(instruments=[Recorder(log)]):
        passes(sample())
    assert log == [
        "enter",
        "before sequential",
        "before FoldConstant",
        "after FoldConstant",
        "after sequential",
        "exit",
    ]


class Thrower(instrument.PassInstrument):
    def __init__(self, where, log):
        self_where = where
        self_log = log
        hooks = {}
        for hook in ("enter_pass_ctx", "exit_pass_ctx", "run_before_pass"):

            def call(*args, hook=hook):
                self_log.append(hook)
                if hook == self_where:
                    raise ZeroDivisionError(hook)

            hooks[hook] = call
        super().__init__("thrower", **hooks)


@pytest.mark.parametrize("where", ["enter_pass_ctx", "run_before_pass", "exit_pass_ctx"])
def test_an_instrument_that_throws_leaves_the_context_around(where):
    first, second = [], []
    with transform.PassContext(opt_level=1) as outer:
        context = transform.PassContext(instruments=[Recorder(first), Thrower(where, second)])
        with pytest.raises(ZeroDivisionError, match=where), context:
            relay.transform.FoldConstant()(sample())
        assert transform.PassContext.current().same_as(outer)
    assert first[0] == "enter"
    assert first[-1] == "exit"
    assert not transform.PassContext.is_active()


def test_a_subclass_of_pass_instrument():
    class Names(instrument.PassInstrument):
        names = []

        def run_after_pass(self, mod, info):
            Names.names.append(info.name)

    with transform.PassContext(instruments=[Names()]):
        relay.transform.FoldConstant()(sample())
    assert Names.names == ["FoldConstant"]


def test_native_instruments(tmp_path, capsys):
    timing = instrument.PassTimingInstrument()
    printed = []
    both = [
        timing,
        instrument.PrintChanges(printed.append),
        instrument.DumpIR(tmp_path),
        instrument.VerifyEach(),
        instrument.VerifyText(),
    ]
    with transform.PassContext(instruments=both):
        relay.transform.FoldConstant()(sample())
        assert "FoldConstant" in timing.render()
    text = "".join(printed)
    assert "FoldConstant" in text
    assert "- " in text
    assert (tmp_path / "00_program.relay").read_text().startswith("#[version")
    with transform.PassContext(instruments=[instrument.PrintAfterAll()]):
        relay.transform.FoldConstant()(sample())
    assert "multiply" in capsys.readouterr().out
    transform.PrintIR("here")(sample())
    assert capsys.readouterr().err.startswith("PrintIR(here):\n#[version")


def test_a_broken_pass_is_named_by_verify_each():
    x = relay.var("x", shape=(2,))

    @transform.module_pass(opt_level=0)
    def breaks(mod, ctx):
        return hr.IRModule.from_expr(relay.Function([x], relay.GlobalVar("nowhere")(x)))

    def calls_breaks():
        breaks(sample())

    context = transform.PassContext(instruments=[instrument.VerifyEach()])
    with context, pytest.raises(hr.InternalError, match="after pass breaks"):
        breaks(sample())
    # Through another function of Python that C++ calls: both languages' frames, each once.
    with context, pytest.raises(hr.InternalError, match="after pass breaks") as caught:
        hr.convert(calls_breaks)()
    assert "calls_breaks" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    text = str(caught.value)
    assert text.count("C++ frames, the innermost last:") == 1
    assert re.search(r"\n  libheadrace\.so\+0x[0-9a-f]+ headrace::pass::", text)


def test_builds_run_under_the_context():
    log = []
    with transform.PassContext(opt_level=3, instruments=[Recorder(log)]):
        relay.build(sample(), "llvm")
    assert "before FuseOps" in log
    assert "before SimplifyExpr" not in log


@instrument.pass_instrument
class FusedFunctions:
    """Counts the functions that FuseOps leaves."""

    def run_after_pass(self, mod, info):
        if info.name == "FuseOps":
            found = []
            relay.analysis.post_order_visit(
                mod["main"], lambda e: found.append(e) if isinstance(e, relay.Function) else None
            )
            self.count = len(found) - 1


def test_builds_keep_the_configuration():
    x = relay.var("x", shape=(2,))
    chain = hr.IRModule.from_expr(relay.Function([x], relay.exp(relay.tanh(x))))

    def kernels(**context):
        counter = FusedFunctions()
        with transform.PassContext(opt_level=3, instruments=[counter], **context):
            relay.build(chain, "llvm")
        return counter.count

    assert kernels() == 1
    assert kernels(config={"relay.FuseOps.max_depth": 1}) == 2
    with pytest.raises(hr.UserError, match="no pass 'Nonsense' to require"):
        kernels(required_pass=["Nonsense"])


def test_infer_type():
    mod = relay.transform.InferType()(sample())
    assert mod["main"].checked_type.ret_type == relay.TensorType((2,))
    assert mod["main"].ret_type == relay.TensorType((2,))
    ir.assert_structural_equal(mod["main"].copy_with(ret_type=None), sample()["main"])
    with pytest.raises(hr.UserError, match="add"):
        relay.transform.InferType()(
            hr.IRModule.from_expr(relay.add(relay.var("a", shape=(2,)), relay.var("b", shape=(3,))))
        )


def test_annotations_of_devices():
    x = relay.var("x", shape=(2,))
    for device in ("cpu:0", "cpu(0)", hr.cpu()):
        call = relay.annotation.on_device(relay.exp(x), device, constrain_result=True)
        mod = relay.transform.PlanDevices()(
            relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], call)))
        )
        assert mod["main"].attrs["result_virtual_device"] == "cpu:0"
    away = hr.IRModule.from_expr(relay.Function([x], relay.annotation.on_device(relay.exp(x), "cuda:0")))
    with pytest.raises(hr.UserError, match="asks for cuda:0, and artifacts run on the CPU alone"):
        relay.build(away, target="llvm")


class OtherSizes(relay.ExprMutator):
    """Changes a typed program as a user's rewrite may: it replaces a constant and leaves the call that reads it."""

    def visit_constant(self, constant):
        return relay.const(np.array([3, 2], "int64"))


def test_a_call_is_typed_by_the_sizes_that_it_reads_now():
    x, s = relay.var("x", shape=(2, 3)), relay.var("s")
    sizes = relay.const(np.array([2, 3], "int64"))
    mod = relay.transform.InferType()(
        hr.IRModule.from_expr(relay.Function([x], relay.Let(s, sizes, relay.reshape(x, s))))
    )
    changed = hr.IRModule.from_expr(OtherSizes().visit(mod["main"]).copy_with(ret_type=None))
    data = np.arange(6, dtype="float32").reshape(2, 3)
    for passes in ([relay.transform.InferType()], [relay.transform.InferType(), relay.transform.DynamicToStatic()]):
        after = transform.Sequential(passes)(changed)
        assert after["main"].checked_type.ret_type.concrete_shape == (3, 2)
        y = relay.create_executor("debug", mod=after).evaluate()(data)
        np.testing.assert_array_equal(y.numpy(), data.reshape(3, 2))


@pytest.mark.parametrize(
    ("make", "want"),
    [
        (lambda: relay.divide(relay.add(relay.const(2**31 - 1), relay.const(1)), relay.const(2)), -(2**30)),
        (lambda: relay.cast(relay.subtract(relay.const(1, "uint8"), relay.const(2, "uint8")), "int32"), 255),
        (lambda: relay.cast(relay.const(5 * 10**9, "int64"), "int32"), 5 * 10**9 - 2**32),
    ],
)
def test_dynamic_to_static_wraps_as_the_interpreter(make, want):
    mod = hr.IRModule.from_expr(relay.Function([], make()))
    mod = transform.Sequential([relay.transform.InferType(), relay.transform.DynamicToStatic()])(mod)
    assert relay.create_executor("debug", mod=mod).evaluate()().numpy() == want


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
def test_what_a_users_function_raises_ends_the_folding_of_constants(raised):
    name = f"test.raises_{raised.__name__}"
    relay.op.register(name)
    op = relay.op.get(name)
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "Not read.")
    op.add_type_rel(f"Raises{raised.__name__}", lambda types, attrs: types[0])

    @relay.op.register_packed_func(name, func_name=f"{name}.impl")
    def compute(data, out):
        raise raised("stop")

    x = relay.var("x", shape=(4,))
    body = x + relay.Call(op, [relay.const(np.ones(4, "float32"))])
    with pytest.raises(raised, match="stop"):
        relay.transform.FoldConstant()(hr.IRModule.from_expr(relay.Function([x], body)))


def test_a_resize_without_a_layout_is_converted():
    x = relay.var("x", shape=(1, 3, 8, 8))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.image.resize2d(x, (4, 4))))
    made = relay.transform.ConvertLayout({"image.resize2d": ["NHWC"]})(mod)
    assert 'layout="NHWC"' in made.astext()
    given = np.arange(192, dtype="float32").reshape(1, 3, 8, 8)
    before, after = (relay.create_executor("debug", m).evaluate()(given).numpy() for m in (mod, made))
    np.testing.assert_array_equal(before, after)
