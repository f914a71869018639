"""A graph of torch.compile: what of it keeps it from being compiled, and its form for the exporter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from headrace.torch._attention import plain_form
from headrace.torch._exporting import Refused
from headrace.torch._package import torch_package

__all__: list[str] = []


@dataclass
class Constant:
    """An output of a graph that is no tensor: a number, or None."""

    value: Any


@dataclass
class Frozen:
    """A graph whose weights and sizes are constants."""

    module: Any  # a torch.fx.GraphModule, which takes tensors and gives a tuple of tensors
    inputs: list[int]  # the arguments of the graph that `module` takes
    outputs: list[int | Constant]  # for each output of the graph: its number among those of `module`, or a constant
    is_tuple: bool  # whether the graph gives a tuple; one tensor otherwise


def op_count(module: Any) -> int:
    """Returns how many nodes of a graph compute something."""
    return sum(node.op.startswith("call_") for node in module.graph.nodes)


def weight_positions(example_inputs: Sequence[Any]) -> list[int]:
    """Returns which arguments of a graph are parameters or buffers of modules.

    torch.compile passes them as arguments. It marks buffers as tensors that stay where they are. Inference tensors do
    not count their changes, so that a constant could become stale unseen.
    """
    torch = torch_package()
    return [
        i
        for i, value in enumerate(example_inputs)
        if isinstance(value, torch.Tensor)
        and not value.is_inference()
        and (isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None)
    ]


def check_graph(module: Any, example_inputs: Sequence[Any]) -> None:
    """Raises Refused for a graph that needs gradients, another device, or outputs that share memory with inputs."""
    torch = torch_package()
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and (value.device.type != "cpu" or value.layout != torch.strided):
            kind = value.device if value.layout == torch.strided else value.layout
            raise Refused(f"it has an input that is {kind}, and Headrace takes dense tensors on the CPU")
    known = [_known_value(node) for node in _outputs_of(module)[0]]
    are_known = all(value is not None for value in known)
    graded = [value for value in (known if are_known else example_inputs) if getattr(value, "requires_grad", False)]
    if graded and (are_known or torch.is_grad_enabled()):
        raise Refused(
            "its outputs would need gradients, which Headrace does not compute for PyTorch; call it under "
            "torch.no_grad() or torch.inference_mode()"
        )
    inputs = [_known_value(node) for node in module.graph.nodes if node.op == "placeholder"]
    memory = {_storage(value) for value in inputs if isinstance(value, torch.Tensor)}
    if any(isinstance(value, torch.Tensor) and _storage(value) in memory for value in known):
        raise Refused("one of its outputs shares memory with an input, and Headrace gives outputs of their own")


def _outputs_of(module: Any) -> tuple[list[Any], bool]:
    """The nodes, or constants, that a graph gives, and whether it gives them in a tuple."""
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    values = output.args[0]
    is_tuple = isinstance(values, (list, tuple))
    return list(values) if is_tuple else [values], is_tuple


def _known_value(node: Any) -> Any:
    """The tensor without data, or number, that torch.compile knows of a node; None if it does not say."""
    return node.meta.get("example_value") if hasattr(node, "meta") else node


def _storage(tensor: Any) -> int:
    return tensor.untyped_storage()._cdata


def freeze(module: Any, args: Sequence[Any], weights: Sequence[int]) -> Frozen:
    """Copies a graph with constants in place of its weights and numbers.

    Parameters
    ----------
    module : torch.fx.GraphModule
        The graph.
    args : list
        The arguments of a call.
    weights : list of int
        The arguments that become constants beside those that are numbers.

    Returns
    -------
    Frozen
        The copy shares the memory of the weights.

    Raises
    ------
    Refused
        For a graph that gives numbers which depend on the values of tensors.
    """
    torch = torch_package()
    graph, attributes, values = torch.fx.Graph(), {}, {}
    inputs: list[int] = []
    placeholders = 0
    for node in module.graph.nodes:
        if node.op == "output":
            break
        if node.op == "placeholder":
            i, placeholders = placeholders, placeholders + 1
            if not isinstance(args[i], torch.Tensor):
                values[node] = args[i]
                continue
            if i in weights:
                attributes[f"weight_{i}"] = args[i]
                values[node] = graph.get_attr(f"weight_{i}")
                continue
            inputs.append(i)
        elif node.op in ("get_attr", "call_module"):
            attributes[node.target] = attrgetter(node.target)(module)
        elif node.target is torch._C._set_grad_enabled:
            continue  # the graph is exported without gradients
        values[node] = _number(node, values) if _is_number(node) else graph.node_copy(node, values.__getitem__)
        replacement = plain_form(node.target)
        if replacement is not None:
            values[node].target = replacement
    given, is_tuple = _outputs_of(module)
    tensors, outputs = _split_outputs([values[one] if isinstance(one, torch.fx.Node) else one for one in given])
    graph.output(tuple(tensors))
    return Frozen(torch.fx.GraphModule(attributes, graph), inputs, outputs, is_tuple)


def _is_number(node: Any) -> bool:
    """Whether a node computes sizes with each other."""
    torch = torch_package()
    kinds = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)
    return node.op == "call_function" and isinstance(_known_value(node), kinds)


def _number(node: Any, values: dict[Any, Any]) -> Any:
    """The value of such a node where all sizes are known."""
    torch = torch_package()
    args = torch.fx.map_arg(node.args, values.__getitem__)
    kwargs = torch.fx.map_arg(node.kwargs, values.__getitem__)
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.fx.Node):
            raise Refused(f"a number in it depends on a tensor's values ({node.name})")
    return node.target(*args, **kwargs)


def _split_outputs(values: Sequence[Any]) -> tuple[list[Any], list[int | Constant]]:
    """The nodes among outputs, each once, and where each output is found."""
    torch = torch_package()
    nodes: list[Any] = []
    places: list[int | Constant] = []
    for value in values:
        if value is None or isinstance(value, (bool, int, float, str)):
            places.append(Constant(value))
            continue
        if not isinstance(value, torch.fx.Node):
            raise Refused(f"it gives a {type(value).__name__} within its tuple of outputs")
        if value not in nodes:
            nodes.append(value)
        places.append(nodes.index(value))
    return nodes, places
