"""Models of ONNX: of one node, to ask onnxruntime whether it takes it, and of a region."""

from __future__ import annotations

import base64
from typing import Any

from headrace import _node
from headrace._core import MissingError, UserError
from headrace.backend import OnnxNode

_IR_VERSION = 9


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


_DTYPES = {
    "float": "float32",
    "double": "float64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def result_types(session: Any, model: bytes, declared: list[Any]) -> list[Any]:
    """The types of a session's outputs; where it does not know one, the declared one, which may be None."""
    found = [_type_of(port) for port in session.get_outputs()]
    types = [one if one is not None else other for one, other in zip(found, declared, strict=True)]
    if None in types:
        # A session shows a scalar and an unknown tensor alike.
        inferred = _onnx().shape_inference.infer_shapes(_onnx().load_from_string(model)).graph.output
        scalars = [port.type.tensor_type.HasField("shape") and not port.type.tensor_type.shape.dim for port in inferred]
        for i, port in enumerate(session.get_outputs()):
            if types[i] is None and scalars[i] and not port.shape:
                types[i] = _node.class_of("relay.TensorType")([], _DTYPES[_element_of(port)])
    return types


def _element_of(port: Any) -> str:
    return str(port.type).removeprefix("tensor(").removesuffix(")")


def _type_of(port: Any) -> Any:
    element = _element_of(port)
    if element not in _DTYPES or not port.shape or not all(isinstance(size, int) for size in port.shape):
        return None
    return _node.class_of("relay.TensorType")(port.shape, _DTYPES[element])


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

    def add_port(self, ports: Any, name: str, kind: Any) -> None:
        """An input or an output of a type."""
        element = getattr(self.onnx.TensorProto, _ELEMENTS.get(str(kind.dtype), str(kind.dtype).upper()))
        ports.append(self.onnx.helper.make_tensor_value_info(name, element, [int(size) for size in kind.shape]))

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


def model_of_node(node: OnnxNode) -> bytes:
    """The model of one node, whose outputs have types that onnxruntime infers."""
    made = _Graph()
    names = [made.new_name() for _ in node.inputs]
    for name, kind in zip(names, node.inputs, strict=True):
        made.add_port(made.graph.input, name, kind)
    for name in made.add_node(node.message, node.opset, names):
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
            self.made.add_port(self.made.graph.output, output, kind)

    def _ports(self, ports: Any, kind: Any) -> list[str]:
        names = []
        for leaf in _leaves(kind):
            names.append(self.made.new_name())
            self.made.add_port(ports, names[-1], leaf)
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
            return [self.names[expr.tuple_value][expr.index]]  # results of a node are tensors
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


def model_of_region(function: Any) -> bytes:
    """The model of a region, with inputs and outputs in the order of its tensors."""
    return _Walk(function).made.to_bytes()
