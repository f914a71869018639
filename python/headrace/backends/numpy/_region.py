"""A region as steps: what `compile` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace import _node
from headrace.backends.numpy._ops import OPS, tensor_types, verdict
from headrace.backends.numpy._patterns import operands_of, refusal_of
from headrace.backends.numpy._program import Program, Step

_Call, _Constant, _Function = (_node.class_of(f"relay.{name}") for name in ("Call", "Constant", "Function"))
_Tuple, _TupleGetItem, _Var = (_node.class_of(f"relay.{name}") for name in ("Tuple", "TupleGetItem", "Var"))
_Op = _node.class_of("ir.Op")


def write_region(function: Any) -> bytes | str:
    """The bytes of a region, or why it cannot be written."""
    if any(hasattr(param.checked_type, "fields") for param in function.params):
        return "the region has a parameter that is a tuple"
    nodes = list(_in_order(function.body))
    for node in nodes:
        if refusal := _refusal_of(node):
            return refusal
    # Values are numbered: inputs, then constants, then the results of steps.
    numbers: dict[Any, list[int]] = {param: [i] for i, param in enumerate(function.params)}
    constants = [node for node in nodes if isinstance(node, _Constant)]
    numbers.update({node: [len(numbers) + i] for i, node in enumerate(constants)})
    program = Program(len(function.params), [constant.data.numpy() for constant in constants], [], [])
    for node in nodes:
        if isinstance(node, _Tuple):
            numbers[node] = [number for item in node.fields for number in numbers[item]]
        elif isinstance(node, _TupleGetItem):
            # A tuple has a number for each tensor in it, also in tuples within it.
            sizes = [len(tensor_types(field)) for field in node.tuple_value.checked_type.fields]
            begin = sum(sizes[: node.index])
            numbers[node] = numbers[node.tuple_value][begin : begin + sizes[node.index]]
        elif isinstance(node, _Call):
            numbers[node] = [program.num_values]
            program.steps.append(_step_of(node, numbers))
    program.outputs.extend(numbers[function.body])
    return program.write()


def _refusal_of(node: Any) -> str:
    """Why a node cannot be written, or "". A program may mark functions that `supports` was never asked about."""
    if not isinstance(node, (_Call, _Constant, _Tuple, _TupleGetItem, _Var)):
        return f"the region holds a {type(node).__name__}, which is not a call of an op"
    if not isinstance(node, _Call):
        return ""
    if isinstance(node.op, _Function):
        return refusal_of(node.op)
    if not isinstance(node.op, _Op):
        return "the region calls a function"
    answer = verdict(node)
    return f"{node.op.name}: {answer}" if isinstance(answer, str) else ""


def _step_of(call: Any, numbers: dict[Any, list[int]]) -> Step:
    if isinstance(call.op, _Function):  # one of our patterns
        by_param = dict(zip(call.op.params, call.args, strict=True))
        operands = [by_param.get(one, one) for one in operands_of(call.op.body)]
        name, attrs = call.op.attrs["Composite"], {}
    else:
        operands, name = list(call.args), call.op.name
        attrs = OPS[name].attrs_of(call)
    return Step(str(name), attrs, [number for operand in operands for number in numbers[operand]])


def _in_order(root: Any) -> Iterator[Any]:
    """Each expression once, operands first, without recursion: programs may be deep."""
    seen = set()
    stack = [(root, False)]
    while stack:
        node, is_ready = stack.pop()
        if is_ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(_operands(node)))


def _operands(node: Any) -> list[Any]:
    if isinstance(node, _Call):
        return list(node.args)
    if isinstance(node, _Tuple):
        return list(node.fields)
    return [node.tuple_value] if isinstance(node, _TupleGetItem) else []
