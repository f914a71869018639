"""Layers that several networks share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace._compat.networks import layers
from headrace.relay import _classes as nodes
from headrace.relay import nn
from headrace.relay._build_ir import var
from headrace.relay.analysis import free_vars


def data_of(batch_size: int, shape: Sequence[int], dtype: str) -> Any:
    """The variable of the images, "data"."""
    return var("data", shape=(batch_size, *shape), dtype=dtype)


def as_function(body: Any) -> Any:
    """The function of an expression's free variables."""
    return nodes.Function(free_vars(body), body)


def conv_bias_relu(data: Any, name: str, bias_axis: int = 1, **kwargs: Any) -> Any:
    """A convolution with the weight `name`_weight, the bias `name`_bias, and relu."""
    return nn.relu(nn.bias_add(layers.conv2d(data, name=name, **kwargs), var(f"{name}_bias"), bias_axis))
