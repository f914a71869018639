"""Ops whose weights are variables that are named after the layer; inference gives these their types."""

from __future__ import annotations

from typing import Any

from headrace import _public
from headrace._core import UserError
from headrace.relay import nn
from headrace.relay._build_ir import var

__all__ = [
    "batch_norm_infer",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv_kernel_layout",
    "dense_add_bias",
]

_KERNEL_LAYOUTS = {"NCHW": ("OIHW", "OIHW"), "NHWC": ("HWIO", "HWOI")}


def _weights(layer: str, name: str | None, given: dict[str, Any]) -> list[Any]:
    """The expressions that are given, and a new variable for each that is None."""
    missing = [suffix for suffix, value in given.items() if value is None]
    if missing and not isinstance(name, str):
        raise UserError(f"layers.{layer}: give name, which new variables are named after, or {', '.join(missing)}")
    return [var(f"{name}_{suffix}") if value is None else value for suffix, value in given.items()]


def batch_norm_infer(
    data: Any, gamma: Any = None, beta: Any = None, moving_mean: Any = None, moving_var: Any = None, **kwargs: Any
) -> Any:
    """Batch normalization with the moving statistics: the first result of `relay.nn.batch_norm`.

    Parameters
    ----------
    data : RelayExpr
        What is normalized.
    gamma, beta, moving_mean, moving_var : RelayExpr, optional
        The statistics; a variable that is called `name` and "_gamma" and so on stands for each that is left out.
    **kwargs
        name, and what `relay.nn.batch_norm` takes.

    Returns
    -------
    RelayExpr
    """
    given = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    return nn.batch_norm(data, *_weights("batch_norm_infer", kwargs.pop("name", None), given), **kwargs)[0]


def conv2d(data: Any, weight: Any = None, **kwargs: Any) -> Any:
    """A convolution over planes.

    Parameters
    ----------
    data : RelayExpr
        What is convolved.
    weight : RelayExpr, optional
        The kernel; without it a variable that is called `name` and "_weight".
    **kwargs
        name, and what `relay.nn.conv2d` takes: a new kernel needs channels and kernel_size.

    Returns
    -------
    Call
    """
    return nn.conv2d(data, *_weights("conv2d", kwargs.pop("name", None), {"weight": weight}), **kwargs)


def conv3d(data: Any, weight: Any = None, **kwargs: Any) -> Any:
    """A convolution over volumes.

    Parameters
    ----------
    data : RelayExpr
        What is convolved.
    weight : RelayExpr, optional
        The kernel; without it a variable that is called `name` and "_weight".
    **kwargs
        name, and what `relay.nn.conv3d` takes: a new kernel needs channels and kernel_size.

    Returns
    -------
    Call
    """
    return nn.conv3d(data, *_weights("conv3d", kwargs.pop("name", None), {"weight": weight}), **kwargs)


def conv2d_transpose(data: Any, weight: Any = None, **kwargs: Any) -> Any:
    """A transposed convolution over planes.

    Parameters
    ----------
    data : RelayExpr
        What is convolved.
    weight : RelayExpr, optional
        The kernel; without it a variable that is called `name` and "_weight".
    **kwargs
        name, and what `relay.nn.conv2d_transpose` takes: a new kernel needs channels and kernel_size.

    Returns
    -------
    Call
    """
    weights = _weights("conv2d_transpose", kwargs.pop("name", None), {"weight": weight})
    return nn.conv2d_transpose(data, *weights, **kwargs)


def dense_add_bias(data: Any, weight: Any = None, bias: Any = None, units: int | None = None, **kwargs: Any) -> Any:
    """A dense layer and its bias.

    Parameters
    ----------
    data : RelayExpr
        T[N, C]: what is multiplied.
    weight, bias : RelayExpr, optional
        T[units, C] and T[units]; a variable that is called `name` and "_weight" or "_bias" stands for one left out.
    units : int, optional
        How many results a row has; a new weight needs it.
    **kwargs
        name, and what `relay.nn.dense` takes.

    Returns
    -------
    Call
    """
    weight, bias = _weights("dense_add_bias", kwargs.pop("name", None), {"weight": weight, "bias": bias})
    return nn.bias_add(nn.dense(data, weight, units=units, **kwargs), bias, axis=-1)


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The layout of a convolution's kernel that goes with a layout of its data.

    Parameters
    ----------
    data_layout : str
        "NCHW" or "NHWC".
    is_depthwise : bool
        Whether each channel has a kernel of its own.

    Returns
    -------
    str

    Raises
    ------
    UserError
        For another layout.
    """
    if data_layout not in _KERNEL_LAYOUTS:
        raise UserError(f"conv_kernel_layout: data_layout is {data_layout!r}; it is NCHW or NHWC")
    return _KERNEL_LAYOUTS[data_layout][bool(is_depthwise)]


_public.publish(__name__, "headrace.relay.testing.layers")
