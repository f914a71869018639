"""Scalar expressions, tensors computed from them, loop functions; numpy says what they give."""

import gc
import operator

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, te, tir  # noqa: E402

I8 = np.array([-7, -1, 0, 1, 2, 7], "int8")
I64 = np.array([-7, -1, 1, 2, 3, 10], "int64")
F32 = np.array([-2.5, -1.0, -0.0, 0.5, 1.0, 3.25], "float32")
BOOLS = np.array([True, False, True, True, False, False])


def mapped(function, *arrays):
    """The results of `function` for each element, by the interpreter."""
    inputs = [tir.placeholder(x.shape, str(x.dtype), f"x{i}") for i, x in enumerate(arrays)]
    out = tir.compute(arrays[0].shape, lambda *i: function(*(x[i] for x in inputs)), "y")
    return tir.interpret(tir.create_prim_func([*inputs, out]), *arrays).numpy()


# --- operators


@pytest.mark.parametrize("name", ["add", "sub", "mul", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("x", [I8, I64, F32], ids=lambda x: str(x.dtype))
def test_operators_are_those_of_numpy(name, x):
    function = getattr(operator, name)
    y = x[::-1].copy()
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(mapped(function, x, y), function(x, y))
        np.testing.assert_array_equal(mapped(lambda a: function(a, 2), x), function(x, x.dtype.type(2)))
        np.testing.assert_array_equal(mapped(lambda a: function(2, a), x), function(x.dtype.type(2), x))


def test_quotients_and_remainders():
    ones = np.array([2, -2, 3, -3, 4, 7], "int64")
    np.testing.assert_array_equal(mapped(operator.floordiv, I64, ones), I64 // ones)
    np.testing.assert_array_equal(mapped(operator.mod, I64, ones), I64 % ones)
    np.testing.assert_array_equal(mapped(lambda a: 20 // a, I64), 20 // I64)
    np.testing.assert_array_equal(mapped(lambda a: 20 % a, I64), 20 % I64)
    np.testing.assert_array_equal(mapped(tir.truncdiv, I64, ones), np.trunc(I64 / ones).astype("int64"))
    np.testing.assert_array_equal(mapped(tir.truncmod, I64, ones), np.fmod(I64, ones))
    np.testing.assert_array_equal(mapped(operator.truediv, F32, F32[::-1].copy() + 4), F32 / (F32[::-1] + 4))
    np.testing.assert_array_equal(mapped(lambda a: 1 / (a + 4), F32), 1 / (F32 + np.float32(4)))


def test_signs():
    np.testing.assert_array_equal(mapped(operator.neg, I64), -I64)
    np.testing.assert_array_equal(np.signbit(mapped(operator.neg, F32)), np.signbit(-F32))
    np.testing.assert_array_equal(mapped(abs, F32), np.abs(F32))
    np.testing.assert_array_equal(mapped(tir.abs, I8), np.abs(I8))


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
def test_logic_of_bools_and_bits_of_integers(function):
    np.testing.assert_array_equal(mapped(function, BOOLS, BOOLS[::-1].copy()), function(BOOLS, BOOLS[::-1]))
    np.testing.assert_array_equal(mapped(function, I8, I8[::-1].copy()), function(I8, I8[::-1]))
    np.testing.assert_array_equal(mapped(lambda a: function(6, a), I8), function(np.int8(6), I8))


def test_shifts_and_inversion():
    np.testing.assert_array_equal(mapped(operator.invert, BOOLS), ~BOOLS)
    np.testing.assert_array_equal(mapped(operator.invert, I8), ~I8)
    np.testing.assert_array_equal(mapped(lambda a: (a << 1) >> 2, I64), (I64 << 1) >> 2)
    np.testing.assert_array_equal(mapped(lambda a, b: tir.all(a, b, ~b), BOOLS, BOOLS), np.zeros(6, bool))
    np.testing.assert_array_equal(mapped(lambda a, b: tir.any(a, b, ~b), BOOLS, BOOLS), np.ones(6, bool))


def test_numbers_of_numpy_are_operands():
    np.testing.assert_array_equal(mapped(lambda a: np.float32(2) * a + np.int64(1), F32), 2 * F32 + 1)


@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "atanh",
        "floor",
        "ceil",
        "trunc",
    ],
)
def test_functions_of_floats(name):
    x = np.array([0.1, 0.25, 0.5, 0.75, 0.9], "float32")
    numpy_name = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "atanh": "arctanh"}
    wanted = getattr(np, numpy_name.get(name, name))(x.astype("float64"))
    # Single precision: a few units in the last place.
    np.testing.assert_allclose(mapped(getattr(tir, name), x), wanted, rtol=1e-6)


def test_more_functions_of_floats():
    x = np.array([1.5, 2.5, 3.0, 4.25], "float32")
    np.testing.assert_allclose(mapped(tir.rsqrt, x), 1 / np.sqrt(x), rtol=1e-6)
    np.testing.assert_allclose(mapped(tir.acosh, x), np.arccosh(x), rtol=1e-6)
    np.testing.assert_allclose(mapped(tir.sigmoid, x), 1 / (1 + np.exp(-x.astype("float64"))), rtol=1e-6)
    np.testing.assert_allclose(mapped(tir.erf, x[:1]), [0.9661051464753108], rtol=1e-6)  # tables of erf(1.5)
    np.testing.assert_allclose(mapped(tir.pow, x, x), x.astype("float64") ** x, rtol=1e-6)
    np.testing.assert_array_equal(mapped(lambda a: tir.power(a, 2), x), x * x)
    np.testing.assert_array_equal(mapped(tir.round, x), [2, 3, 3, 4])
    np.testing.assert_array_equal(mapped(tir.round, -x), [-2, -3, -3, -4])
    np.testing.assert_array_equal(mapped(tir.nearbyint, x), np.rint(x))
    odd = np.array([np.nan, np.inf, 1], "float32")
    np.testing.assert_array_equal(mapped(tir.isnan, odd), np.isnan(odd))
    np.testing.assert_array_equal(mapped(tir.isinf, odd), np.isinf(odd))


def test_choices_and_comparisons():
    y = F32[::-1].copy()
    np.testing.assert_array_equal(mapped(lambda a, b: tir.if_then_else(a < b, a, b), F32, y), np.minimum(F32, y))
    np.testing.assert_array_equal(mapped(lambda a, b: tir.Select(a > b, a, 0), F32, y), np.where(y < F32, F32, 0))
    np.testing.assert_array_equal(mapped(tir.max, F32, y), np.maximum(F32, y))
    np.testing.assert_array_equal(mapped(lambda a: tir.min(a, 1), F32), np.minimum(F32, 1))
    np.testing.assert_array_equal(mapped(lambda a: tir.EQ(a, 1), I64), I64 == 1)
    np.testing.assert_array_equal(mapped(tir.NE, F32, y), y != F32)


def test_casts():
    np.testing.assert_array_equal(mapped(lambda a: a.astype("int32"), F32), F32.astype("int32"))
    np.testing.assert_array_equal(mapped(lambda a: tir.cast(a, np.float32) / 2, I64), (I64 / 2).astype("float32"))
    np.testing.assert_array_equal(mapped(lambda a: tir.reinterpret("int32", a), F32), F32.view("int32"))
    assert (tir.const(3) + 1).dtype == "int64"
    assert tir.exp(2.0).dtype == "float32"


# --- dimensions and equality


def test_constants_fold_and_dimensions_stay_comparable():
    n, m = tir.Var("n"), tir.Var("m")
    assert str(n * m + 1) == "(n * m) + 1"
    assert n + 0 == n
    assert (tir.const(2) * 3, 7 // tir.const(2)) == (6, 3)
    assert n + 1 == n + 1
    assert n + 1 != n + 2
    assert n != 1
    assert {n + 1: "a"}[n + 1] == "a"
    assert [n, m].index(m) == 1
    assert tir.const(2) < 3
    assert not tir.const(3) < tir.const(3)
    typ = hr.relay.TensorType((n * 2, 5 % tir.const(3)))
    assert typ.shape == [n * 2, 2]


def test_what_is_not_known_yet_has_no_truth_value():
    n = tir.Var("n")
    for use in (lambda: bool(n < 3), lambda: max(n, 3), lambda: 0 <= n < 3, lambda: not n):
        with pytest.raises(hr.UserError, match=r"is not known before the program runs: write & \| ~"):
            use()


def test_operands_that_do_not_fit_say_what_to_write():
    n, x, b = tir.Var("n"), tir.placeholder((2,), name="x"), tir.Var("b", "bool")
    for use, message in [
        (lambda: n / 2, r"n / 2: `/` of int64; write a // b"),
        (lambda: 1.5 / n, r"1\.5 beside int64: cast the other operand"),
        (lambda: n * 2.0, r"2\.0 beside int64: cast the other operand, as in x\.astype"),
        (lambda: n + x[0], r"add of n and .*: the dtypes int64 and float32 differ; cast one"),
        (lambda: tir.Var("i", "int8") + 300, "300 is not of int8"),
        (lambda: tir.Var("i", "uint8") - -1, "-1 is not of uint8"),
        (lambda: tir.Var("p", "handle") + 1, "1 beside handle, which is not a number"),
        (lambda: n + x, "a Tensor is not a scalar expression: index it, as in"),
        (lambda: n + "1", "a str is not a scalar expression"),
        (lambda: n + None, "a NoneType is not a scalar expression"),
        (lambda: n * 1j, "a complex is not a scalar expression"),
        (lambda: (n == 1) & b, r"False is not a scalar expression: `==` and `!=` compare programs; write tir\.EQ"),
        (lambda: b + 1, "1 beside a bool"),
        (lambda: tir.if_then_else(n == 1, n, n), r"write tir\.EQ"),
        (lambda: tir.if_then_else(n, n, n), "a condition of int64"),
        (lambda: tir.Select(b, n, x[0]), "a choice between int64 and float32"),
        (lambda: x[0] & x[1], "bitwise_and of float32"),
        (lambda: ~x[0], "bitwise_not of float32"),
        (lambda: tir.all(n < 1, n), "and of bool and int64|and of .*: the dtypes bool and int64 differ"),
        (lambda: tir.all(n, n), "and takes conditions"),
        (lambda: tir.any(), r"tir\.all and tir\.any take one condition or more"),
        (lambda: tir.exp(n), "exp of int64"),
        (lambda: tir.truncdiv(x[0], x[1]), "truncdiv of float32: it is for integers"),
        (lambda: tir.reinterpret("int64", x[0]), "float32 has other bits than int64"),
        (lambda: n.astype("int64x4"), "a cast keeps the number of lanes"),
        (lambda: n.astype("float33"), "float33"),
        (lambda: tir.max(n), r"tir\.max takes two values, or one and axis="),
    ]:
        with pytest.raises(hr.UserError, match=message):
            use()


def test_the_functions_below_check_names_too():
    n = tir.Var("n")
    for name, args, message in [
        ("tir.MakeBinary", ("plus", n, n), "there is no operator 'plus'"),
        ("tir.MakeCall", ("gelu", [n], None), "there is no function 'gelu'"),
        (
            "tir.MakeCall",
            ("reinterpret", [n], None),
            "the arguments of reinterpret do not determine the dtype of its result; give the dtype",
        ),
        ("tir.MakeCall", ("exp", [], "float32"), "exp takes 1 argument, not 0"),
        ("tir.MakeLoad", (tir.placeholder((2,), name="x").buffer, []), "'x' has 1 dimensions, but 0 indices"),
        ("tir.IdentityOf", (0, "float32"), "there is no combiner 0"),
    ]:
        with pytest.raises(hr.UserError, match=message):
            hr.get_global_func(name)(*args)


# --- tensors


def test_matmul_with_an_epilogue_in_a_second_stage():
    a, b = tir.placeholder((4, 6), name="a"), tir.placeholder((6, 5), name="b")
    k = tir.reduce_axis((0, 6), "k")
    product = tir.compute((4, 5), lambda i, j: tir.sum(a[i, k] * b[k, j], axis=k), "product")
    out = tir.compute((4, 5), lambda i, j: tir.max(product[i, j], 0) * 2, "out")
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 6)).astype("float32"), rng.normal(size=(6, 5)).astype("float32")
    f = tir.create_prim_func([a, b, out], "matmul")
    np.testing.assert_allclose(tir.interpret(f, x, y).numpy(), np.maximum(x @ y, 0) * 2, rtol=1e-5, atol=1e-5)
    both = tir.create_prim_func([a, b, product, out])
    first, second = tir.interpret(both, x, y)
    np.testing.assert_allclose(first.numpy(), x @ y, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second.numpy(), np.maximum(x @ y, 0) * 2, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_reductions_over_several_axes(name, dtype):
    x = np.array([[[1, -2, 3], [4, 1, 2]], [[2, 2, -1], [1, 3, 5]]], dtype)
    data = tir.placeholder(x.shape, dtype, "x")
    j, k = tir.reduce_axis((0, 2), "j"), tir.reduce_axis((1, 3), "k")
    reduce = getattr(te, name)
    out = tir.compute((2,), lambda i: reduce(data[i, j, k], [j, k]), "y")
    wanted = getattr(np, name)(x[:, :, 1:], axis=(1, 2))
    np.testing.assert_array_equal(tir.interpret(tir.create_prim_func([data, out]), x).numpy(), wanted)
    again = tir.compute((), lambda: reduce(data[0, 0, k], axis=k), "y")
    wanted = getattr(np, name)(x[0, 0, 1:])
    np.testing.assert_array_equal(tir.interpret(tir.create_prim_func([data, again]), x).numpy(), wanted)


def test_reductions_of_nothing_give_the_neutral_element():
    x = tir.placeholder((2, 0), name="x")
    k = tir.reduce_axis((0, 0))
    out = tir.compute((2,), lambda i: tir.max(x[i, k], axis=k))
    found = tir.interpret(tir.create_prim_func([x, out]), np.zeros((2, 0), "float32")).numpy()
    np.testing.assert_array_equal(found, [-np.inf, -np.inf])


def test_indices_of_any_number_and_dtype():
    data, index = tir.placeholder((5,), "float32", "data"), tir.placeholder((2, 3), "int32", "index")
    out = tir.compute(index.shape, lambda *i: data[index[i]], "y")
    x, at = np.arange(5, dtype="float32") * 10, np.array([[4, 0, 1], [2, 2, 3]], "int32")
    np.testing.assert_array_equal(tir.interpret(tir.create_prim_func([data, index, out]), x, at).numpy(), x[at])
    with pytest.raises(hr.UserError, match="out of bounds"):
        tir.interpret(tir.create_prim_func([data, index, out]), x, at + 1)


def test_shapes_are_symbolic():
    n = tir.Var("n")
    x = tir.placeholder((n,), name="x")
    out = tir.compute((n * 2,), lambda i: x[i // 2], "y")
    f = tir.create_prim_func([x, out])
    for count in (1, 3):
        data = np.arange(count, dtype="float32")
        np.testing.assert_array_equal(tir.interpret(f, data).numpy(), np.repeat(data, 2))


def test_a_tensor_keeps_what_it_reads():
    x = tir.placeholder((3,), name="x")

    def doubled(data):
        half = tir.compute((3,), lambda i: data[i] * 4, "t")
        return tir.compute((3,), lambda i: half[i] / 2, "y")

    out = doubled(x)
    gc.collect()
    f = tir.create_prim_func([x, out])
    np.testing.assert_array_equal(tir.interpret(f, np.ones(3, "float32")).numpy(), [2, 2, 2])


def test_a_tensor_tells_what_it_is():
    x = tir.placeholder((2, 3), "int8", name="x")
    assert (x.name, x.dtype, x.ndim, x.shape) == ("x", "int8", 2, [2, 3])
    assert repr(x) == "Tensor(x, [2, 3], int8)"
    scalar = tir.placeholder((), name="s")
    assert scalar[()].dtype == "float32"
    assert tir.placeholder(4).shape == [4]
    assert repr(tir.reduce_axis((0, 3), "k")) == "IterVar(k, 0, 3)"


def test_mistakes_in_tensors_say_what_to_write():
    x, z = tir.placeholder((2, 3), name="x"), tir.placeholder((2,), name="z")
    k = tir.reduce_axis((0, 3))
    total = tir.compute((2,), lambda i: tir.sum(x[i, k], k), "t")
    half = tir.Var("h", "int32")
    for use, message in [
        (lambda: x[0], "'x' has 2 dimensions, but 1 indices are given"),
        (lambda: x[0, 3], "'x': the index 3 is outside dimension 1, which has 3 elements"),
        (lambda: x[-1, 0], "'x': the index -1 is outside dimension 0"),
        (lambda: x[0, 1:], "'x': a slice is not an index"),
        (lambda: x[0, 1.0], "an index of 'x' is float32"),
        (lambda: list(x), "not iterable"),
        (lambda: tir.placeholder("ab"), "shape: expected dimensions, got 'ab'"),
        (lambda: tir.placeholder((half,)), "shape: the dimension h is int32; dimensions are int64"),
        (lambda: tir.placeholder((-1,)), "shape: -1 is not a dimension here"),
        (lambda: tir.placeholder((tir.Any(),)), r"shape: \? is not a dimension here"),
        (lambda: tir.placeholder((2,), "float33"), "float33"),
        (lambda: tir.reduce_axis(3), r"dom: expected the pair \(begin, end\), got 3"),
        (lambda: tir.compute((2,), 3), "fcompute of 'compute': expected a function of 1 indices, got 3"),
        (lambda: tir.compute((2,), lambda i, j: i, "y"), "fcompute of 'y' takes 2 indices; the shape has 1 dimensions"),
        (lambda: tir.compute((2, 2), lambda i: i, "y"), "fcompute of 'y' takes 1 indices; the shape has 2 dimensions"),
        (lambda: tir.compute((2,), lambda i: z, "y"), "fcompute of 'y' gives no element: a Tensor is not a scalar"),
        (lambda: tir.compute((2,), lambda i: None, "y"), "fcompute of 'y' gives no element: a NoneType"),
        (lambda: tir.sum(x[0, k], k) + 1, "a Reduction is not a scalar expression: .* compute it first"),
        (lambda: 1 / tir.sum(x[0, k], k), "a Reduction is not a scalar expression: .* compute it first"),
        (lambda: tir.exp(tir.sum(x[0, k], k)), "a Reduction is not a scalar expression: .* compute it first"),
        (lambda: tir.sum(x[0, k], 1), "axis: expected what reduce_axis gives, or a list of it, got 1"),
        (lambda: tir.max(x[0, k], axis=[]), "axis: there is no axis to reduce over"),
        (lambda: tir.create_prim_func([total]), "the placeholder 'x' is not one of the inputs"),
        (lambda: tir.create_prim_func([x, total, z]), "args: placeholders stand before the tensors that are computed"),
        (lambda: tir.compute_form([x], [x]), "no stage computes the output 'x'"),
        (lambda: tir.compute_form([x], [total, total]), "the buffer 't' is two outputs"),
        (lambda: tir.compute_form([x], [3]), "outputs: expected Tensors, got 3"),
        (
            lambda: tir.compute_form([z], [tir.compute((2,), lambda i: z[i] + k.astype("float32"))]),
            "the variable 'k' is not in scope",
        ),
    ]:
        with pytest.raises((hr.UserError, TypeError), match=message):
            use()


# --- compute forms and loop functions


def test_a_compute_form_is_a_program_of_nodes():
    x = tir.placeholder((2, 3), name="x")
    k = tir.reduce_axis((0, 3))
    form = tir.compute_form([x], [tir.compute((2,), lambda i: tir.sum(x[i, k], k), "y")])
    assert isinstance(form, tir.Compute)
    (stage,) = form.stages
    assert [axis.name_hint for axis in stage.axes] == ["i"]
    assert (stage.combiner, stage.reduce_extents, stage.output.name) == (1, [3], "y")
    assert ir.structural_equal(ir.load_json(ir.save_json(form)), form)


TEXT = """#[tir_version = "1"]

prim_func @row_sums(x: Buffer[(2, 3), float32]) -> (y: Buffer[(2), float32]) {
  for i in serial(2) {
    y[i] = 0f;
    for k in serial(3) {
      y[i] = y[i] + x[i, k];
    }
  }
}
"""


def test_texts_are_functions_and_functions_texts():
    f = tir.parse(TEXT)
    assert isinstance(f, tir.PrimFunc)
    assert (str(f), repr(f), f.script()) == (TEXT, TEXT, TEXT)
    x = np.array([[1, 2, 3], [4, 5, 6]], "float32")
    np.testing.assert_array_equal(tir.interpret(f, x).numpy(), [6, 15])
    module = tir.parse_module(TEXT)
    assert ir.structural_equal(module["row_sums"], f)
    data = tir.placeholder((2, 3), name="x")
    k = tir.reduce_axis((0, 3))
    made = tir.create_prim_func([data, tir.compute((2,), lambda i: tir.sum(data[i, k], k), "y")], "row_sums")
    assert str(made) == TEXT


def test_loops_are_raised_to_what_they_compute():
    form = tir.raise_compute(tir.parse(TEXT))
    assert [stage.combiner for stage in form.stages] == [1]
    with pytest.raises(hr.UserError, match="the loop over 'i' is parallel"):
        tir.raise_compute(tir.parse(TEXT.replace("i in serial", "i in parallel")))


def test_mistakes_in_texts_and_inputs_are_told():
    with pytest.raises(hr.UserError, match=r"rows\.tir:5:5: .*'z'"):
        tir.parse(TEXT.replace("y[i] = 0f", "z[i] = 0f"), "rows.tir")
    with pytest.raises(hr.UserError, match="a parallel loop stands inside another"):
        tir.parse(TEXT.replace("serial", "parallel"))
    with pytest.raises(hr.UserError, match="expected one function, found 0"):
        tir.parse('#[tir_version = "1"]\n')
    f = tir.parse(TEXT)
    with pytest.raises(hr.UserError, match="takes 1 inputs, got 0"):
        tir.interpret(f)
    with pytest.raises(hr.UserError, match="the input 'x' is float32"):
        tir.interpret(f, np.zeros((2, 3)))


def test_te_names_the_same_functions():
    assert te.compute is tir.compute
    assert te.sum is tir.sum
    assert all(getattr(te, name) is getattr(tir, name) for name in te.__all__)


# --- classes of operators

KINDS = ["Add", "Sub", "Mul", "Div", "Mod", "FloorDiv", "FloorMod", "Min", "Max", "And", "Or"]
KINDS += ["EQ", "NE", "LT", "LE", "GT", "GE"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_operator_has_a_class(kind):
    a, b = tir.Var("a", "bool"), tir.Var("b", "bool")
    if kind not in ("And", "Or"):
        a, b = tir.Var("a"), tir.Var("b")
    made = getattr(tir, kind)(a, b)
    assert type(made) is tir.Binary
    assert made.a.same_as(a) and made.b.same_as(b)
    assert [other for other in KINDS if isinstance(made, getattr(tir, other))] == [kind]
    assert not isinstance(a, getattr(tir, kind))
    assert not isinstance(3, getattr(tir, kind))


def test_operators_of_python_have_the_classes():
    n, x, p = tir.Var("n"), tir.Var("x", "float32"), tir.Var("p", "bool")
    exprs = [n + 1, n - 1, n * 2, x / 2.0, tir.truncdiv(n, 2), n // 2, n % 2, tir.truncmod(n, 2), tir.min(n, 2)]
    kinds = [tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Div, tir.FloorDiv, tir.FloorMod, tir.Mod, tir.Min]
    exprs += [tir.max(n, 2), n < 2, n <= 2, n > 2, n >= 2, p & (n > 1), p | (n > 1), ~p]
    kinds += [tir.Max, tir.LT, tir.LE, tir.GT, tir.GE, tir.And, tir.Or, tir.Not]
    assert [isinstance(expr, kind) for expr, kind in zip(exprs, kinds, strict=True)] == [True] * len(exprs)
    assert tir.Add(n, 1) == n + 1
    assert tir.Add(2, 3) == 5
    assert tir.Not(p) == ~p
    with pytest.raises(hr.UserError, match=r"1\.5 beside int64"):
        tir.Add(n, 1.5)


def test_what_numpy_says_of_operators_by_their_classes():
    y = I64[::-1].copy()
    for kind, function in (
        (tir.Add, np.add),
        (tir.FloorDiv, np.floor_divide),
        (tir.Max, np.maximum),
        (tir.NE, np.not_equal),
    ):
        np.testing.assert_array_equal(mapped(kind, I64, y), function(I64, y))
    np.testing.assert_array_equal(mapped(tir.Div, I64, y), np.trunc(I64 / y).astype("int64"))
    np.testing.assert_array_equal(mapped(lambda a: tir.Not(tir.GT(a, 1)), I64), I64 <= 1)
