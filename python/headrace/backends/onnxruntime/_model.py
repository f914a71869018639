"""Models of ONNX: of one node, to ask onnxruntime whether it takes it, and of a region."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headrace import _node
from headrace._core import MissingError, UserError

Tensor = tuple[str, tuple[int, ...]]
"""The dtype and the shape of a tensor; a size that only a run knows is -1."""

ONLY_NODES = "onnxruntime computes the nodes of ONNX models for which there is no op, and no other"

_IR_VERSION = 9
_MAX_CONSTANT_BYTES = 1 << 16
_MAX_VERDICTS = 4096


def onnxruntime() -> Any:
    """The package, which this backend needs."""
    try:
        import onnxruntime as package
    except ImportError as error:
        raise MissingError(
            f"the backend 'onnxruntime' needs the package onnxruntime ({error}); pip install onnxruntime"
        ) from None
    return package


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MissingError(f"the backend 'onnxruntime' needs the package onnx ({error}); pip install onnx") from None
    return onnx


def open_session(model: bytes) -> Any:
    """A session of a model, on one thread and without messages of its own."""
    package = onnxruntime()
    options = package.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # it has an exception for each of its codes
        raise UserError(f"onnxruntime does not open the model: {' '.join(str(error).split())}") from error


# Headrace's dtypes whose arrays onnxruntime takes from numpy, by its names. It has no arrays of bfloat16.
_DTYPES = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


class Verdict(NamedTuple):
    """Why onnxruntime does not compute a node, or ""; else the dtypes of its results, and the shapes that it knows."""

    refusal: str
    dtypes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...] | None, ...] = ()


def verdict_of_node(message: bytes, opset: int, inputs: list[Any], constants: Sequence[Any] = ()) -> Verdict:
    """Opens a model of a node on inputs of these types, once in a process for nodes that differ in names alone.

    `constants` has the NDArray of each input whose value is known, and None for the others.
    """
    tensors = tuple(tensor_of(kind) for kind in inputs)
    for dtype, shape in tensors:
        if dtype not in _DTYPES.values():
            return Verdict(f"onnxruntime takes no arrays of {dtype} from numpy")
        if -1 in shape:
            return Verdict("it has an input whose shape only a run knows")
    node = _onnx().NodeProto()
    node.ParseFromString(message)
    if any(one.HasField("g") or one.graphs for one in node.attribute):
        return Verdict("it has a subgraph, which may use names of the graph around it")
    known = tuple(None if one is None else _value_of(one) for one in constants)
    return _open_node(_without_names(node), opset, tensors, known or (None,) * len(tensors))


def _value_of(constant: Any) -> bytes | None:
    """The bytes of a constant that a node may need as such: axes, shapes, zero points; not of weights."""
    array = constant.numpy()
    return array.tobytes() if array.nbytes <= _MAX_CONSTANT_BYTES else None


def refusal_of_call(call: Any) -> str:
    """Why onnxruntime does not compute a call of extern.onnx, or ""."""
    operands = call.args[0].fields if _is_a(call.args[0], "Tuple") else []
    constants = [one.data if _is_a(one, "Constant") else None for one in operands]
    inputs = _leaves(call.args[0].checked_type)
    verdict = verdict_of_node(base64.b64decode(call.attrs.node), int(call.attrs.opset), inputs, constants)
    if verdict.refusal:
        return verdict.refusal
    for i, (kind, dtype, shape) in enumerate(
        zip(_leaves(call.checked_type), verdict.dtypes, verdict.shapes, strict=True)
    ):
        declared = tensor_of(kind)
        if declared[0] != dtype or shape not in (None, declared[1]):
            given = dtype if shape is None else f"{dtype}{list(shape)}"
            return f"onnxruntime computes its result {i} as {given}, and not as {declared[0]}{list(declared[1])}"
    return ""


def tensor_of(kind: Any) -> Tensor:
    """The dtype and the shape of a relay.TensorType."""
    return str(kind.dtype), tuple(int(getattr(size, "value", -1)) for size in kind.shape)


def _without_names(node: Any) -> bytes:
    node.ClearField("name")
    node.ClearField("doc_string")
    for names in (node.input, node.output):
        names[:] = ["v" if name else "" for name in names]
    return bytes(node.SerializeToString(deterministic=True))


@functools.lru_cache(maxsize=_MAX_VERDICTS)
def _open_node(message: bytes, opset: int, inputs: tuple[Tensor, ...], constants: tuple[bytes | None, ...]) -> Verdict:
    model = _model_of_node(message, opset, inputs, constants)
    try:
        session = open_session(model)
    except UserError as error:
        return Verdict(str(error))
    for port in session.get_outputs():
        if _element_of(port) not in _DTYPES:
            return Verdict(f"onnxruntime gives a result of the type {port.type}, which Headrace does not take from it")
    return Verdict("", tuple(_DTYPES[_element_of(port)] for port in session.get_outputs()), _shapes(session, model))


def _shapes(session: Any, model: bytes) -> tuple[tuple[int, ...] | None, ...]:
    found = [_shape_of(port) for port in session.get_outputs()]
    if None in found:
        # A session shows a scalar and an unknown tensor alike.
        inferred = _onnx().shape_inference.infer_shapes(_onnx().load_from_string(model)).graph.output
        scalars = [port.type.tensor_type.HasField("shape") and not port.type.tensor_type.shape.dim for port in inferred]
        for i, port in enumerate(session.get_outputs()):
            if scalars[i] and not port.shape:
                found[i] = ()
    return tuple(found)


def _element_of(port: Any) -> str:
    return str(port.type).removeprefix("tensor(").removesuffix(")")


def _shape_of(port: Any) -> tuple[int, ...] | None:
    return tuple(port.shape) if port.shape and all(isinstance(size, int) for size in port.shape) else None


class _Graph:
    """A graph of ONNX that grows by nodes."""

    def __init__(self) -> None:
        self.onnx = _onnx()
        self.graph = self.onnx.GraphProto(name="region")
        self.opsets: dict[str, int] = {}
        self._names: set[str] = set()
        self._count = 0

    def new_name(self) -> str:
        """The name of a new value."""
        self._count += 1
        return f"v{self._count}"

    def add_port(self, ports: Any, name: str, tensor: Tensor) -> None:
        """An input or an output of a type."""
        dtype, shape = tensor
        ports.append(self.onnx.helper.make_tensor_value_info(name, self._element(dtype), shape))

    def add_input(self, name: str, tensor: Tensor, constant: bytes | None) -> None:
        """An input of a type, or a constant with these bytes."""
        if constant is None:
            self.add_port(self.graph.input, name, tensor)
            return
        dtype, shape = tensor
        made = self.onnx.TensorProto(name=name, data_type=self._element(dtype), dims=shape, raw_data=constant)
        self.graph.initializer.append(made)

    def _element(self, dtype: str) -> int:
        return int(getattr(self.onnx.TensorProto, _ELEMENTS.get(dtype, dtype.upper())))

    def add_node(self, message: bytes, opset: int, inputs: list[str]) -> list[str]:
        """A node whose inputs, without those that it leaves out, have these names; gives those of its outputs."""
        node = self.onnx.NodeProto()
        node.ParseFromString(message)
        if self.opsets.setdefault(node.domain, opset) != opset:
            raise UserError(f"nodes of the domain '{node.domain}' are of versions {self.opsets[node.domain]}, {opset}")
        given = iter(inputs)
        named = [next(given) if name else "" for name in node.input]
        outputs = [self.new_name() for _ in node.output]
        del node.input[:], node.output[:]
        node.input.extend(named)
        node.output.extend(outputs)
        # Several calls of a function have nodes of the same name, and onnxruntime takes only one.
        if node.name in self._names:
            node.name = f"{node.name}_{outputs[0] if outputs else self.new_name()}"
        self._names.update([node.name] if node.name else [])
        self.graph.node.append(node)
        return outputs

    def to_bytes(self) -> bytes:
        """The model, the same bytes for the same graph."""
        opsets = [self.onnx.helper.make_opsetid(domain, version) for domain, version in sorted(self.opsets.items())]
        if "" not in self.opsets:
            opsets.append(self.onnx.helper.make_opsetid("", 17))
        model = self.onnx.helper.make_model(self.graph, opset_imports=opsets, ir_version=_IR_VERSION)
        return bytes(model.SerializeToString(deterministic=True))


_ELEMENTS = {"float32": "FLOAT", "float64": "DOUBLE"}


def _model_of_node(message: bytes, opset: int, inputs: Sequence[Tensor], constants: Sequence[bytes | None]) -> bytes:
    """The model of one node, whose outputs have types that onnxruntime infers."""
    made = _Graph()
    names = [made.new_name() for _ in inputs]
    for name, tensor, constant in zip(names, inputs, constants, strict=True):
        made.add_input(name, tensor, constant)
    for name in made.add_node(message, opset, names):
        made.graph.output.append(made.onnx.ValueInfoProto(name=name))
    return made.to_bytes()


class _Walk:
    """Makes a graph of a region's function."""

    def __init__(self, function: Any) -> None:
        self.made = _Graph()
        self.names: dict[Any, list[str]] = {}
        for param in function.params:
            self.names[param] = self._ports(self.made.graph.input, param.checked_type)
        results = self._names_of(function.body)
        types = _leaves(function.body.checked_type)
        for name, kind in zip(results, types, strict=True):
            # A graph's output is a value of its own: one value may be several results, or an input.
            output = self.made.new_name()
            self.made.graph.node.append(self.made.onnx.helper.make_node("Identity", [name], [output]))
            self.made.add_port(self.made.graph.output, output, tensor_of(kind))

    def _ports(self, ports: Any, kind: Any) -> list[str]:
        names = []
        for leaf in _leaves(kind):
            names.append(self.made.new_name())
            self.made.add_port(ports, names[-1], tensor_of(leaf))
        return names

    def _names_of(self, root: Any) -> list[str]:
        pending = [root]
        while pending:  # no recursion: a region may be deep
            expr = pending[-1]
            missing = [operand for operand in _operands(expr) if operand not in self.names]
            if expr not in self.names and missing:
                pending.extend(reversed(missing))
                continue
            pending.pop()
            if expr not in self.names:
                self.names[expr] = self._make(expr)
        return self.names[root]

    def _make(self, expr: Any) -> list[str]:
        if _is_a(expr, "Constant"):
            name = self.made.new_name()
            self.made.graph.initializer.append(self.made.onnx.numpy_helper.from_array(expr.data.numpy(), name))
            return [name]
        if _is_a(expr, "Tuple"):
            return [name for field in expr.fields for name in self.names[field]]
        if _is_a(expr, "TupleGetItem"):
            # A tuple has a name for each tensor in it, also in tuples within it.
            sizes = [len(_leaves(field)) for field in expr.tuple_value.checked_type.fields]
            begin = sum(sizes[: expr.index])
            return self.names[expr.tuple_value][begin : begin + sizes[expr.index]]
        inputs = [name for arg in expr.args for name in self.names[arg]]
        return self.made.add_node(base64.b64decode(expr.attrs.node), int(expr.attrs.opset), inputs)


def _is_a(node: Any, name: str) -> bool:
    return isinstance(node, _node.class_of(f"relay.{name}"))


def _leaves(kind: Any) -> list[Any]:
    if _is_a(kind, "TupleType"):
        return [leaf for field in kind.fields for leaf in _leaves(field)]
    return [kind]


def _operands(expr: Any) -> list[Any]:
    if _is_a(expr, "Tuple"):
        return list(expr.fields)
    if _is_a(expr, "TupleGetItem"):
        return [expr.tuple_value]
    return list(expr.args) if _is_a(expr, "Call") else []


def _refusal_of(expr: Any) -> str:
    """Why an expression cannot be in a region, or ""."""
    if not any(_is_a(expr, kind) for kind in ("Call", "Constant", "Tuple", "TupleGetItem", "Var")):
        return f"the region holds a {type(expr).__name__}, which is not a call of extern.onnx"
    if not _is_a(expr, "Call"):
        return ""
    if getattr(expr.op, "name", "") != "extern.onnx":
        return f"the region calls {getattr(expr.op, 'name', '') or 'a function'}; {ONLY_NODES}"
    return refusal_of_call(expr)


def _refusal_of_types(function: Any) -> str:
    """Why tensors of these types cannot enter or leave a region, or ""."""
    for value in [*function.params, function.body]:
        for leaf in _leaves(value.checked_type):
            if leaf.dtype not in _DTYPES.values():
                return f"onnxruntime takes no arrays of {leaf.dtype} from numpy"
    return ""


def _expressions(root: Any) -> Iterator[Any]:
    """Each expression once, without recursion: a region may be deep."""
    seen, pending = {root}, [root]
    while pending:
        expr = pending.pop()
        yield expr
        for operand in _operands(expr):
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)


def model_of_region(function: Any) -> bytes | str:
    """The model of a region, with inputs and outputs in the order of its tensors; or why there is none.

    A program may mark functions that `supports` was never asked about.
    """
    for expr in _expressions(function.body):
        if refusal := _refusal_of(expr):
            return refusal
    return _refusal_of_types(function) or _Walk(function).made.to_bytes()
