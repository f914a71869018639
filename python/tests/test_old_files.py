"""Files that TVM wrote: parameters are read, other things recognised."""

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
        (params({b"\xff": FLOATS}), "name 0 is no text in UTF-8"),
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
TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  add(%x, meta[relay.Constant][0])
}
"""


def test_json_of_tvm_is_told():
    with pytest.raises(hr.UserError, match=r"JSON of TVM's save_json, which is not read"):
        hr.ir.load_json(JSON)
    with pytest.raises(hr.UserError, match="object graph"):
        hr.ir.load_json("{}")


@pytest.mark.parametrize("read", [relay.parse, relay.fromtext])
def test_metadata_of_tvm_is_told(read):
    with pytest.raises(hr.UserError, match=r"its #\[metadata\] is JSON of TVM, which is not read"):
        read(f"{TEXT}\n#[metadata]\n{JSON}\n")
    with pytest.raises(hr.UserError, match="there is no data for constant 0"):
        read(TEXT)
