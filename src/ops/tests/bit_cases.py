"""Cases of integers of a few bits, and of products with packed weights, by numpy; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, error, run_onnx

numbers = Numbers(73)
data, ints = numbers.data, numbers.ints


def packed(x: np.ndarray, bits: int, pack_axis: int, bit_axis: int, dtype: str) -> np.ndarray:
    """Packs each low bit: the elements along an axis become the digits of a binary number."""
    width = np.dtype(dtype).itemsize * 8
    planes = []
    for b in range(bits):
        digits = np.moveaxis(x >> b & 1, pack_axis, -1)
        texts = digits.reshape(*digits.shape[:-1], -1, width)
        values = [int("".join(str(v) for v in row), 2) for row in texts.reshape(-1, width)]
        planes.append(np.moveaxis(np.array(values, dtype).reshape(texts.shape[:-1]), -1, pack_axis))
    return np.stack(planes, bit_axis)


def add_packs() -> None:
    for x, bits, pack_axis, bit_axis, dtype in (
        (ints(2, 64, 3, low=0, high=2), 1, 1, 2, "uint32"),
        (ints(2, 3, 16, low=0, high=8, dtype="int8"), 3, 2, 3, "uint8"),
        (ints(32, 2, low=0, high=4, dtype="uint8"), 2, 0, 0, "uint16"),
        (ints(1, 64, low=-4, high=4, dtype="int64"), 2, 1, 1, "uint64"),
    ):
        call = f'nn.bitpack(%0, bits={bits}, pack_axis={pack_axis}, bit_axis={bit_axis}, pack_type="{dtype}")'
        case(f"bitpack {dtype}", call, [x], [packed(x, bits, pack_axis, bit_axis, dtype)])
    error("bitpack", "nn.bitpack(%0)", [ints(2, 33)], "has no multiple of 32 elements")
    error("bitpack floats", "nn.bitpack(%0)", [data(2, 32)], "data must be integers")
    error("bitpack bits", "nn.bitpack(%0, bits=9)", [ints(2, 32)], "bits is 9, expected 1 to 8")
    error("bitpack type", 'nn.bitpack(%0, pack_type="int32")', [ints(2, 32)], "pack_type must be uint8")


def counted(w: np.ndarray, bits: int, unipolar: bool) -> np.ndarray:
    """The values that weights stand for, added up bit by bit."""
    planes = [(w >> b & 1) * (1 << b) if not unipolar else np.where(w >> b & 1, 1, -1) * (1 << b) for b in range(bits)]
    return np.sum(planes, axis=0)


def add_products() -> None:
    for unipolar in (True, False):
        for data_bits, weight_bits in ((1, 1), (2, 1), (3, 2)):
            x, w = ints(3, 9, low=0, high=1 << data_bits), ints(4, 9, low=0, high=1 << weight_bits, dtype="int8")
            want = (x @ counted(w.astype("int32"), weight_bits, unipolar).T).astype("int16")
            call = f"nn.bitserial_dense(%0, %1, data_bits={data_bits}, weight_bits={weight_bits}, unipolar={unipolar})"
            case(f"bitserial_dense {data_bits} {weight_bits} {unipolar}", call, [x, w], [want])
    high = ints(2, 9, low=-100, high=100)
    want = ((high & 3) @ counted(w.astype("int32"), 1, True).T).astype("int32")
    case(
        "bitserial_dense low bits",
        'nn.bitserial_dense(%0, %1, units=4, data_bits=2, out_dtype="int32")',
        [high, w],
        [want],
    )
    error("bitserial_dense", "nn.bitserial_dense(%0, %1)", [ints(3, 9), ints(4, 8)], "summed dimensions differ")
    error("bitserial_dense units", "nn.bitserial_dense(%0, %1, units=5)", [x, w], "units is 5, and weight is")
    error("bitserial_dense floats", "nn.bitserial_dense(%0, %1)", [data(3, 9), w], "data must be integers")


def add_convolutions() -> None:
    for unipolar in (True, False):
        for bits, weight_bits in ((1, 1), (2, 2)):
            x, w = ints(2, 3, 6, 5, low=0, high=1 << bits), ints(4, 3, 3, 2, low=0, high=1 << weight_bits)
            plain = [x.astype("float32"), counted(w, weight_bits, unipolar).astype("float32")]
            want = run_onnx("Conv", plain, strides=[2, 1], pads=[1, 0, 2, 1]).astype("int16")
            how = f"activation_bits={bits}, weight_bits={weight_bits}, unipolar={unipolar}"
            shape = "strides=[2, 1], padding=[1, 0, 2, 1], channels=4, kernel_size=[3, 2]"
            case(f"bitserial_conv2d {bits} {unipolar}", f"nn.bitserial_conv2d(%0, %1, {shape}, {how})", [x, w], [want])
            layouts = 'data_layout="NHWC", kernel_layout="HWIO"'
            turned = [x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)]
            call = f"nn.bitserial_conv2d(%0, %1, {shape}, {layouts}, {how})"
            case(f"bitserial_conv2d NHWC {bits} {unipolar}", call, turned, [want.transpose(0, 2, 3, 1)])
    call = "nn.bitserial_conv2d(%0, %1, kernel_size=[3, 2])"
    error("bitserial_conv2d", call, [x, w[:, :2]], "the input channels differ")
    error("bitserial_conv2d kernel", "nn.bitserial_conv2d(%0, %1)", [x, w], "kernel_size is (3, 3), and weight is")


def add_packed_weights() -> None:
    for dtype, tolerance in (("float32", 1e-5), ("int32", 0)):
        x, w = (data(3, 7), data(8, 7)) if dtype == "float32" else (ints(3, 7), ints(8, 7))
        parts = w.reshape(2, 4, 7).transpose(0, 2, 1)
        call = 'nn.contrib_dense_pack(%0, %1, units=8, weight_layout="NC4n")'
        case(f"dense_pack {dtype}", call, [x, parts], [x @ w.T], tolerance)
    small = [ints(3, 7, dtype="int8"), ints(2, 7, 4, dtype="int8")]
    want = small[0].astype("int32") @ small[1].astype("int32").transpose(0, 2, 1).reshape(8, 7).T
    case("dense_pack int8", 'nn.contrib_dense_pack(%0, %1, out_dtype="int32")', small, [want])
    error("dense_pack", "nn.contrib_dense_pack(%0, %1)", [data(3, 7), data(8, 7)], "weight must be [n / b, k, b]")
    error(
        "dense_pack sums", "nn.contrib_dense_pack(%0, %1)", [data(3, 6), data(2, 7, 4)], "the summed dimensions differ"
    )


def add_bit_cases() -> None:
    add_packs()
    add_products()
    add_convolutions()
    add_packed_weights()
