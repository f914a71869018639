"""Parameters for networks: initialisers, which go by the ends of names, and modules with their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headrace import _public, nd
from headrace._core import UserError
from headrace._numpy import np
from headrace.ir import IRModule
from headrace.relay.transform import InferType

__all__ = ["Constant", "Initializer", "Xavier", "create_workload"]


class Initializer:
    """Fills arrays by the ends of their names: "bias", "beta" and "mean" with 0, "gamma" and "var" with 1.

    A subclass fills what ends in "weight" by its method `_init_weight(name, arr)`. The methods for the other ends, such
    as `_init_bias(name, arr)`, and `_init_default(name, arr)` for any other name may be overridden too.

    Parameters
    ----------
    **kwargs
        Kept, and not read.
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def __call__(self, desc: str, arr: np.ndarray) -> None:
        ends = ("weight", "bias", "gamma", "beta", "mean", "var")
        end = next((end for end in ends if desc.endswith(end)), "default")
        getattr(self, f"_init_{end}")(desc, arr)

    def _init_bias(self, _name: str, arr: np.ndarray) -> None:
        arr[:] = 0

    def _init_gamma(self, _name: str, arr: np.ndarray) -> None:
        arr[:] = 1

    def _init_beta(self, _name: str, arr: np.ndarray) -> None:
        arr[:] = 0

    def _init_mean(self, _name: str, arr: np.ndarray) -> None:
        arr[:] = 0

    def _init_var(self, _name: str, arr: np.ndarray) -> None:
        arr[:] = 1

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no _init_weight, which fills '{name}'")

    def _init_default(self, name: str, arr: np.ndarray) -> None:
        raise UserError(
            f"no initialiser knows the parameter '{name}': it goes by names that end in weight, bias, gamma, beta, "
            "mean or var; rename the parameter, or override _init_default"
        )


class Xavier(Initializer):
    """Weights of Glorot and Bengio (2010): uniform in +-sqrt(magnitude / connections), from numpy's global numbers.

    Parameters
    ----------
    rnd_type : str
        "uniform".
    factor_type : str
        Which connections count: "in", "out", or their mean "avg".
    magnitude : float
        The numerator.

    Raises
    ------
    UserError
        When it fills a weight, for another rnd_type or factor_type, and for a weight of less than two axes.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        if arr.ndim < 2:
            raise UserError(f"Xavier: the weight '{name}' has shape {arr.shape}; it takes two axes or more")
        window = math.prod(arr.shape[2:])
        outputs, inputs = arr.shape[0] * window, arr.shape[1] * window
        connections = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}
        if self.factor_type not in connections:
            raise UserError(f"Xavier: factor_type is {self.factor_type!r}; it is avg, in or out")
        if self.rnd_type != "uniform":
            raise UserError(f"Xavier: rnd_type is {self.rnd_type!r}; it is uniform")
        # A depthwise kernel connects each channel with itself alone.
        count = window if "depthwise" in name else connections[self.factor_type]
        limit = math.sqrt(self.magnitude / count)
        arr[:] = np.random.uniform(-limit, limit, size=arr.shape)


class Constant(Initializer):
    """Weights that are all equal, with the sum 1.

    Parameters
    ----------
    **kwargs
        Kept, and not read.
    """

    def _init_weight(self, _name: str, arr: np.ndarray) -> None:
        arr[:] = 1 / arr.size


def create_workload(
    net: Any, initializer: Callable[[str, np.ndarray], None] | None = None, seed: int = 0
) -> tuple[Any, dict[str, nd.NDArray]]:
    """A module of a network, and values for all of its parameters but "data".

    Parameters
    ----------
    net : Function
        The network.
    initializer : Initializer, optional
        Fills an array by its name; `Xavier()` when it is left out.
    seed : int
        Seeds numpy's global random numbers, which initialisers draw from.

    Returns
    -------
    (IRModule, dict of str to NDArray)
        The module, typed, and the values by name.

    Raises
    ------
    UserError
        For a program that InferType refuses, and a parameter that is not a tensor of a known shape.
    """
    mod = InferType()(IRModule.from_expr(net))
    np.random.seed(seed)
    fill = Xavier() if initializer is None else initializer
    params = {}
    for param in mod["main"].params:
        if param.name_hint == "data":
            continue
        kind = param.checked_type
        if kind.type_key != "relay.TensorType":
            raise UserError(f"create_workload: the parameter '{param.name_hint}' is {kind}, and no tensor")
        value = np.zeros(kind.concrete_shape, kind.dtype)
        fill(param.name_hint, value)
        params[param.name_hint] = nd.array(value)
    return mod, params


_public.publish(__name__, "headrace.relay.testing.init")
