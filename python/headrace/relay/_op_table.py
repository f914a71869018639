"""Where the functions of ops differ from what the op registry says: a small table, by hand.

The registry gives each op's arguments and attributes with their docs and defaults; Relay users know some functions with
their parameters in another order, or with defaults of their own.
"""

from __future__ import annotations

import re
from typing import Any

# Parameters in the order that users give them; the registry's remaining ones follow.
ORDER: dict[str, str] = {
    "clip": "data a_min a_max",
    "gather": "data axis indices",
    "take": "data indices axis batch_dims mode",
    "argmax": "data axis keepdims exclude select_last_index dtype",
    "argmin": "data axis keepdims exclude select_last_index dtype",
    "strided_slice": "data begin end strides axes slice_mode",
    **dict.fromkeys(
        ["nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"],
        "data weight strides padding dilation channels kernel_size groups data_layout kernel_layout out_layout "
        "output_padding out_dtype",
    ),
    "nn.max_pool2d_grad": "out_grad data pool_size strides padding layout out_layout ceil_mode",
    "nn.avg_pool2d_grad": "out_grad data pool_size strides padding layout out_layout ceil_mode count_include_pad",
    "nn.batch_norm": "data gamma beta moving_mean moving_var axis epsilon center scale momentum",
    "nn.pad": "data pad_width pad_value pad_mode",
    "nn.mirror_pad": "data pad_width mode",
    "full": "fill_value shape dtype",
    "image.resize2d": "data size roi layout method coordinate_transformation_mode rounding_method cubic_alpha "
    "cubic_exclude out_dtype",
    "qnn.avg_pool2d": "data input_scale input_zero_point output_scale output_zero_point pool_size strides padding "
    "dilation ceil_mode count_include_pad layout out_layout",
    "qnn.conv2d": "data kernel input_zero_point kernel_zero_point input_scale kernel_scale kernel_size channels "
    "strides padding dilation groups data_layout kernel_layout out_layout out_dtype",
    "qnn.conv2d_transpose": "data weight input_zero_point kernel_zero_point input_scale kernel_scale strides padding "
    "dilation groups channels kernel_size data_layout kernel_layout out_layout output_padding out_dtype",
    "qnn.leaky_relu": "x alpha input_scale input_zero_point output_scale output_zero_point",
    "sparse_to_dense": "sparse_indices output_shape sparse_values default_value",
    "variance": "data mean axis keepdims exclude unbiased",
}

# Defaults of parameters that the registry has none for, or others.
DEFAULTS: dict[str, dict[str, Any]] = {
    "nn.lrn": {"alpha": 1e-5},
    "qnn.avg_pool2d": {"count_include_pad": True, "layout": "NHWC"},
    **{f"qnn.{op}": {"out_dtype": "int32"} for op in ("batch_matmul", "conv2d", "conv2d_transpose", "dense")},
    "sparse_to_dense": {"default_value": 0},
    "nn.pad": {"pad_value": 0},
    "vision.non_max_suppression": {"max_output_size": -1, "iou_threshold": 0.5},
}

# How many fields the tuple has that an op gives: a number, or a function of attributes and operands. None: the op gives
# no tuple, or Python cannot know its length before types are inferred.
RESULTS: dict[str, Any] = {
    "argwhere_bounded": 2,
    "nn.batch_norm": 3,
    "nn.dropout": 2,
    **dict.fromkeys(["nn.gru", "nn.rnn"], 2),
    "nn.lstm": 3,
    "nn.recurrent_steps": lambda attrs, operands: 3 if attrs.get("cell", "lstm") == "lstm" else 2,
    "nn.sparse_transpose": 3,
    "dft": 2,
    "sparse_fill_empty_rows": 3,
    "sparse_reshape": 2,
    "meshgrid": lambda attrs, operands: _items(operands[0]),
    **dict.fromkeys(
        ["random.multinomial", "random.normal", "random.threefry_generate", "random.threefry_split", "random.uniform"],
        2,
    ),
    "unique": lambda attrs, operands: 5 if attrs.get("return_counts") else 4,
    "vision.all_class_non_max_suppression": 2,
    "vision.get_valid_counts": 3,
    "vision.multibox_transform_loc": 2,
    "vision.non_max_suppression": lambda attrs, operands: 2 if attrs.get("return_indices", True) else None,
    "topk": lambda attrs, operands: 2 if attrs.get("ret_type", "both") == "both" else None,
    "split": lambda attrs, operands: _parts(attrs["indices_or_sections"]),
}


def _steps(data: str, sides: str) -> dict[str, Any]:
    """Dtypes of quantized operands, and of the scales and zero points of some sides."""
    scales = {f"{side}_scale": "float32" for side in sides.split()}
    return {
        **dict.fromkeys(data.split(), "int8"),
        **scales,
        **{f"{side}_zero_point": "int32" for side in sides.split()},
    }


_FUNCTIONS = "abs erf exp hardswish log rsqrt sigmoid softmax sqrt tanh"

# Dtypes of numbers that are given for operands whose dtype is not the others', or how it follows from what is given;
# None: as relay.const makes it. Numbers for other operands do not go by those that stand here.
NUMBERS: dict[str, dict[str, Any]] = {
    **{op: {"indices": "int64"} for op in ("gather", "gather_nd", "scatter_elements", "scatter_nd", "take")},
    "cast_like": {"dtype_like": None},
    "image.crop_and_resize": {"box_indices": "int64"},
    "nn.nll_loss": {"targets": "int64"},
    "one_hot": {"indices": "int64", **dict.fromkeys(["on_value", "off_value"], lambda given: given["dtype"])},
    **{
        op: _steps("data weight", "input kernel")
        for op in ("qnn.contrib_dense_pack", "qnn.conv2d_transpose", "qnn.dense")
    },
    "qnn.avg_pool2d": _steps("data", "input output"),
    "qnn.batch_matmul": _steps("x y", "x y"),
    "qnn.concatenate": _steps("", "output"),
    "qnn.conv2d": _steps("data kernel", "input kernel"),
    "qnn.leaky_relu": _steps("x", "input output"),
    "qnn.requantize": {"data": "int32", **_steps("", "input output")},
    **{op: _steps("lhs rhs", "lhs rhs output") for op in ("qnn.add", "qnn.mul", "qnn.subtract")},
    **{f"qnn.{op}": {"scale": "float32", "zero_point": "int32", **_steps("x", "output")} for op in _FUNCTIONS.split()},
    "qnn.dequantize": {"data": "int8", "input_scale": "float32", "input_zero_point": "int32"},
    "qnn.quantize": {"data": "float32", "output_scale": "float32", "output_zero_point": "int32"},
    "qnn.simulated_dequantize": {"data": "float32", "in_dtype": "int32", **_steps("", "input")},
    "qnn.simulated_quantize": {"data": "float32", "out_dtype": "int32", **_steps("", "output")},
    "random.multinomial": {"key": "uint64"},
    "reverse_sequence": {"seq_lengths": "int64"},
    "sequence_mask": {"valid_length": "int64"},
    "strided_set": dict.fromkeys(["begin", "end", "strides"], "int64"),
    "trilu": {"k": "int64"},
    "unravel_index": dict.fromkeys(["indices", "shape"], "int64"),
    "vision.non_max_suppression": {
        **dict.fromkeys(["valid_count", "indices", "max_output_size"], "int32"),
        "iou_threshold": "float32",
    },
    "where": {"condition": "bool"},
}

# Functions that give one field of the op's tuple.
FIELD: dict[str, int] = {"nn.dropout": 0}


# Ops whose padding has all its begins and ends, however it is given.
PADDED = re.compile(r"q?nn\.(conv[123]d(_transpose)?|(avg|max)_pool[123]d)")


def _parts(indices_or_sections: Any) -> int:
    return indices_or_sections if isinstance(indices_or_sections, int) else len(indices_or_sections) + 1


def _items(tuple_value: Any) -> int | None:
    """How many items a tuple has that is made right there."""
    return len(tuple_value.fields) if hasattr(tuple_value, "fields") else None
