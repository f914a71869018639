"""Inception v3 of Szegedy et al. (2015). Parameters have the names that Relay's users know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, data_of
from headrace.relay import _root_ops, nn
from headrace.relay._build_ir import var

__all__ = ["get_net", "get_workload"]

# A convolution of a tower: its channels, its kernel, and its stride.
_Conv = tuple[int, tuple[int, int], int]


def _conv(
    net: Any, name: str, channels: int, kernel: tuple[int, int] = (1, 1), stride: int = 1, pad: Any = None
) -> Any:
    """A convolution, normalization and relu; `pad` None keeps the size of the plane."""
    pad = (kernel[0] // 2, kernel[1] // 2) if pad is None else pad
    conv = layers.conv2d(
        net, channels=channels, kernel_size=kernel, strides=(stride, stride), padding=pad, name=f"{name}_conv1"
    )
    return nn.relu(layers.batch_norm_infer(conv, epsilon=2e-5, name=f"{name}_bn"))


def _tower(net: Any, name: str, *convs: _Conv) -> Any:
    """Convolutions one after another. One with a stride has no padding."""
    for i, (channels, kernel, stride) in enumerate(convs):
        suffix = f"_conv_{i}" if i else "_conv"
        net = _conv(net, name + suffix, channels, kernel, stride, (0, 0) if stride > 1 else None)
    return net


def _halved(net: Any) -> Any:
    return nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2))


def _pooled(net: Any, kind: str, channels: int, name: str) -> Any:
    """A pool that keeps the size, and a convolution of its result."""
    how = {"pool_size": (3, 3), "strides": (1, 1), "padding": (1, 1)}
    pooled = nn.max_pool2d(net, **how) if kind == "max" else nn.avg_pool2d(net, count_include_pad=True, **how)
    return _tower(pooled, f"{name}_tower_2", (channels, (1, 1), 1))


def _joined(*parts: Any) -> Any:
    return _root_ops.concatenate(parts, axis=1)


def _block_5x5(net: Any, projected: int, name: str) -> Any:
    return _joined(
        _conv(net, f"{name}_conv", 64),
        _tower(net, f"{name}_tower", (48, (1, 1), 1), (64, (5, 5), 1)),
        _tower(net, f"{name}_tower_1", (64, (1, 1), 1), (96, (3, 3), 1), (96, (3, 3), 1)),
        _pooled(net, "avg", projected, name),
    )


def _first_reduction(net: Any, name: str) -> Any:
    return _joined(
        _conv(net, f"{name}_conv", 384, (3, 3), 2, (0, 0)),
        _tower(net, f"{name}_tower", (64, (1, 1), 1), (96, (3, 3), 1), (96, (3, 3), 2)),
        _halved(net),
    )


def _block_7x7(net: Any, inner: int, name: str) -> Any:
    wide, tall = (1, 7), (7, 1)
    return _joined(
        _conv(net, f"{name}_conv", 192),
        _tower(net, f"{name}_tower", (inner, (1, 1), 1), (inner, wide, 1), (192, tall, 1)),
        _tower(
            net,
            f"{name}_tower_1",
            (inner, (1, 1), 1),
            (inner, tall, 1),
            (inner, wide, 1),
            (inner, tall, 1),
            (192, wide, 1),
        ),
        _pooled(net, "avg", 192, name),
    )


def _second_reduction(net: Any, name: str) -> Any:
    return _joined(
        _tower(net, f"{name}_tower", (192, (1, 1), 1), (320, (3, 3), 2)),
        _tower(net, f"{name}_tower_1", (192, (1, 1), 1), (192, (1, 7), 1), (192, (7, 1), 1), (192, (3, 3), 2)),
        _halved(net),
    )


def _forked(net: Any, name: str) -> list[Any]:
    return [
        _conv(net, f"{name}_mixed_conv", 384, (1, 3)),
        _conv(net, f"{name}_mixed_conv_1", 384, (3, 1)),
    ]


def _block_forked(net: Any, pool: str, name: str) -> Any:
    return _joined(
        _conv(net, f"{name}_conv", 320),
        *_forked(_tower(net, f"{name}_tower", (384, (1, 1), 1)), f"{name}_tower"),
        *_forked(_tower(net, f"{name}_tower_1", (448, (1, 1), 1), (384, (3, 3), 1)), f"{name}_tower_1"),
        _pooled(net, pool, 192, name),
    )


def _features(net: Any) -> Any:
    net = _conv(net, "conv", 32, (3, 3), 2, (0, 0))
    net = _conv(net, "conv_1", 32, (3, 3), pad=(0, 0))
    net = _halved(_conv(net, "conv_2", 64, (3, 3)))
    net = _conv(net, "conv_3", 80)
    net = _halved(_conv(net, "conv_4", 192, (3, 3), pad=(0, 0)))
    for name, projected in (("mixed", 32), ("mixed_1", 64), ("mixed_2", 64)):
        net = _block_5x5(net, projected, name)
    net = _first_reduction(net, "mixed_3")
    for name, inner in (("mixed_4", 128), ("mixed_5", 160), ("mixed_6", 160), ("mixed_7", 192)):
        net = _block_7x7(net, inner, name)
    net = _second_reduction(net, "mixed_8")
    return _block_forked(_block_forked(net, "avg", "mixed_9"), "max", "mixed_10")


def get_net(batch_size: int, num_classes: int, image_shape: Sequence[int], dtype: str) -> Any:
    """The network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many images.
    num_classes : int
        How many classes.
    image_shape : tuple of int
        The shape of an image, channels first; 299 x 299 give a last pool of one place.
    dtype : str
        The dtype of the images.

    Returns
    -------
    Function
        T[batch_size, image_shape] and weights -> T[batch_size, num_classes].
    """
    net = _features(data_of(batch_size, image_shape, dtype))
    net = nn.avg_pool2d(net, pool_size=(8, 8), strides=(1, 1), count_include_pad=True)
    net = nn.dense(nn.batch_flatten(net), var("fc1_weight"), units=num_classes)
    # The bias is called fc2 in Relay, too.
    return as_function(nn.softmax(nn.bias_add(net, var("fc2_bias"))))


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    image_shape: Sequence[int] = (3, 299, 299),
    dtype: str = "float32",
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


_public.publish(__name__, "headrace.relay.testing.inception_v3")
