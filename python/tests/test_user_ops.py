"""Ops that Python registers: their types, attributes and names, and passes over programs of them."""

import keyword
import subprocess
import sys
import traceback

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay, te, tir, transform  # noqa: E402
from headrace.relay.op import OpPattern  # noqa: E402
from user_ops_kit import X, built, groups, new_op, program, result, scale  # noqa: E402

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
    with pytest.raises(hr.UserError, match="has a data-dependent size"):
        built(mod)


def test_forms_that_want_sizes_may_fail_for_sizes_of_data_and_an_interrupt_ends_the_build():
    raised = []

    def form(attrs, inputs, out_type):
        if raised and not isinstance(out_type.shape[0], int):
            raise raised[0]
        return tir.compute(out_type.shape, lambda i, j: -inputs[0][i, j])

    op = new_op()
    relay.op.register_compute(op.name, form)
    mod = program(lambda x: op(relay.cast(relay.argwhere(x), "float32")), (2, 3))
    built(mod)
    raised.append(ValueError("a size must be a number"))
    with pytest.raises(hr.UserError, match="has a data-dependent size"):
        built(mod)
    raised[0] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
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
    with pytest.raises(hr.UserError, match="its type relation gave 3, which is not a type"):
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
    ir.assert_structural_equal(relay.parse(mod.astext()), relay.transform.InferType()(mod))
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
    # Names that are not refused can be passed and read.
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


@pytest.mark.parametrize("is_decorator", [False, True])
def test_a_compute_is_an_attribute(is_decorator):
    op = new_op().add_type_rel("Identity")

    def compute(attrs, inputs, out_type):
        return [te.compute(out_type.shape, lambda *i: inputs[0][i] * 3.0)]

    given = ir.register_op_attr(op.name, "FTVMCompute")(compute) if is_decorator else None
    if not is_decorator:
        given = ir.register_op_attr(op.name, "FTVMCompute", compute)
    assert given is compute
    assert op.has_attr("FTVMCompute")
    x = relay.var("x", shape=(2,))
    for kind in ("debug", "graph"):
        executor = relay.create_executor(kind, hr.IRModule.from_expr(relay.Function([x], op(x))))
        assert executor.evaluate()(np.array([1, 2], "float32")).numpy().tolist() == [3, 6]
    with pytest.raises(hr.UserError, match=rf"{op.name}: what computes an op is not taken back; relay"):
        op.reset_attr("FTVMCompute")
    with pytest.raises(hr.UserError, match="TempOpAttr: FTVMCompute: what computes an op is not taken back"):
        relay.testing.TempOpAttr(op.name, "FTVMCompute", compute)
    with pytest.raises(hr.UserError, match=rf"{op.name}: compute: expected a function or a PrimFunc, got int"):
        op.set_attr("FTVMCompute", 5)
    with pytest.raises(hr.UserError, match=r"'nn.relu' is an op of Headrace, which is not changed"):
        ir.register_op_attr("nn.relu", "FTVMCompute", compute)
    assert not relay.op.get("nn.relu").has_attr("FTVMCompute")


@pytest.mark.parametrize(
    ("key", "instead"),
    [
        ("FInferCorrectLayout", "relay.op.register_convert_op_layout"),
        ("FShapeFunc", "op.add_type_rel"),
        ("FTVMFakeQuantizationToInteger", "floats are not replaced by integers"),
        ("FTVMSchedule", "schedules are not written by hand"),
        ("FTVMStrategy", "relay.op.register_compute"),
    ],
)
def test_attributes_that_nothing_asks_for(key, instead):
    op = new_op()
    told = rf"{op.name}: the attribute '{key}' would change nothing: .*{instead}.*; leave it out"
    with pytest.raises(hr.UserError, match=told):
        ir.register_op_attr(op.name, key, lambda *args: None)
    with pytest.raises(hr.UserError, match=told), relay.testing.TempOpAttr(op.name, key, 1):
        pass
    assert not op.has_attr(key)


def test_patterns():
    op = scale()
    relay.op.register_pattern(op.name, OpPattern.OPAQUE)
    mod = program(lambda x: relay.nn.relu(op(x)), (2, 3))
    assert groups(mod) == [["nn.relu"], [op.name]]
    assert op.get_attr("TOpPattern") == OpPattern.OPAQUE
    with pytest.raises(
        hr.UserError, match=r"the attribute 'TOpPattern' of op 'usertest.*' must be an op pattern: .*, got 5"
    ):
        relay.op.register_pattern(op.name, 5)


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("FTVMLegalize", 5, r"a function of \(attributes, arguments, types\), got 5"),
        ("FTVMConvertOpLayout", 5, r"a function of \(attributes, arguments, types, layouts\), got 5"),
        ("FTVMMixedPrecisionConversionType", 2, r"a function of \(call, type\), got 2"),
        ("FPrimalGradient", "f", r"a function of \(call, gradient\), got \"f\""),
        ("TOpPattern", "ELEMWISE", 'an op pattern: .*, got "ELEMWISE"'),
        ("TOpIsStateful", "yes", 'a bool, got "yes"'),
    ],
)
def test_attributes_that_are_read_are_checked_when_they_are_set(key, value, wanted):
    op = new_op()
    with pytest.raises(hr.UserError, match=rf"^the attribute '{key}' of op '{op.name}' must be {wanted}$"):
        op.set_attr(key, value)


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


def total_of_channels():
    """x[N, C, W] or x[N, W, C], as `layout` says -> the same sizes with one channel"""

    def relation(arg_types, attrs):
        shape = list(arg_types[0].shape)
        shape[attrs.layout.index("C")] = 1
        return relay.TensorType(shape, arg_types[0].dtype)

    def compute(attrs, inputs, out_type):
        axis = attrs.layout.index("C")
        channels = tir.reduce_axis((0, inputs[0].shape[axis]), "c")
        return tir.compute(
            out_type.shape,
            lambda *i: tir.sum(inputs[0][tuple(channels if d == axis else i[d] for d in range(3))], axis=[channels]),
        )

    op = new_op(relation=relation).add_attr("layout", "str", "NCW", "The order of the axes.")
    relay.op.register_compute(op.name, compute)
    return op


def test_a_user_op_is_converted_by_its_function():
    op = total_of_channels()

    @relay.op.register_convert_op_layout(op.name)
    def convert(attrs, inputs, tinfos, desired_layouts):
        assert [str(info) for info in tinfos] == ["Tensor[(1, 3, 4), float32]", "Tensor[(1, 1, 4), float32]"]
        (layout,) = map(str, desired_layouts)
        if layout == attrs.layout:
            return None
        data = relay.transpose(inputs[0], axes=[0, 2, 1])
        return relay.transpose(op(data, layout=layout), axes=[0, 2, 1])

    assert op.get_attr("FTVMConvertOpLayout") is not None
    mod = program(lambda x: relay.nn.relu(op(x)), (1, 3, 4))
    after = relay.transform.ConvertLayout({op.name: ["NWC"]})(mod)
    assert 'layout="NWC"' in after.astext()
    x = np.arange(12, dtype="float32").reshape(1, 3, 4) - 9
    np.testing.assert_array_equal(result(mod, x), np.maximum(x.sum(axis=1, keepdims=True), 0))
    np.testing.assert_array_equal(result(after, x), result(mod, x))
    assert relay.transform.ConvertLayout({op.name: ["NCW"]})(mod).same_as(mod)
    assert relay.transform.ConvertLayout({"nn.conv2d": ["NHWC"]})(mod).same_as(mod)
    with transform.PassContext(config={"relay.ConvertLayout.desired_layouts": {op.name: ["NWC"]}}):
        assert hr.ir.structural_equal(relay.transform.ConvertLayout()(mod), after)


def test_what_a_layout_conversion_gives_is_checked():
    op = total_of_channels()
    mod = program(lambda x: op(x), (1, 3, 4))
    with pytest.raises(hr.UserError, match=f"'{op.name}' has no layout to convert; these have: nn.conv1d, "):
        relay.transform.ConvertLayout({op.name: ["NWC"]})
    relay.op.register_convert_op_layout(
        op.name, lambda attrs, inputs, tinfos, layouts: op(inputs[0], layout=layouts[0])
    )
    convert = relay.transform.ConvertLayout({op.name: ["NWC"]})
    with pytest.raises(
        hr.UserError,
        match=rf"(?s)its layout conversion .* gives .*1, 3, 1.* for a call that gives .*1, 1, 4.*at: {op.name}",
    ):
        convert(mod)
    relay.op.register_convert_op_layout(op.name, lambda *given: 3)
    with pytest.raises(hr.UserError, match=f"(?s)its layout conversion gave no expression but 3.*at: {op.name}"):
        convert(mod)
    op.reset_attr("FTVMConvertOpLayout")
    with pytest.raises(hr.UserError, match=f"'{op.name}' has no layout to convert"):
        convert(mod)


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
    with pytest.raises(hr.UserError, match="support level must be a number from 1 to 10, got 11"):
        many.set_support_level(11)
    with pytest.raises(hr.UserError, match="-1 for any number, got -2"):
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

    check(keeps, f"{op.name}: its compute: the placeholder 'data' is not one of the inputs")
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


def test_gradients_are_refused_by_name_until_they_are_given():
    op = scale()
    mod = program(lambda x: op(x, factor=3.0), (2,))
    with pytest.raises(hr.UserError, match=rf'{op.name}: .* relay.op.register_gradient\("{op.name}", function\)'):
        relay.transform.FirstOrderGradient()(mod)
    relay.op.register_gradient(op.name, lambda call, grad: [op(grad, factor=call.attrs.factor)])
    result = relay.create_executor("debug", relay.transform.FirstOrderGradient()(mod)).evaluate()(X[0, :2])
    np.testing.assert_array_equal(result[1][0].numpy(), [3, 3])


def test_a_function_that_gives_its_result_is_told_to_write_it():
    op = new_op("data")
    relay.op.register_packed_func(op.name, lambda data, out: np.sort(data.numpy()))
    with pytest.raises(hr.UserError, match=f"{op.name}: its function gave a ndarray; it has to write its results"):
        result(program(lambda x: op(x), (3,)), np.array([3, 1, 2], "float32"))
