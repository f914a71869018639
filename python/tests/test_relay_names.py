"""Names of Relay's that programs use, each with what it does there."""

import json
import pickle

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay, tir  # noqa: E402
from headrace.relay.testing import run_infer_type  # noqa: E402


def evaluated(body, **values):
    params = relay.analysis.free_vars(body)
    run = relay.create_executor().evaluate(relay.Function(params, body))
    return run(*[values[param.name_hint] for param in params]).numpy()


# --- errors


@pytest.mark.parametrize(
    "make",
    [
        lambda: relay.parse('#[version = "0.0.5"]\ndef @main( {'),
        lambda: relay.parse_expr("add(1f, "),
        lambda: relay.transform.InferType()(
            relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { add(%x, 1) }')
        ),
        lambda: run_infer_type(relay.nn.dense(relay.var("x", shape=(2, 3)), relay.var("y", shape=(4, 5)))),
        lambda: run_infer_type(relay.exp(relay.var("i", dtype="int32", shape=()))),
    ],
)
def test_faults_of_programs_are_diagnostic_errors(make):
    with pytest.raises(hr.error.DiagnosticError) as told:
        make()
    assert isinstance(told.value, hr.UserError)
    assert isinstance(told.value, hr.error.TVMError)
    assert told.value.place


def test_other_faults_are_no_diagnostic_errors():
    for make in (lambda: relay.const("x"), lambda: hr.get_global_func("names.none")):
        with pytest.raises(hr.UserError) as told:
            make()
        assert not isinstance(told.value, hr.error.DiagnosticError)
    assert (hr.DiagnosticError, hr.DiagnosticError.__module__) == (hr.error.DiagnosticError, "headrace")


# --- gradients


@pytest.mark.parametrize("mode", ["higher_order", "first_order"])
def test_the_gradient_of_a_function(mode):
    x, y = relay.var("x", shape=(3,)), relay.var("y", shape=(3,))
    backward = run_infer_type(relay.transform.gradient(run_infer_type(relay.Function([x, y], x * x * y)), mode=mode))
    kind = relay.TensorType((3,))
    assert backward.checked_type == relay.FuncType([kind, kind], relay.TupleType([kind, relay.TupleType([kind, kind])]))
    values = np.array([1, 2, 3], "float32"), np.array([4, 5, 6], "float32")
    value, (by_x, by_y) = relay.create_executor().evaluate(backward)(*values)
    np.testing.assert_allclose(value.numpy(), values[0] ** 2 * values[1])
    np.testing.assert_allclose(by_x.numpy(), 2 * values[0] * values[1])
    np.testing.assert_allclose(by_y.numpy(), values[0] ** 2)


def test_the_gradient_of_a_function_of_a_module():
    x = relay.var("x", shape=())
    mod = hr.IRModule({"square": relay.Function([x], x * x)})
    y = relay.var("y", shape=())
    mod["main"] = relay.Function([y], mod.get_global_var("square")(y) * relay.const(3.0))
    before = hr.ir.save_json(mod)
    backward = relay.transform.gradient(mod.get_global_var("main"), mod)
    value, (by_y,) = relay.create_executor().evaluate(backward)(np.float32(2))
    assert (float(value.numpy()), float(by_y.numpy())) == (12, 12)
    assert hr.ir.save_json(mod) == before
    with pytest.raises(hr.UserError, match="mode is 'second'; it is first_order or higher_order"):
        relay.transform.gradient(mod["main"], mod, "second")


# --- functions of ops


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims):
    data = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    expected = np.log(np.sum(np.exp(data.astype("float64")), axis=axis, keepdims=keepdims))
    found = evaluated(relay.logsumexp(relay.var("x", shape=data.shape), axis, keepdims), x=data)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    large = np.array([1000, 1000], "float32")
    np.testing.assert_allclose(evaluated(relay.logsumexp(relay.var("x", shape=(2,))), x=large), 1000 + np.log(2))


def test_reverse_reshape():
    x = relay.var("x", shape=(8, 3))
    for newshape, shape in (((-1, 3), (8, 3)), ((-1, 0), (8, 3)), ((7, -3), None)):
        call = relay.reverse_reshape(x, newshape)
        assert call.op.name == "contrib_reverse_reshape"
        if shape is None:
            with pytest.raises(hr.error.DiagnosticError, match="cannot be reshaped"):
                run_infer_type(call)
        else:
            assert run_infer_type(call).checked_type.shape == shape
    y = relay.var("y", shape=(2, 3, 4))
    assert run_infer_type(relay.reverse_reshape(y, newshape=(0, -3))).checked_type.shape == (2, 12)
    assert relay.op.reverse_reshape is relay.reverse_reshape


@pytest.mark.parametrize(
    ("newshape", "shape"),
    [((6, 4), (6, 4)), ([-1], (24,)), (-1, (24,)), ((0, -1), (2, 12)), (relay.const([4, 6], "int64"), (4, 6))],
)
def test_reshape_by_its_keywords(newshape, shape):
    call = run_infer_type(relay.reshape(relay.var("x", shape=(2, 3, 4)), newshape=newshape, allowzero=False))
    assert call.checked_type.shape == shape
    none = relay.reshape(relay.var("x", shape=(0, 3)), newshape=(3, 0), allowzero=True)
    assert run_infer_type(none).checked_type.shape == (3, 0)


@pytest.mark.parametrize(
    ("data", "like", "parts", "shape"),
    [
        ((1, 2, 3, 4), (6, 4), {"lhs_begin": 0, "lhs_end": None, "rhs_begin": 0, "rhs_end": None}, (6, 4)),
        ((1, 2, 3, 4), (1, 6, 5), {"lhs_begin": 1, "lhs_end": 3, "rhs_begin": 1, "rhs_end": 2}, (1, 6, 4)),
        ((30, 20), (5, 6, 9), {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2}, (5, 6, 20)),
        ((7, 30, 20), (5, 6, 4), {"lhs_begin": -2, "lhs_end": -1, "rhs_end": -1}, (7, 5, 6, 20)),
    ],
)
def test_reshape_like_takes_parts_of_shapes(data, like, parts, shape):
    x, y = relay.var("x", shape=data), relay.var("y", shape=like)
    call = relay.reshape_like(x, y, **parts)
    assert call.attrs.lhs_begin == parts["lhs_begin"]
    value = np.arange(np.prod(data), dtype="float32").reshape(data)
    mod = hr.IRModule.from_expr(relay.Function([x, y], call))
    for kind in ("debug", "graph"):
        found = relay.create_executor(kind, mod).evaluate()(value, np.zeros(like, "float32")).numpy()
        np.testing.assert_array_equal(found, value.reshape(shape))
    text = mod.astext()
    hr.ir.assert_structural_equal(relay.parse(text), relay.transform.InferType()(mod))
    backward = relay.transform.gradient(relay.Function([x, y], call))
    by_x = relay.create_executor().evaluate(backward)(value, np.zeros(like, "float32"))[1][0]
    np.testing.assert_array_equal(by_x.numpy(), np.ones(data))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"lhs_begin": 3}, "lhs_begin is 3, expected -2 to 2"),
        ({"rhs_end": -3}, "rhs_end is -3, expected -2 to 2"),
        ({"lhs_begin": 2, "lhs_end": 1}, "lhs_begin is axis 2 .*, after lhs_end, axis 1"),
        ({"lhs_begin": 1}, "the numbers of elements differ"),
    ],
)
def test_parts_of_shapes_that_do_not_fit(parts, message):
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(3, 2))
    with pytest.raises(hr.error.DiagnosticError, match=message):
        run_infer_type(relay.reshape_like(x, y, **parts))


# --- nodes and scalars


def test_a_global_function_as_a_node():
    hr.register_func("names.env_func", lambda x: x + 1, override=True)
    node = hr.ir.EnvFunc.get("names.env_func")
    assert isinstance(node, hr.ir.EnvFunc)
    assert (node.name, node(1), node.func(2)) == ("names.env_func", 2, 3)
    (again,) = hr.ir.load_json(hr.ir.save_json([node]))
    assert (again.name, again(4)) == (node.name, 5)
    hr.ir.assert_structural_equal(pickle.loads(pickle.dumps(node)), node)
    hr.register_func("names.env_func", lambda x: x * 10, override=True)
    assert again(4) == 40
    with pytest.raises(hr.UserError, match=r"there is no global function 'names.none'"):
        hr.ir.EnvFunc.get("names.none")
    with pytest.raises(hr.UserError, match=r"there is no global function 'names.none'"):
        hr.ir.make_node("ir.EnvFunc", name="names.none")(1)


DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scalars_by_their_dtype(dtype):
    make = getattr(tir, dtype)
    constant = make(3)
    assert (constant.dtype, constant.value) == (dtype, 3)
    assert isinstance(constant, tir.FloatImm if dtype.startswith("float") else tir.IntImm)
    x = tir.Var("x", "int32")
    cast = make(x)
    assert (cast.dtype, cast.same_as(x)) == (dtype, dtype == "int32")
    new = make()
    assert (new.dtype, isinstance(new, tir.Var)) == (dtype, True)
    assert make(tir.IntImm("int32", 7)).value == 7
    assert getattr(hr.te, dtype) is make


def test_scalars_that_are_none():
    assert (tir.bool(True).dtype, tir.bool(0).value) == ("bool", 0)
    assert "bool" not in tir.__all__
    for make, message in (
        (lambda: tir.int8(300), "300 is not a number that int8 holds"),
        (lambda: tir.uint8(-1), "-1 is not a number that uint8 holds"),
        (lambda: tir.int32(0.5), "0.5 is not of int32"),
        (lambda: tir.bool(2), "2 is not a bool"),
        (lambda: tir.float32("x"), "a str is not a scalar expression"),
    ):
        with pytest.raises(hr.UserError, match=message):
            make()


def test_containers():
    from headrace.runtime import container

    assert isinstance("ab", container.String) and isinstance((1, 2), container.ShapeTuple)
    assert not isinstance(b"ab", container.String) and not isinstance([1, 2], container.ShapeTuple)
    assert hr.container.Map is hr.ir.container.Map and isinstance(relay.Tuple([]).fields, hr.container.Array)
    assert container.String("ab") == "ab"
    assert isinstance(hr.runtime.String("ab"), str)
    shape = container.ShapeTuple([1, np.int64(2), tir.IntImm("int64", 3)])
    assert (shape, len(shape), shape[1], hr.runtime.ShapeTuple()) == ((1, 2, 3), 3, 2, ())
    assert relay.TensorType(shape).shape == [1, 2, 3]
    for wrong in (3, ["a"], [1.5]):
        with pytest.raises(hr.UserError, match="ShapeTuple: expected a sequence of whole numbers"):
            container.ShapeTuple(wrong)
    one, two = (hr.nd.array(np.full(2, value, "float32")) for value in (1, 2))
    nested = container.tuple_object([one, (two, [])])
    assert (nested.tag, len(nested), nested[0].same_as(one), len(nested[1]), len(nested[1][1])) == (0, 2, True, 2, 0)
    adt = container.ADT(3, [one])
    assert (adt.tag, adt[0].same_as(one), hr.runtime.container.ADT) == (3, True, hr.runtime.ADT)
    t = relay.var("t", relay.TupleType([relay.TensorType((2,)), relay.TensorType((2,))]))
    f = relay.Function([t], relay.TupleGetItem(t, 0) + relay.TupleGetItem(t, 1))
    assert relay.create_executor().evaluate(f)(container.tuple_object([one, two])).numpy().tolist() == [3, 3]


# --- builds


def small_network():
    x, w = relay.var("x", shape=(1, 3, 6, 6)), relay.var("w", shape=(4, 3, 3, 3))
    y = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1)))
    body = relay.Tuple([relay.nn.softmax(relay.nn.batch_flatten(y)), relay.nn.batch_flatten(y), x])
    params = {"w": np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype("float32")}
    return hr.IRModule.from_expr(relay.Function([x, w], body)), params


def test_a_build_is_unpacked(tmp_path):
    mod, params = small_network()
    built = relay.build(mod, "llvm", params=params)
    with pytest.warns(DeprecationWarning, match="a build is one object"):
        graph, lib, bound = built
    assert isinstance(lib, hr.runtime.Module)
    assert list(bound) == ["w"]
    path = tmp_path / "lib.so"
    lib.export_library(path)
    data = np.random.default_rng(1).normal(size=(1, 3, 6, 6)).astype("float32")
    expected = [field.numpy() for field in relay.create_executor("debug", mod, params=params).evaluate()(data)]
    for library in (lib, built, hr.runtime.load_module(path)):
        module = hr.contrib.graph_executor.create(graph, library, hr.cpu(0))
        module.set_input("x", data)
        module.set_input(**bound)
        module.run()
        for i, value in enumerate(expected):
            np.testing.assert_allclose(module.get_output(i).numpy(), value, rtol=1e-4, atol=1e-6)


def test_the_graph_of_a_build():
    mod, params = small_network()
    built = relay.build(mod, "llvm", params=params)
    graph = json.loads(built.get_graph_json())
    assert graph == json.loads(built.get_executor_config())
    assert sorted(graph) == ["arg_nodes", "attrs", "heads", "node_row_ptr", "nodes"]
    nodes = graph["nodes"]
    assert [nodes[i]["op"] for i in graph["arg_nodes"]] == ["null"] * len(graph["arg_nodes"])
    assert [nodes[i]["name"] for i in graph["arg_nodes"]] == ["x", "p0"]
    steps = [node for node in nodes if node["op"] == "tvm_op"]
    convolution, softmax = (next(node for node in steps if op in node["name"]) for op in ("conv2d", "softmax"))
    assert [0, 0, 0] in convolution["inputs"]
    assert [1, 0, 0] in convolution["inputs"]
    assert [nodes.index(convolution), 0, 0] in softmax["inputs"]
    assert convolution["attrs"]["num_inputs"] == str(len(convolution["inputs"]))
    assert convolution["attrs"]["func_name"] in built.get_source("ll")
    assert any(node["attrs"]["func_name"] == "__copy" and node["inputs"] == [[0, 0, 0]] for node in steps)
    assert [nodes[node]["op"] for node, _, _ in graph["heads"]] == ["tvm_op"] * 3
    rows = graph["node_row_ptr"]
    assert (rows[0], len(rows), rows) == (0, len(nodes) + 1, sorted(rows))
    for key, kind in (("shape", "list_shape"), ("dltype", "list_str"), ("storage_id", "list_int")):
        assert (graph["attrs"][key][0], len(graph["attrs"][key][1])) == (kind, rows[-1])
    assert graph["attrs"]["shape"][1][:2] == [[1, 3, 6, 6], [4, 3, 3, 3]]
    assert set(graph["attrs"]["dltype"][1]) == {"float32"}


def test_graphs_that_do_not_fit():
    first = relay.build(small_network()[0])
    x = relay.var("x", shape=(2,))
    second = relay.build(hr.IRModule.from_expr(relay.exp(x)))
    create = hr.graph_executor.create
    with pytest.raises(hr.UserError, match="another graph than the library's"):
        create(first.get_graph_json(), second.get_lib(), hr.cpu())
    with pytest.raises(hr.UserError, match="graph_json_str is not JSON"):
        create("{", second.get_lib(), hr.cpu())
    with pytest.raises(hr.UserError, match="graph_json_str: expected a str, got"):
        create(second, second.get_lib(), hr.cpu())
    with pytest.raises(hr.UserError, match="expected a compiled module, got dict"):
        create("{}", {}, hr.cpu())


def test_there_is_no_compiler_of_tensor_expressions():
    with pytest.raises(AttributeError, match=r"relay.build compiles a function to kernels"):
        _ = relay.backend.te_compiler


# --- AlterOpLayout


def altered(mod, function, op="nn.conv2d"):
    with relay.testing.TempOpAttr(op, "FTVMAlterOpLayout", function):
        return relay.transform.AlterOpLayout()(relay.transform.InferType()(mod))


def in_layout(**layouts):
    def alter(attrs, inputs, tinfos, out_type):
        assert [str(kind) for kind in tinfos] == ["Tensor[(1, 16, 8, 8), float32]", "Tensor[(16, 16, 3, 3), float32]"]
        assert out_type.shape == (1, 16, 8, 8)
        new_attrs = {key: attrs[key] for key in attrs.keys()}  # noqa: SIM118 (as users of Relay write it)
        return relay.nn.conv2d(*inputs, **{**new_attrs, **layouts})

    return alter


def two_convolutions():
    x, w = relay.var("x", shape=(1, 16, 8, 8)), relay.var("w", shape=(16, 16, 3, 3))
    body = x
    for _ in range(2):
        body = relay.nn.relu(relay.nn.conv2d(body, w, channels=16, kernel_size=(3, 3), padding=(1, 1)))
    return hr.IRModule.from_expr(relay.Function([x, w], body))


@pytest.mark.parametrize(
    ("layouts", "borders"),
    [
        ({"data_layout": "NCHW16c"}, {"layout_transform": 2}),
        ({"data_layout": "NCHW8c", "kernel_layout": "OIHW8i8o"}, {"layout_transform": 3}),
        ({"data_layout": "NHWC", "kernel_layout": "HWIO"}, {"layout_transform": 3}),
    ],
)
def test_calls_in_other_layouts(layouts, borders):
    mod = two_convolutions()
    after = altered(mod, in_layout(**layouts))
    freqs = relay.analysis.list_op_freqs(after)
    assert freqs == {"nn.conv2d": 2, "nn.relu": 2, **borders}
    random = np.random.default_rng(0)
    values = [random.normal(size=shape).astype("float32") for shape in ((1, 16, 8, 8), (16, 16, 3, 3))]
    results = [relay.create_executor("debug", m).evaluate()(*values).numpy() for m in (mod, after)]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-4, atol=1e-4)


def test_a_function_registered_by_a_decorator():
    op = relay.op.get("nn.relu")
    assert relay.op.register_alter_op_layout("nn.relu", lambda attrs, inputs, tinfos, out: None)
    x = relay.var("x", shape=(2,))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.nn.relu(x)))
    assert relay.transform.AlterOpLayout()(mod).same_as(mod)

    @relay.op.register_alter_op_layout("nn.relu", level=101)
    def by_maximum(attrs, inputs, tinfos, out_type):
        return relay.maximum(inputs[0], relay.const(0.0))

    try:
        assert relay.transform.AlterOpLayout()(mod)["main"].body.op.name == "maximum"
        with hr.transform.PassContext(opt_level=2):
            assert hr.transform.Sequential([relay.transform.AlterOpLayout()])(mod)["main"].body.op.name == "nn.relu"
    finally:
        op.reset_attr("FTVMAlterOpLayout")
    with pytest.raises(hr.UserError, match="FTVMAlterOpLayout"):
        relay.op.register_alter_op_layout("nn.relu", 3)
    with pytest.raises(hr.UserError, match="asks for NCHW3c, in which its operands"):
        altered(two_convolutions(), in_layout(data_layout="NCHW3c"))


# --- the type solver by hand


def _solver_with(*constraints):
    solver = relay.analysis._ffi_api._test_type_solver()
    for relation, *types in constraints:
        function = hr.ir.EnvFunc.get(f"tvm.relay.type_relation.{relation}")
        solver("AddConstraint")(relay.TypeRelation(function, types, len(types) - 1))
    return solver


def test_the_type_solver_meets_constraints_forwards_and_backwards():
    unknown, total = relay.IncompleteType(), relay.IncompleteType()
    column, row = relay.TensorType((4, 1)), relay.TensorType((3,))
    solver = _solver_with(("Broadcast", column, unknown, total))
    solver.Solve, solver.Resolve = solver("Solve"), solver("Resolve")
    assert not solver.Solve()
    assert solver.Resolve(total) == total
    solver("AddConstraint")(relay.TypeRelation("tvm.relay.type_relation.Identity", [unknown, row], 1, None))
    assert solver.Solve()
    assert solver.Resolve(relay.TupleType([unknown, total])) == relay.TupleType([row, relay.TensorType((4, 3))])


def test_the_type_solver_takes_relations_of_ops():
    total = relay.IncompleteType()
    solver = _solver_with()
    solver("AddConstraint")(relay.TypeRelation("nn.relu", [relay.TensorType((2,)), total], 1, None))
    assert solver("Solve")()
    assert solver("Resolve")(total) == relay.TensorType((2,))


def test_the_type_solver_unifies():
    a, b = relay.TypeVar("a"), relay.TypeVar("b")
    general, special = relay.FuncType([a], b, [a, b]), relay.FuncType([a], a, [a])
    assert _solver_with()("Unify")(general, special) == special
    with pytest.raises(hr.UserError, match=r"the type \(Tensor\[\(1\), float32\],\) does not match \(\)"):
        _solver_with()("Unify")(relay.TupleType([relay.TensorType((1,))]), relay.TupleType([]))
    with pytest.raises(hr.UserError, match="it has AddConstraint, Resolve, Solve and Unify"):
        _solver_with()("Guess")
    with pytest.raises(hr.UserError, match="there is no op 'Guess'"):
        _solver_with()("AddConstraint")(relay.TypeRelation("Guess", [a, b], 1))


def test_relations_are_functions_from_types_to_a_type():
    broadcast = hr.ir.EnvFunc.get("tvm.relay.type_relation.Broadcast")
    assert relay.TypeRelation(broadcast, [], 0, None).name == broadcast.name
    column, row = relay.TensorType((4, 1)), relay.TensorType((3,))
    assert broadcast([column, row]) == relay.TensorType((4, 3))
    assert broadcast([column, relay.IncompleteType()]) is None
