"""A network with the layers of DenseNet (Huang et al. 2016), as Relay had it.

Within a block each layer reads the layer before it alone, and the block's result is the concatenation of its layers. In
the paper each layer reads all layers before it. Programs that name parameters or shapes rely on this form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, data_of
from headrace._core import UserError
from headrace.relay import _root_ops, nn

__all__ = ["get_workload"]

# By size: the channels of the first convolution, those that a layer adds, and the layers of each block. The 69 is
# Relay's, where the paper has 64: shapes of parameters follow from it.
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (69, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}
_BOTTLENECK = 4


def _bn_relu(net: Any, name: str) -> Any:
    return nn.relu(layers.batch_norm_infer(net, name=name))


def _block(net: Any, count: int, growth: int, block: int) -> Any:
    outputs = []
    for i in range(count):
        name = f"{block}_{i}"
        net = _bn_relu(net, f"batch_1_{name}")
        net = layers.conv2d(net, channels=_BOTTLENECK * growth, kernel_size=(1, 1), name=f"conv2d_1_{name}")
        net = _bn_relu(net, f"batch_2_{name}")
        net = layers.conv2d(net, channels=growth, kernel_size=(3, 3), padding=(1, 1), name=f"conv2d_2_{name}")
        outputs.append(net)
    return _root_ops.concatenate(outputs, axis=1)


def _dense_net(data: Any, first: int, growth: int, counts: Sequence[int], classes: int) -> Any:
    net = layers.conv2d(data, channels=first, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1")
    net = nn.max_pool2d(_bn_relu(net, "batch1"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    channels = first
    for i, count in enumerate(counts):
        net = _block(net, count, growth, i)
        channels += count * growth
        if i + 1 < len(counts):
            channels //= 2
            net = _bn_relu(net, f"batch_t_{i}")
            net = layers.conv2d(net, channels=channels, kernel_size=(1, 1), name=f"conv_t_{i}")
            net = nn.avg_pool2d(net, pool_size=(2, 2), strides=(2, 2))
    net = nn.batch_flatten(nn.avg_pool2d(_bn_relu(net, "batch2"), pool_size=(7, 7)))
    return as_function(layers.dense_add_bias(net, units=classes, name="dense"))


def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: int = 4,
    image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    densenet_size : int
        121, 161, 169 or 201.
    classes : int
        How many classes.
    batch_size : int
        How many images.
    image_shape : tuple of int
        The shape of an image, channels first; 193 or more high and wide, since the last pool takes 7 x 7.
    dtype : str
        The dtype of the images.

    Returns
    -------
    (IRModule, dict of str to NDArray)

    Raises
    ------
    UserError
        For another size.
    """
    if densenet_size not in _SIZES:
        raise UserError(f"densenet: densenet_size is {densenet_size!r}; it is 121, 161, 169 or 201")
    return create_workload(_dense_net(data_of(batch_size, image_shape, dtype), *_SIZES[densenet_size], classes))


_public.publish(__name__, "headrace.relay.testing.densenet")
