"""The generator of DCGAN (Radford et al. 2015): images of 64 x 64 from codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function, data_of
from headrace._core import UserError
from headrace.relay import _root_ops, nn
from headrace.relay._build_ir import var

__all__ = ["get_net", "get_workload"]

_KERNEL_LAYOUTS = {"NCHW": "IOHW", "NHWC": "HWOI"}


def _doubled(net: Any, channels: int, layout: str, name: str) -> Any:
    """A transposed convolution that doubles height and width."""
    return layers.conv2d_transpose(
        net,
        kernel_size=(4, 4),
        strides=(2, 2),
        channels=channels,
        padding=(1, 1),
        output_padding=(0, 0),
        data_layout=layout,
        kernel_layout=_KERNEL_LAYOUTS[layout],
        name=name,
    )


def get_net(
    batch_size: int,
    random_len: int = 100,
    oshape: Sequence[int] = (3, 64, 64),
    ngf: int = 128,
    code: Any = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Any:
    """The network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many codes.
    random_len : int
        The length of a code.
    oshape : tuple of int
        The channels of an image, and 64, 64.
    ngf : int
        The channels before the last layer.
    code : RelayExpr, optional
        The codes, T[batch_size, random_len]; the variable "data" when it is left out.
    layout : str
        "NCHW" or "NHWC".
    dtype : str
        The dtype of the codes.

    Returns
    -------
    Function
        The codes and weights -> T[batch_size, oshape], channels where the layout has them.

    Raises
    ------
    UserError
        For images of another size, and another layout.
    """
    if tuple(oshape[-2:]) != (64, 64):
        raise UserError(f"dcgan: oshape is {tuple(oshape)}; images are 64 high and wide")
    if layout not in _KERNEL_LAYOUTS:
        raise UserError(f"dcgan: layout is {layout!r}; it is NCHW or NHWC")
    net = data_of(batch_size, (random_len,), dtype) if code is None else code
    net = nn.relu(nn.dense(net, var("dense_weight"), units=4 * 4 * ngf * 8))
    net = _root_ops.reshape(net, newshape=(-1, ngf * 8, 4, 4) if layout == "NCHW" else (-1, 4, 4, ngf * 8))
    for name, channels in (("g2", ngf * 4), ("g3", ngf * 2), ("g4", ngf)):
        net = _doubled(net, channels, layout, f"{name}_deconv")
        net = layers.batch_norm_infer(
            net, epsilon=1e-5 + 1e-12, scale=False, axis=layout.index("C"), name=f"{name}_batch_norm"
        )
        net = nn.relu(net)
    return as_function(_root_ops.tanh(_doubled(net, oshape[-3], layout, "g5_deconv")))


def get_workload(
    batch_size: int,
    oshape: Sequence[int] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size, oshape, ngf, random_len, layout, dtype
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(batch_size, random_len, oshape=oshape, ngf=ngf, layout=layout, dtype=dtype))


_public.publish(__name__, "headrace.relay.testing.dcgan")
