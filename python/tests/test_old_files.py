"""Files that TVM wrote: parameters, texts and graphs of nodes."""

import base64
import json
import random
import struct

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402

LIST_MAGIC, ARRAY_MAGIC = 0xF7E58D4F05049CB7, 0xDD5E40F096B4A13F
W = np.array([[1, 2], [3, 4]], "float32")


def array(shape, code, bits, data, lanes=1, magic=ARRAY_MAGIC, size=None):
    """An array as TVM writes it: device (1, 0), dtype as DLPack has it, shape, data."""
    head = struct.pack("<QQiiiBBH", magic, 0, 1, 0, len(shape), code, bits, lanes)
    return head + struct.pack(f"<{len(shape)}qq", *shape, len(data) if size is None else size) + data


def params(arrays, count=None):
    names = [struct.pack("<Q", len(name)) + name for name in arrays]
    head = struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))
    count = len(arrays) if count is None else count
    return head + b"".join(names) + struct.pack("<Q", count) + b"".join(arrays.values())


FLOATS = array((2, 2), 2, 32, struct.pack("<4f", 1, 2, 3, 4))
GOOD = params({b"w": FLOATS, b"empty": array((0, 3), 0, 8, b""), b"\xc3\xa9": array((), 1, 1, b"\1")})


def test_parameters_of_tvm():
    loaded = relay.load_param_dict(bytearray(GOOD))
    assert {name: (tensor.dtype, tensor.shape) for name, tensor in loaded.items()} == {
        "w": ("float32", (2, 2)),
        "empty": ("int8", (0, 3)),
        "\u00e9": ("bool", ()),
    }
    np.testing.assert_array_equal(loaded["w"].numpy(), W)
    assert loaded["\u00e9"].numpy()


@pytest.mark.parametrize(
    ("code", "bits", "data", "dtype", "value"),
    [
        (0, 64, struct.pack("<q", -5), "int64", -5),
        (0, 32, struct.pack("<i", -5), "int32", -5),
        (0, 16, struct.pack("<h", -5), "int16", -5),
        (1, 8, b"\xfb", "uint8", 251),
        (1, 64, struct.pack("<Q", 1 << 63), "uint64", 1 << 63),
        (2, 64, struct.pack("<d", 0.1), "float64", 0.1),
        (2, 16, struct.pack("<e", 0.5), "float16", 0.5),
        (4, 16, b"\x80\x3f", "bfloat16", 1),
        (6, 8, b"\1", "bool", True),
    ],
)
def test_dtypes_of_tvm(code, bits, data, dtype, value):
    loaded = relay.load_param_dict(params({b"x": array((1,), code, bits, data)}))["x"]
    assert (loaded.dtype, loaded.numpy().tolist()) == (dtype, [value])


def test_an_executor_loads_parameters_of_tvm():
    x, w = relay.var("x", shape=(2, 2)), relay.var("w", shape=(2, 2))
    lib = relay.build(hr.IRModule.from_expr(relay.Function([x, w], x + w)))
    module = hr.graph_executor.GraphModule(lib["default"](hr.cpu()))
    module.load_params(params({b"w": FLOATS, b"other": FLOATS}))
    module.run(x=np.ones((2, 2), "float32"))
    np.testing.assert_array_equal(module.get_output(0).numpy(), W + 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (params({b"w": FLOATS}) + b"x", "1 bytes behind its end"),
        (params({b"w": FLOATS}, count=0), "1 names, 0 arrays"),
        (params({b"\xff": FLOATS}), "name 0 is not text in UTF-8"),
        (params({b"w": array((1,), 2, 32, b"1234", magic=7)}), "'w': no array begins where it should"),
        (params({b"w": array((1,), 2, 32, b"1234", lanes=4)}), "code 2 with 32 bits and 4 lanes"),
        (params({b"w": array((1,), 3, 64, b"12345678")}), "code 3 with 64 bits"),
        (params({b"w": array((2,), 2, 32, b"1234")}), r"4 bytes for float32 of the shape \(2,\)"),
        (params({b"w": array((-1, -1), 2, 32, b"1234")}), "4 bytes for float32"),
        (params({b"w": array((1 << 62, 4), 2, 32, b"")}), "0 bytes for float32"),
        (params({b"w": array((0, 1 << 62), 2, 32, b"")}), "array is too big"),
        (params({b"w": array((1,), 2, 32, b"1234", size=1 << 62)}), "more than the 4 bytes that are left"),
        (struct.pack("<QQQ", LIST_MAGIC, 0, 1 << 60), "the number of names is 1152921504606846976"),
        (struct.pack("<QQQQ", LIST_MAGIC, 0, 1, 9), "name 0 is 9, more than the 0 bytes"),
    ],
)
def test_damaged_parameters_of_tvm(data, message):
    with pytest.raises(hr.UserError, match=message):
        relay.load_param_dict(data)


def test_two_parameters_of_one_name():
    head = struct.pack("<QQQ", LIST_MAGIC, 0, 2) + 2 * (struct.pack("<Q", 1) + b"w")
    with pytest.raises(hr.UserError, match="two parameters of one name"):
        relay.load_param_dict(head + struct.pack("<Q", 2) + 2 * FLOATS)


def test_parameters_of_tvm_that_are_cut_off():
    for size in range(8, len(GOOD)):
        with pytest.raises(hr.UserError, match=r"param_bytes: a \.params file that is (cut off|damaged)"):
            relay.load_param_dict(GOOD[:size])


def test_parameters_of_tvm_with_other_bytes():
    refused = 0
    for seed in range(500):
        chance = random.Random(seed)
        data = bytearray(GOOD)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(8, len(data))] = chance.randrange(256)
        try:
            relay.load_param_dict(data)
        except hr.UserError:
            refused += 1
    assert refused > 100


JSON = json.dumps({"root": 1, "nodes": [{"type_key": ""}], "b64ndarrays": [], "attrs": {"tvm_version": "0.8.0"}})


def tvm_json(*nodes, root=1, tensors=()):
    """A graph as TVM writes it: rows of a kind and attributes, or of a list of places; and the bytes of tensors."""
    rows = [
        {"type_key": kind, ("data" if isinstance(rest, list) else "attrs"): rest} if rest is not None else kind
        for kind, rest in nodes
    ]
    in_text = [base64.b64encode(tensor).decode() for tensor in tensors]
    return json.dumps({"root": root, "nodes": [{"type_key": ""}, *rows], "b64ndarrays": in_text, "attrs": {}})


def test_json_of_tvm_is_read():
    """A variable of a function's type, as 0.6 and as later versions name its nodes; a list; an op."""
    for relay_dot, of_type, of_var in (("relay.", {"var": "2"}, "Variable"), ("", {"name_hint": "T"}, "tir.SizeVar")):
        text = tvm_json(
            (f"{relay_dot}TypeVar", {"kind": "0", "span": "0", **of_type}),
            (of_var, {"dtype": "int32", "name": "T"}),
            ("Array", [1, 5]),
            (f"{relay_dot}FuncType", {"arg_types": "3", "ret_type": "5", "type_params": "9", "type_constraints": "10"}),
            (f"{relay_dot}TensorType", {"shape": "6", "dtype": "float16"}),
            ("Array", [7, 8]),
            ("IntImm", {"dtype": "int32", "value": "3"}),
            ("tir.Any", {"dtype": "int32"}),
            ("Array", [1]),
            ("Array", []),
            ("relay.Var", {"vid": "12", "type_annotation": "4", "_checked_type_": "0"}),
            (f"{relay_dot}Id", {"name_hint": "f"}),
            root=11,
        )
        read = hr.ir.load_json(text)
        assert isinstance(read, relay.Var) and read.name_hint == "f"
        any_rows = relay.TensorType((3, relay.Any()), "float16")
        parameter = read.type_annotation.type_params[0]
        assert parameter.name_hint == "T" and read.type_annotation.arg_types[0].same_as(parameter)
        assert read.type_annotation.ret_type == read.type_annotation.arg_types[1] == any_rows
    listed = tvm_json(
        ("Array", [2, 3]), ({"type_key": "relay.Op", "global_key": "exp"}, None), ("GlobalVar", {"name_hint": "g"})
    )
    assert hr.ir.load_json(listed)[0] == relay.op.get("exp")
    n = hr.ir.load_json(tvm_json(("Variable", {"dtype": "int32", "name": "n"})))
    assert isinstance(n, hr.tir.SizeVar) and n.name == "n" and n.dtype == "int32"


@pytest.mark.parametrize(
    "text, told",
    [
        (JSON, "load_json: JSON of TVM's save_json: it is damaged: there is no node 1"),
        (
            tvm_json(("relay.Call", {"op": "2"})),
            r"node 1 \(relay.Call\): nodes of this kind are not read; those of types",
        ),
        (tvm_json(("Array", [1])), r"node 1 \(Array\): it is part of itself"),
        (tvm_json(("TypeVar", "12")), r"node 1 \(TypeVar\): it has no attributes by name"),
        (tvm_json(("Array", ["1"])), "it is not a list of places"),
        (tvm_json(("relay.Var", {"vid": "0"})), "it has no 'vid'"),
        (tvm_json(("relay.Var", {"vid": "x"})), "'vid' is not an integer: 'x'"),
        (tvm_json(("IntImm", {"dtype": "int32"})), "it has no 'value'"),
        (tvm_json(("TypeVar", {"var": "2"}), ("Array", [])), "'var' is not of kind tir.Var"),
        (tvm_json(("GlobalVar", {})), "it has no 'name_hint'"),
        (tvm_json(("relay.Op", None)).replace('"relay.Op"', '{"type_key": "Op", "global_key": "no"}'), "no"),
        (tvm_json(("relay.Constant", {"data": "0"}), tensors=[FLOATS[:-1]]), "a tensor is cut off"),
        ('{"tvm_version"', "it is damaged"),
        ('{"tvm_version": "0.6.0", "nodes": {}, "root": 0}', "it has no list of nodes"),
    ],
)
def test_json_of_tvm_that_is_not_read(text, told):
    with pytest.raises(hr.UserError, match=told):
        hr.ir.load_json(text)


def test_other_json_is_told():
    with pytest.raises(hr.UserError, match="object graph"):
        hr.ir.load_json("{}")


def test_constants_and_devices_of_tvm():
    device = {"device_type_int": "2", "virtual_device_id": "1", "target": "0", "memory_scope": "3"}
    listed = tvm_json(
        ("Array", [2, 4]),
        ("VirtualDevice", device),
        ("runtime.String", {}),
        ("relay.Constant", {"data": "0"}),
        tensors=[FLOATS],
    )
    read = hr.ir.load_json(listed)
    assert str(read[0]) == "cuda:1"
    assert (read[1].data.numpy() == W).all() and read[1].data.dtype == "float32"


TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 2), float32]) {
  add(%x, meta[relay.Constant][0])
}
"""


@pytest.mark.parametrize("read", [relay.parse, relay.fromtext])
def test_metadata_of_tvm(read):
    graph = tvm_json(
        ({"type_key": "Map", "keys": ["relay.Constant"], "data": [2]}, None),
        ("Array", [3]),
        ("relay.Constant", {"data": "0", "span": "0", "_checked_type_": "0", "virtual_device_": "0"}),
        tensors=[FLOATS],
    )
    mod = read(f"{TEXT}\n#[metadata]\n{graph}\n")
    x = np.ones((2, 2), "float32")
    assert (relay.create_executor("debug", mod=mod).evaluate()(x).numpy() == x + W).all()
    with pytest.raises(
        hr.UserError, match=r":7:.*: the metadata of TVM: node 3 \(relay.Constant\): a tensor is cut off"
    ):
        read(f"{TEXT}\n#[metadata]\n{graph.replace(base64.b64encode(FLOATS).decode(), '')}\n")
    with pytest.raises(hr.UserError, match="there is no data for constant 0"):
        read(TEXT)
