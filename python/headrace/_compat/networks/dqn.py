"""The deep Q network of Mnih et al. (Nature 518, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, conv_bias_relu, data_of
from headrace.relay import nn

__all__ = ["get_net", "get_workload"]


def get_net(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Any:
    """The network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many inputs.
    num_actions : int
        How many actions are valued.
    image_shape : tuple of int
        The shape of an input, in the order that layout says.
    dtype : str
        The dtype of the inputs.
    layout : str
        "NCHW" or "NHWC".

    Returns
    -------
    Function
        T[batch_size, image_shape] and weights -> T[batch_size, num_actions].
    """
    kernel_layout = layers.conv_kernel_layout(layout)
    net = data_of(batch_size, image_shape, dtype)
    for i, (channels, size, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        net = conv_bias_relu(
            net,
            f"conv{i}",
            layout.index("C"),
            channels=channels,
            kernel_size=(size, size),
            strides=(stride, stride),
            data_layout=layout,
            kernel_layout=kernel_layout,
        )
    net = nn.relu(layers.dense_add_bias(nn.batch_flatten(net), units=512, name="dense1"))
    return as_function(layers.dense_add_bias(net, units=num_actions, name="dense2"))


def get_workload(
    batch_size: int,
    num_actions: int = 18,
    image_shape: Sequence[int] = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size, num_actions, image_shape, dtype, layout
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))


_public.publish(__name__, "headrace.relay.testing.dqn")
