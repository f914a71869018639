"""Calls of ops: what the registry says of an op, read once, and how arguments become its operands and attributes.

The functions that users call (`relay.nn.conv2d`) are texts that `python/write_ops.py` writes; each hands its arguments
by name to an `OpCall`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from headrace import _core, _node
from headrace._ffi import api
from headrace._operands import TupleWrapper, const, dtype_of, is_array, operand
from headrace.relay import _op_table as table
from headrace.relay import _padding

_EXPR = _node.class_of("relay.Expr")
_DEVICES = (_core.Device, _node.class_of("VirtualDevice"))
# How the arguments of a call become its attributes: parameter, field, conversion, whether it may be an operand instead.
_AttrPlan = tuple[str, str, Callable[[Any], Any] | None, bool]


class OpSchema:
    """An op's arguments and attributes from the registry, joined into the parameters of a function."""

    def __init__(self, name: str) -> None:
        row = api("ir.DescribeOp")(name)
        self.name = name
        self.doc = row["doc"]
        self.op = api("ir.GetOp")(name)
        self.operands = {str(arg[0]): (str(arg[1]), str(arg[2])) for arg in row["arguments"]}
        self.is_users = api("relay.op.IsUserOp")(self.op)
        self.attrs_key: str = "" if self.is_users else row["attrs_type_key"]
        self.attrs = {field["name"]: field for field in self._fields()}
        self.takes_any = not self.operands and row["num_inputs"] != 0
        self.names = self._order()
        self._operand_plan = [
            (operand_name, operand_name in self.attrs, kind.startswith("Tuple"))
            for operand_name, (kind, _) in self.operands.items()
        ]
        self._attr_plan: list[_AttrPlan] = [
            (attr, str(field["name"]), _converter_of(self, attr, field["kind"]), attr in self.operands)
            for attr, field in self.attrs.items()
        ]
        self.results = table.RESULTS.get(name)

    def _fields(self) -> list[Any]:
        if self.is_users:
            return [{**dict(row.items()), "optional": False} for row in self.op.attrs_schema]
        fields = _node.fields_of(_node.class_of(self.attrs_key)) if self.attrs_key else []
        return [field for field in fields if not field["transient"]]

    @property
    def result(self) -> str:
        """The class of what calls give, where that is not a TupleWrapper."""
        return "TupleGetItem" if self.name in table.FIELD else "Call"

    @property
    def gives_tuple(self) -> bool:
        """Whether calls give a TupleWrapper rather than an expression."""
        return self.results is not None and self.name not in table.FIELD

    def _order(self) -> list[str]:
        operands = [name for name in self.operands if name not in self.attrs]
        names = [*operands, *self.attrs]
        first = table.ORDER.get(self.name, "").split()
        return [*[n for n in first if n in names], *[n for n in names if n not in first]]

    def call(self, given: dict[str, Any], span: Any) -> Any:
        """A call of the op with arguments by name; `args` are the operands of an op that takes any number."""
        operands = [_as_expression(value) for value in given.get("args", ())]
        for name, is_attr, is_tuple in self._operand_plan:
            value = given[name]
            if isinstance(value, _EXPR):
                operands.append(value)
            elif isinstance(value, TupleWrapper):
                operands.append(value.tuple_value)
            elif not is_attr:
                operands.append(self._operand(name, given, is_tuple))
        attrs = {}
        for name, field, convert, may_be_operand in self._attr_plan:
            value = given[name]
            if may_be_operand and isinstance(value, (_EXPR, TupleWrapper)):
                continue
            if convert is not None:
                value = convert(value)
            if value is not None:
                attrs[field] = value
        return self._made(operands, attrs, span)

    def _made(self, operands: list[Any], attrs: dict[str, Any], span: Any) -> Any:
        if self.attrs_key:
            node = _core.make(self.attrs_key, attrs)
        else:
            node = self.op.make_attrs(**attrs) if attrs or self.is_users else None
        fields = {"op": self.op, "args": operands, "type_args": ()}
        if node is not None:
            fields["attrs"] = node
        if span is not None:
            fields["span"] = span
        call = _core.make("relay.Call", fields)
        if self.results is None:
            return call
        size = self.results(attrs, operands) if callable(self.results) else self.results
        if size is None:
            return call
        results = TupleWrapper(call, size)
        return results[table.FIELD[self.name]] if self.name in table.FIELD else results

    def _operand(self, name: str, given: Mapping[str, Any], is_tuple: bool) -> Any:
        """Converts the value of an operand that is not an expression to one."""
        value = given[name]
        if value is None:
            raise _core.UserError(f"{self.name} needs its argument '{name}'")
        if is_tuple and isinstance(value, (list, tuple)):
            return _node.class_of("relay.Tuple")(list(value))
        own = table.NUMBERS.get(self.name, {})
        dtype = own[name](given) if callable(own.get(name)) else own.get(name)
        alike = [given[key] for key in self.operands if key not in own and key not in self.attrs]
        return operand(value, f"{self.name}: {name}", dtype, None if name in own else _common_dtype(alike))


class OpCall:
    """Makes calls of an op of the compiler's own. The registry is asked when the first call is made.

    Parameters
    ----------
    name : str
        The op's, such as "nn.conv2d".
    """

    __slots__ = ("_schema", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._schema: OpSchema | None = None

    def __call__(self, given: dict[str, Any], span: Any) -> Any:
        schema = self._schema
        if schema is None:
            schema = self._schema = OpSchema(self.name)
        return schema.call(given, span)


def _as_expression(value: Any) -> Any:
    return value.tuple_value if isinstance(value, TupleWrapper) else value


def is_expr(value: Any) -> bool:
    """Whether a value is an expression, or the several results of one."""
    return isinstance(value, (_EXPR, TupleWrapper))


def _common_dtype(values: list[Any]) -> str | None:
    """The dtype that a number gets among operands of one dtype: the first expression's, or else the first array's.

    Among numbers alone it is float32 where one is a float; None where they are integers, or the dtype is not known.
    """
    found = next((value for value in values if is_expr(value)), None)
    if found is not None:
        return None if isinstance(found, TupleWrapper) else dtype_of(found)
    constants = [const(value).data.dtype for value in values if is_array(value)]
    is_float = any(isinstance(value, Real) and not isinstance(value, Integral) for value in values)
    return constants[0] if constants else "float32" if is_float else None


def _rank_of(name: str) -> int:
    """The number of spatial dimensions that the op's name says; 1 when it says none."""
    found = re.search(r"(\d)d", name)
    return int(found.group(1)) if found else 1


def _converter_of(schema: OpSchema, name: str, kind: str) -> Callable[[Any], Any] | None:
    """The function that converts an argument to the attribute; None where the field takes it as it is."""
    if name == "padding" and table.PADDED.fullmatch(schema.name):
        rank, what = _rank_of(schema.name), f"{schema.name}: padding"
        return lambda value: value if isinstance(value, (str, type(None))) else _padding.pad_tuple(value, rank, what)
    if kind == "int or shape":
        return lambda value: _size_or_sizes(schema.name, name, value)
    if kind in ("shape", "None or shape"):
        rank = _rank_of(schema.name) if name != "axis" else 1
        return lambda value: _sizes_of_rank(schema.name, name, value, rank)
    if "dtype" in kind:
        return lambda value: (value or None) if isinstance(value, str) else _node.convert(value, kind)
    if kind in ("str", "None or str"):
        if name.endswith("virtual_device") and not schema.is_users:
            return lambda value: _device_text(schema.name, name, value)
        return lambda value: str(value) if isinstance(value, _DEVICES) else value
    return (lambda value: _node.convert(value, kind)) if _node.needs_conversion(kind) else None


def _device_text(op: str, name: str, value: Any) -> Any:
    """The text that stands for a device in programs ("cpu:0"), however it is given; what is no device as it is."""
    if not isinstance(value, (str, *_DEVICES)):
        return value
    devices = list(api("target.ParseVirtualDevices")(str(value)))
    if len(devices) != 1:
        raise _core.UserError(f"{op}: {name}: '{value}' names {len(devices)} devices; give one, as 'cuda:0'")
    return str(devices[0])


def _size_or_sizes(op: str, name: str, value: Any) -> Any:
    if isinstance(value, (str, type(None))):
        return value
    return _sizes(op, name, value) if isinstance(value, Iterable) else _sizes(op, name, [value])[0]


def _sizes_of_rank(op: str, name: str, value: Any, rank: int) -> Any:
    """A shape; a number stands for all axes."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        return (int(value),) * rank
    return value if isinstance(value, (str, type(None))) else _sizes(op, name, value)


def _sizes(op: str, name: str, value: Any) -> list[int]:
    """Whole numbers: of Python, of numpy, or as constants of the IR."""
    if not isinstance(value, Iterable):
        raise _core.UserError(f"{op}: {name}: expected a list of whole numbers, got {value!r}")
    sizes = []
    for item in value:
        try:
            if isinstance(item, bool):
                raise TypeError
            sizes.append(operator.index(item))
        except TypeError:
            raise _core.UserError(f"{op}: {name}: expected whole numbers, got {item!r} among them") from None
    return sizes
