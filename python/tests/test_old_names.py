"""Tests the names at the head of Relay programs, and their behaviour as the authors expect it."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, transform  # noqa: E402

X = np.array([1, -2], "float32")


def var(name="x", shape=(2,), **kwargs):
    return relay.var(name, shape=shape, **kwargs)


def relu_module():
    return hr.IRModule.from_expr(relay.nn.relu(var()))


# --- types before results


def ill_typed():
    x, c = var(), var("c", (), dtype="bool")
    return [
        (relay.Function([x], relay.nn.relu(x), relay.TensorType((7,))), (X,), "is annotated to give"),
        (relay.Function([c, x], relay.If(c, x, relay.Tuple([x]))), (True, X), "the branches have different types"),
        (relay.Function([x], relay.Let(var("y", (3,)), x, x)), (X,), r"Tensor\[\(3\), float32\]"),
        (relay.Function([relay.var("y")], relay.const(1)), (X,), "the type of variable '%y' cannot be inferred"),
    ]


@pytest.mark.parametrize("kind", ["debug", "graph"])
@pytest.mark.parametrize("case", range(4))
def test_programs_without_a_type_are_not_run(kind, case):
    function, args, message = ill_typed()[case]
    with pytest.raises(hr.UserError, match=message):
        relay.create_executor(kind).evaluate(function)(*args)


def test_an_expression_without_a_type_is_not_run():
    branches = relay.If(relay.const(True), relay.const(1), relay.const(1.0))
    with pytest.raises(hr.UserError, match="the branches have different types"):
        relay.create_executor().evaluate(branches)


def test_polymorphic_and_deep_programs_run():
    a = relay.TypeVar("a")
    v = relay.var("v", a)
    executor = relay.create_executor()
    assert executor.evaluate(relay.Function([v], v, a, [a]))(X).numpy().tolist() == [1, -2]
    prelude = relay.prelude.Prelude()
    executor = relay.create_executor(mod=prelude.mod)
    nil = prelude.get_ctor("List", "Nil")
    assert executor.evaluate(nil()).constructor == nil
    item = relay.var("l")
    assert executor.evaluate(relay.Let(item, nil(), relay.const(3))).numpy() == 3
    # Two lists of which nothing says what they hold.
    both = relay.Let(item, nil(), relay.Let(relay.var("m"), nil(), relay.const(4)))
    assert executor.evaluate(both).numpy() == 4
    with pytest.raises(hr.UserError, match="the type of variable '%y' cannot be inferred"):
        executor.evaluate(relay.Function([relay.var("y")], both))
    x = var()
    deep = x
    for _ in range(20000):
        deep = relay.nn.relu(deep)
    assert executor.evaluate(relay.Function([x], deep))(X).numpy().tolist() == [1, 0]


# --- padding


@pytest.mark.parametrize(
    ("given", "full"),
    [(0, (0, 0, 0, 0)), ((1,), (1, 1, 1, 1)), ([1, 2], (1, 2, 1, 2)), (np.array([1, 2, 3, 4]), (1, 2, 3, 4))],
)
def test_padding_has_all_begins_and_ends(given, full):
    from headrace.relay.op.nn.utils import get_pad_tuple2d

    x, w = var(shape=(1, 4, 8, 8)), var("w", (4, 4, 3, 3))
    assert get_pad_tuple2d(given) == full
    for call in (
        relay.nn.conv2d(x, w, padding=given),
        relay.nn.conv2d_transpose(x, w, padding=given),
        relay.nn.max_pool2d(x, 5, padding=given),
        relay.nn.avg_pool2d(x, 5, padding=given),
    ):
        top, left, bottom, right = call.attrs.padding
        assert (top, left, bottom, right) == full
        height, width = relay.transform.InferType()(hr.IRModule.from_expr(call))["main"].body.checked_type.shape[2:]
        added = full[0] + full[2] - full[1] - full[3]
        assert height - width == (-added if "transpose" in call.op.name else added)


def test_padding_of_one_and_three_axes():
    utils = importlib.import_module("headrace.relay.op.nn.utils")
    assert utils.get_pad_tuple1d(2) == utils.get_pad_tuple1d((2,)) == (2, 2)
    assert utils.get_pad_tuple1d((1, 2)) == (1, 2)
    assert utils.get_pad_tuple3d((1, 2, 3)) == (1, 2, 3, 1, 2, 3)
    x, w = var(shape=(1, 4, 8)), var("w", (4, 4, 3))
    calls = (relay.nn.conv1d(x, w), relay.nn.conv1d_transpose(x, w), relay.nn.max_pool1d(x, 2))
    assert [call.attrs.padding for call in calls] == [(0, 0)] * 3
    x, w = var(shape=(1, 4, 8, 8, 8)), var("w", (4, 4, 3, 3, 3))
    calls = (relay.nn.conv3d(x, w), relay.nn.conv3d_transpose(x, w), relay.nn.avg_pool3d(x, 2))
    assert [call.attrs.padding for call in calls] == [(0,) * 6] * 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 2, 3), r"padding: expected one number, 2 \(one for each axis\) or 4 .*, got 3"),
        ((1.5, 1), "padding: expected whole numbers"),
        (True, "padding: expected whole numbers, got True"),
        (relay.const(1), "padding: expected whole numbers"),
    ],
)
def test_padding_that_is_none(given, message):
    with pytest.raises(hr.UserError, match=message):
        relay.op.nn.utils.get_pad_tuple2d(given)
    with pytest.raises(hr.UserError, match=f"nn.conv2d: {message}"):
        relay.nn.conv2d(var(shape=(1, 4, 8, 8)), var("w", (4, 4, 3, 3)), padding=given)


# --- instruments


def recorder(log, name):
    return hr.instrument.PassInstrument(
        name,
        enter_pass_ctx=lambda: log.append(f"+{name}"),
        exit_pass_ctx=lambda: log.append(f"-{name}"),
        run_before_pass=lambda mod, info: log.append(f"{name}: {info.name}"),
    )


def test_other_instruments_for_the_rest_of_a_block():
    log = []
    with transform.PassContext(opt_level=1, instruments=[recorder(log, "a")]) as context:
        relay.transform.InferType()(relu_module())
        context.override_instruments([recorder(log, "b")])
        relay.transform.FoldConstant()(relu_module())
        context.override_instruments(None)
        relay.transform.InferType()(relu_module())
        transform.PassContext.current().override_instruments([recorder(log, "c")])
        assert transform.PassContext.current().opt_level == 1
        with transform.PassContext(), pytest.raises(hr.UserError, match="not the context that passes run in now"):
            context.override_instruments([])
    assert log == ["+a", "a: InferType", "-a", "+b", "b: FoldConstant", "-b", "+c", "-c"]
    assert not transform.PassContext.is_active()
    with pytest.raises(hr.UserError, match="not the context that passes run in now"):
        context.override_instruments([])


def test_instruments_outside_of_any_block():
    log = []
    context = transform.PassContext.current()
    context.override_instruments([recorder(log, "a")])
    relay.transform.InferType()(relu_module())
    with transform.PassContext():
        relay.transform.FoldConstant()(relu_module())
    context.override_instruments([])
    relay.transform.InferType()(relu_module())
    assert log == ["+a", "a: InferType", "-a"]


def test_a_program_may_end_with_instruments():
    code = (
        "import headrace as hr\n"
        "timing = hr.instrument.PassInstrument('mine', run_before_pass=lambda mod, info: None)\n"
        "hr.transform.PassContext.current().override_instruments([timing])\n"
        "print('set')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "set\n", "")


def test_the_program_before_each_pass():
    texts = []
    seq = transform.Sequential([relay.transform.InferType(), relay.transform.FoldConstant()])
    x = var()
    mod = hr.IRModule.from_expr(x + (relay.const(1.0) + relay.const(2.0)))
    with transform.PassContext(instruments=[hr.instrument.PrintBeforeAll(texts.append)]):
        seq(mod)
    heads = [text.partition("\n")[0] for text in texts]
    assert heads == [f"// ---- before {name}" for name in ("sequential", "InferType", "FoldConstant")]
    assert "add(1f /* ty=float32 */, 2f /* ty=float32 */)" in texts[-1]


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("relay.backend.use_auto_scheduler", "schedules are not written by hand"),
        ("relay.backend.anything", "relay.build chooses how kernels are made"),
        ("tir.disable_vectorize", "lowering chooses how loops are made"),
        ("relay.FuseOps.link_params", "constants of the code always"),
        ("relay.fallback_device_type", "programs run on the CPU"),
    ],
)
def test_keys_of_relay_that_are_none(key, reason):
    with pytest.raises(hr.UserError, match=f"there is no configuration '{key}': .*{reason}; leave it out"):
        transform.PassContext(config={"relay.FuseOps.max_depth": 3, key: 1})


def test_other_keys_are_told_as_ever():
    with pytest.raises(hr.UserError, match=r"there is no configuration 'relay.no'; there are: relay\."):
        transform.PassContext(config={"relay.no": 1})


# --- names


def test_modules_of_op_functions():
    from headrace.relay.op import algorithm, reduce, tensor
    from headrace.relay.op.transform import reshape

    assert (tensor.exp, reduce.sum, algorithm.topk, reshape) == (relay.exp, relay.sum, relay.topk, relay.reshape)
    assert (reduce.std, relay.op.reduce.variance, relay.op.transform.full) == (relay.std, relay.variance, relay.full)
    with pytest.raises(AttributeError, match=r"headrace.relay.op.transform has no 'FoldConstant', and there is no"):
        _ = relay.op.transform.FoldConstant


def test_names_at_the_head_of_programs():
    mod = hr.IRModule().with_attrs({"a": 1, "b": 2})
    assert (mod.attrs, mod.without_attr("a").attrs, mod.without_attr("c").attrs) == (
        {"a": 1, "b": 2},
        {"b": 2},
        mod.attrs,
    )
    assert [v.name_hint for v in relay.prelude.Prelude().mod.get_global_type_vars()] == ["List", "Option", "Tree"]
    function = relu_module()["main"].with_attr("Primitive", 1)
    assert function.attrs.Primitive == 1
    with pytest.raises(AttributeError, match="the map has no 'Inline'; its keys: Primitive"):
        _ = function.attrs.Inline
    span = relay.Span(relay.SourceName("model"), 1, 2, 3, 4)
    assert (span.source_name, relay.SourceName("model").name) == ("model", "model")
    assert (span.line, span.end_line, span.column, span.end_column) == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("float32", (32, 1, 4)),
        ("bfloat16", (16, 1, 2)),
        ("bool", (1, 1, 1)),
        ("int8x16", (8, 16, 16)),
        ("handle", (64, 1, 8)),
        ("void", (0, 1, 0)),
    ],
)
def test_sizes_of_dtypes(name, size):
    dtype = hr.DataType(name)
    assert dtype == name
    assert (dtype.bits, dtype.lanes, dtype.itemsize()) == size


def test_what_is_no_dtype():
    with pytest.raises(hr.UserError, match="'float33' is not a dtype"):
        hr.DataType("float33")


def test_what_tests_are_written_with():
    value = hr.nd.array(X)
    hr.testing.assert_allclose(value, [1, -2])
    hr.testing.assert_allclose(X, value.numpy() + 1e-3, atol=1e-2)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        hr.testing.assert_allclose(value, [1, 2])
    with pytest.raises(AssertionError, match=r"the shape is \(2,\), and should be \(\)"):
        hr.testing.assert_allclose(value, 1)


def test_a_folder_for_a_while():
    folder = hr.contrib.utils.tempdir()
    with folder:
        Path(folder.relpath("b.txt")).write_text("b")
        (folder.path / "a").mkdir()
        assert folder.listdir() == ["a", "b.txt"]
    assert not folder.path.exists()
    folder.remove()


def test_an_attribute_of_an_op_for_a_while():
    op = relay.op.get("nn.relu")
    with relay.testing.TempOpAttr("nn.relu", "old_names.test", 1):
        assert op.get_attr("old_names.test") == 1
        with relay.testing.TempOpAttr("nn.relu", "old_names.test", 2):
            assert op.get_attr("old_names.test") == 2
        assert op.get_attr("old_names.test") == 1
    assert not op.has_attr("old_names.test")
    legal = importlib.import_module("headrace.relay.testing.temp_op_attr")
    with legal.TempOpAttr("nn.relu", "FTVMLegalize", lambda attrs, inputs, types: relay.tanh(inputs[0])):
        body = relay.transform.Legalize()(relay.transform.InferType()(relu_module()))["main"].body
    assert body.op.name == "tanh"


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("cuda", "hr.cpu()"),
        ("target.cuda", '"llvm"'),
        ("target.arm_cpu", "hr.Target"),
        ("ir.DictAttrs", "a dict"),
        ("relay.build_module.BuildModule", "relay.build"),
        ("relay.testing.yolo_detection", "export one to ONNX"),
        ("relay.testing.ctx_list", "enabled_targets()"),
        ("relay.testing.run_as_python", "create_executor"),
        ("relay.backend.te_compiler", "relay.build compiles a function"),
        ("relay.testing.unknown", "has no attribute 'unknown'"),
        ("relay.transform.FoldConstantExpr", "FoldConstant()"),
        ("relay.transform.ToANormalFormExpr", "ToANormalForm()"),
        ("relay.transform.to_cps", "no continuation-passing form"),
        ("relay.transform.FuseOp", "did you mean FuseOps"),
        ("relay.transform.qqq", "hr.transform.pass_registry() lists the passes"),
    ],
)
def test_names_with_a_remedy(name, instead):
    *modules, last = name.split(".")
    with pytest.raises(AttributeError) as told:
        getattr(importlib.import_module(".".join(["headrace", *modules])), last)
    assert instead in str(told.value)
    assert "export one to ONNX" not in str(told.value) or last == "yolo_detection"


# --- visitors


class GivesNothing(relay.ExprMutator):
    def visit_call(self, call):
        super().visit_call(call)


class GivesNoType(relay.TypeMutator):
    def visit_tensor_type(self, tt):
        pass


@pytest.mark.parametrize("depth", [1, 3, 500])
def test_a_method_that_gives_nothing(depth):
    x = var()
    body = x
    for _ in range(depth):
        body = relay.nn.relu(body)
    for expr in (body, relay.Function([x], body)):
        with pytest.raises(hr.UserError, match=r"GivesNothing.visit_call gave None, expected an expression"):
            GivesNothing().visit(expr)
    with pytest.raises(hr.UserError, match=r"GivesNoType.visit_tensor_type gave None, expected a type"):
        GivesNoType().visit(relay.TupleType([relay.TensorType((depth,))]))


@pytest.mark.parametrize("value", [3, None, [], "x", relay.TensorType((2,)), hr.IRModule()])
def test_what_no_visitor_visits(value):
    kind = "None" if value is None else type(value).__name__
    for visitor in (relay.ExprVisitor(), relay.ExprMutator()):
        with pytest.raises(hr.UserError, match=rf"{type(visitor).__name__}.visit: expected an expression, got {kind}"):
            visitor.visit(value)
    if kind != "TensorType":
        with pytest.raises(hr.UserError, match=f"TypeVisitor.visit: expected a type, got {kind}"):
            relay.TypeVisitor().visit(value)
    if kind == "IRModule":
        with pytest.raises(hr.UserError, match=r'visit its functions, as mod\["main"\]'):
            relay.ExprVisitor().visit(value)


# --- data types and inputs


def test_a_type_of_the_prelude_is_not_replaced_by_chance():
    mod = relay.prelude.Prelude().mod
    name = relay.GlobalTypeVar("List")
    data = relay.TypeData(name, [], [relay.Constructor("Only", [], name)])
    with pytest.raises(hr.UserError, match=r"has a type 'List' already, .*AddTypeDef\(data, update=True\) replaces it"):
        mod[name] = data
    tree = mod[relay.GlobalTypeVar("Tree")]
    assert (type(tree), tree.header.name_hint) == (relay.TypeData, "Tree")
    mod[tree.header] = tree
    mod.AddTypeDef(data, update=True)
    assert mod[name].same_as(data)
    own = relay.GlobalTypeVar("Own")
    mod[own] = relay.TypeData(own, [], [relay.Constructor("Single", [], own)])
    assert mod.get_constructor("Own", "Single").belong_to == own
    with pytest.raises(hr.UserError, match="the module has no type 'Other'"):
        _ = mod[relay.GlobalTypeVar("Other")]


def test_an_input_of_another_dtype_is_told_the_cast():
    lib = relay.build(relu_module())
    module = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    for key in ("x", 0):
        with pytest.raises(hr.UserError, match=r'takes float32; cast it, as x.astype\("float32"\) does') as told:
            module.set_input(key, hr.nd.array(np.ones(2)))
        assert told.value.op == "x"
    with pytest.raises(hr.UserError, match=r"has shape \(3\), the program takes \(2\)") as told:
        module.set_input("x", np.ones(3, "float32"))
    assert "cast" not in str(told.value)
    with pytest.raises(hr.UserError, match="there is no input 'y'"):
        module.set_input("y", np.ones(2))


# --- functions of ops as Relay has them


def evaluated(body, **values):
    params = relay.analysis.free_vars(body)
    result = relay.create_executor().evaluate(relay.Function(params, body))(*[values[p.name_hint] for p in params])
    return result.numpy() if isinstance(result, hr.NDArray) else [field.numpy() for field in result]


def test_random_numbers():
    key = relay.random.threefry_key(3 + (5 << 64))
    assert key.data.numpy().tolist() == [3, 5, 0, 0, 0, 0, 0, 0, 1 << 63, 0]
    after, numbers = relay.random.uniform(key, (4, 50), low=2.0, high=3)
    given = evaluated(relay.Tuple([after, numbers]))
    assert (given[0].shape, given[1].shape, given[1].dtype) == ((10,), (4, 50), "float32")
    assert 2 <= given[1].min() < 2.2 < 2.8 < given[1].max() < 3
    _, numbers = relay.random.normal(after, (1000,), "float64", mean=5.0, scale=relay.const(0.1, "float64"))
    values = evaluated(numbers)
    assert values.dtype == "float64"
    assert abs(values.mean() - 5) < 0.02  # six standard errors
    assert abs(values.std() - 0.1) < 0.015  # six standard errors again
    left, right = relay.random.threefry_split(key)
    (_, words), (_, others) = (relay.random.threefry_generate(part, (4,)) for part in (left, right))
    assert set(evaluated(words).tolist()).isdisjoint(evaluated(others).tolist())


@pytest.mark.parametrize("seed", [-1, 1 << 256, 1.5, True, None])
def test_a_seed_that_is_none(seed):
    with pytest.raises(hr.UserError, match=r"threefry_key: the seed is .*; it is a whole number from 0"):
        relay.random.threefry_key(seed)


def test_different_elements():
    data = np.array([3, 1, 3, 2, 1], "int32")
    x = var(shape=(5,), dtype="int32")
    elements, first, which, count, often = relay.unique(x, is_sorted=True, return_counts=True)
    wanted = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
    for found, expected in zip((elements, first, which, often), wanted, strict=True):
        np.testing.assert_array_equal(evaluated(found, x=data)[: len(expected)], expected)
    assert evaluated(count, x=data).tolist() == [3]
    elements, *rest = relay.unique(x, is_sorted=False)
    assert len(rest) == 3
    assert evaluated(elements, x=data)[:3].tolist() == [3, 1, 2]


def test_diagonals():
    data = np.zeros((3, 3), "float32")
    x, d = var(shape=(3, 3)), var("d", (3,))
    values = np.array([1, 2, 3], "float32")
    np.testing.assert_array_equal(evaluated(relay.matrix_set_diag(x, d), x=data, d=values), np.diag(values))
    above = np.array([1, 2], "float32")
    call = relay.matrix_set_diag(x, var("d", (2,)), k=1)
    np.testing.assert_array_equal(evaluated(call, x=data, d=above), np.diag(above, 1))
    both = np.array([[0, 1, 2], [3, 4, 5]], "float32")  # above the main one, its elements at the right
    for align, wanted in (("RIGHT_LEFT", [1, 2]), ("LEFT_RIGHT", [0, 1])):
        call = relay.matrix_set_diag(x, var("d", (2, 3)), k=(0, 1), align=align)
        expected = np.diag([3, 4, 5]) + np.diag(wanted, 1)
        np.testing.assert_array_equal(evaluated(call, x=data, d=both), expected)
    with pytest.raises(hr.UserError, match="matrix_set_diag: align is 'RIGHT'; it is RIGHT_LEFT"):
        relay.matrix_set_diag(x, d, align="RIGHT")


@pytest.mark.parametrize("begin", [[1, 0], np.array([1, 0]), relay.const([1, 0])])
def test_a_slice_is_set(begin):
    data, values = np.zeros((4, 3), "float32"), np.ones((2, 2), "float32")
    expected = data.copy()
    expected[1:3, 0:2] = values
    call = relay.strided_set(var(shape=(4, 3)), var("v", (2, 2)), begin, [3, 2])
    np.testing.assert_array_equal(evaluated(call, x=data, v=values), expected)
    for unknown in (var("b", (2,), dtype="int32"), 3, relay.const(3)):
        with pytest.raises(hr.UserError, match="strided_set: strides: give them"):
            relay.strided_set(var(shape=(4, 3)), var("v", (2, 2)), unknown, [3, 2])


def test_results_that_are_taken_apart():
    params = [var("a", (2,)), var("b", (3,))]
    values = [np.array([1, 2], "float32"), np.array([3, 4, 5], "float32")]
    for found, expected in zip(relay.meshgrid(params, "xy"), np.meshgrid(*values), strict=True):
        result = relay.create_executor().evaluate(relay.Function(params, found))(*values)
        np.testing.assert_array_equal(result.numpy(), expected)
    boxes, counts, indices = var(shape=(1, 5, 6)), var("c", (1,), dtype="int32"), var("i", (1, 5), dtype="int32")
    assert len(relay.vision.get_valid_counts(boxes)) == 3
    assert len(relay.vision.multibox_transform_loc(var(shape=(1, 3, 5)), var("l", (1, 20)), var("a", (1, 5, 4)))) == 2
    kept, count = relay.vision.non_max_suppression(boxes, counts, indices)
    typed = relay.transform.InferType()(hr.IRModule.from_expr(relay.Tuple([kept, count])))["main"].body
    assert str(typed.checked_type) == "(Tensor[(1, 5), int32], Tensor[(1, 1), int32])"
    assert [float(arg.data.numpy()) for arg in kept.tuple_value.args[3:]] == [-1, 0.5]
    assert isinstance(relay.vision.non_max_suppression(boxes, counts, indices, return_indices=False), relay.Call)


def test_values_of_constructors_are_made_as_in_relay():
    from headrace.relay.backend.interpreter import ConstructorValue

    mod = hr.IRModule()
    mod.import_from_std("nat.rly")
    zero, successor = mod.get_type("nat")[1:]
    value = ConstructorValue(successor.tag, [ConstructorValue(zero.tag, [], zero)], successor)
    assert value.constructor.name_hint == successor.name_hint
    assert value.fields[0].constructor.name_hint == zero.name_hint
    with pytest.raises(hr.UserError, match=f"tag is 7, and that of {zero.name_hint} {zero.tag}"):
        ConstructorValue(7, [], zero)
    with pytest.raises(hr.UserError):
        ConstructorValue(0, [])


def test_a_span_may_have_no_source():
    span = relay.Span(None, 1, 2, 3, 4)
    assert (span.source_name, span.line, span.end_line, span.column, span.end_column) == ("", 1, 2, 3, 4)
