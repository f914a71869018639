"""Annotations of programs, under Relay's name."""

from __future__ import annotations

from typing import Any

from headrace import _public
from headrace.relay import _op_functions as _ops

__all__ = [
    "checkpoint",
    "compiler_begin",
    "compiler_end",
    "on_device",
    "stop_fusion",
    "subgraph_begin",
    "subgraph_end",
    "subgraph_start",
]

_ON_DEVICE = _ops.deferred("on_device")


def on_device(body: Any, virtual_device: Any, constrain_result: bool = False, constrain_body: bool = True) -> Any:
    """Says where a value is computed and where it is needed; `relay.transform.PlanDevices` reads it.

    Parameters
    ----------
    body : RelayExpr
        The value.
    virtual_device : str, Device or VirtualDevice
        Such as "cuda:0", `hr.device("cuda", 0)` or `hr.target.VirtualDevice(hr.device("cuda"), memory_scope="global")`.
    constrain_result : bool
        Whether what this gives is there.
    constrain_body : bool
        Whether `body` is computed there.

    Returns
    -------
    Call
    """
    return _ON_DEVICE(body, virtual_device, constrain_result, constrain_body)


_STOP_FUSION = _ops.deferred("annotation.stop_fusion")


def stop_fusion(data: Any) -> Any:
    """`data`, computed before what reads it: what is before and what is behind are in different kernels.

    Parameters
    ----------
    data : RelayExpr
        The value.

    Returns
    -------
    Call
    """
    return _STOP_FUSION(data)


_CHECKPOINT = _ops.deferred("annotation.checkpoint")


def checkpoint(data: Any) -> Any:
    """`data`, marked as a value that a gradient may begin to compute again from; nothing here computes it twice.

    Parameters
    ----------
    data : RelayExpr
        The value.

    Returns
    -------
    Call
    """
    return _CHECKPOINT(data)


_COMPILER_BEGIN = _ops.deferred("annotation.compiler_begin")
_COMPILER_END = _ops.deferred("annotation.compiler_end")


def compiler_begin(data: Any, compiler: str) -> Any:
    """`data`, which here enters a part of the program that another compiler computes.

    `relay.transform.PartitionGraph` makes functions of such parts, and `relay.transform.AnnotateTarget` marks them.

    Parameters
    ----------
    data : RelayExpr
        The value, of any type.
    compiler : str
        The compiler, such as "dnnl".

    Returns
    -------
    Call
    """
    return _COMPILER_BEGIN(data, compiler)


def compiler_end(data: Any, compiler: str) -> Any:
    """`data`, which here leaves a part of the program that another compiler computes, as `compiler_begin` says.

    Parameters
    ----------
    data : RelayExpr
        The value, of any type.
    compiler : str
        The compiler, the same as where the part begins.

    Returns
    -------
    Call
    """
    return _COMPILER_END(data, compiler)


# Earlier names of Relay's.
subgraph_begin = subgraph_start = compiler_begin
subgraph_end = compiler_end


_public.settle(__name__)
