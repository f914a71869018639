"""The classes of nodes: one for each type of the C++ registry, made from its list of fields.

A module may add methods to a type (`mixin`), give the order of its constructor's arguments (`constructor`), and say how
Python values become a field's (`converter`). Fields are C++'s alone. C++ may give a node before anything imported the
module that has its methods: `extend_by` names that module by room, and it is imported before the room's first class.
"""

from __future__ import annotations

import importlib
import inspect
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace import _core, _native, _public

__all__ = ["Object", "register_object"]

_core.register_all()

_MODULES = {
    "ir": "headrace.ir",
    "relay": "headrace.relay",
    "relay.attrs": "headrace.relay.attrs",
    "relay.dataflow_pattern": "headrace.relay.dataflow_pattern",
    "tir": "headrace.tir",
    "object": "headrace.runtime",
    "runtime": "headrace.runtime",
    "transform": "headrace.transform",
    "instrument": "headrace.instrument",
    "interp": "headrace.relay.backend.interpreter",
    "": "headrace.target",
    # Types that are shown elsewhere than the others of their room.
    "transform.FunctionPass": "headrace.relay.transform",
    "transform.PrimFuncPass": "headrace.tir.transform",
}

_lock = threading.RLock()
_extensions: dict[str, tuple[str, ...]] = {}  # by room: the modules that add to its types and are not imported yet
_classes: dict[int, type] = {}
_generated: dict[str, type] = {}  # by key: what _make_class made, whatever took its place
_mixins: dict[str, type] = {}
_orders: dict[str, list[str]] = {}
_docs: dict[str, str] = {}
_converters: dict[str, Callable[[Any], Any]] = {}
_defaults: dict[str, dict[str, Any]] = {}
_aliases: dict[str, dict[str, str]] = {}
_index_of: dict[str, int] = {}
_converted: dict[str, dict[str, str]] = {}  # by type: the fields that take other values too, with their kinds
_fields: dict[type, list[dict[str, Any]]] = {}


# Keys of TVM's that are others here.
_OLD_KEYS = {
    **{key: f"ir.{key}" for key in ("BaseExpr", "BaseFunc", "FloatImm", "IRModule", "IntImm", "Op", "PrimExpr")},
    **{key: f"ir.{key}" for key in ("Attrs", "PrimType", "Span", "Type")},
    **{key: f"relay.{key}" for key in ("FuncType", "GlobalTypeVar", "GlobalVar", "IncompleteType", "TupleType")},
    **{key: f"relay.{key}" for key in ("TypeCall", "TypeRelation", "TypeVar")},
    "Array": "object.Array",
    "Map": "object.Map",
    "RelayExpr": "relay.Expr",
    "runtime.ADT": "object.ADT",
    "runtime.NDArray": "object.NDArray",
    "runtime.ShapeTuple": "object.Shape",
    "runtime.String": "object.Str",
    "tir.Any": "ir.Any",
    "tir.StringImm": "ir.StringImm",
}


class _Object:
    """The members that every node has: its C++ fields as attributes, identity, a hash, a text."""

    __slots__ = ()

    def __init_handle_by_constructor__(self, fconstructor: Callable[..., Any], *args: Any) -> None:
        """Gives a node that is being made what a function gives, as constructors of TVM's classes do.

        Parameters
        ----------
        fconstructor : function
            Gives a node of the class's type.
        *args
            What it is called with.
        """
        made = fconstructor(*args)
        if not (isinstance(made, _core.Object) and issubclass(type(self), _generated[made.type_key])):
            got = made.type_key if isinstance(made, _core.Object) else type(made).__name__
            raise _core.UserError(f"{type(self).__name__}: its constructor's function gave a {got}, no such node")
        _core.Object.__init__(self, made)

    def __getattr__(self, name: str) -> Any:
        if not _core.is_made(self):
            raise AttributeError(
                f"{type(self).__name__} has no '{name}' before it is made: its __init__ calls super().__init__ first"
            )
        known = ", ".join(field["name"] for field in fields_of(type(self))) or "none"
        raise AttributeError(f"{self.type_key} has no attribute '{name}'; its fields: {known}")

    def __setattr__(self, name: str, value: Any) -> None:
        if any(field["name"] == name for field in fields_of(type(self))):
            raise AttributeError(f"{self.type_key} cannot be changed: make another with `copy_with({name}=...)`")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self.same_as(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return _core.Object.__hash__(self)

    def __repr__(self) -> str:
        return self._short_text()

    def __reduce__(self) -> tuple[Any, ...]:
        return load_json, (self._save(),)

    def copy_with(self, **changes: Any) -> Any:
        """A node of the same type with some fields changed.

        Parameters
        ----------
        **changes
            New values by field.

        Returns
        -------
        Object
            The new node; the old one stays as it is.
        """
        old = {f["name"]: getattr(self, f["name"]) for f in fields_of(type(self)) if not f["transient"]}
        return make(self.type_key, {**{k: v for k, v in old.items() if v is not None}, **changes})


def mixin(key: str) -> Callable[[type], type]:
    """Adds a plain class's methods to the type `key`, before anything asks for its class.

    A module that is reloaded changes nothing here: the class and its nodes stay as they are.
    """

    def add(methods: type) -> type:
        index = _index_of.get(known_key(key)) if _native.is_runtime_alone else index_of(key)
        if index in _classes:
            if key in _mixins and _mixins[key].__qualname__ == methods.__qualname__:
                return _mixins[key]
            raise _core.InternalError(f"the class of {key} was made before its methods")
        _mixins[key] = methods
        if methods.__doc__:
            _docs[key] = methods.__doc__
        return methods

    return add


def constructor(key: str, order: str, doc: str = "") -> None:
    """The order of a type's constructor arguments, as users type them; other fields follow by keyword."""
    _orders[key] = order.split()
    if doc:
        _docs[key] = doc


def default(key: str, **values: Any) -> None:
    """Sets the defaults that Python's constructor has for fields without a default in C++."""
    _defaults.setdefault(key, {}).update(values)


def alias(key: str, name: str, field: str) -> None:
    """Adds another name for a field, which the constructor takes and attributes have."""
    _aliases.setdefault(key, {})[name] = field


def converter(kind: str, convert: Callable[[Any], Any]) -> None:
    """Sets the function that converts a Python value for fields of that kind; also for the items of arrays of them."""
    _converters[kind] = convert


def convert(value: Any, kind: str) -> Any:
    """Converts `value` for a field of that kind."""
    if kind in _converters:
        return _converters[kind](value)
    if kind.startswith("Array[") and isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict)):
        inner = kind[6:-1]
        return [convert(item, inner) for item in value] if needs_conversion(inner) else value
    return value


def needs_conversion(kind: str) -> bool:
    return kind in _converters or (kind.startswith("Array[") and needs_conversion(kind[6:-1]))


def make(key: str, fields: dict[str, Any]) -> Any:
    """A node of the type `key`; UserError names a field that is unknown, missing or of another kind."""
    if key not in _converted:
        key = known_key(key)
    if key not in _converted:
        rows = fields_of(class_of(key))
        _converted[key] = {row["name"]: row["kind"] for row in rows if needs_conversion(row["kind"])}
    kinds = _converted[key]
    return _core.make(key, {name: convert(v, kinds[name]) if name in kinds else v for name, v in fields.items()})


def fields_of(cls: type) -> list[dict[str, Any]]:
    """The rows of C++'s field list: name, kind, doc, optional, transient, has_default, default."""
    for base in cls.__mro__:
        if base in _fields:
            return _fields[base]
    return []


def class_of(key: str) -> type:
    """The Python class of a registered type."""
    return _class_at(index_of(key))


def known_key(key: str) -> str:
    """The key of a type; also of one that TVM calls otherwise ("IntImm"), where no type has that key here."""
    if key not in _index_of:
        _index_of.update(_keys())
    return key if key in _index_of else _OLD_KEYS.get(key, key)


def index_of(key: str) -> int:
    """The number of a registered type in this process."""
    known = known_key(key)
    if known not in _index_of:
        if _native.is_runtime_alone:
            raise _native.missing(f"there is no type '{key}'")
        raise _core.UserError(f"there is no type '{key}'")
    return _index_of[known]


def all_keys(prefix: str = "") -> list[str]:
    """The keys of the registered types that begin with `prefix` and a dot."""
    return [key for key in _keys() if not prefix or key.rpartition(".")[0] == prefix]


def set_class(key: str, cls: type) -> None:
    """Makes `cls`, a subclass of the type's class, what nodes of that type are in Python."""
    index = _keys().get(known_key(key))
    if index is None:
        raise _core.UserError(f"there is no type '{key}' in the C++ registry; register it there first")
    if not (isinstance(cls, type) and issubclass(cls, Object)):
        raise _core.UserError(f"register_object('{key}'): the class must derive from headrace.Object")
    with _lock:
        parent = _class_at(index)
        if not issubclass(cls, parent):
            _fields[cls] = fields_of(parent)
        _classes[index] = cls
        _core.set_class(index, cls)


def register_object(type_key: str | type) -> Any:
    """Registers a Python class as the class of the nodes of a C++ type.

    Parameters
    ----------
    type_key : str or type
        The type's key, such as "relay.Var"; or, as a bare decorator, the class, whose name is the key.

    Returns
    -------
    decorator or type
    """
    if isinstance(type_key, type):
        set_class(type_key.__name__, type_key)
        return type_key

    def register(cls: type) -> type:
        set_class(type_key, cls)
        return cls

    return register


def _keys() -> dict[str, int]:
    return {row["key"]: row["index"] for row in _core.type_table()}


def extend_by(modules: Mapping[str, str]) -> None:
    """Says which modules add to the types of a room, or to one type: they are imported before its first class is made.

    Parameters
    ----------
    modules : dict of str to str
        By room ("relay"), or by key for a type with others than its room's: the modules' names, with spaces between.
        Also by any other name that a module gives to `import_extensions`.
    """
    _extensions.update({room: tuple(names.split()) for room, names in modules.items()})


def import_extensions(name: str) -> None:
    """Imports the modules that `extend_by` says for a name, if it says any."""
    for module in _extensions.get(name, ()):
        importlib.import_module(module)


def _import_methods(index: int | None) -> None:
    """Imports what adds to a type and to those that it derives from. Takes no lock: an import has locks of its own."""
    while index is not None and index not in _classes:
        row = _core.type_row(index)
        import_extensions(row["key"] if row["key"] in _extensions else row["key"].rpartition(".")[0])
        index = row["parent"]


def _class_at(index: int) -> type:
    found = _classes.get(index)
    if found is not None:
        return found
    _import_methods(index)
    with _lock:
        if index not in _classes:
            _classes[index] = _make_class(_core.type_row(index))
            _core.set_class(index, _classes[index])
        return _classes[index]


def _make_class(row: dict[str, Any]) -> type:
    key = row["key"]
    parent = _core.Object if row["parent"] is None else _class_at(row["parent"])
    room, _, name = key.rpartition(".")
    fields = _core.type_fields(row["index"])
    inherited = {field["name"] for field in fields_of(parent)}
    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": _MODULES.get(key) or _MODULES.get(room, "headrace"),
        "__qualname__": name,
    }
    for field in fields:
        if field["name"] not in inherited:
            getter = _core.field_getter(row["index"], field["name"])
            body[field["name"]] = property(getter, doc=f"{field['kind']}: {field['doc']}" if field["doc"] else None)
    for other, field in _aliases.get(key, {}).items():
        body[other] = body[field]
    body["__init__"] = _constructor_of(key, fields) if row["makeable"] else _refuse(key)
    body["__doc__"] = _doc_of(key, fields)
    extra = [_mixins[key]] if key in _mixins else []
    if key in _mixins and "__init__" in vars(_mixins[key]):
        # Its parameters are not the fields, and its own text tells them.
        del body["__init__"]
        body["__doc__"] = inspect.cleandoc(_docs[key])
    if row["parent"] is None:
        extra.append(_Object)
    cls = type(name, (parent,), body)
    if extra:
        cls.__bases__ = (*extra, parent)  # not at once: nanobind-backend 1.0 makes no class with several bases
    if key in _mixins and "__eq__" in vars(_mixins[key]) and vars(_mixins[key])["__hash__"] is None:
        raise TypeError(f"{key}: a mixin with __eq__ says __hash__ too")
    _fields[cls] = fields
    _generated[key] = cls
    return cls


def _order_of(key: str, fields: list[dict[str, Any]]) -> list[str]:
    """Arguments in the order that users give them, then the other fields that can be set."""
    first = _orders.get(key, [])
    aliased = {_aliases.get(key, {}).get(name, name) for name in first}
    rest = [field["name"] for field in fields if field["name"] not in aliased and not field["transient"]]
    return [*first, *sorted(rest, key=lambda name: name == "span")]


def _constructor_of(key: str, fields: list[dict[str, Any]]) -> Callable[..., None]:
    order = _order_of(key, fields)
    names = _aliases.get(key, {})
    defaults = _defaults.get(key, {})

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(order):
            raise _core.UserError(f"{key} takes {len(order)} arguments ({', '.join(order)}), got {len(args)}")
        given = {}
        for name, value in (*zip(order, args, strict=False), *kwargs.items()):
            field = names.get(name, name)
            if field in given:
                raise _core.UserError(f"{key}: argument '{name}' is given twice")
            given[field] = value
        # None stands for an argument that is left out, as Relay users write it.
        fields_given = {name: value for name, value in given.items() if value is not None}
        _core.Object.__init__(self, make(key, {**defaults, **fields_given}))

    __init__.__signature__ = _signature_of(key, order, fields)
    return __init__


def _signature_of(key: str, order: list[str], fields: list[dict[str, Any]]) -> inspect.Signature:
    """The signature of a constructor. After an argument with a default all have one, because Python requires it."""
    by_name = {field["name"]: field for field in fields}
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    is_free = False
    for name in order:
        field = by_name[_aliases.get(key, {}).get(name, name)]
        is_free = is_free or _may_be_left_out(key, name, field)
        default = None if is_free else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature(parameters, return_annotation="None")


def _may_be_left_out(key: str, name: str, field: dict[str, Any]) -> bool:
    return field["optional"] or field["has_default"] or name in _defaults.get(key, {})


def _refuse(key: str) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        raise _core.UserError(f"{key} cannot be made from its fields")

    return __init__


def _doc_of(key: str, fields: list[dict[str, Any]]) -> str:
    lines = [_docs.get(key, f"A node of type {key}."), "", "Parameters", "----------"]
    by_name = {field["name"]: field for field in fields}
    for name in _order_of(key, fields):
        field = by_name[_aliases.get(key, {}).get(name, name)]
        optional = ", optional" if _may_be_left_out(key, name, field) else ""
        lines.append(f"{name} : {field['kind']}{optional}")
        if field["doc"]:
            lines.append(f"    {field['doc']}")
    return "\n".join(lines)


def load_json(text: str) -> Any:
    """The object graph that was saved as `text`: how pickles are read."""
    return _core.load_json(text)


def _reduce_array(self: _core.NDArray) -> tuple[Any, ...]:
    return load_json, (self._save(),)


_core.NDArray.__reduce__ = _reduce_array
for _class in (_core.Device, _core.Module, _core.NDArray, _core.PackedFunc):
    _class.__module__ = "headrace"
_core.set_class_maker(_class_at)
Object = class_of("object.Object")
_public.publish(__name__, "headrace")
