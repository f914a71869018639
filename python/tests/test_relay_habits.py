"""Tests the first lines that users of Relay type: they work, or the error says what to write instead."""

import json

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, te, tir  # noqa: E402

X = np.array([1, -2], "float32")


def relu_function():
    x = relay.var("x", shape=(2,))
    return relay.Function([x], relay.nn.relu(x))


def plain(value):
    """Tuples and lists of a result."""
    return value.numpy().tolist() if isinstance(value, hr.NDArray) else tuple(plain(field) for field in value)


# --- programs


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_a_result_has_the_structure_of_its_type(kind):
    x = relay.var("x", shape=(2,))
    body = relay.Tuple([relay.Tuple([x, relay.Tuple([])]), relay.nn.relu(x), relay.Tuple([relay.negative(x)])])
    result = relay.create_executor(kind).evaluate(relay.Function([x], body))(X)
    assert plain(result) == (([1, -2], ()), [1, 0], ([-1, 2],))


def repeated_binders():
    """Programs of one scalar that bind a variable in several places, with what they give of 2."""
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    a, b = relay.var("a"), relay.var("b")
    one, less = relay.const(1.0), relay.less(y, relay.const(1.0))
    minus, exp = relay.Function([x], relay.negative(x)), relay.Function([x], relay.exp(x))
    square = relay.Let(x, y + one, x * x)
    yield relay.Function([x], relay.Let(a, minus, a(x) + a(x + one))), -5.0
    yield relay.Function([y], relay.Let(a, minus, relay.Let(b, exp, a(y) + b(y)))), np.exp(2) - 2
    yield relay.Function([y], relay.Let(x, y, relay.Let(x, x + one, relay.Let(x, x * x, x)))), 9.0
    yield relay.Function([y], relay.Let(a, square, relay.Let(x, relay.exp(y), a + x))), 9 + np.exp(2)
    yield relay.Function([y], relay.If(less, square, relay.Let(x, relay.exp(y), x + x))), 2 * np.exp(2)
    shared = x * y
    both = relay.Let(a, relay.Function([x], shared), relay.Let(b, relay.Function([x], shared + one), a(b(y))))
    yield relay.Function([y], both), 10.0


@pytest.mark.parametrize("number", range(6))
def test_a_variable_means_its_innermost_binder(number):
    function, want = list(repeated_binders())[number]
    module = hr.IRModule.from_expr(function)
    two = np.float32(2)

    def value(mod, kind="debug"):
        return relay.create_executor(kind, mod).evaluate()(two).numpy()

    assert value(module) == pytest.approx(want)
    if number < 5:  # the text of the last has no place for what both functions share
        assert value(relay.parse(module.astext())) == pytest.approx(want)
    for name in hr.transform.pass_registry():
        if name in ("FirstOrderGradient", "ToMixedPrecision"):
            continue  # another result, other dtypes
        after = getattr(relay.transform, name)()(module)
        assert relay.analysis.well_formed(after), name
        assert value(after) == pytest.approx(want), name
    if number in (2, 3):
        assert value(module, "graph") == pytest.approx(want)


def test_parameters_are_bound_where_no_inner_binder_hides_them():
    x, a = relay.var("x", shape=()), relay.var("a")
    function = relay.Function([x], relay.Let(a, relay.Function([x], relay.negative(x)), a(x * x)))
    bound = relay.bind_params_by_name(function, {"x": np.float32(3)})
    assert relay.create_executor().evaluate(bound)().numpy() == -9
    free = relay.Tuple([x, relay.Let(x, relay.exp(x), x)])
    assert plain(relay.create_executor().evaluate(free, {x: np.float32(0)})) == (0, 1)


def test_passes_of_users_may_repeat_binders():
    @relay.transform.function_pass(opt_level=0)
    def twice(function, mod, ctx):
        x = function.params[0]
        return relay.Function([x], relay.Let(x, function.body, function.body))

    x = relay.var("x", shape=())
    module = hr.transform.Sequential([twice, relay.transform.InferType()])(hr.IRModule.from_expr(relay.exp(x)))
    assert relay.analysis.well_formed(module)
    assert relay.create_executor(mod=module).evaluate()(np.float32(0)).numpy() == pytest.approx(np.exp(1))


def test_a_module_without_repeated_binders_stays():
    module = relay.transform.InferType()(hr.IRModule.from_expr(relu_function()))
    assert relay.transform.InferType()(module).same_as(module)


def test_a_variable_that_nothing_binds_is_told():
    x, y = relay.var("x", shape=()), relay.var("y", shape=())
    module = hr.IRModule()
    module.update_func("main", relay.Function([y], relay.Let(relay.var("g"), relay.Function([], x + y), y)))
    for run in (relay.transform.LambdaLift(), relay.transform.InferType(), relay.build):
        with pytest.raises(hr.UserError, match="@main uses %x, which is not a parameter of it and bound by no let"):
            run(module)
    with pytest.raises(hr.UserError, match="@main uses %x"):
        relay.create_executor(mod=module).evaluate()


def test_a_deeply_nested_result():
    x = relay.var("x", shape=(2,))
    body = x
    for _ in range(150):
        body = relay.Tuple([body])
    result = relay.create_executor("graph").evaluate(relay.Function([x], body))(X)
    depth = 0
    while not isinstance(result, hr.NDArray):
        (result,) = result
        depth += 1
    assert depth == 150


@pytest.mark.parametrize("value", [5, None, [], "x", X, hr.IRModule()])
def test_a_module_of_what_is_no_expression(value):
    with pytest.raises(hr.UserError, match=r"from_expr: expr: expected an expression, got \w+"):
        hr.IRModule.from_expr(value)


def test_a_module_of_what_split_gives():
    parts = relay.split(relay.var("x", shape=(2, 4)), 2, axis=1)
    body = relay.transform.InferType()(hr.IRModule.from_expr(parts))["main"].body
    assert str(body.checked_type) == "(Tensor[(2, 2), float32], Tensor[(2, 2), float32])"


def test_a_build_has_functions_by_name():
    lib = relay.build(hr.IRModule.from_expr(relu_function()), "llvm")
    with pytest.raises(hr.UserError, match="expected a str, got int"):
        lib[0]


# --- tensor expressions


def test_a_tensor_is_called_with_indices():
    a = te.placeholder((2, 3), name="a")
    b = te.compute((2, 3), lambda i, j: a(i, j) + a[i, j], tag="elemwise", attrs={"any": 1})
    values = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(tir.interpret(te.create_prim_func([a, b]), values).numpy(), values * 2)


def test_powers_of_floats():
    a = te.placeholder((3,), name="a")
    b = te.compute((3,), lambda i: a[i] ** 2 + 2.0 ** a[i])
    values = np.array([1, 2, 3], "float32")
    np.testing.assert_allclose(tir.interpret(te.create_prim_func([a, b]), values).numpy(), values**2 + 2**values)
    with pytest.raises(hr.UserError, match=r"n \*\* 2: `\*\*` of int64; it is for floats"):
        te.var("n") ** 2


def test_te_has_what_tir_has():
    assert set(te.__all__) == set(tir.__all__)
    assert all(getattr(te, name) is getattr(tir, name) for name in tir.__all__)
    assert te.all is tir.all


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.5, None, "float32"),
        (1, None, "int64"),
        (True, None, "bool"),
        (np.float16(2), None, "float16"),
        (np.int8(3), None, "int8"),
        (np.bool_(False), None, "bool"),
        (3, np.uint8, "uint8"),
        (2.0, "int32", "int32"),
        (1, "float64", "float64"),
        (True, "bool", "bool"),
        (float("inf"), "float16", "float16"),
    ],
)
def test_a_constant_takes_a_dtype(value, dtype, expected):
    made = tir.const(value, dtype)
    assert (made.dtype, made.value) == (expected, value)


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [
        (1.5, "int32", "1.5 is not of int32: it is not a whole number"),
        (float("nan"), "int32", "nan is not of int32"),
        (300, "int8", "300 is not a number that int8 holds"),
        (-1, "uint8", "-1 is not a number that uint8 holds"),
        (1e300, "float32", "whose largest number is 3.403e"),
        (70000, "float16", "whose largest number is 6.55e"),
        (2, "bool", "2 is not a bool"),
        ("x", None, "expected a number, got 'x'"),
        (te.var("n"), None, "expected a number, got n"),
    ],
)
def test_a_constant_fits_its_dtype(value, dtype, message):
    with pytest.raises(hr.UserError, match=message):
        tir.const(value, dtype)


# --- types and ops


def test_the_concrete_shape_of_a_type():
    assert relay.TensorType((2, 3)).concrete_shape == (2, 3)
    assert relay.TensorType(()).concrete_shape == ()
    with pytest.raises(hr.UserError, match=r"dimension 1 of .* is n, which is not a number"):
        _ = relay.TensorType((2, tir.Var("n"))).concrete_shape


def test_the_size_of_a_type():
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    for shape, size in [((), 1), ((2, 3), 6), ((4, 0), 0)]:
        found = relay.TensorType(shape).Size()
        assert type(found) is int and found == size
    assert str(relay.TensorType((n, 2, 2)).Size()) == "n * 4"
    assert str(relay.TensorType((n + 1, m)).Size()) == "(m * n) + m"
    assert relay.TensorType((n, relay.Any())).Size().type_key == "ir.Any"
    with pytest.raises(hr.UserError, match=r"Tensor\[\(.*\), float32\] has more elements than a 64-bit"):
        relay.TensorType((2**40, 2**40)).Size()


def test_the_type_of_a_scalar():
    for scalar in (relay.TensorType.Scalar("int8"), relay.scalar_type("int8"), relay.ty.scalar_type("int8")):
        assert (scalar.shape, scalar.dtype) == ([], "int8") and str(scalar) == "int8"


def test_arguments_of_an_op():
    first, _ = relay.op.get("add").arguments
    assert (first["name"], first["type_info"]) == ("lhs", "Tensor")


def binary_op(name):
    op = relay.op.register(name).add_argument("a").add_argument("b")
    return op.add_type_rel("Broadcast")


def test_the_broadcast_relation():
    op = binary_op("habits.broadcast")
    n = tir.Var("n")
    a, b = relay.var("a", shape=(n, 1, 3)), relay.var("b", shape=(4, 1))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(op(a, b)))
    assert str(mod["main"].body.checked_type) == "Tensor[(n, 4, 3), float32]"
    with pytest.raises(hr.UserError, match=r"the relation Broadcast: shapes \(2\) and \(3\) cannot be broadcast"):
        relay.transform.InferType()(hr.IRModule.from_expr(op(relay.var("a", shape=(2,)), relay.var("b", shape=(3,)))))
    single = relay.op.register("habits.single").add_argument("a").add_type_rel("Broadcast")
    with pytest.raises(hr.UserError, match="Broadcast is of two arguments, got 1"):
        relay.transform.InferType()(hr.IRModule.from_expr(single(a)))


def test_a_relation_that_is_no_function():
    op = relay.op.register("habits.relation")
    with pytest.raises(hr.UserError, match=r'got \'Identity\'; .* stands alone, as add_type_rel\("Identity"\)'):
        op.add_type_rel("R", "Identity")
    with pytest.raises(hr.UserError, match="no type relation 'R'; give a function, or one of Identity, Broadcast"):
        op.add_type_rel("R")


def test_dtypes_of_numpy_as_attributes():
    op = relay.op.register("habits.dtypes").add_argument("a").add_type_rel("Identity")
    op.add_attr("first", "dtype", np.float32).add_attr("second", "dtype", "int32")
    attrs = op(relay.var("a", shape=(2,)), second=np.int8).attrs
    assert (attrs.first, attrs.second) == ("float32", "int8")
    with pytest.raises(hr.UserError, match="no kind <class 'int'>; the kinds: int, float, bool, str, dtype"):
        op.add_attr("third", int)


def test_a_pattern_by_its_name():
    op = relay.op.register("habits.pattern").add_argument("a").add_type_rel("Identity")
    relay.op.register_pattern(op.name, "ELEMWISE")
    assert op.get_attr("TOpPattern") == relay.op.OpPattern.ELEMWISE
    with pytest.raises(hr.UserError, match="no pattern 'elemwise'; the patterns: ELEMWISE, BROADCAST"):
        relay.op.register_pattern(op.name, "elemwise")


@pytest.mark.parametrize(("name", "given"), [("none", None), ("number", 5), ("items", [5])])
def test_a_compute_that_gives_no_tensor(name, given):
    op = relay.op.register(f"habits.{name}").add_argument("a").add_type_rel("Identity")
    relay.op.register_compute(op.name, lambda attrs, inputs, out_type: given)
    x = relay.var("x", shape=(2,))
    with pytest.raises(hr.UserError, match=rf"habits.{name}: the compute gave .*; expected a tir.Tensor, a list of"):
        relay.build(hr.IRModule.from_expr(op(x)), "llvm")


@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize("shape", [(2,), ()])
def test_a_compute_that_gives_its_input(kind, shape):
    op = relay.op.register(f"habits.same_{kind}_{len(shape)}").add_argument("a").add_type_rel("Identity")
    relay.op.register_compute(op.name, lambda attrs, inputs, out_type: inputs[0])
    x = relay.var("x", shape=shape)
    given = np.ones(shape, "float32")
    assert plain(relay.create_executor(kind).evaluate(relay.Function([x], op(x)))(given)) == given.tolist()


def test_a_tuple_of_one_is_a_tuple():
    x = relay.var("x", shape=(2, 3))
    for parts in (
        relay.split(x, 1),
        relay.split(x, 1, 1),
        relay.split(x, [], 0),
        relay.meshgrid([relay.var("y", shape=(4,))]),
    ):
        assert len(parts) == 1
        (part,) = parts
        assert isinstance(part, relay.TupleGetItem)
        assert isinstance(parts.astuple(), relay.Call)
    assert isinstance(relay.topk(x, 2, ret_type="values"), relay.Call)


# --- targets


@pytest.mark.parametrize(
    ("name", "config"),
    [("text", "llvm -mcpu=znver4"), ("target", hr.Target("cpu/znver4")), ("dict", {"kind": "llvm", "mcpu": "znver4"})],
)
def test_a_tag_of_a_target(name, config):
    tagged = hr.target.register_tag(f"habits/{name}", config)
    assert (tagged.mcpu, tagged.tag) == ("znver4", f"habits/{name}")
    assert hr.Target(f"habits/{name}") == tagged


@pytest.mark.parametrize("target", [{"cpu": "llvm"}, {hr.cpu(): "llvm"}])
def test_a_target_by_device(target):
    assert relay.build(hr.IRModule.from_expr(relu_function()), target).target == hr.Target("llvm")
    with pytest.raises(hr.UserError, match="a dict by device; here is one target"):
        hr.Target(target)


# --- names


def test_modules_by_their_old_places():
    import headrace.contrib.cc as contrib_cc
    from headrace.contrib import graph_executor

    assert graph_executor.GraphModule is hr.graph_executor.GraphModule
    assert contrib_cc.create_shared is hr.cc.create_shared
    assert relay.expr.Call is relay.Call
    assert relay.ty.TensorType is relay.TensorType
    assert relay.build_module.build is relay.build
    assert hr.TVMError is hr.error.TVMError
    with pytest.raises(hr.TVMError):
        relay.op.get("habits.unknown")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("vm", "relay.create_executor"),
        ("nowhere", "has no .nowhere., and there is no such op"),
    ],
)
def test_names_that_there_are_not(name, instead):
    with pytest.raises(AttributeError, match=instead):
        getattr(relay, name)


# --- parameters and times


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
def test_parameters_as_bytes(dtype):
    params = {"weight": np.arange(6).reshape(2, 3).astype(dtype), "scalar": np.array(1, dtype)}
    saved = relay.save_param_dict(params)
    assert int.from_bytes(saved[:8], "little") % 8 == 0
    loaded = hr.runtime.load_param_dict(bytearray(saved))
    assert list(loaded) == ["weight", "scalar"]
    for name, value in params.items():
        assert (loaded[name].dtype, loaded[name].shape) == (dtype, value.shape)
        np.testing.assert_array_equal(loaded[name].numpy(), value)


def with_header(text):
    return len(text).to_bytes(8, "little") + text


def test_the_bytes_are_safetensors():
    data = np.array([1, 2], "<f4").tobytes()
    header = {"w": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}
    written = with_header(json.dumps({"__metadata__": {"by": "hand"}, **header}).encode()) + data
    assert relay.load_param_dict(written)["w"].numpy().tolist() == [[1], [2]]
    saved = relay.save_param_dict({"w": np.array([[1], [2]], "float32")})
    end = 8 + int.from_bytes(saved[:8], "little")
    assert (json.loads(saved[8:end]), saved[end:]) == (header, data)


@pytest.mark.parametrize(
    "data",
    [
        5,
        b"",
        b"x" * 20,
        with_header(b"[]"),
        with_header(b"{"),
        with_header(b'{"a": {"dtype": "F33", "shape": [], "data_offsets": [0, 0]}}'),
        with_header(b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}') + b"1234",
        with_header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}') + b"123",
        with_header(b'{"a": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}') + b"1234",
        with_header(b'{"a": {"dtype": "F32", "shape": ["1"], "data_offsets": [0, 4]}}') + b"1234",
    ],
)
def test_bytes_that_are_no_parameters(data):
    with pytest.raises(hr.UserError, match="param_bytes: "):
        relay.load_param_dict(data)


def test_parameters_that_cannot_be_saved():
    with pytest.raises(hr.UserError, match="params: expected a dict"):
        relay.save_param_dict([1])
    with pytest.raises(hr.UserError, match="parameter 'w'"):
        relay.save_param_dict({"w": "text"})


def executor():
    return hr.graph_executor.GraphModule(relay.build(hr.IRModule.from_expr(relu_function()))["default"](hr.cpu()))


def test_an_executor_loads_parameters():
    module = executor()
    module.load_params(relay.save_param_dict({"x": X, "other": X}))
    module.run()
    assert plain(module.get_output(0)) == [1, 0]
    shapes, dtypes = module.get_input_info()
    assert (shapes, dtypes) == ({"x": (2,)}, {"x": "float32"})
    assert isinstance(shapes, hr.container.Map) and isinstance(shapes["x"], hr.runtime.container.ShapeTuple)


def test_times_of_a_function():
    calls = []
    module = hr.runtime.create_module("habits", {"count": lambda x: calls.append(x)})
    timed = module.time_evaluator("count", hr.cpu(), number=3, repeat=4)(7)
    assert calls == [7] * 13
    assert len(timed.results) == 4
    assert 0 < timed.min <= timed.median <= timed.max
    assert timed.min <= timed.mean <= timed.max
    assert timed.std >= 0


class Clock:
    """A clock on which each call of `work` takes so many seconds."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.calls, self.waits, self.seconds = 0.0, 0, [], seconds
        monkeypatch.setattr(hr._timing, "perf_counter", lambda: self.now)
        monkeypatch.setattr(hr._timing, "sleep", self.waits.append)
        self.timed = hr.runtime.create_module("clock", {"work": self.work}).time_evaluator

    def work(self):
        self.calls += 1
        self.now += self.seconds


def test_a_repetition_has_as_many_calls_as_its_least_time_takes(monkeypatch):
    clock = Clock(monkeypatch, 0.25)
    # 1, then 2 and 5 of the first repetition, 5 of the second.
    assert clock.timed("work", number=2, repeat=2, min_repeat_ms=1000)().results == (0.25, 0.25)
    assert clock.calls == 1 + 2 + 5 + 5
    clock.calls = 0
    assert clock.timed("work", number=2, min_repeat_ms=500.0)().results == (0.25,)
    assert clock.calls == 1 + 2


def test_a_clock_that_stands_ends_it(monkeypatch):
    clock = Clock(monkeypatch, 0.0)
    assert clock.timed("work", number=1, min_repeat_ms=1, limit_zero_time_iterations=3)().results == (0.0,)
    assert clock.calls == 1 + 1 + 2 + 4


def test_waits_between_repetitions(monkeypatch):
    clock = Clock(monkeypatch, 1.0)
    clock.timed("work", repeat=5, cooldown_interval_ms=20, repeats_to_cooldown=2)()
    assert clock.waits == [0.02, 0.02]
    clock.timed("work", repeat=3, cooldown_interval_ms=1000)()
    assert clock.waits[2:] == [1.0, 1.0]


def test_times_are_printed_in_milliseconds():
    title, names, values = str(hr._timing.BenchmarkResult((0.001, 0.0015, 0.0035))).split("\n")
    assert title == "Execution time summary:"
    assert names.split("(ms)")[:-1] == ["    mean ", "  median ", "     max ", "     min ", "     std "]
    assert values.split() == ["2.0000", "1.5000", "3.5000", "1.0000", "1.0801"]


def test_end_to_end_copies_in_and_out(monkeypatch):
    module = executor()
    module.set_input("x", X)
    told = []
    monkeypatch.setattr(module, "_set_inputs", told.append)
    monkeypatch.setattr(module, "get_output", lambda i: told.append(i) or hr.nd.array(X))
    assert len(module.benchmark(hr.cpu(), repeat=1, number=2, end_to_end=True, x=X).results) == 1
    assert told == [{"x": X}, 0] * 3
    told.clear()
    module.benchmark(repeat=1, number=2, x=X)
    assert told == [{"x": X}]
    with pytest.raises(hr.UserError, match="end_to_end is of a run, got func_name='get_input_info'; leave one"):
        module.benchmark(func_name="get_input_info", end_to_end=True)


def test_inputs_of_a_benchmark_are_set():
    module = executor()
    module.benchmark(hr.cpu(), repeat=1, number=1, min_repeat_ms=0, x=X)
    assert plain(module.get_output(0)) == [1, 0]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"min_repeat_ms": "1"}, "min_repeat_ms: expected a number of milliseconds, got str"),
        ({"min_repeat_ms": -1}, "min_repeat_ms: -1 is not a number of milliseconds from 0 on"),
        ({"cooldown_interval_ms": float("nan")}, "cooldown_interval_ms: nan is not a number of milliseconds"),
        ({"limit_zero_time_iterations": 0}, "limit_zero_time_iterations: 0 is not a count; it is 1 or more"),
        ({"repeats_to_cooldown": 0}, "repeats_to_cooldown: 0 is not a count; it is 1 or more"),
        ({"f_preproc": "cache_flush"}, "f_preproc: nothing runs before a repetition, got 'cache_flush'; leave it out"),
    ],
)
def test_what_says_no_times_is_told(given, told):
    with pytest.raises(hr.UserError, match=told):
        executor().module.time_evaluator("run", **given)


def test_times_of_an_executor():
    module = executor()
    module.set_input("x", X)
    assert len(module.benchmark(hr.cpu(), repeat=2, number=1).results) == 2
    assert len(module.module.time_evaluator("run", hr.cpu(), number=1, repeat=3)().results) == 3
    with pytest.raises(hr.UserError, match="number: 0 is not a count; it is 1 or more"):
        module.benchmark(number=0)
    with pytest.raises(hr.UserError, match="repeat: expected an int"):
        module.module.time_evaluator("run", repeat=1.5)
    with pytest.raises(hr.UserError, match="dev: expected a Device"):
        module.benchmark("cpu")


def test_a_benchmark_times_by_the_modules_own_time_evaluator(monkeypatch):
    module = hr.runtime.module.Module
    result = hr.runtime.module.BenchmarkResult((1.0, 3.0))
    monkeypatch.setattr(module, "time_evaluator", lambda self, *args: lambda: (result, args))
    got, args = executor().benchmark(hr.cpu(), repeat=7, number=2, x=X)
    assert got.mean == 2 and args[:4] == ("run", hr.cpu(), 2, 7)


# --- inputs that are called as the arguments of what sets them

GIVEN = {"self": X, "key": X + 1, "value": X + 2}


@pytest.fixture(scope="module")
def attention():
    """Executors of self * key - value."""
    x, key, value = variables = [relay.var(name, shape=(2,)) for name in GIVEN]
    lib = relay.build(hr.IRModule.from_expr(relay.Function(variables, x * key - value)))
    return lambda: hr.graph_executor.GraphModule(lib["default"](hr.cpu()))


@pytest.mark.parametrize(
    "run",
    [
        lambda m: m.run(**GIVEN),
        lambda m: m.set_input(**GIVEN) or m.run(),
        lambda m: m.set_input(key=None, value=None, self=X) or m.run(key=X + 1, value=X + 2),
        lambda m: m.set_input("self", X, key=X + 1, value=X + 2) or m.run(),
        lambda m: m.set_input(0, value=X) or m.set_input(key=X + 1) or m.set_input(value=X + 2) or m.run(),
        lambda m: [m.set_input(key=name, value=tensor) for name, tensor in GIVEN.items()] and m.run(),
        lambda m: m.set_input(key=np.int64(1), value=X + 1) or m.run(self=X, value=(X + 2).tolist()),
        lambda m: m.benchmark(repeat=1, number=1, **GIVEN),
        lambda m: m.benchmark(repeat=1, number=1, end_to_end=True, **GIVEN),
        lambda m: m.load_params(relay.save_param_dict(GIVEN)) or m.run(),
    ],
)
def test_inputs_called_key_and_value_are_given_by_name(attention, run):
    module = attention()
    run(module)
    np.testing.assert_array_equal(module.get_output(0).numpy(), X * (X + 1) - (X + 2))


def test_to_a_run_every_name_is_an_inputs(attention):
    module = attention()
    with pytest.raises(hr.UserError, match=r"has 0 dimensions, the program takes \(2\)"):
        module.run(key=np.float32(3))
    with pytest.raises(hr.UserError, match="input 'key': str is not a tensor"):
        module.run(key="self")
    with pytest.raises(hr.UserError, match="input 'value': None is not a tensor"):
        module.run(value=None)


# --- slips


@pytest.mark.parametrize(
    ("slip", "error", "told"),
    [
        (lambda m: m.set_input({"x": X}), hr.UserError, r"a dict is given; write set_input\(\*\*params\)"),
        (lambda m: m.set_input(key={"x": X}), hr.UserError, r"a dict is given; write set_input\(\*\*params\)"),
        (lambda m: m.set_input([X]), hr.UserError, "key: expected the name or the index of an input, got list"),
        (lambda m: m.set_input(key=X), hr.UserError, "there is no input 'key'; the inputs are x"),
        (lambda m: m.set_input(value=X), hr.UserError, "there is no input 'value'; the inputs are x"),
        (
            lambda m: relay.create_executor("vm"),
            hr.UserError,
            r"debug and graph: relay\.create_executor\(.debug.\) runs",
        ),
        (lambda m: relay.create_executor("aot"), hr.UserError, "no kind 'aot'; the kinds are debug and graph$"),
        (lambda m: relay.nn.sofmax, AttributeError, "headrace.relay.nn has no 'sofmax', .*; did you mean softmax or "),
        (lambda m: relay.softmax, AttributeError, r"did you mean relay\.nn\.softmax"),
        (lambda m: relay.nn.exp, AttributeError, r"did you mean relay\.exp"),
        (lambda m: relay.op.tensor.expp, AttributeError, "did you mean exp"),
        (lambda m: relay.nn.qwertzuiop, AttributeError, "has no 'qwertzuiop', and there is no such op$"),
        (lambda m: relay.build(relu_function())["main"], AttributeError, r"no function 'main', but 'default': lib\["),
    ],
)
def test_a_slip_is_told_what_to_write(slip, error, told):
    with pytest.raises(error, match=told):
        slip(executor())
