"""Cases of quantized ops, whose results come from onnxruntime, or are worked out by hand; see make_op_cases.py."""

import numpy as np
from op_case_format import Numbers, case, error, run_onnx, scalar


def add_quantize_cases() -> None:
    numbers = Numbers(29)
    x = numbers.data(2, 3, 4, low=-40, high=40)
    x[0, 0] = [0.0, 0.5, 1.5, -2.5]
    for dtype, zero in (("int8", -3), ("uint8", 131)):
        scale = scalar(0.25)
        y = run_onnx("QuantizeLinear", [x, scale, scalar(zero, dtype)])
        call = f'qnn.quantize(%0, %1, %2, out_dtype="{dtype}")'
        case(f"qnn.quantize {dtype}", call, [x, scale, scalar(zero, "int32")], [y])
        back = run_onnx("DequantizeLinear", [y, scale, scalar(zero, dtype)])
        case(f"qnn.dequantize {dtype}", "qnn.dequantize(%0, %1, %2)", [y, scale, scalar(zero, "int32")], [back])

    scales, zeros = np.array([0.5, 0.1, 3.0], "float32"), np.array([0, 7, 255], "uint8")
    y = run_onnx("QuantizeLinear", [x, scales, zeros], axis=1)
    args = [scales, zeros.astype("int32")]
    case("qnn.quantize along an axis", 'qnn.quantize(%0, %1, %2, out_dtype="uint8", axis=1)', [x, *args], [y])
    back = run_onnx("DequantizeLinear", [y, scales, zeros], axis=1)
    case("qnn.dequantize along an axis", "qnn.dequantize(%0, %1, %2, axis=1)", [y, *args], [back])
    last = x.transpose(0, 2, 1).copy()
    y = run_onnx("QuantizeLinear", [last, scales, np.zeros(3, "int8")], axis=2)
    case("qnn.quantize one zero point", "qnn.quantize(%0, %1, %2)", [last, scales, scalar(0, "int32")], [y])

    # The integers of 16 and 32 bits, by hand: halves go to even, what is out of range to its ends, NaN to the least.
    wild = np.array([0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf, np.nan], "float32")
    for dtype in ("int16", "uint16", "int32"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        y = np.array([10, 12, 12, 10, high, low, high, low, low], dtype)
        call = f'qnn.quantize(%0, %1, %2, out_dtype="{dtype}")'
        case(f"qnn.quantize ends of {dtype}", call, [wild, scalar(1), scalar(10, "int32")], [y])
        y = np.array([low, high, 5], dtype)
        numbers_of = [(float(low) - 5) * 0.5, (float(high) - 5) * 0.5, 0.0]
        call, out = "qnn.dequantize(%0, %1, %2)", np.array(numbers_of, "float32")
        if dtype != "int32":
            case(f"qnn.dequantize ends of {dtype}", call, [y, scalar(0.5), scalar(5, "int32")], [out])
    sums = np.array([2**24 + 1, -7, 0], "int32")
    out = np.array([2.0**23, -3.5, 0], "float32")
    case("qnn.dequantize int32", "qnn.dequantize(%0, %1, %2)", [sums, scalar(0.5), scalar(0, "int32")], [out])
    y, out = np.array([-3, 0, 5], "int8"), np.array([-1.0, 0.5, 3.0], "float16")
    call = 'qnn.dequantize(%0, %1, %2, out_dtype="float16")'
    case("qnn.dequantize to float16", call, [y, scalar(0.5), scalar(-1, "int32")], [out])

    one, zero = scalar(1), scalar(0, "int32")
    quantize, dequantize = "qnn.quantize(%0, %1, %2)", "qnn.dequantize(%0, %1, %2)"
    error("qnn.quantize data", quantize, [x.astype("float16"), one, zero], "data must have dtype float32")
    error("qnn.quantize scale", quantize, [x, scalar(1, "float64"), zero], "output_scale must have dtype float32")
    error("qnn.quantize zero", quantize, [x, one, scalar(0, "int8")], "output_zero_point must have dtype int32")
    error("qnn.quantize size", quantize, [x, scales, zero], "output_scale must be as long as data")
    error("qnn.quantize rank", quantize, [x, x, zero], "must be a scalar or have one dimension")
    axis = "qnn.quantize(%0, %1, %2, axis=3)"
    error("qnn.quantize axis", axis, [x, scales, zero], "axis 3 is out of range")
    wide = 'qnn.quantize(%0, %1, %2, out_dtype="int64")'
    error("qnn.quantize dtype", wide, [x, one, zero], "out_dtype is int64, expected an integer of 2, 4, 8 or 16 bits")
    y = numbers.ints(2, 3)
    error(
        "qnn.dequantize data",
        dequantize,
        [y.astype("int64"), one, zero],
        "data must be of integers of 2, 4, 8 or 16 bits",
    )
    error("qnn.dequantize scale", dequantize, [y, scalar(1, "float16"), zero], "input_scale must have dtype float32")
    error("qnn.dequantize zero", dequantize, [y, one, scalar(0, "int64")], "input_zero_point must have dtype int32")
    whole = 'qnn.dequantize(%0, %1, %2, out_dtype="int32")'
    error("qnn.dequantize dtype", whole, [y, one, zero], "out_dtype is int32, expected float32")
    axis = "qnn.dequantize(%0, %1, %2, axis=0)"
    error("qnn.dequantize size", axis, [y, one, np.zeros(3, "int32")], "input_zero_point must be as long as data")


def add_quantized_dense_cases() -> None:
    numbers = Numbers(31)
    ones = [scalar(0.5), scalar(0.25)]  # the scales, which change nothing
    for a_dtype, b_dtype in (("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")):
        low, high = (-128, 128) if a_dtype == "int8" else (0, 256)
        a = numbers.ints(3, 7, low=low, high=high, dtype=a_dtype)
        w = numbers.ints(4, 7, low=0, high=64, dtype=b_dtype)
        y = run_onnx("MatMulInteger", [a, w.T.copy(), scalar(9, a_dtype), scalar(5, b_dtype)])
        args = [a, w, scalar(9, "int32"), scalar(5, "int32"), *ones]
        case(f"qnn.dense {a_dtype} {b_dtype}", "qnn.dense(%0, %1, %2, %3, %4, %5)", args, [y])
    zeros = np.array([0, 1, -3, 9], "int32")
    y = (a.astype("int32") - 9) @ (w.astype("int32") - zeros[:, None]).T
    args = [a, w, scalar(9, "int32"), zeros, scalar(1), np.ones(4, "float32")]
    call = 'qnn.dense(%0, %1, %2, %3, %4, %5, units=4, out_dtype="int32")'
    case("qnn.dense by units", call, args, [y.astype("int32")])
    plain = "qnn.dense(%0, %1, %2, %3, %4, %5)"

    def refused(name: str, message: str, changes: dict[int, np.ndarray], call: str = plain) -> None:
        error(f"qnn.dense {name}", call, [changes.get(i, x) for i, x in enumerate(args)], message)

    refused("data", "data must have dtype int8 or uint8", {0: a.astype("int16")})
    refused("weight", "weight must be a matrix", {1: w[0]})
    refused("sum", "the summed dimensions", {1: w[:, :5].copy()})
    refused("input zero", "input_zero_point must be a scalar, got", {2: zeros})
    refused("kernel zero", "kernel_zero_point must be a scalar or have 4 numbers", {3: zeros[:3]})
    refused("zero dtype", "kernel_zero_point must have dtype int32", {3: zeros.astype("int8")})
    refused("scale", "input_scale must have dtype float32", {4: scalar(1, "float16")})
    call = "qnn.dense(%0, %1, 0, 0, 1f, 0f)"
    error("qnn.dense by zero", call, args[:2], "kernel_scale must be positive and finite, got 0")
    refused("units", "units is 3, but weight has 4 rows", {}, plain[:-1] + ", units=3)")
    refused("dtype", "out_dtype is int16, expected int32", {}, plain[:-1] + ', out_dtype="int16")')


CODES = {"int8": 1, "uint8": 2, "int32": 3}


def add_simulated_cases() -> None:
    """Cases of the ops that hold integers as floats: onnxruntime's operators of these dtypes, and numbers by hand."""
    numbers = Numbers(41)
    x = numbers.data(2, 3, 4, low=-60, high=60)
    x[0, 0] = [0.0, 0.5, 1.5, -2.5]
    quantize, dequantize = "qnn.simulated_quantize(%0, %1, %2, %3", "qnn.simulated_dequantize(%0, %1, %2, %3"
    for dtype, zero in (("int8", -3), ("uint8", 131)):
        code, scale = scalar(CODES[dtype], "int32"), scalar(0.25)
        y = run_onnx("QuantizeLinear", [x, scale, scalar(zero, dtype)])
        back = run_onnx("DequantizeLinear", [y, scale, scalar(zero, dtype)])
        for form, shape in (("scalar", ()), ("one number", (1,))):
            for kind in ("int32", "float32"):
                steps = [np.full(shape, 0.25, "float32"), np.full(shape, zero, kind)]
                name = f"{dtype} {form} {kind}"
                case(f"qnn.simulated_quantize {name}", f"{quantize})", [x, code, *steps], [y.astype("float32")])
                held = [y.astype("float32"), code, *steps]
                case(f"qnn.simulated_dequantize {name}", f"{dequantize})", held, [back])
        scales, zeros = np.array([0.5, 0.1, 3.0], "float32"), np.array([0, 7, 100], dtype)
        y = run_onnx("QuantizeLinear", [x, scales, zeros], axis=1)
        back = run_onnx("DequantizeLinear", [y, scales, zeros], axis=1)
        steps = [scales, zeros.astype("int32")]
        case(f"qnn.simulated_quantize axis {dtype}", f"{quantize}, axis=1)", [x, code, *steps], [y.astype("float32")])
        held = [y.astype("float32"), code, *steps]
        case(f"qnn.simulated_dequantize axis {dtype}", f"{dequantize}, axis=1)", held, [back])
        one_zero = run_onnx("QuantizeLinear", [x, scales, np.zeros(3, dtype)], axis=1).astype("float32")
        steps = [scales, np.zeros(1, "int32")]
        case(f"qnn.simulated_quantize one zero {dtype}", f"{quantize}, axis=-2)", [x, code, *steps], [one_zero])

    # By hand: each dtype's ends, and the codes of no dtype, which leave the data alone. float32 has 2^31 - 1 as 2^31.
    wild = np.array([0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.inf, -np.inf, np.nan], "float32")
    ends = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2.0**31), 2.0**31)}
    steps = [scalar(1), scalar(10, "int32")]
    for dtype, (low, high) in ends.items():
        y = np.array([10, 12, 12, 10, high, low, high, low, low], "float32")
        case(
            f"qnn.simulated_quantize ends of {dtype}",
            f"{quantize})",
            [wild, scalar(CODES[dtype], "int32"), *steps],
            [y],
        )
    for code in (0, 4, -1):
        off = [x, scalar(code, "int32"), scalar(0.5), scalar(3, "int32")]
        case(f"qnn.simulated_quantize code {code}", f"{quantize})", off, [x])
        case(f"qnn.simulated_dequantize code {code}", f"{dequantize})", off, [x])
    held = np.array([2.0**24, -7, 0], "float32")
    y = np.array([2.0**23, -3.5, 0], "float32")
    args = [held, scalar(3, "int32"), scalar(0.5), scalar(0, "int32")]
    case("qnn.simulated_dequantize int32", f"{dequantize})", args, [y])

    args = [x, scalar(1, "int32"), scalar(1), scalar(0, "int32")]
    for op, call, code, side in (("quantize", quantize, "out", "output"), ("dequantize", dequantize, "in", "input")):

        def refused(
            name: str,
            message: str,
            changes: dict[int, np.ndarray],
            end: str = ")",
            op: str = op,
            call: str = call,
        ) -> None:
            error(f"qnn.simulated_{op} {name}", call + end, [changes.get(i, a) for i, a in enumerate(args)], message)

        refused("data", "data must have dtype float32", {0: x.astype("float16")})
        refused("code", f"{code}_dtype must be a scalar of int32", {1: scalar(1, "int64")})
        refused("codes", f"{code}_dtype must be a scalar of int32", {1: np.ones(1, "int32")})
        refused("scale", f"{side}_scale must have dtype float32", {2: scalar(1, "float64")})
        refused("zero", f"{side}_zero_point must have dtype int32 or float32", {3: scalar(0, "int8")})
        refused("size", f"{side}_scale must have one number or as many as data", {2: np.ones(3, "float32")})
        refused("rank", f"{side}_zero_point must be a scalar or have one dimension", {3: np.ones((1, 1), "int32")})
        refused("axis", "axis 3 is out of range", {2: np.ones(3, "float32")}, ", axis=3)")
