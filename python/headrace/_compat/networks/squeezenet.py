"""SqueezeNet of Iandola et al. (2016), versions 1.0 and 1.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, conv_bias_relu, data_of
from headrace._core import UserError
from headrace.relay import _root_ops, nn

__all__ = ["get_net", "get_workload"]

# By version: the first convolution, and groups of fire modules, with the pool that begins each. A fire module is the
# number of channels that it squeezes to; each of its two branches expands these to four times as many.
_VERSIONS = {
    "1.0": ({"channels": 96, "kernel_size": (7, 7), "padding": (3, 3)}, ((16, 16, 32), (32, 48, 48, 64), (64,))),
    "1.1": ({"channels": 64, "kernel_size": (3, 3), "padding": (1, 1)}, ((16, 16), (32, 32), (48, 48, 64, 64))),
}


def _fire(net: Any, squeezed: int, name: str) -> Any:
    net = conv_bias_relu(net, f"{name}_input_conv", channels=squeezed, kernel_size=(1, 1))
    left = conv_bias_relu(net, f"{name}_left_conv", channels=4 * squeezed, kernel_size=(1, 1))
    right = conv_bias_relu(net, f"{name}_right_conv", channels=4 * squeezed, kernel_size=(3, 3), padding=(1, 1))
    return _root_ops.concatenate((left, right), axis=1)


def get_net(batch_size: int, image_shape: Sequence[int], num_classes: int, version: str, dtype: str) -> Any:
    """The network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many images.
    image_shape : tuple of int
        The shape of an image, channels first.
    num_classes : int
        How many classes.
    version : str
        "1.0" or "1.1".
    dtype : str
        The dtype of the images.

    Returns
    -------
    Function
        T[batch_size, image_shape] and weights -> T[batch_size, num_classes].

    Raises
    ------
    UserError
        For another version.
    """
    if version not in _VERSIONS:
        raise UserError(f'squeezenet: version is {version!r}; it is "1.0" or "1.1"')
    first, groups = _VERSIONS[version]
    net = conv_bias_relu(data_of(batch_size, image_shape, dtype), "conv1", strides=(2, 2), **first)
    number = 0
    for group in groups:
        net = nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2))
        for squeezed in group:
            number += 1
            net = _fire(net, squeezed, f"fire{number}")
    net = conv_bias_relu(nn.dropout(net, rate=0.5), "conv_final", channels=num_classes, kernel_size=(1, 1))
    return as_function(nn.softmax(nn.batch_flatten(nn.global_avg_pool2d(net))))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size, num_classes, version, image_shape, dtype
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))


_public.publish(__name__, "headrace.relay.testing.squeezenet")
