"""Tests operands beside an expression: numbers, arrays, and objects that are neither."""

import functools
import math
import re

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402
from headrace.relay._op_call import OpSchema  # noqa: E402


def var(dtype, shape=(2,)):
    return relay.var("x", shape=shape, dtype=dtype)


def constant(call):
    """The dtype and the elements of the one constant among the operands."""
    call = call.astuple() if isinstance(call, relay.TupleWrapper) else call
    (found,) = [arg for arg in call.args if isinstance(arg, relay.Constant)]
    return found.data.dtype, found.data.numpy().tolist()


# --- numbers that a dtype does not hold


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: var("int32") * 0.5,
            r"multiply: rhs: 0\.5 beside int32: cast the other operand, as in x\.astype\('float",
        ),
        (lambda: 0.5 - var("int32"), r"subtract: lhs: 0\.5 beside int32: cast the other operand"),
        (lambda: var("int32") < np.float32(0.5), r"less: rhs: 0\.5 beside int32: cast the other operand"),
        (lambda: var("int32") + math.nan, r"add: rhs: nan beside int32: cast .* x\.astype\('float32'\)"),
        (lambda: var("int32") + math.inf, r"add: rhs: inf beside int32"),
        (lambda: var("int32") + 2**40, r"add: rhs: 1099511627776 beside int32: cast .* x\.astype\('int64'\)"),
        (
            lambda: var("int64") + 2**70,
            r"add: rhs: 1180591620717411303424 beside int64: cast .* x\.astype\('float32'\)",
        ),
        (
            lambda: var("float32") + 10**400,
            r"add: rhs: 10+ beside float32: cast the other operand to a dtype that holds",
        ),
        (lambda: var("uint8") + 300, r"add: rhs: 300 beside uint8: cast .* x\.astype\('int32'\)"),
        (lambda: var("uint8") * -1, r"multiply: rhs: -1 beside uint8"),
        (lambda: var("bool") + 2, r"add: rhs: 2 beside bool"),
        (lambda: var("float16") + 1e9, r"add: rhs: 1000000000\.0 beside float16: cast .* x\.astype\('float32'\)"),
        (lambda: var("float16") + 70000, r"add: rhs: 70000 beside float16: cast .* x\.astype\('float32'\)"),
        (lambda: var("bfloat16") + 10**39, r"add: rhs: 10+ beside bfloat16: cast .* x\.astype\('float64'\)"),
        (lambda: var("bfloat16") + 1e39, r"add: rhs: 1e\+39 beside bfloat16: cast .* x\.astype\('float64'\)"),
        (lambda: relay.power(var("int32"), 0.5), r"power: rhs: 0\.5 beside int32: cast the other operand"),
        (lambda: relay.maximum(0.5, var("int32")), r"maximum: lhs: 0\.5 beside int32: cast the other operand"),
        (lambda: relay.nn.pad(var("uint8"), ((1, 1),), 256), r"nn\.pad: pad_value: 256 beside uint8"),
        (lambda: relay.full_like(var("int32"), 0.5), r"full_like: fill_value: 0\.5 beside int32"),
        (
            lambda: relay.full(0.5, (2,), "int32"),
            r"full: fill_value: 0\.5 is not of int32; give a number that int32 holds",
        ),
        (lambda: relay.full(np.array(0.5), (2,), "int32"), r"full: fill_value: 0\.5 is not of int32"),
        (lambda: relay.full(0.5, (2,), np.int32), r"full: fill_value: 0\.5 is not of int32"),
        (lambda: relay.arange(0, 4, 0.5, "int32"), r"arange: step: 0\.5 is not of int32"),
        (lambda: relay.take(var("float32"), 1.5), r"take: indices: 1\.5 is not of int64"),
        (lambda: relay.where(2, var("float32"), 1), r"where: condition: 2 is not of bool"),
        (lambda: relay.one_hot(var("int32"), 0.5, 0, 3, dtype="int32"), r"one_hot: on_value: 0\.5 is not of int32"),
        (lambda: relay.full(1, (2,), "decimal"), r"full: fill_value: data type 'decimal' not understood"),
        (
            lambda: relay.random.uniform(relay.random.threefry_key(0), (2,), "float16", 0, 1e9),
            r"random\.uniform: high: 1000000000\.0 is not of float16",
        ),
    ],
)
def test_a_number_that_a_dtype_does_not_hold_is_refused(make, told):
    with pytest.raises(hr.UserError, match=told):
        make()


@pytest.mark.parametrize(
    ("dtype", "number", "kept"),
    [
        ("int32", 2.0, 2),
        ("int32", True, 1),
        ("int32", -(2**31), -(2**31)),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("bool", 1, True),
        ("float16", 65519, 65504),
        ("float16", 1e-9, 0),
        ("float16", math.inf, math.inf),
        ("bfloat16", 1.001, 1),
        ("float32", 2**24 + 1, 2**24),
        ("float64", 0.1, 0.1),
    ],
)
def test_a_number_that_a_dtype_holds_or_rounds_is_taken(dtype, number, kept):
    for call in (var(dtype) + number, number + var(dtype), relay.add(var(dtype), number)):
        assert constant(call) == (dtype, kept)


def test_fractions_are_cut_for_a_constant_of_integers():
    assert relay.const(0.5, "int32").data.numpy() == 0
    assert relay.const(255.5, "uint8").data.numpy() == 255


def test_numbers_alone_are_of_one_dtype():
    condition = var("bool")
    assert [arg.data.dtype for arg in relay.where(condition, 1, 0.5).args[1:]] == ["float32", "float32"]
    assert [arg.data.dtype for arg in relay.where(condition, 1, 0).args[1:]] == ["int32", "int32"]
    assert [arg.data.dtype for arg in relay.add(np.ones(2), 1).args] == ["float32", "float32"]


def test_where_chooses_a_number():
    condition, x = relay.var("c", shape=(2,), dtype="bool"), var("float32")
    run = relay.create_executor().evaluate(relay.Function([condition, x], relay.where(condition, x, 0.5)))
    assert run(np.array([True, False]), np.array([3, 4], "float32")).numpy().tolist() == [3, 0.5]


# --- ops whose operands are of several dtypes

# The dtype that the tests pass, and the dtype that they expect, for each name of an operand's dtype in the registry. T
# and f stand for one dtype within an op.
_GIVEN = {"T": "float64", "f": "float64", "float32": "float64", "int": "int8", "dtype": "float32", "": "float64"}
_WANTED = {"T": "float64", "f": "float64", "int": "int64", "dtype": "float32"}
_ATTRS = {"gather": {"axis": 0}, "image.crop_and_resize": {"crop_size": (2, 2)}, "one_hot": {"depth": 3}}
# A number alone of its dtype is as relay.const makes it; otherwise it goes by what it is cast to, or lies beside.
_OTHERS = {
    **{(op, "data"): "int32" for op in ("gather", "gather_nd", "take", "trilu", "reverse_sequence", "cast_like")},
    ("cast_like", "dtype_like"): "int32",
    ("qnn.requantize", "data"): "int32",
    ("random.multinomial", "probs"): "int32",
    ("sequence_mask", "data"): "int32",
    ("sequence_mask", "valid_length"): "int64",
    ("vision.all_class_non_max_suppression", "max_output_boxes_per_class"): "int32",
    ("vision.all_class_non_max_suppression", "iou_threshold"): "float32",
    ("vision.all_class_non_max_suppression", "score_threshold"): "float32",
    ("vision.non_max_suppression", "data"): "int32",
    ("vision.non_max_suppression", "max_output_size"): "int32",
    ("vision.non_max_suppression", "iou_threshold"): "float32",
}


def mixed_ops():
    """By op, the dtypes of its operands as the registry says them, where they are several or integers."""
    found = {}
    for name in hr.get_global_func("ir.OpNames")():
        row = hr.get_global_func("ir.DescribeOp")(name)
        attrs = [field["name"] for field in OpSchema(name).attrs.values()]
        kinds = {
            str(operand): re.match(r"\w*", str(doc)).group()
            for operand, kind, doc in row["arguments"]
            if str(kind) == "Tensor" and operand not in attrs
        }
        if len(set(kinds.values())) > 1 or (len(kinds) > 1 and "int" in kinds.values()):
            found[str(name)] = kinds
    return found


_MIXED = mixed_ops()


def test_the_ops_of_several_dtypes_are_found():
    assert {"where", "take", "scatter_nd", "vision.non_max_suppression", "strided_set"} <= _MIXED.keys()


# Parts of sparse tensors, packed bits, signals and recurrent layers have several elements: a number is none of them.
_NO_NUMBERS = re.compile(
    r"random\.(normal|uniform)|(nn\.)?sparse_\w+|nn\.bitserial_\w+|stft|nn\.(lstm|gru|rnn|recurrent_steps)|"
    r"qnn\.concatenate"
)


@pytest.mark.parametrize("op", [name for name in _MIXED if not _NO_NUMBERS.fullmatch(name)])
def test_a_number_takes_the_dtype_of_its_operand(op):
    function = functools.reduce(getattr, op.split("."), relay)
    for name, kind in _MIXED[op].items():
        others = {
            other: relay.var(other, shape=(2,), dtype=_GIVEN.get(what, what))
            for other, what in _MIXED[op].items()
            if other != name
        }
        wanted = _OTHERS.get((op, name), _WANTED.get(kind, kind) or "float64")
        assert constant(function(**others, **{name: 1}, **_ATTRS.get(op, {}))) == (wanted, 1), name


# --- arrays, and what is not an operand


@pytest.mark.parametrize("kind", [np.array, hr.nd.array])
def test_an_array_beside_an_expression_is_a_constant(kind):
    x, ones = var("float32"), kind(np.array([1, 2], "float32"))
    for call, op in [(ones * x, "multiply"), (x * ones, "multiply"), (ones - x, "subtract"), (ones < x, "greater")]:
        assert isinstance(call, relay.Call)
        assert call.op.name == op
        assert constant(call) == ("float32", [1, 2])
    assert (ones - x).args[1].same_as(x)
    assert constant(relay.add(x, ones)) == ("float32", [1, 2])


def test_an_array_keeps_the_dtype_that_both_have():
    assert constant(var("float64") + np.ones(2)) == ("float64", [1, 1])
    assert constant(relay.add(np.ones(2), var("float64"))) == ("float64", [1, 1])
    assert constant(var("float32") + np.ones(2)) == ("float32", [1, 1])
    assert constant(relay.add(var("int32"), [1, 2])) == ("int32", [1, 2])
    assert constant(np.float64(2) * var("float32")) == ("float32", 2)


def test_a_constant_does_not_share_the_array():
    ones = np.ones(2, "float32")
    call = var("float32") + ones
    ones[0] = 5
    assert constant(call) == ("float32", [1, 1])


@pytest.mark.parametrize(
    ("value", "got"), [(None, "None"), ("a", "str"), (1j, "complex"), (relay.TensorType((2,)), "TensorType")]
)
def test_what_is_no_operand_is_told(value, got):
    x = var("float32")
    for make, op in [(lambda: x + value, "add: rhs"), (lambda: value * x, "multiply: lhs")]:
        with pytest.raises(hr.UserError, match=f"{op}: expected an expression, got {got}"):
            make()


def test_a_number_beside_what_has_no_dtype_yet_is_told():
    with pytest.raises(hr.UserError, match=r"the dtype of 1 is not known, .* write relay\.const\(1, dtype\)"):
        relay.exp(var("float32")) + 1
