"""The functions of ops, such as relay.nn.conv2d: made from the op registry, so that a new op needs no line here."""

from __future__ import annotations

import difflib
import inspect
import operator
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from headrace import _core, _expr, _node
from headrace._ffi import api
from headrace._public import submodules
from headrace.relay import _op_table as table
from headrace.relay import _padding
from headrace.relay._build_ir import const, is_array, operand

_EMPTY = inspect.Parameter.empty
_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
# What stands in the docs of parameters that ops do not say.
_OF_ALL = {
    "args": ["*args : RelayExpr", "    The operands."],
    "span": ["span : Span, optional", "    Where it comes from."],
}


class _Schema:
    """What the registry says of an op, joined into the parameters of a function."""

    def __init__(self, name: str) -> None:
        row = api("ir.DescribeOp")(name)
        self.name = name
        self.doc = row["doc"]
        self.op = api("ir.GetOp")(name)
        self.operands = {str(arg[0]): (str(arg[1]), str(arg[2])) for arg in row["arguments"]}
        self.is_users = api("relay.op.IsUserOp")(self.op)
        self.attrs = {field["name"]: field for field in self._fields(row["attrs_type_key"])}
        self.takes_any = not self.operands and row["num_inputs"] != 0
        self.names = self._order()

    def _fields(self, attrs_key: str) -> list[Any]:
        if self.is_users:
            return [{**dict(row.items()), "optional": False} for row in self.op.attrs_schema]
        fields = _node.fields_of(_node.class_of(attrs_key)) if attrs_key else []
        return [field for field in fields if not field["transient"]]

    @property
    def result(self) -> str:
        """The class of what calls give, where that is no TupleWrapper."""
        return "TupleGetItem" if self.name in table.FIELD else "Call"

    @property
    def gives_tuple(self) -> bool:
        """Whether calls give a TupleWrapper rather than an expression."""
        return self.name in table.RESULTS and self.name not in table.FIELD

    def _order(self) -> list[str]:
        operands = [name for name in self.operands if name not in self.attrs]
        names = [*operands, *self.attrs]
        first = table.ORDER.get(self.name, "").split()
        return [*[n for n in first if n in names], *[n for n in names if n not in first]]

    def default_of(self, name: str) -> Any:
        """What a parameter is when it is left out; inspect.Parameter.empty when it must be given."""
        own = table.DEFAULTS.get(self.name, {})
        if name in own:
            return own[name]
        field = self.attrs.get(name)
        if field is None:
            return _EMPTY
        if field["has_default"]:
            return _plain(field["default"])
        return None if field["optional"] or field["kind"].startswith("None or") else _EMPTY

    def signature(self) -> inspect.Signature:
        """Of the function. A parameter without a default may follow one that has one: those are by keyword too."""
        if self.takes_any:
            operands = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            operands, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = []
        for name in self.names:
            value = self.default_of(name)
            if value is _EMPTY and any(p.default is not _EMPTY for p in parameters):
                value = None
            parameters.append(inspect.Parameter(name, kind, default=value))
        return inspect.Signature(
            [*operands, *parameters, inspect.Parameter("span", inspect.Parameter.KEYWORD_ONLY, default=None)]
        )


def _plain(value: Any) -> Any:
    """A default as Python shows it."""
    return [_plain(item) for item in value] if isinstance(value, _core.Object) and hasattr(value, "__len__") else value


def _is_expr(value: Any) -> bool:
    return isinstance(value, (_expr.TupleWrapper, _node.class_of("relay.Expr")))


def _operand(schema: _Schema, name: str, given: Mapping[str, Any]) -> Any:
    """What is given for an operand, as an expression."""
    value = given[name]
    if schema.operands[name][0].startswith("Tuple") and isinstance(value, (list, tuple)):
        return _node.class_of("relay.Tuple")(list(value))
    own = table.NUMBERS.get(schema.name, {})
    dtype = own[name](given) if callable(own.get(name)) else own.get(name)
    alike = [given[key] for key in schema.operands if key not in own and key not in schema.attrs]
    return operand(value, f"{schema.name}: {name}", dtype, None if name in own else _common_dtype(alike))


def _common_dtype(values: list[Any]) -> str | None:
    """What a number gets among operands of one dtype: that of the first expression, or else of the first array.

    Among numbers alone float32 where one is a float; None where they are integers, or the dtype is not known.
    """
    found = next((value for value in values if _is_expr(value)), None)
    if found is not None:
        return None if isinstance(found, _expr.TupleWrapper) else _expr.dtype_of(found)
    constants = [const(value).data.dtype for value in values if is_array(value)]
    is_float = any(isinstance(value, Real) and not isinstance(value, Integral) for value in values)
    return constants[0] if constants else "float32" if is_float else None


def _rank_of(name: str) -> int:
    """The number of spatial dimensions that the op's name says; 1 when it says none."""
    found = re.search(r"(\d)d", name)
    return int(found.group(1)) if found else 1


def _attribute(schema: _Schema, name: str, value: Any) -> Any:
    """What is given for an attribute, as its field takes it."""
    field = schema.attrs[name]
    kind = field["kind"]
    if "dtype" in kind and value == "":
        return None
    if isinstance(value, (_core.Device, _node.class_of("VirtualDevice"))):
        return str(value)
    if name == "padding" and table.PADDED.fullmatch(schema.name) and not isinstance(value, (str, type(None))):
        return _padding.pad_tuple(value, _rank_of(schema.name), f"{schema.name}: padding")
    if kind == "int or shape" and not isinstance(value, (str, type(None))):
        return _sizes(schema, name, value) if isinstance(value, Iterable) else _sizes(schema, name, [value])[0]
    if isinstance(value, Integral) and not isinstance(value, bool) and kind in ("shape", "None or shape"):
        return (int(value),) * (_rank_of(schema.name) if name != "axis" else 1)
    if kind in ("shape", "None or shape") and not isinstance(value, (str, type(None))):
        return _sizes(schema, name, value)
    return value


def _sizes(schema: _Schema, name: str, value: Any) -> list[int]:
    """Whole numbers: of Python, of numpy, or as constants of the IR."""
    if not isinstance(value, Iterable):
        raise _core.UserError(f"{schema.name}: {name}: expected a list of whole numbers, got {value!r}")
    sizes = []
    for item in value:
        try:
            if isinstance(item, bool):
                raise TypeError
            sizes.append(operator.index(item))
        except TypeError:
            raise _core.UserError(f"{schema.name}: {name}: expected whole numbers, got {item!r} among them") from None
    return sizes


def _call(schema: _Schema, given: dict[str, Any], span: Any) -> Any:
    operands = list(given.pop("args", ()))
    attrs = {}
    for name in schema.operands:
        if name in schema.attrs and not _is_expr(given[name]):
            continue
        if given[name] is None:
            raise _core.UserError(f"{schema.name} needs its argument '{name}'")
        operands.append(_operand(schema, name, given))
    for name in schema.attrs:
        if not (name in schema.operands and _is_expr(given[name])):
            attrs[name] = _attribute(schema, name, given[name])
    given_attrs = {schema.attrs[key]["name"]: value for key, value in attrs.items() if value is not None}
    call = _expr.Call(schema.op, operands, schema.op.make_attrs(**given_attrs), span=span)
    results = table.RESULTS.get(schema.name)
    size = results(attrs, operands) if callable(results) else results
    if size is None:
        return call
    fields = _expr.TupleWrapper(call, size)
    return fields[table.FIELD[schema.name]] if schema.name in table.FIELD else fields


def _doc(schema: _Schema, signature: inspect.Signature) -> str:
    lines = [schema.doc, "", "Parameters", "----------"]
    for name, parameter in signature.parameters.items():
        if name in ("args", "span") and parameter.kind is not _NAMED:
            lines += _OF_ALL[name]
            continue
        field = schema.attrs.get(name)
        kind = field["kind"] if field else "RelayExpr"
        if field and name in schema.operands:
            kind += " or RelayExpr"
        default = "" if parameter.default is _EMPTY else f", default {parameter.default!r}"
        lines.append(f"{name} : {kind}{default}")
        about = field["doc"] if field else schema.operands.get(name, ("", ""))[1]
        if about:
            lines.append(f"    {about}")
    result = "TupleWrapper" if schema.gives_tuple else "RelayExpr"
    return "\n".join([*lines, "", "Returns", "-------", result])


def make_function(name: str) -> Callable[..., Any]:
    """The function of an op.

    Parameters
    ----------
    name : str
        The op's, such as "nn.conv2d".

    Returns
    -------
    function
    """
    schema = _Schema(name)
    signature = schema.signature()

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        return _call(schema, given, given.pop("span"))

    function.schema = schema
    function.__name__ = name.rpartition(".")[2]
    function.__qualname__ = function.__name__
    function.__signature__ = signature
    function.__doc__ = _doc(schema, signature)
    family = name.rpartition(".")[0]
    function.__module__ = f"headrace.relay.{family}" if family else "headrace.relay"
    return function


def find_function(namespace: str, name: str) -> Callable[..., Any] | None:
    """The function of the op `namespace`.`name`, or None when there is no such op."""
    op = f"{namespace}.{name}" if namespace else name
    return make_function(op) if op in list(api("ir.OpNames")()) else None


def _lookup(module: types.ModuleType, namespace: str) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        found = None if name.startswith("__") else find_function(namespace, name) or _family(module, namespace, name)
        if found is None:
            raise no_such_op(module, name)
        # Ops of users may still change.
        if isinstance(found, types.ModuleType) or not found.schema.is_users:
            setattr(module, name, found)
        return found

    return __getattr__


def no_such_op(module: types.ModuleType, name: str) -> AttributeError:
    """What a module of ops' functions raises for a name that it does not have; it tells which are near, of others too.

    Parameters
    ----------
    module : module
        The module, whose `dir()` is what it has.
    name : str
        What was asked for.

    Returns
    -------
    AttributeError
    """
    told = f"{module.__name__} has no '{name}', and there is no such op"
    if name.startswith("_"):
        return AttributeError(told)
    known = {op.rpartition(".")[2]: f"relay.{op}" for op in api("ir.OpNames")()} | {own: own for own in dir(module)}
    near = [known[one] for one in difflib.get_close_matches(name, known, n=3)]
    return AttributeError(f"{told}; did you mean {' or '.join(near)}?" if near else told)


def names_within(namespace: str) -> set[str]:
    """The names of the ops `namespace`.*, of families among them the first part."""
    start = f"{namespace}." if namespace else ""
    return {op.removeprefix(start).split(".")[0] for op in api("ir.OpNames")() if op.startswith(start)}


def _make_family(name: str, family: str) -> types.ModuleType:
    module = types.ModuleType(name, f"The functions of the ops {family}.*")
    module.__all__ = []
    return module


def _lend(module: types.ModuleType, namespace: str) -> None:
    """Gives a module the functions of ops that are registered later, too."""
    module.__getattr__ = _lookup(module, namespace)
    module.__dir__ = lambda: sorted({*module.__all__, *submodules(module), *names_within(namespace)})


def _family(module: types.ModuleType, namespace: str, name: str) -> types.ModuleType | None:
    """The module of the ops `namespace`.`name`.*, or None when there are none."""
    family = f"{namespace}.{name}" if namespace else name
    if not any(op.startswith(f"{family}.") for op in api("ir.OpNames")()):
        return None
    inner = _make_family(f"{module.__name__}.{name}", family)
    _lend(inner, family)
    return inner


def fill(module: types.ModuleType, namespace: str = "") -> None:
    """Puts the functions of the ops `namespace`.* into a module; families among them become modules of their own.

    Ops that are registered later are found when they are asked for.
    """
    for op in api("ir.OpNames")():
        family, _, name = op.rpartition(".")
        if family == namespace and name not in vars(module):
            setattr(module, name, make_function(op))
        elif not namespace and family and not hasattr(module, family.split(".")[0]):
            first = family.split(".")[0]
            inner = _make_family(f"{module.__name__}.{first}", first)
            sys.modules[inner.__name__] = inner
            sys.modules[f"{module.__name__}.op.{first}"] = inner  # also where users of Relay import it from
            setattr(module, first, inner)
            fill(inner, first)
    _lend(module, namespace)
