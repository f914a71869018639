"""Residual networks of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import residual
from headrace._compat.networks.init import create_workload

__all__ = ["get_net", "get_workload", "residual_unit", "resnet"]


def _convs(layout: str, kernel_layout: str | None = None) -> residual.Convs:
    usual = "OIHW" if layout == "NCHW" else "HWIO"
    return residual.Convs(2, layout, kernel_layout or usual)


def residual_unit(
    data: Any,
    num_filter: int,
    stride: Any,
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
) -> Any:
    """A unit: convolutions, each after normalization and relu, and a way around them.

    Parameters
    ----------
    data : RelayExpr
        What is given.
    num_filter : int
        How many channels the result has.
    stride : tuple of int
        The stride of the first convolution, and of the way around.
    dim_match : bool
        Whether the way around is `data` itself, or a convolution of 1 x 1.
    name : str
        What the weights' names begin with.
    bottle_neck : bool
        Whether there are three convolutions, of a quarter of the channels within, instead of two.
    data_layout, kernel_layout : str
        Those of the convolutions.

    Returns
    -------
    RelayExpr
    """
    convs = _convs(data_layout, kernel_layout)
    return residual.unit(convs, data, num_filter, stride, dim_match, name, bottle_neck)


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sequence[int],
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Any:
    """A residual network, whose parameters but "data" have no types yet.

    Parameters
    ----------
    units : list of int
        How many units each stage has.
    num_stages : int
        How many stages there are.
    filter_list : list of int
        How many channels there are before the first stage, and after each.
    num_classes : int
        How many classes.
    data_shape : tuple of int
        The shape of the data, in the order that layout says.
    bottle_neck : bool
        Whether units have three convolutions instead of two.
    layout : str
        "NCHW" or "NHWC".
    dtype : str
        The dtype of the data.

    Returns
    -------
    Function
        T[data_shape] and weights -> T[batch, num_classes].

    Raises
    ------
    UserError
        When the lists do not go with the number of stages.
    """
    residual.checked_stages("resnet", units, num_stages, filter_list)
    plan = residual.Plan(units, filter_list, bottle_neck)
    return residual.network(_convs(layout), plan, num_classes, data_shape, dtype)


def get_net(
    batch_size: int,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sequence[int] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> Any:
    """The network of a number of layers, whose parameters but "data" have no types yet.

    Parameters
    ----------
    batch_size : int
        How many images.
    num_classes : int
        How many classes.
    num_layers : int
        18, 34, 50, 101, 152, 200 or 269; of images up to 28 high 6 * n + 2 below 164, or 9 * n + 2 from 164 on.
    image_shape : tuple of int
        The shape of an image, in the order that layout says.
    layout : str
        "NCHW" or "NHWC".
    dtype : str
        The dtype of the images.
    **kwargs
        Accepted for the sake of old programs, and not read.

    Returns
    -------
    Function
        T[batch_size, image_shape] and weights -> T[batch_size, num_classes].

    Raises
    ------
    UserError
        For another number of layers.
    """
    convs, data_shape = _convs(layout), (batch_size, *image_shape)
    plan = residual.plan_of("resnet", num_layers, convs.height(data_shape))
    return residual.network(convs, plan, num_classes, data_shape, dtype)


def get_workload(
    batch_size: int = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sequence[int] = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    **kwargs: Any,
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them.

    Parameters
    ----------
    batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))


_public.publish(__name__, "headrace.relay.testing.resnet")
