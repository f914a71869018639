"""A perceptron of three dense layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, data_of
from headrace.relay import nn

__all__ = ["get_net", "get_workload"]


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32"
) -> Any:
    """The network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many images.
    num_classes : int
        How many classes.
    image_shape : tuple of int
        The shape of an image.
    dtype : str
        The dtype of the images.

    Returns
    -------
    Function
        T[batch_size, image_shape] and weights -> T[batch_size, num_classes].
    """
    net = nn.batch_flatten(data_of(batch_size, image_shape, dtype))
    for name, units in (("fc1", 128), ("fc2", 64)):
        net = nn.relu(layers.dense_add_bias(net, units=units, name=name))
    return as_function(nn.softmax(layers.dense_add_bias(net, units=num_classes, name="fc3")))


def get_workload(
    batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32"
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size, num_classes, image_shape, dtype
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))


_public.publish(__name__, "headrace.relay.testing.mlp")
