"""The networks of Simonyan and Zisserman (2014), of 11, 13, 16 and 19 layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, data_of
from headrace._core import UserError
from headrace.relay import nn
from headrace.relay._build_ir import var

__all__ = ["get_net", "get_workload"]

# By the number of layers: how many convolutions each stage has.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


def _features(net: Any, counts: Sequence[int], batch_norm: bool) -> Any:
    for stage, (count, channels) in enumerate(zip(counts, _CHANNELS, strict=True), 1):
        for i in range(1, count + 1):
            name = f"conv{stage}_{i}"
            net = layers.conv2d(net, kernel_size=(3, 3), padding=(1, 1), channels=channels, name=name)
            net = nn.bias_add(net, var(f"{name}_bias"))
            if batch_norm:
                net = layers.batch_norm_infer(net, name=f"bn{stage}_{i}")
            net = nn.relu(net)
        net = nn.max_pool2d(net, pool_size=(2, 2), strides=(2, 2))
    return net


def get_net(
    batch_size: int,
    image_shape: Sequence[int],
    num_classes: int,
    dtype: str,
    num_layers: int = 11,
    batch_norm: bool = False,
) -> Any:
    """The network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many images.
    image_shape : tuple of int
        The shape of an image, channels first.
    num_classes : int
        How many classes.
    dtype : str
        The dtype of the images.
    num_layers : int
        11, 13, 16 or 19.
    batch_norm : bool
        Whether each convolution is normalized.

    Returns
    -------
    Function
        T[batch_size, image_shape] and weights -> T[batch_size, num_classes].

    Raises
    ------
    UserError
        For another number of layers.
    """
    if num_layers not in _STAGES:
        raise UserError(f"vgg: num_layers is {num_layers!r}; it is 11, 13, 16 or 19")
    net = nn.batch_flatten(_features(data_of(batch_size, image_shape, dtype), _STAGES[num_layers], batch_norm))
    for name in ("fc6", "fc7"):
        net = nn.dropout(nn.relu(layers.dense_add_bias(net, units=4096, name=name)), rate=0.5)
    return as_function(nn.softmax(layers.dense_add_bias(net, units=num_classes, name="fc8")))


def get_workload(
    batch_size: int,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size, num_classes, image_shape, dtype, num_layers, batch_norm
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))


_public.publish(__name__, "headrace.relay.testing.vgg")
