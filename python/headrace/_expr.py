"""Adds to the classes of Relay's nodes: operators, texts, the order of constructors' arguments."""

from __future__ import annotations

from typing import Any

from headrace import _core, _node, _operands, _prim_expr  # noqa: F401
from headrace._ffi import api
from headrace._text_form import Printed, text_of


def _without_version(text: str) -> str:
    return text.partition("\n")[2].rstrip("\n") if text.startswith("#[version") else text


def _with_name(node: Any, text: str) -> str:
    """`text` with the node's name for its braces; a short text where it is not UTF-8."""
    try:
        return text.replace("{}", node.name_hint, 1)
    except UnicodeDecodeError:
        return node._short_text()


def _binary(op: str, lhs: Any, rhs: Any) -> Any:
    operands = []
    for name, value, other in (("lhs", lhs, rhs), ("rhs", rhs, lhs)):
        beside = _operands.dtype_of(other) if isinstance(other, _node.class_of("relay.Expr")) else None
        if beside is None and _operands.is_number(value):
            raise _core.UserError(
                f"the dtype of {value} is not known, nor is the other operand's; write relay.const({value}, dtype)"
            )
        operands.append(_operands.operand(value, f"{op}: {name}", beside=beside))
    return Call(api("ir.GetOp")(op), operands)


def _is_written(typ: Any) -> bool:
    if typ is None or typ.type_key == "relay.IncompleteType":
        return False
    fields = ((getattr(typ, field["name"]), field["kind"]) for field in _node.fields_of(type(typ)))
    parts = (value if kind.startswith("Array") else [value] for value, kind in fields if "Type" in kind)
    return all(_is_written(part) for group in parts for part in group)


def _written_type(expr: Any) -> Any:
    """The type of a function whose parameters and result are annotated, with nothing left to be inferred."""
    if expr.type_key != "relay.Function":
        return None
    arg_types = [param.type_annotation for param in expr.params]
    if not all(_is_written(typ) for typ in [*arg_types, expr.ret_type]):
        return None
    return _node.class_of("relay.FuncType")(arg_types, expr.ret_type, expr.type_params)


@_node.mixin("relay.Expr")
class _Expr(Printed):
    """Base of Relay's expressions. Equality is identity; `ir.structural_equal` compares programs."""

    __slots__ = ()
    # Arrays of numpy leave the operators to the expression, which makes constants of them.
    __array_ufunc__ = None

    @property
    def checked_type(self) -> Any:
        """The type that InferType gave the expression, or a function's as it is written in full; else UserError."""
        found = self.checked_type_ or _written_type(self)
        if found is None:
            raise _core.UserError(
                f"this {self.type_key} has no type yet; run relay.transform.InferType() on its module"
            )
        return found

    def astype(self, dtype: str) -> Any:
        """The elements as another dtype."""
        return api("ir.GetOp")("cast")(self, dtype=dtype)

    def __call__(self, *args: Any) -> Any:
        """A call of this expression, which is a function."""
        return Call(self, args)

    def __neg__(self) -> Any:
        return Call(api("ir.GetOp")("negative"), [self])

    def __add__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _binary("divide", other, self)

    def __lt__(self, other: Any) -> Any:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _binary("greater_equal", self, other)


class Id:
    """The identity of a variable, which two variables share only when they are one."""

    __slots__ = ("_var",)

    def __init__(self, var: Any) -> None:
        self._var = var

    @property
    def name_hint(self) -> str:
        """The variable's name."""
        return self._var.name_hint

    def same_as(self, other: Any) -> bool:
        """Whether `other` is the identity of the same variable."""
        return isinstance(other, Id) and self._var.same_as(other._var)

    def __eq__(self, other: object) -> bool:
        return self.same_as(other)

    def __hash__(self) -> int:
        return hash(self._var)


@_node.mixin("relay.Var")
class _Var:
    """A variable: a parameter, or bound by a let or a pattern."""

    __slots__ = ()

    @property
    def vid(self) -> Id:
        """The variable's identity, which has its name."""
        return Id(self)

    def __str__(self) -> str:
        return _without_version(text_of(self))

    def __repr__(self) -> str:
        typed = "" if self.type_annotation is None else f", ty={self.type_annotation}"
        return _with_name(self, f"Var({{}}{typed})")


@_node.mixin("relay.GlobalVar")
class _GlobalVar:
    """The name of a function of a module."""

    __slots__ = ()

    def __str__(self) -> str:
        return _with_name(self, "@{}")

    def __repr__(self) -> str:
        return _with_name(self, "GlobalVar({})")


@_node.mixin("relay.Constructor")
class _Constructor:
    """One alternative of a data type."""

    __slots__ = ()

    def __str__(self) -> str:
        return _with_name(self, "{}")

    def __repr__(self) -> str:
        return _with_name(self, "Constructor({})")


@_node.mixin("relay.TypeVar")
class _TypeVar:
    """A type parameter."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        """The type applied to others, as a TypeCall."""
        return _node.class_of("relay.TypeCall")(self, args)


@_node.mixin("relay.GlobalTypeVar")
class _GlobalTypeVar:
    """The name of a data type."""

    __slots__ = ()

    def __call__(self, *args: Any) -> Any:
        """The data type applied to types, as a TypeCall: `List(t)`; itself without any, as in `nat()`."""
        return _node.class_of("relay.TypeCall")(self, args) if args else self


@_node.mixin("relay.Tuple")
class _Tuple:
    """Several values as one."""

    __slots__ = ()

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


@_node.mixin("relay.Call")
class _Call:
    """A call of an op or of a function. `call[i]` is field `i` of the tuple that it gives."""

    __slots__ = ()

    # How many fields there are is not known, so that a call is not a sequence.
    __iter__ = None

    def __getitem__(self, index: int) -> Any:
        return _node.class_of("relay.TupleGetItem")(self, index)


@_node.mixin("ir.BaseFunc")
class _BaseFunc:
    """Base of Relay's functions and of loop functions."""

    __slots__ = ()

    def with_attr(self, attr_key_or_dict: Any, attr_value: Any = None) -> Any:
        """The function with an attribute, or with several given as a dict."""
        if not isinstance(attr_key_or_dict, (str, dict)):
            raise _core.UserError(f"with_attr: expected a str or a dict, got {type(attr_key_or_dict).__name__}")
        new = attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        return self.copy_with(attrs={**dict(self.attrs.items()), **new})

    def without_attr(self, attr_key: str) -> Any:
        """The function without that attribute."""
        return self.copy_with(attrs={key: value for key, value in self.attrs.items() if key != attr_key})


@_node.mixin("relay.Function")
class _Function:
    """A function; of type parameters, a polymorphic one."""

    __slots__ = ()

    @property
    def virtual_device_(self) -> Any:
        """Where the result is, as PlanDevices found it: a VirtualDevice, a list of a tuple's, None when nobody said."""
        text = self.attrs.get("result_virtual_device")
        devices = [] if text is None else list(api("target.ParseVirtualDevices")(text))
        return devices if len(devices) > 1 else next(iter(devices), None)


def _to_tensor(value: Any) -> Any:
    """A copy of an array that is not an NDArray; anything else as it is. UserError for a dtype that no program has."""
    if isinstance(value, type) or not hasattr(value, "__dlpack__"):
        return value
    tensor = value if isinstance(value, _core.NDArray) else _core.array(value).copyto(_core.cpu())
    if tensor.dtype.startswith("complex"):
        _node.class_of("relay.TensorType")((), tensor.dtype)  # the error lists the dtypes
    return tensor


_node.converter("NDArray", _to_tensor)


for _key, _order, _doc in [
    ("relay.Var", "name_hint type_annotation", ""),
    ("relay.Function", "params body ret_type type_params attrs", ""),
    ("relay.Call", "op args attrs type_args", ""),
    ("relay.Let", "variable value body", "Binds a variable, which a function in `value` may call itself by."),
    ("relay.If", "cond true_branch false_branch", "A branch on a bool scalar."),
    ("relay.Tuple", "fields", "Several values as one."),
    ("relay.TupleGetItem", "tuple_value index", "A field of a tuple."),
    (
        "relay.Constant",
        "data",
        "A tensor in the program. It shares the memory of an NDArray, which is not to be written to from then on; "
        "other arrays are copied.",
    ),
    ("relay.RefCreate", "value", "A new mutable cell."),
    ("relay.RefRead", "ref", "What a cell holds."),
    ("relay.RefWrite", "ref value", "Changes what a cell holds; gives the empty tuple."),
    ("relay.Match", "data clauses complete", "The first clause whose pattern the data has."),
    ("relay.Clause", "lhs rhs", "A pattern and what it gives."),
    ("relay.PatternVar", "var", "Takes any value and binds it."),
    ("relay.PatternConstructor", "constructor patterns", "A value that the constructor made."),
    ("relay.PatternTuple", "patterns", "A tuple."),
    ("relay.Constructor", "name_hint inputs belong_to", ""),
    ("relay.TypeData", "header type_vars constructors", "The definition of a data type."),
    ("relay.GlobalVar", "name_hint", ""),
    ("relay.TensorType", "shape dtype", ""),
    ("relay.TupleType", "fields", "The type of a tuple."),
    ("relay.FuncType", "arg_types ret_type type_params type_constraints", "The type of a function."),
    ("relay.TypeVar", "name_hint kind", ""),
    ("relay.GlobalTypeVar", "name_hint kind", ""),
    ("relay.RefType", "value", "The type of a mutable cell."),
    ("relay.TypeCall", "func args", "A data type applied to its arguments."),
    ("relay.IncompleteType", "kind", "A type that inference finds."),
    ("relay.TypeRelation", "name args num_inputs attrs", ""),
]:
    _node.constructor(_key, _order, _doc)


@_node.mixin("relay.TensorType")
class _TensorType:
    """The type of a tensor: a dimension is an int, a symbol, an expression, or Any()."""

    __slots__ = ()

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape as ints; UserError that names the first dimension that is none."""
        for i, dim in enumerate(self.shape):
            if dim.type_key != "ir.IntImm":
                raise _core.UserError(f"concrete_shape: dimension {i} of {self} is {dim}, which is not a number yet")
        return tuple(int(dim) for dim in self.shape)

    def Size(self) -> Any:
        """The number of elements, 1 of a scalar.

        Returns
        -------
        size : int or PrimExpr
            An int where every dimension is one; an expression where some are symbols, `n * 4`; `Any()` where one of
            them is not known.

        Raises
        ------
        UserError
            When the number is past 64 bits.
        """
        size = api("relay.ir.TensorTypeSize")(self)
        return int(size) if size.type_key == "ir.IntImm" else size

    @staticmethod
    def Scalar(dtype: str) -> Any:
        """The type of a tensor without dimensions, as `relay.scalar_type(dtype)` gives it."""
        return _node.class_of("relay.TensorType")((), dtype)


@_node.mixin("relay.TypeRelation")
class _TypeRelation:
    """A constraint between types, named after an op's relation.

    Parameters
    ----------
    name : str or EnvFunc
        The name of an op, or Relay's global function of a relation, which stands for its name.
    args : list of Type
        The inputs and the result.
    num_inputs : int
        How many of `args` are inputs.
    attrs : Attrs, optional
        The attributes of the op.
    span : Span, optional
        Where the constraint is written.
    """

    __slots__ = ()

    def __init__(self, name: Any, args: Any, num_inputs: int, attrs: Any = None, span: Any = None) -> None:
        given = {"args": args, "num_inputs": num_inputs, "attrs": attrs, "span": span}
        given["name"] = name.name if isinstance(name, _node.class_of("ir.EnvFunc")) else name
        fields = {key: value for key, value in given.items() if value is not None}
        _core.Object.__init__(self, _node.make("relay.TypeRelation", fields))


_node.alias("relay.Let", "variable", "var")
_node.default("relay.Match", complete=True)
_node.default("relay.TensorType", dtype="float32")
_node.default("relay.TypeVar", kind=0)
_node.default("relay.GlobalTypeVar", kind=5)
_node.default("relay.IncompleteType", kind=0)
_node.default("relay.Constructor", tag=-1)
_node.default("relay.PatternConstructor", patterns=())
_node.default("relay.Function", type_params=(), attrs={})
_node.default("relay.Call", type_args=())
_node.default("relay.FuncType", type_params=(), type_constraints=())


Call = _node.class_of("relay.Call")
