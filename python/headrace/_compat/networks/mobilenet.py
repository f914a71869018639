"""MobileNet of Howard et al. (2017): depthwise convolutions, and convolutions of 1 x 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function
from headrace._core import UserError
from headrace.relay import nn
from headrace.relay._build_ir import var

__all__ = ["get_workload", "mobile_net"]

# Channels that a block is given and gives, in units of alpha, and its stride.
_FIRST = ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2))
_DEEP = (*((512, 512, 1),) * 5, (512, 1024, 2), (1024, 1024, 1))
_SHALLOW = ((512, 1024, 2), (1024, 1024, 2))


def _conv_bn_relu(net: Any, conv: str, norm: str, layout: str, is_depthwise: bool = False, **kwargs: Any) -> Any:
    kernel_layout = layers.conv_kernel_layout(layout, is_depthwise)
    net = layers.conv2d(net, data_layout=layout, kernel_layout=kernel_layout, name=conv, **kwargs)
    return nn.relu(layers.batch_norm_infer(net, epsilon=1e-5, axis=layout.index("C"), name=norm))


def _separable(net: Any, name: str, inputs: int, outputs: int, stride: int, layout: str, dtype: str) -> Any:
    shape = (inputs, 1, 3, 3) if layout == "NCHW" else (3, 3, inputs, 1)
    net = _conv_bn_relu(
        net,
        f"{name}_depthwise_conv1",
        f"{name}_bn1",
        layout,
        is_depthwise=True,
        weight=var(f"{name}_weight", shape=shape, dtype=dtype),
        channels=inputs,
        groups=inputs,
        kernel_size=(3, 3),
        strides=(stride, stride),
        padding=(1, 1),
    )
    return _conv_bn_relu(net, f"{name}_conv2", f"{name}_bn2", layout, channels=outputs, kernel_size=(1, 1))


def mobile_net(
    num_classes: int = 1000,
    data_shape: Sequence[int] = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Any:
    """The network, whose parameters have no types yet, but for "data" and the depthwise kernels.

    Parameters
    ----------
    num_classes : int
        How many classes.
    data_shape : tuple of int
        The shape of the images, in the order that layout says.
    dtype : str
        The dtype of the images.
    alpha : float
        What the usual numbers of channels are multiplied by.
    is_shallow : bool
        Whether there are eight blocks instead of thirteen.
    layout : str
        "NCHW" or "NHWC".

    Returns
    -------
    Function
        T[data_shape] and weights -> T[batch, num_classes].

    Raises
    ------
    UserError
        For another layout.
    """
    if layout not in ("NCHW", "NHWC"):
        raise UserError(f"mobilenet: layout is {layout!r}; it is NCHW or NHWC")
    net = _conv_bn_relu(
        var("data", shape=data_shape, dtype=dtype),
        "conv_block_1_conv",
        "conv_block_1_bn",
        layout,
        channels=int(32 * alpha),
        kernel_size=(3, 3),
        strides=(2, 2),
        padding=(1, 1),
    )
    for i, (inputs, outputs, stride) in enumerate((*_FIRST, *(_SHALLOW if is_shallow else _DEEP)), 1):
        name = f"separable_conv_block_{i}"
        net = _separable(net, name, int(inputs * alpha), int(outputs * alpha), stride, layout, dtype)
    net = nn.batch_flatten(nn.global_avg_pool2d(net, layout=layout))
    return as_function(nn.softmax(layers.dense_add_bias(net, units=num_classes, name="fc")))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size : int
        How many images.
    num_classes : int
        How many classes.
    image_shape : tuple of int
        The shape of an image, in the order that layout says.
    dtype : str
        The dtype of the images.
    layout : str
        "NCHW" or "NHWC".

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))


_public.publish(__name__, "headrace.relay.testing.mobilenet")
