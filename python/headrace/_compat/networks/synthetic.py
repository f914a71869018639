"""A small network with two branches of each kind that large ones have, for tests that should be fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import Constant, create_workload
from headrace._compat.networks.pieces import as_function
from headrace.relay import _root_ops as ops
from headrace.relay import nn
from headrace.relay._build_ir import var

__all__ = ["get_net", "get_workload"]


def get_net(input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Any:
    """The network.

    Parameters
    ----------
    input_shape : tuple of int
        Batch, channels, height and width.
    dtype : str
        The dtype of the data.
    wtype : str, optional
        The dtype of the weights; `dtype` when it is left out.

    Returns
    -------
    Function
        T[input_shape] and weights -> T[input_shape].
    """
    wtype = dtype if wtype is None else wtype
    _, channels, _, width = input_shape

    def branches(value: Any, dense: str, conv: str) -> Any:
        rows = nn.dense(ops.reshape(value, (-1, width)), var(f"{dense}_weight", shape=(width, width), dtype=wtype))
        weight = var(f"{conv}_weight", shape=(channels, channels, 3, 3), dtype=wtype)
        planes = nn.softmax(nn.conv2d(value, weight, padding=1, kernel_size=3))
        return ops.add(ops.reshape_like(nn.relu(rows), data), planes)

    data = var("data", shape=input_shape, dtype=dtype)
    biased = nn.bias_add(branches(data, "dense", "conv"), var("bias", dtype=wtype))
    return as_function(branches(layers.batch_norm_infer(biased, name="batch_norm"), "dense2", "conv2"))


def get_workload(
    input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """The network and its parameters, as `create_workload` gives them with the initialiser `Constant`.

    Parameters
    ----------
    input_shape, dtype, wtype
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(input_shape, dtype, wtype), Constant())


_public.publish(__name__, "headrace.relay.testing.synthetic")
