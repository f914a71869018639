"""Nodes by reflection: attributes, constructors, equality, containers, pickles, JSON."""

import gc
import operator
import pickle
import re
import threading
import weakref

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay, tir  # noqa: E402
from size_kit import IS_FEW  # noqa: E402


def test_attributes_are_the_fields_of_the_node():
    x = relay.var("x", shape=(1, 3), dtype="float16")
    assert x.name_hint == "x"
    assert x.type_annotation.dtype == "float16"
    assert x.type_annotation.shape == [1, 3]
    assert [int(dim) for dim in x.type_annotation.shape] == [1, 3]
    assert {"name_hint", "type_annotation", "span", "checked_type_"} <= set(dir(x))
    assert ir.node_fields(relay.Let) == ["span", "checked_type_", "var", "value", "body"]


def test_every_registered_type_has_a_class_with_its_fields():
    from headrace import _core, _node

    for row in _core.type_table():
        cls = _node.class_of(row["key"])
        assert issubclass(cls, hr.Object)
        for field in _core.type_fields(row["index"]):
            assert isinstance(getattr(cls, field["name"]), property), (row["key"], field["name"])
        assert cls.__doc__


def test_constructors_take_fields_by_keyword_and_in_relays_order():
    x = relay.Var("x", relay.TensorType((2,), "int32"))
    y = relay.Var(name_hint="y")
    assert y.type_annotation is None
    let = relay.Let(x, relay.const(1), y)
    assert let.var.same_as(x)
    assert let.variable.same_as(x)
    call = relay.Call(relay.op.get("add"), [x, y])
    assert call.attrs is None
    assert len(call.args) == 2
    f = relay.Function([x, y], call)
    assert f.params == [x, y]
    assert relay.TensorType((1, 2)).dtype == "float32"
    assert ir.make_node("relay.Var", name_hint="z").name_hint == "z"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda: relay.var("x").nonsense,
            AttributeError,
            "relay.Var has no attribute 'nonsense'; its fields: .*name_hint",
        ),
        (lambda: setattr(relay.var("x"), "name_hint", "y"), AttributeError, "relay.Var cannot be changed"),
        (lambda: relay.Var(), hr.UserError, "relay.Var needs its field 'name_hint'|name_hint"),
        (lambda: relay.Var(3), hr.UserError, "field 'name_hint' of relay.Var: expected str, got int"),
        (lambda: relay.Var("x", nam=1), hr.UserError, "relay.Var has no field 'nam'"),
        (lambda: relay.Var("x", None, None, 4), hr.UserError, "relay.Var takes 3 arguments"),
        (lambda: relay.Var("x", name_hint="y"), hr.UserError, "argument 'name_hint' is given twice"),
        (
            lambda: relay.Let(relay.var("x"), var=relay.var("y")),
            hr.UserError,
            "relay.Let: argument 'var' is given twice",
        ),
        (lambda: relay.Let(relay.const(1), relay.const(1), relay.const(1)), hr.UserError, "field 'var' of relay.Let"),
        (lambda: relay.Tuple([1]), hr.UserError, "field 'fields' of relay.Tuple: expected Array"),
        (lambda: relay.Expr(), hr.UserError, "relay.Expr cannot be made from its fields"),
        (lambda: ir.make_node("relay.Nonsense"), hr.UserError, "there is no type 'relay.Nonsense'"),
        (lambda: relay.TensorType((1,), "float33"), hr.UserError, "float33"),
    ],
)
def test_errors_name_the_field(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_equality_is_identity_for_expressions_and_structure_for_types():
    x = relay.var("x", shape=(2,))
    call = relay.add(x, x)
    assert call.args[0] == x
    assert call.args[0].same_as(x)
    assert call.args[0] is not x
    assert hash(call.args[0]) == hash(x)
    assert relay.var("x", shape=(2,)) != x
    assert {x: 1}[call.args[1]] == 1
    assert relay.TensorType((2,)) == x.type_annotation
    assert relay.TensorType((3,)) != x.type_annotation
    assert hash(relay.TensorType((2,))) == hash(x.type_annotation)
    assert x != 3
    assert x != None  # noqa: E711


def test_isinstance_follows_the_type_table():
    f = relay.Function([], relay.const(1.0))
    assert isinstance(f, relay.Function)
    assert isinstance(f, ir.BaseFunc)
    assert isinstance(f, relay.Expr)
    assert isinstance(f.body, relay.Constant)
    assert not isinstance(f.body, relay.Var)


def test_arrays_are_sequences():
    array = hr.convert([1, 2.5, "text", [3, [4]]])
    assert isinstance(array, hr.Array)
    assert len(array) == 4
    assert array == [1, 2.5, "text", [3, [4]]]
    assert array[-1][1][0] == 4
    assert array[1:3] == [2.5, "text"]
    assert "text" in array
    assert operator.add(array, [5])[-1] == 5
    with pytest.raises(IndexError, match="4 items"):
        array[4]
    assert hr.Array(range(3)) == (0, 1, 2)
    assert array.index(2.5) == 1


def test_maps_are_mappings_in_order():
    x = relay.var("x")
    mapping = hr.convert({"b": 1, "a": {"inner": [1, 2]}, 3: x, x: "node"})
    assert isinstance(mapping, hr.Map)
    assert list(mapping)[:2] == ["b", "a"]
    assert mapping["a"]["inner"] == [1, 2]
    assert mapping[3].same_as(x)
    assert mapping[x] == "node"
    assert "c" not in mapping
    assert mapping.get("c", 7) == 7
    with pytest.raises(KeyError):
        mapping["c"]
    assert dict(hr.convert({"k": 1}).items()) == {"k": 1}
    assert hr.convert({"k": 1}) == {"k": 1}


def nested(depth, wrap):
    result = hr.Array([0])
    for _ in range(depth):
        result = wrap(result)
    return result


# Python's own calls nest a thousand deep.
@pytest.mark.parametrize(
    ("depth", "wrap", "text"),
    [
        (10_000 if IS_FEW else 100_000, lambda inner: hr.Array([1, inner]), ("[1, ", "]")),
        (10_000, lambda inner: hr.Map({"k": inner}), ("{'k': ", "}")),
        (10_000, lambda inner: hr.Array([hr.Map({"k": inner})]), ("[{'k': ", "}]")),
    ],
)
def test_containers_nest_to_any_depth(depth, wrap, text):
    a, b = nested(depth, wrap), nested(depth, wrap)
    assert a == b
    assert hash(a) == hash(b)
    assert repr(a) == text[0] * depth + "[0]" + text[1] * depth
    assert a != nested(depth - 1, wrap)
    assert a != [a]


def test_equal_containers_have_one_hash():
    array = hr.convert([1, "a", [2, 3], []])
    assert hash(hr.Array((1, 2))) == hash((1, 2))
    assert hash(array) == hash(hr.convert([1, "a", [2, 3], []]))
    assert array != hr.convert([1, "a", [2, 4], []])
    assert array in {array: 1}
    one, other = hr.convert({"a": [1], "b": 2}), hr.convert({"b": 2, "a": [1]})
    assert one == other
    assert hash(one) == hash(other)
    assert one != hr.convert({"a": [1], "c": 2})
    assert one != [1, 2]
    assert [array] == hr.Array([array])
    assert repr(hr.convert([1, {"a": ["b", None]}, {}, []])) == "[1, {'a': ['b', None]}, {}, []]"


def test_nesting_converts_both_ways():
    echo = hr.convert(lambda value: value)
    x = relay.var("x")
    deep = [{"a": [1, None, True, "t", b"\x00\xff", {"b": [x, 2.5]}]}, []]
    back = echo(deep)
    assert back[0]["a"][:5] == [1, None, True, "t", b"\x00\xff"]
    assert back[0]["a"][2] is True
    assert back[0]["a"][5]["b"][0].same_as(x)
    assert back == deep
    assert echo(np.float32(0.5)) == 0.5
    assert echo(np.int64(7)) == 7
    with pytest.raises(hr.UserError, match="64 bits"):
        echo(1 << 70)
    own = []
    own.append(own)
    with pytest.raises(hr.UserError, match="nest deeper than 200"):
        echo(own)
    with pytest.raises(TypeError, match="set cannot be passed"):
        echo({1, 2})


def test_json_and_pickle_round_trip():
    x = relay.var("x", shape=(2, 2))
    f = relay.Function([x], relay.nn.relu(relay.add(x, relay.const(np.ones((2, 2), "float32")))))
    for back in (ir.load_json(ir.save_json(f)), pickle.loads(pickle.dumps(f))):
        assert isinstance(back, relay.Function)
        ir.assert_structural_equal(f, back)
    assert pickle.loads(pickle.dumps(hr.convert([1, {"a": 2}]))) == [1, {"a": 2}]
    assert "checked_type" not in ir.save_json(relay.transform.InferType()(hr.IRModule.from_expr(f)))
    with pytest.raises(hr.UserError, match=r"<json>"):
        ir.load_json("nonsense")


def test_tensors_pickle():
    array = hr.nd.array(np.arange(6, dtype="int16").reshape(2, 3))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array)).numpy(), array.numpy())


def test_structural_equality_tells_where_programs_differ():
    def make(n):
        x = relay.var("x", shape=(2,))
        return relay.Function([x], relay.add(x, relay.const(n)))

    assert ir.structural_equal(make(1.0), make(1.0))
    assert ir.structural_hash(make(1.0)) == ir.structural_hash(make(1.0))
    assert not ir.structural_equal(make(1.0), make(2.0))
    with pytest.raises(hr.UserError, match=r"body\.args\[1\]"):
        ir.assert_structural_equal(make(1.0), make(2.0))
    assert ir.get_first_structural_mismatch(make(1.0), make(1.0)) is None
    x, y = relay.var("x"), relay.var("y")
    assert not ir.structural_equal(x, y)
    assert ir.structural_equal(x, y, map_free_vars=True)


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        (np.zeros((2, 3)), np.eye(2, 3), "element [0, 0] is 0 against 1"),
        (np.array([1, 2], "int8"), np.array([1, -2], "int8"), "element [1] is 2 against -2"),
        (np.float32(0.5), np.float32(0.25), "element [] is 0.5 against 0.25"),
        (np.zeros((2, 3)), np.zeros((3, 2)), "shape (2, 3) against (3, 2)"),
        (np.zeros(2, "int32"), np.zeros(2, "float32"), "dtype int32 against float32"),
    ],
)
def test_how_two_constants_differ(left, right, says):
    left, right = (relay.Tuple([relay.const(value)]) for value in (left, right))
    with pytest.raises(hr.UserError, match=re.escape(f"values differ at .fields[0].data: values differ: {says}\n")):
        ir.assert_structural_equal(left, right)
    assert ir.get_first_structural_mismatch(left, right)["reason"] == f"values differ: {says}"


def test_elements_of_constants_are_read_only():
    constant = relay.const(np.zeros(3, "float32"))
    with pytest.raises(hr.UserError, match="this tensor is for reading only, as those of constants"):
        constant.data[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        constant.data.numpy()[:] = 1
    with pytest.raises(hr.UserError, match="read-only"):
        constant.data.copyfrom(np.ones(3, "float32"))
    assert not constant.data.numpy().any()
    changed = hr.nd.array(constant.data)
    changed[0] = 1
    assert relay.Constant(changed).data[0] == 1


@pytest.mark.parametrize(
    "make",
    [
        relay.const,
        relay.Constant,
        lambda a: relay.const(hr.nd.from_dlpack(a)),
        lambda a: relay.const(0.0).copy_with(data=a),
        lambda a: relay.ConstantWithFields(relay.const(a + 1), a),
        lambda a: relay.add(relay.const(0.0), a).args[1],
        lambda a: parsed(a),
        lambda a: parsed(hr.nd.from_dlpack(a)),
        lambda a: relay.bind_params_by_name(identity(), {"x": hr.nd.from_dlpack(a)}).body,
    ],
)
def test_a_constant_is_not_the_callers_memory(make):
    given = np.ones(3, "float32")
    constant = make(given)
    given[:] = 5
    assert constant.data.numpy().tolist() == [1, 1, 1]


def identity():
    x = relay.var("x", shape=(3,))
    return relay.Function([x], x)


def parsed(tensor):
    text = '#[version = "0.0.5"]\ndef @main() { meta[relay.Constant][0] }'
    return relay.parse(text, init_meta_table={"relay.Constant": [tensor]})["main"].body


def test_a_constant_that_is_given_is_shared_not_copied():
    constant = relay.const(np.ones(3, "float32"))
    for other in (parsed(constant), relay.Constant(constant.data)):
        assert np.shares_memory(other.data.numpy(), constant.data.numpy())


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_bound_values_are_not_the_callers_memory(kind):
    x, given = relay.var("x", shape=(3,)), np.ones(3, "float32")
    executor = relay.create_executor(kind, hr.IRModule.from_expr(identity()), params={"x": given})
    calls = [
        relay.create_executor(kind).evaluate(relay.Function([x], x + x), binds={x: given}),
        relay.create_executor(kind).evaluate(relay.Function([x], x + x), binds={x: hr.nd.from_dlpack(given)}),
    ]
    given[:] = 5
    assert [call().numpy().tolist() for call in calls] == [[2, 2, 2], [2, 2, 2]]
    assert executor.evaluate()().numpy().tolist() == [1, 1, 1]


def test_the_hash_of_a_constant_follows_its_elements():
    elements = np.zeros((2, 2), "float32")
    shared = relay.Constant(hr.nd.from_dlpack(elements))
    other = relay.const(np.zeros((2, 2), "float32"))
    x = relay.var("x", shape=(2, 2))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.add(x, shared), relay.add(x, other)])))
    assert ir.structural_hash(shared) == ir.structural_hash(other)
    assert relay.transform.EliminateCommonSubexpr()(mod)["main"].body.fields[0].args[1].data[0, 0] == 0
    elements[0, 0] = 1
    fresh = relay.const(elements)
    assert ir.structural_equal(shared, fresh) and not ir.structural_equal(shared, other)
    assert ir.structural_hash(shared) == ir.structural_hash(fresh) != ir.structural_hash(other)
    first, second = relay.create_executor().evaluate(mod["main"])(np.zeros((2, 2), "float32"))
    assert (first.numpy().sum(), second.numpy().sum()) == (1, 0)
    merged = relay.transform.EliminateCommonSubexpr()(mod)["main"].body.fields
    assert not merged[0].same_as(merged[1])
    ir.assert_structural_equal(relay.parse(mod.astext()), relay.transform.InferType()(mod))


def test_a_constant_that_was_written_to_after_its_type_was_inferred():
    stop = np.array(5, "int64")
    bounds = (relay.const(0, "int64"), relay.Constant(hr.nd.from_dlpack(stop)), relay.const(1, "int64"))
    steps = relay.arange(*bounds, dtype="int64")
    x = relay.var("x", shape=(5,), dtype="int64")
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.Function([x], relay.add(x, steps))))
    stop[...] = 9
    with pytest.raises(hr.UserError, match=r"a constant was written to after its type was inferred; copy an array"):
        relay.transform.FoldConstant()(mod)


def test_copy_with_changes_one_field():
    x = relay.var("x", shape=(2,))
    y = x.copy_with(name_hint="y")
    assert (x.name_hint, y.name_hint) == ("x", "y")
    assert y.type_annotation.same_as(x.type_annotation)


def test_dimensions_are_symbols_and_compute():
    n = tir.Var("n")
    typ = relay.TensorType((n, n + 1, 3))
    assert typ.shape[0].same_as(n)
    assert str(typ.shape[1]) == "n + 1"
    assert typ.shape[2] == 3
    assert typ.shape[0] != 3
    with pytest.raises(hr.UserError, match="is not an integer"):
        int(n)
    with pytest.raises(hr.UserError, match="dtypes int64 and int32 differ"):
        n + tir.Var("m", "int32")


def test_weak_references():
    x = relay.var("x")
    ref = weakref.ref(x)
    assert ref() is x
    del x
    gc.collect()
    assert ref() is None


def test_objects_are_shared_between_threads():
    x = relay.var("x")
    chain = x
    for _ in range(1000):
        chain = relay.nn.relu(chain)
    found = []

    def count():
        found.append(len(relay.analysis.free_vars(chain)))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 4


def test_register_object_gives_nodes_a_class_of_the_users():
    from headrace import _node

    before = _node.class_of("ir.Span")
    try:

        @hr.register_object("ir.Span")
        class MySpan(before):
            def where(self):
                return f"{self.source_name}:{self.line}"

        made = ir.make_node("ir.Span", source_name="a", line=1, column=2, end_line=1, end_column=3)
        assert isinstance(made, MySpan)
        assert made.where() == "a:1"
    finally:
        _node.set_class("ir.Span", before)
    with pytest.raises(hr.UserError, match=r"there is no type 'my\.Type'"):
        hr.register_object("my.Type")(type("Mine", (hr.Object,), {}))
