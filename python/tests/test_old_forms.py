"""Functions that Relay users type, in the forms that Relay takes them; results against numpy."""

import inspect

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

RNG = np.random.default_rng(13)


def var(name="x", shape=(2,), dtype="float32"):
    return relay.var(name, shape=shape, dtype=dtype)


def evaluated(call, **values):
    """The result of compiled code, after a check that the interpreter gives the same."""
    whole = call.astuple() if isinstance(call, relay.TupleWrapper) else call
    function = relay.Function(relay.analysis.free_vars(whole), whole)
    args = [values[param.name_hint] for param in function.params]
    defined, compiled = (relay.create_executor(kind).evaluate(function)(*args) for kind in ("debug", "graph"))
    if isinstance(call, relay.TupleWrapper):
        for one, other in zip(defined, compiled, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
        return [item.numpy() for item in compiled]
    np.testing.assert_allclose(defined.numpy(), compiled.numpy(), rtol=1e-5, atol=1e-6)
    return compiled.numpy()


# --- pools of all of an axis


@pytest.mark.parametrize(("rank", "layout"), [(1, "NCW"), (1, "NWC"), (3, "NCDHW"), (3, "NDHWC")])
@pytest.mark.parametrize("kind", ["avg", "max"])
def test_global_pools_over_one_and_three_axes(rank, layout, kind):
    data = RNG.standard_normal((2, 3, 4, 5, 6)[: rank + 2]).astype("float32")
    axes = tuple(i for i, letter in enumerate(layout) if letter not in "NC")
    pool = getattr(relay.nn, f"global_{kind}_pool{rank}d")
    expected = (np.mean if kind == "avg" else np.max)(data, axes, keepdims=True)
    np.testing.assert_allclose(evaluated(pool(var(shape=data.shape), layout), x=data), expected, rtol=1e-5)
    assert getattr(relay.op.nn, f"global_{kind}_pool{rank}d") is pool
    assert str(inspect.signature(pool)).startswith(f"(data: 'Any', layout: 'str' = '{'NCW' if rank == 1 else 'NCDHW'}'")


def test_a_global_pool_says_what_does_not_fit():
    call = relay.nn.global_max_pool1d(var(shape=(1, 2, 3, 4)))
    with pytest.raises(hr.UserError, match="data must have 3 dimensions"):
        relay.testing.run_infer_type(call)


# --- boxes


def counted(boxes, threshold):
    counts, front, where = np.zeros(2, "int32"), np.full_like(boxes, -1), np.full(boxes.shape[:2], -1, "int32")
    for b, rows in enumerate(boxes):
        valid = [j for j, row in enumerate(rows) if row[0] >= 0 and row[1] > threshold]
        counts[b], front[b, : len(valid)], where[b, : len(valid)] = len(valid), rows[valid], valid
    return counts, front, where


@pytest.mark.parametrize("form", ["number", "constant", "variable"])
def test_valid_boxes_by_a_threshold_of_any_form(form):
    boxes = np.concatenate(
        [RNG.integers(-1, 2, (2, 9, 1)), RNG.permutation(18).reshape(2, 9, 1) / 18, RNG.random((2, 9, 4))], 2
    ).astype("float32")
    threshold = {"number": 0.4, "constant": relay.const(0.4), "variable": var("t", ())}[form]
    call = relay.vision.get_valid_counts(var(shape=boxes.shape), threshold)
    found = evaluated(call, x=boxes, t=np.float32(0.4))
    for own, expected in zip(found, counted(boxes, np.float32(0.4)), strict=True):
        np.testing.assert_array_equal(own, expected)
    text = '#[version = "0.0.5"]\nfn (%x: Tensor[(2, 9, 6), float32], %t: float32) {{ vision.get_valid_counts({}) }}'
    typed = relay.testing.run_infer_type(relay.parse_expr(text.format("%x, %t, id_index=0, score_index=1")))
    assert len(typed.checked_type.ret_type.fields) == 3


def test_boxes_of_all_classes_are_a_tuple():
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [2, 2, 3, 3], [4, 4, 5, 5]]], "float32")
    scores = np.array([[[0.9, 0.8, 0.7, -2.0], [0.1, 0.5, 0.3, 0.2]]], "float32")
    b, s = var("b", boxes.shape), var("s", scores.shape)
    found = relay.vision.all_class_non_max_suppression(b, s)
    assert isinstance(found, relay.TupleWrapper)
    assert len(found) == 2
    indices, count = evaluated(found, b=boxes, s=scores)
    # No overlap at all, no limit, and scores above -1.
    rows = [[0, 0, 0], [0, 0, 2], [0, 1, 1], [0, 1, 2], [0, 1, 3]]
    np.testing.assert_array_equal(indices, rows + [[-1] * 3] * 3)
    assert count.tolist() == [5]
    few = relay.vision.all_class_non_max_suppression(b, s, 1, 0.5, relay.const(0.6), "onnx")
    assert evaluated(few, b=boxes, s=scores)[1].tolist() == [1]
    limited = relay.vision.all_class_non_max_suppression(b, s, var("m", (), "int64"), 0.5, 0.0)
    assert evaluated(limited, b=boxes, s=scores, m=np.int64(2))[1].tolist() == [4]
    with pytest.raises(hr.UserError, match="output_format is 'tensorflow', expected onnx"):
        relay.testing.run_infer_type(
            relay.vision.all_class_non_max_suppression(b, s, output_format="tensorflow").astuple()
        )


def test_regions_with_channels_last():
    data = RNG.standard_normal((2, 4, 5, 3)).astype("float32")
    # Bins of one element with one sample each in its middle, between four elements.
    regions = np.array([[1, 0.5, 0.5, 2.5, 2.5], [0, 1.5, 0.5, 3.5, 2.5]], "float32")
    expected = np.stack([data[1, 1:3, 1:3], data[0, 1:3, 2:4]])
    call = relay.vision.roi_align(var(shape=data.shape), var("r", (2, 5)), (2, 2), 1.0, 1, "NHWC")
    np.testing.assert_allclose(evaluated(call, x=data, r=regions), expected, rtol=1e-5)


# --- images


def doubled(x):
    return x.repeat(2, 2).repeat(2, 3)


@pytest.mark.parametrize(
    "given",
    [
        {"size": (4, 6)},
        {"size": [4, 6], "roi": None},
        {"size": np.array([4, 6]), "roi": (0.0, 0.0, 1.0, 1.0)},
        {"size": relay.const([4, 6]), "roi": np.zeros(4)},
        {"size": (4, 6), "roi": relay.const([0.0, 0.0, 1.0, 1.0])},
        {"size": (4, 6), "roi": var("r", (4,)), "extrapolation_value": 0.5},
    ],
)
def test_an_image_is_resized_whatever_its_region_is(given):
    data = RNG.standard_normal((1, 2, 2, 3)).astype("float32")
    call = relay.image.resize2d(
        var(shape=data.shape), **given, method="nearest_neighbor", coordinate_transformation_mode="asymmetric"
    )
    np.testing.assert_array_equal(evaluated(call, x=data, r=np.ones(4, "float32")), doubled(data))


@pytest.mark.parametrize(("said", "rounding"), [("", "round"), (', rounding_method=""', "")])
def test_a_resize_is_what_a_text_says(said, rounding):
    """The function's own default is not the text's, as the ancestor's were."""
    f = relay.parse_expr(
        f'#[version = "0.0.5"]\nfn (%x: Tensor[(1, 1, 2, 3), float32]) {{ image.resize2d(%x, size=[4, 6]{said}) }}'
    )
    call = relay.image.resize2d(f.params[0], (4, 6), rounding_method=rounding)
    hr.ir.assert_structural_equal(relay.Function(f.params, call), f)
    assert relay.image.resize2d(f.params[0], (4, 6)).attrs.rounding_method == ""


def test_one_size_serves_all_axes_and_a_dtype_is_given():
    data = np.arange(6, dtype="float32").reshape(1, 1, 2, 3)
    call = relay.image.resize2d(var(shape=data.shape), 6, None, "NCHW", "nearest_neighbor", out_dtype="int32")
    # Half pixels, and the floor of them: row i of 6 reads row floor((i + 0.5) / 3 - 0.5) of 2, a column likewise.
    rows, columns = ([max(0, int((i + 0.5) / n - 0.5 + 1e-9)) for i in range(6)] for n in (3, 2))
    expected = data[:, :, rows][:, :, :, columns].astype("int32")
    found = evaluated(call, x=data)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == np.int32


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"roi": 3}, "image.resize2d: roi: expected a list of numbers or an expression, got 3"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "relay.image.crop_and_resize resamples parts"),
        ({"size": (4.5, 6), "roi": var("r", (4,))}, "image.resize2d: size: expected an int, got 4.5"),
    ],
)
def test_what_no_resize_takes(given, message):
    with pytest.raises(hr.UserError, match=message):
        relay.image.resize2d(var(shape=(1, 1, 2, 3)), **{"size": (4, 6), **given})


# --- gather_nd


def test_the_rank_of_indices_may_be_told():
    data, indices = RNG.standard_normal((3, 4, 2)).astype("float32"), np.array([[0, 2, 1], [3, 0, 1]], "int32")
    call = relay.gather_nd(var(shape=data.shape), var("i", (2, 3), "int32"), 0, 2)
    np.testing.assert_array_equal(evaluated(call, x=data, i=indices), data[indices[0], indices[1]])
    relay.gather_nd(var(shape=data.shape), relay.var("i"), index_rank=2)


@pytest.mark.parametrize(
    ("rank", "indices", "message"),
    [
        (3, var("i", (2, 3), "int32"), r"index_rank is 3; it is the first dimension of indices, .* \(2, 3\)"),
        (1, relay.const([[0], [1]]), "index_rank is 1; it is the first dimension"),
        (1, relay.const(1), "index_rank is 1; it is the first dimension"),
        (0, relay.var("i"), "index_rank is 0; it is 1 or more"),
        (2.5, relay.var("i"), "gather_nd: index_rank: expected an int, got 2.5"),
    ],
)
def test_a_rank_that_indices_do_not_have(rank, indices, message):
    with pytest.raises(hr.UserError, match=message):
        relay.gather_nd(var(shape=(3, 4)), indices, index_rank=rank)


# --- build


def sum_of(lib):
    m = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    m.run(x=np.array([1, 2], "float32"))
    return m.get_output(0).numpy().tolist()


def test_a_build_takes_what_relays_takes():
    mod = hr.IRModule.from_expr(relay.add(var(), var("w")))
    params = {"w": np.array([10, 20], "float32")}
    executor, runtime = relay.backend.Executor("graph"), relay.backend.Runtime("cpp")
    assert sum_of(relay.build(mod, "llvm", None, executor, runtime, None, None, params, "default")) == [11, 22]
    executor = relay.backend.executor.Executor("graph", {"link-params": True})
    lib = relay.build(
        mod, target="llvm", executor=executor, runtime=relay.backend.runtime.Runtime("cpp"), params=params
    )
    assert sum_of(lib) == [11, 22]


def test_executors_and_runtimes_tell_their_options():
    executor = relay.backend.Executor("graph", {"link-params": True})
    assert (executor.name, executor["link-params"], "link-params" in executor) == ("graph", True, True)
    assert executor == relay.backend.Executor("graph", {"link-params": True})
    assert executor != relay.backend.Executor("graph")
    assert hash(executor) == hash(relay.backend.Executor("graph", {"link-params": True}))
    assert repr(executor) == "Executor('graph', {'link-params': True})"
    assert relay.backend.Executor.list_executors() == ["graph"]
    assert relay.backend.Executor.list_executor_options("graph") == {"link-params": "bool"}
    assert relay.backend.Runtime.list_runtimes() == ["cpp"]
    assert relay.backend.Runtime.list_runtime_options("cpp") == {"system-lib": "bool"}


MODULE = hr.IRModule.from_expr(var())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: relay.backend.Executor("aot"), "no executor 'aot'; a library that .* headrace_run"),
        (lambda: relay.backend.Executor("vm"), r"no executor 'vm'; relay.create_executor\(\"debug\"\)"),
        (lambda: relay.backend.Executor("grph"), "no executor 'grph'; the executors: graph"),
        (lambda: relay.backend.Executor(3), "relay.backend.Executor: name: expected a str, got int"),
        (
            lambda: relay.backend.Executor("graph", {"unpacked-api": True}),
            "no option 'unpacked-api'; its options: link",
        ),
        (lambda: relay.backend.Executor("graph", {"link-params": 1}), "'link-params': expected a bool, got int"),
        (lambda: relay.backend.Runtime("crt"), "no runtime 'crt'; a library that .* headrace_run"),
        (lambda: relay.backend.Runtime("cpp", {"system-lib": True}), "code that is linked into a program registers"),
        (lambda: relay.build(MODULE, "llvm", None, {"w": 1}), "executor: .* got dict; parameters are given by name"),
        (lambda: relay.build(MODULE, runtime="cpp"), "build: runtime: expected a relay.backend.Runtime, got str"),
        (lambda: relay.build(MODULE, workspace_memory_pools=[]), "workspace_memory_pools: the compiler plans memory"),
        (lambda: relay.build(MODULE, constant_memory_pools=[]), "constant_memory_pools: the compiler plans memory"),
    ],
)
def test_what_no_build_takes(call, message):
    with pytest.raises(hr.UserError, match=message):
        call()


# --- types


def test_the_types_by_relays_names():
    assert isinstance(relay.TensorType((1,)), relay.Type)
    shape = relay.ShapeVar("s")
    assert (shape.name_hint, shape.kind) == ("s", relay.TypeKind.ShapeVar)
    assert isinstance(relay.TypeRelation("add", [shape, shape, shape], 2, None), relay.TypeConstraint)
    for name in ("Type", "TypeConstraint", "ShapeVar", "TypeKind", "scalar_type"):
        assert getattr(relay.ty, name) is getattr(relay, name)


# --- nodes with other fields


def test_a_node_with_other_fields():
    x, y = var(), var("y")
    call = relay.add(x, y)
    other = relay.CallWithFields(call, args=[y, x])
    assert list(other.args) == [y, x]
    assert other.op.same_as(call.op)
    assert list(call.args) == [x, y]
    let = relay.Let(x, y, call)
    assert relay.LetWithFields(let, x, x).value.same_as(x)
    branch = relay.If(relay.const(True), x, y)
    assert relay.IfWithFields(branch, None, y).true_branch.same_as(y)
    item = relay.TupleGetItem(relay.Tuple([x, y]), 0)
    assert relay.TupleGetItemWithFields(item, index=1).index == 1
    assert list(relay.TupleWithFields(relay.Tuple([x, y]), [x]).fields) == [x]
    data = hr.nd.array(np.ones(2, "float32"))
    assert relay.ConstantWithFields(relay.const(1.0), data).data.shape == (2,)
    assert relay.VarWithFields(x, "z", relay.TensorType((3,))).name_hint == "z"
    function = relay.Function([x], x)
    renamed = relay.FunctionWithFields(function, [y], y, attrs={"Inline": 1})
    assert (list(renamed.params), renamed.attrs["Inline"]) == ([y], 1)
    cell = relay.RefCreate(x)
    assert relay.RefCreateWithFields(cell, y).value.same_as(y)
    assert relay.RefReadWithFields(relay.RefRead(cell), y).ref.same_as(y)
    assert relay.RefWriteWithFields(relay.RefWrite(cell, x), None, y).value.same_as(y)
    assert relay.expr.CallWithFields is relay.CallWithFields
    assert relay.function.FunctionWithFields is relay.FunctionWithFields


def test_a_node_whose_fields_stay_is_the_same():
    x, y = var(), var("y")
    call = relay.nn.max_pool2d(var(shape=(1, 1, 4, 4)))
    assert relay.CallWithFields(call) is call
    assert relay.CallWithFields(call, call.op, list(call.args), call.attrs, call.type_args) is call
    assert relay.CallWithFields(call, args=call.args) is call
    item = relay.TupleGetItem(relay.Tuple([x, y]), 1)
    assert relay.TupleGetItemWithFields(item, item.tuple_value, 1) is item
    assert relay.VarWithFields(x, "x", x.type_annotation) is x
    assert relay.CallWithFields(call, args=[x]) is not call


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: relay.CallWithFields(var()), hr.UserError, "CallWithFields: call: expected relay.Call, got Var"),
        (
            lambda: relay.IfWithFields(relay.If(var(), var(), var()), virtual_device=hr.cpu()),
            hr.UserError,
            "IfWithFields: virtual_device: nodes have none; relay.annotation.on_device",
        ),
        (lambda: relay.TupleWithFields(relay.Tuple([]), [3]), hr.UserError, "field 'fields' of relay.Tuple"),
        (lambda: relay.TupleWithFields(), TypeError, r"TupleWithFields\(\): missing a required argument: 'tup'"),
        (lambda: relay.LetWithFields(None, nonsense=1), TypeError, r"LetWithFields\(\): .*nonsense"),
    ],
)
def test_what_nodes_with_other_fields_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- values that functions and attributes take


def test_bytes_that_may_change_are_copied():
    held = bytearray(b"ab\0c")
    kept = hr.convert([held])[0]
    held[0] = 0
    assert kept == b"ab\0c"
    f = relay.Function([], relay.const(1)).with_attr("key", bytearray(b"\xff\0"))
    assert f.attrs["key"] == b"\xff\0"


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "uint16"])
def test_dtypes_of_numpy_are_told_by_name(dtype):
    assert hr.convert([np.dtype(dtype)])[0] == dtype
    f = relay.Function([], relay.const(1)).with_attr("dtype", np.dtype(dtype))
    assert f.attrs["dtype"] == dtype
    told = []
    hr.register_func("test.old_forms.tell", told.append, override=True)
    hr.get_global_func("test.old_forms.tell")(np.dtype(dtype))
    assert told == [dtype]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.dtype(">f4"), hr.UserError, r"dtype dtype\('>f4'\) is of another byte order .* give dtype\('float32'\)"),
        (np.dtype("S3"), hr.UserError, "bytes24"),
        (np.dtype("datetime64[s]"), hr.UserError, "datetime64"),
        (np.float32, TypeError, "a type cannot be passed to Headrace"),
        (hr.NDArray, TypeError, "cannot be passed to Headrace"),
        (memoryview(b"a"), TypeError, "a memoryview cannot be passed to Headrace"),
    ],
)
def test_other_values_are_refused(value, error, message):
    with pytest.raises(error, match=message):
        hr.convert([value])


# --- keys and classes of nodes


def test_nodes_by_tvms_keys():
    one = hr.ir.make_node("IntImm", dtype="int32", value=7)
    assert (one.type_key, one.value) == ("ir.IntImm", 7)
    assert hr.ir.make_node("ir.IntImm", dtype="int32", value=7).value == 7
    assert hr.ir.make_node("GlobalVar", name_hint="f").type_key == "relay.GlobalVar"
    assert isinstance(hr.ir.make_node("TypeVar", name_hint="a", kind=0), relay.TypeVar)
    with pytest.raises(hr.UserError, match="there is no type 'Call'"):
        hr.ir.make_node("Call")
    old = hr.ir.FloatImm
    try:
        mine = hr.register_object("FloatImm")(type("Mine", (old,), {}))
        assert type(hr.tir.const(1.5)) is mine
    finally:
        hr.register_object("ir.FloatImm")(old)


def test_a_class_of_ones_own_is_what_nodes_are():
    old = relay.RefRead
    try:

        @hr.register_object("relay.RefRead")
        class Read(relay.RefRead):
            def __init__(self, ref, note=""):
                super().__init__(ref)

            def what(self):
                return self.ref

        x = var()
        made = Read(x, note="mine")
        assert type(made) is Read
        assert made.what().same_as(x)
        assert type(relay.Tuple([made]).fields[0]) is Read
        assert type(made.copy_with(ref=var("y"))) is Read
        with pytest.raises(hr.UserError, match="there is no type 'RefRead' in the C"):
            hr.register_object("RefRead")(Read)

        @hr.register_object("relay.RefRead")
        class ByFunction(relay.RefRead):
            def __init__(self, ref):
                self.__init_handle_by_constructor__(lambda r: old(r), ref)

        assert type(ByFunction(x)) is ByFunction
        assert ByFunction(x).ref.same_as(x)
    finally:
        hr.register_object("relay.RefRead")(old)
    assert type(relay.Tuple([old(x)]).fields[0]) is old


class Unmade(relay.Tuple):
    def __init__(self, **given):
        if given:
            self.__init_handle_by_constructor__(lambda: given["gives"])
        self.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Unmade(), AttributeError, r"Unmade has no 'nonsense' before it is made: .* super\(\)\.__init__"),
        (
            lambda: Unmade(gives=relay.const(1)),
            hr.UserError,
            "its constructor's function gave a relay.Constant, no such",
        ),
        (lambda: Unmade(gives=3), hr.UserError, "Unmade: its constructor's function gave a int, no such node"),
        (lambda: Unmade(gives=relay.Tuple([])), AttributeError, "relay.Tuple has no attribute 'nonsense'"),
    ],
)
def test_a_class_that_makes_no_node(call, error, message):
    with pytest.raises(error, match=message):
        call()
