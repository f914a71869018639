"""Long short-term memory (Hochreiter and Schmidhuber 1997), unrolled: one function a step."""

from __future__ import annotations

from typing import Any

from headrace import _public
from headrace._compat.networks import layers
from headrace._compat.networks.init import create_workload
from headrace._compat.networks.pieces import as_function
from headrace.relay import _classes as nodes
from headrace.relay import _root_ops as ops
from headrace.relay._build_ir import ScopeBuilder

__all__ = ["get_net", "get_workload", "lstm_cell"]


class _Types:
    """The types of a cell."""

    def __init__(self, batch_size: int, num_hidden: int, dtype: str) -> None:
        self.input = nodes.TensorType((batch_size, num_hidden), dtype)
        self.gates = nodes.TensorType((batch_size, 4 * num_hidden), dtype)
        self.weight = nodes.TensorType((4 * num_hidden, num_hidden), dtype)
        self.bias = nodes.TensorType((4 * num_hidden,), dtype)
        self.state = nodes.TupleType([self.input, self.input])
        self.result = nodes.TupleType([self.input, self.state])

    def weights(self, name: str) -> list[Any]:
        """The variables of both dense layers, with `name` between the parts of their names."""
        kinds = (("i2h", "weight"), ("i2h", "bias"), ("h2h", "weight"), ("h2h", "bias"))
        return [nodes.Var(f"{layer}{name}_{kind}", getattr(self, kind)) for layer, kind in kinds]


def _next_state(scope: ScopeBuilder, types: _Types, gates: Any, cell: Any) -> Any:
    """Computes the output and the next state from the four gates and the cell's value."""
    quarters = nodes.TupleType([types.input] * 4)
    parts = scope.let(("slice_gates", quarters), ops.split(gates, indices_or_sections=4, axis=1).astuple())
    functions = {
        "in_gate": ops.sigmoid,
        "forget_gate": ops.sigmoid,
        "in_transform": ops.tanh,
        "out_gate": ops.sigmoid,
    }
    in_gate, forget_gate, in_transform, out_gate = (
        scope.let((gate, types.input), function(nodes.TupleGetItem(parts, i)))
        for i, (gate, function) in enumerate(functions.items())
    )
    sum_of = ops.add(ops.multiply(forget_gate, cell), ops.multiply(in_gate, in_transform))
    next_c = scope.let(("next_c", types.input), sum_of)
    next_h = scope.let(("next_h", types.input), ops.multiply(out_gate, ops.tanh(next_c)))
    return nodes.Tuple([next_h, nodes.Tuple([next_h, next_c])])


def lstm_cell(num_hidden: int, batch_size: int = 1, dtype: str = "float32", name: str = "") -> Any:
    """A step: the function of an input, the state, and the weights and biases of two dense layers.

    Parameters
    ----------
    num_hidden : int
        The length of the input, and of each part of the state.
    batch_size : int
        How many inputs.
    dtype : str
        The dtype of all values.
    name : str
        Accepted for the sake of old programs: the weights are parameters, which are named by what they are.

    Returns
    -------
    Function
        T[batch_size, num_hidden], a pair of these, T[4 * num_hidden, num_hidden], T[4 * num_hidden] and two of
        the kind -> the output, and the next state: a pair.
    """
    types = _Types(batch_size, num_hidden, dtype)
    inputs, states = nodes.Var("inputs", types.input), nodes.Var("states", types.state)
    weights = types.weights("")
    scope = ScopeBuilder()

    def dense(value: Any, of: str, weight: Any, bias: Any) -> Any:
        layer = layers.dense_add_bias(value, weight, bias, units=4 * num_hidden, name=f"{name}{of}")
        return scope.let((of, types.gates), layer)

    from_input = dense(inputs, "i2h", *weights[:2])
    from_state = dense(nodes.TupleGetItem(states, 0), "h2h", *weights[2:])
    gates = scope.let(("gates", types.gates), ops.add(from_input, from_state))
    result = _next_state(scope, types, gates, nodes.TupleGetItem(states, 1))
    scope.ret(scope.let(("ret", types.result), result))
    return nodes.Function([inputs, states, *weights], scope.get(), types.result)


def get_net(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Any:
    """Steps one after another, from a state of zeros. The input of each step is a parameter "data" of its own.

    Parameters
    ----------
    iterations : int
        How many steps.
    num_hidden : int
        The length of an input, and of each part of the state.
    batch_size : int
        How many inputs a step has.
    dtype : str
        The dtype of all values.

    Returns
    -------
    Function
        The inputs and weights -> T[batch_size, num_hidden], the output of the last step.
    """
    types, scope = _Types(batch_size, num_hidden, dtype), ScopeBuilder()
    zeros = scope.let(("zeros", types.input), ops.zeros((batch_size, num_hidden), dtype))
    states, out = scope.let(("init_states", types.state), nodes.Tuple([zeros, zeros])), zeros
    for i in range(iterations):
        cell = lstm_cell(num_hidden, batch_size, dtype, f"lstm_{i}")
        args = [nodes.Var("data", types.input), states, *types.weights(f"_{i}")]
        call = scope.let((f"call_{i}", types.result), nodes.Call(cell, args))
        out = scope.let((f"out_{i}", types.input), nodes.TupleGetItem(call, 0))
        states = scope.let((f"states_{i}", types.state), nodes.TupleGetItem(call, 1))
    scope.ret(out)
    function = as_function(scope.get())
    return nodes.Function(function.params, function.body, types.input)


def get_workload(
    iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32"
) -> tuple[Any, dict[str, Any]]:
    """The steps and their parameters, as `create_workload` gives them.

    Parameters
    ----------
    iterations, num_hidden, batch_size, dtype
        As of `get_net`.

    Returns
    -------
    (IRModule, dict of str to NDArray)
    """
    return create_workload(get_net(iterations, num_hidden, batch_size, dtype))


_public.publish(__name__, "headrace.relay.testing.lstm")
