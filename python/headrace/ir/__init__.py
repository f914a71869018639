"""The parts that Relay and loop programs share: modules, types, scalar expressions, JSON, structural equality."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments, _core, _node, _op, _prim_expr, _public, _text_form  # noqa: F401
from headrace._container import Array, Map
from headrace._ffi import api, get_global_func
from headrace._op import AttrFieldInfo, register_op_attr


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two programs are the same but for the names of variables.

    Parameters
    ----------
    lhs, rhs : Object or any value
        What is compared. An int, also in a list, is a dimension: a shape equals the list of its sizes.
    map_free_vars : bool
        Whether free variables may correspond one to one; otherwise each is equal to itself only.

    Returns
    -------
    bool
    """
    return _STRUCTURAL_EQUAL(lhs, rhs, bool(map_free_vars))


def assert_structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> None:
    """Raises UserError, which shows the path to the first difference, when two programs are not the same.

    Parameters
    ----------
    lhs, rhs : Object or any value
        What is compared.
    map_free_vars : bool
        As for `structural_equal`.
    """
    api("ir.AssertStructuralEqual")(lhs, rhs, bool(map_free_vars))


def get_first_structural_mismatch(lhs: Any, rhs: Any, map_free_vars: bool = False) -> Map | None:
    """The first place where two programs differ.

    Parameters
    ----------
    lhs, rhs : Object or any value
        What is compared.
    map_free_vars : bool
        As for `structural_equal`.

    Returns
    -------
    Map or None
        Path, reason, left and right (short texts); None when they are equal.
    """
    return api("ir.FirstMismatch")(lhs, rhs, bool(map_free_vars))


def structural_hash(node: Any, map_free_vars: bool = False) -> int:
    """A hash that agrees with `structural_equal`.

    Parameters
    ----------
    node : Object or any value
        What is hashed.
    map_free_vars : bool
        As for `structural_equal`.

    Returns
    -------
    int
        Of this process only, where the program has ops or free variables.
    """
    return _STRUCTURAL_HASH(node, bool(map_free_vars))


def save_json(node: Any) -> str:
    """An object graph as JSON, with its sharing; types that were inferred are not saved.

    Parameters
    ----------
    node : Object
        What the graph begins with.

    Returns
    -------
    str
    """
    return api("ir.SaveJSON")(node)


def load_json(json_str: str) -> Any:
    """The object graph that `save_json` wrote; of TVM's, all but functions, calls and their attributes.

    Parameters
    ----------
    json_str : str
        The text.

    Returns
    -------
    Object

    Raises
    ------
    UserError
        That says where the text is wrong, or which kind of TVM's nodes in it is not read.
    """
    _arguments.text(json_str, "load_json: json_str")
    return api("ir.LoadJSON")(json_str)


_STRUCTURAL_EQUAL = api("ir.StructuralEqual")
_STRUCTURAL_HASH = api("ir.StructuralHash")
_TYPE_EQUAL = api("ir.TypeEqual")
_TYPE_HASH = api("ir.TypeHash")


@_node.mixin("ir.Type")
class _Type:
    """Base of the types of expressions. Types are equal by structure; dimensions are where their values are."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and _TYPE_EQUAL(self, other)

    def __hash__(self) -> int:
        return _TYPE_HASH(self)

    def __repr__(self) -> str:
        return _text_form.text_of(self)


class TypeKind(IntEnum):
    """Kinds of types."""

    Type = 0
    ShapeVar = 1
    BaseType = 2
    Shape = 3
    Constraint = 4
    AdtHandle = 5
    TypeData = 6


class SourceName(str):
    """The name of a source. A Span has it as a str."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name itself."""
        return str(self)


@_node.mixin("ir.Source")
class _Source:
    """A text that programs were read from, up to its metadata block."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Source({self.source_name!r}, {len(self.source)} characters)"


class SourceMap:
    """The texts that a module was read from.

    Parameters
    ----------
    source_map : Map of str to Source
        By the names that spans have for them.
    """

    def __init__(self, source_map: Any) -> None:
        self.source_map = source_map

    def __repr__(self) -> str:
        return f"SourceMap({', '.join(self.source_map)})"


_node.constructor("ir.Span", "source_name line end_line column end_column", "Where in a source a node came from.")
_node.default("ir.Span", source_name="")


@_node.mixin("ir.IRModule")
class _IRModule(_text_form.Printed):
    """Functions and type definitions by name.

    Threads may add to a module while others read it: a pass, a build and a print take what is there when they begin.

    Parameters
    ----------
    functions : dict of GlobalVar or str to function, optional
        In order of definition.
    type_definitions : dict of GlobalTypeVar to TypeData, optional
        Data types.
    attrs : dict, optional
        Attributes of the module.
    """

    __slots__ = ()

    def __init__(
        self,
        functions: Mapping[Any, Any] | None = None,
        type_definitions: Mapping[Any, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        empty = {"functions": {}, "type_definitions": {}, "attrs": _arguments.entries(attrs, "attrs")}
        _core.Object.__init__(self, _core.make("ir.IRModule", empty))
        for data in _arguments.entries(type_definitions, "type_definitions").values():
            self.AddTypeDef(data)
        for name, function in _arguments.entries(functions, "functions").items():
            self._add(name, function, False)

    @staticmethod
    def from_expr(
        expr: Any, functions: Mapping[Any, Any] | None = None, type_defs: Mapping[Any, Any] | None = None
    ) -> Any:
        """A module whose `main` is `expr`; an expression that is not a function becomes the body of one.

        Parameters
        ----------
        expr : RelayExpr
            A function, or an expression whose free variables become the parameters.
        functions : dict, optional
            Other functions.
        type_defs : dict, optional
            Data types.

        Returns
        -------
        IRModule

        Raises
        ------
        UserError
            For what is not an expression.
        """
        module = IRModule(functions, type_defs)
        expr = _as_function(expr, "from_expr: expr")
        module._add(expr.attrs.get("global_symbol", "main"), expr, False)
        return module

    def _add(self, var: Any, function: Any, update: bool = True) -> Any:
        name = GlobalVar(var) if isinstance(var, str) else var
        if not isinstance(name, GlobalVar):
            raise _core.UserError(f"the name of a function: expected a GlobalVar or a str, got {_arguments.kind(var)}")
        what = f"function '{var}'" if isinstance(var, str) else "a function of a module"
        return api("ir.ModuleAdd")(self, name, _as_function(function, what), bool(update))

    def Add(self, var: Any, func: Any, update: bool = False) -> Any:
        """Adds a function.

        Parameters
        ----------
        var : GlobalVar or str
            Its name.
        func : Function or RelayExpr
            The function; or an expression, which becomes the body of one whose parameters are its free variables.
        update : bool
            Whether one of that name may be replaced.

        Returns
        -------
        GlobalVar
            The one that the module uses for it.

        Raises
        ------
        UserError
            When the name is taken and `update` is not set.
        """
        return self._add(var, func, update)

    def AddTypeDef(self, data: Any, update: bool = False) -> None:
        """Adds a data type; UserError when its name is taken and `update` is not set."""
        data = _arguments.node(data, "AddTypeDef: data", "relay.TypeData")
        api("ir.ModuleAddTypeDef")(self, data, bool(update))

    def __setitem__(self, var: Any, value: Any) -> None:
        if isinstance(value, _node.class_of("relay.TypeData")):
            self._set_type(value)
        else:
            self._add(var, value, True)

    def _set_type(self, data: Any) -> None:
        name = data.header.name_hint
        known = api("ir.ModuleFindGlobalTypeVar")(self, name)
        if known is None:
            self.AddTypeDef(data)
        elif not self.type_definitions[known].same_as(data):
            raise _core.UserError(
                f"the module has a type '{name}' already, whose values and functions another would not fit; "
                "mod.AddTypeDef(data, update=True) replaces it"
            )

    def __getitem__(self, var: Any) -> Any:
        if isinstance(var, _node.class_of("relay.GlobalTypeVar")):
            return self.type_definitions[self.get_global_type_var(var.name_hint)]
        return self.functions[self.get_global_var(_name_of(var))]

    def __contains__(self, var: Any) -> bool:
        return api("ir.ModuleFindGlobalVar")(self, _name_of(var)) is not None

    def functions_items(self) -> list[tuple[Any, Any]]:
        """Pairs of GlobalVar and function, in order of definition."""
        return self.functions.items()

    def update(self, other: Any) -> None:
        """Takes the functions and types of another module, or of a dict, in place of its own of the same names."""
        module = other if isinstance(other, IRModule) else IRModule(other)
        for data in module.type_definitions.values():
            self.AddTypeDef(data, True)
        for var, function in module.functions.items():
            self._add(var, function, True)
        for source in module.sources.values():
            api("ir.ModuleAddSource")(self, source)

    def update_func(self, var: Any, func: Any) -> None:
        """Replaces or adds the function of that name."""
        self._add(var, func, True)

    def get_global_var(self, name: str) -> Any:
        """The GlobalVar of that name; UserError that lists the functions when there is none."""
        return api("ir.ModuleGetGlobalVar")(self, _arguments.text(name, "get_global_var: name"))

    def get_global_vars(self) -> list[Any]:
        """All GlobalVars, in order of definition."""
        return self.functions.keys()

    def get_global_type_var(self, name: str) -> Any:
        """The GlobalTypeVar of that name; UserError when there is none."""
        found = api("ir.ModuleFindGlobalTypeVar")(self, _arguments.text(name, "get_global_type_var: name"))
        if found is None:
            raise _core.UserError(f"the module has no type '{name}'")
        return found

    def get_global_type_vars(self) -> list[Any]:
        """All GlobalTypeVars, in order of definition."""
        return self.type_definitions.keys()

    def get_type(self, name: str) -> list[Any]:
        """The GlobalTypeVar of that name, then the constructors of its type."""
        var = self.get_global_type_var(name)
        return [var, *self.type_definitions[var].constructors]

    def get_constructor(self, type_name: str, name: str | None = None) -> Any:
        """The constructor of that name of a data type; UserError when there is none, and for a tag alone."""
        if name is None:
            raise _core.UserError(
                "get_constructor: a name is needed beside the type's, as mod.get_constructor('List', 'Cons'); "
                "mod.get_type('List')[1 + tag] is the one of a tag"
            )
        for constructor in self.get_type(type_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise _core.UserError(f"the type '{type_name}' has no constructor '{name}'")

    def import_from_std(self, file_to_import: str) -> None:
        """Takes the types and functions of a text that comes with Headrace.

        What the module has already in the same words stays, so that a text may be imported again.

        Parameters
        ----------
        file_to_import : str
            "prelude.rly", "nat.rly", "gradient.rly" or "core.rly".

        Raises
        ------
        UserError
            When there is no such text; or that lists what the module defines otherwise: it is unchanged then.
        """
        api("relay.parser.Import")(self, file_to_import, [])

    def _import(self, file_to_import: str | PathLike[str]) -> None:
        """Takes the types and functions of a file of text; what that imports is looked for in the file's folder.

        Parameters
        ----------
        file_to_import : path
            The file.

        Raises
        ------
        UserError
            As `import_from_std`; and with the errors of the text, each with its place in it.
        """
        file = Path(_arguments.path(file_to_import, "file_to_import")).absolute()
        api("relay.parser.Import")(self, str(file), [str(file.parent)])

    def show(self) -> None:
        """Prints the module's text."""
        print(self)

    @property
    def source_map(self) -> SourceMap:
        """The texts that the module was read from: ``mod.source_map.source_map["from_string"].source``.

        They are not part of equality and hash; `save_json` saves them.
        """
        return SourceMap(self.sources)

    def copy(self) -> Any:
        """Another module with the same functions: adding to one does not change the other."""
        return api("ir.ModuleCopy")(self)

    def with_attr(self, attr_key: str, attr_value: Any) -> Any:
        """The module with an attribute."""
        return self.with_attrs({_arguments.text(attr_key, "with_attr: attr_key"): attr_value})

    def with_attrs(self, attr_map: Mapping[str, Any]) -> Any:
        """The module with these attributes beside its own."""
        return self.copy_with(
            attrs={**dict(self.attrs.items()), **_arguments.entries(attr_map, "with_attrs: attr_map")}
        )

    def without_attr(self, attr_key: str) -> Any:
        """The module without an attribute, which it need not have."""
        return self.copy_with(attrs={key: value for key, value in self.attrs.items() if key != attr_key})

    def get_attr(self, attr_key: str) -> Any:
        """The attribute of that name, or None."""
        return self.attrs.get(attr_key)


@_node.mixin("ir.Attrs")
class _Attrs:
    """Attributes of a call: fields by name, also as `attrs["name"]`."""

    __slots__ = ()

    def keys(self) -> list[str]:
        """The names of the attributes."""
        return [field["name"] for field in _node.fields_of(type(self))]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get_int(self, key: str) -> int:
        """An integer attribute."""
        return int(getattr(self, key))

    def get_str(self, key: str) -> str:
        """A text attribute."""
        return str(getattr(self, key))

    def get_int_tuple(self, key: str) -> tuple[int, ...]:
        """An attribute of several integers."""
        return tuple(int(item) for item in getattr(self, key))


@_node.mixin("ir.EnvFunc")
class _EnvFunc:
    """A global function by its name, as a node: JSON keeps it. Each call finds the function anew."""

    __slots__ = ()

    @staticmethod
    def get(name: str) -> Any:
        """The node of a global function.

        Parameters
        ----------
        name : str
            The function's name.

        Returns
        -------
        EnvFunc

        Raises
        ------
        UserError
            When there is no such function.
        """
        get_global_func(name)
        return _node.make("ir.EnvFunc", {"name": name})

    @property
    def func(self) -> Any:
        """The function; UserError when there is none of the name now."""
        return get_global_func(self.name)

    def __call__(self, *args: Any) -> Any:
        return self.func(*args)


def _name_of(var: Any) -> str:
    """The name of a function that is asked for by it or by its GlobalVar."""
    if isinstance(var, (str, GlobalVar)):
        return var if isinstance(var, str) else var.name_hint
    raise _core.UserError(f"a function of a module: expected its name or its GlobalVar, got {_arguments.kind(var)}")


def _as_function(expr: Any, what: str) -> Any:
    """A function as it is; of another expression, a function of its free variables."""
    if isinstance(expr, _node.class_of("ir.BaseFunc")):
        return expr
    body = _arguments.expression(expr, what)
    return _node.class_of("relay.Function")(api("relay.analysis.free_vars")(body), body)


def make_node(type_key: str, **kwargs: Any) -> Any:
    """A node of a registered type from its fields.

    Parameters
    ----------
    type_key : str
        The type, such as "relay.Var".
    **kwargs
        Its fields.

    Returns
    -------
    Object

    Raises
    ------
    UserError
        For a type, field or kind that does not fit, or a field that is missing.
    """
    return _node.make(_arguments.text(type_key, "make_node: type_key"), kwargs)


def node_fields(node_or_type: Any) -> list[str]:
    """The names of a node's fields.

    Parameters
    ----------
    node_or_type : Object or type
        The node, or its class.

    Returns
    -------
    list of str
        As C++ lists them.
    """
    cls = node_or_type if isinstance(node_or_type, type) else type(node_or_type)
    return [field["name"] for field in _node.fields_of(cls)]


__all__ = [
    "Array",
    "AttrFieldInfo",
    "Map",
    "SourceMap",
    "SourceName",
    "TypeConstraint",
    "TypeKind",
    "assert_structural_equal",
    "get_first_structural_mismatch",
    "instrument",
    "load_json",
    "make_node",
    "node_fields",
    "register_op_attr",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]

# The classes, by the names that Relay users know them by here.
for _key in (*_node.all_keys("ir"), *_node.all_keys("relay")):
    _class = _node.class_of(_key)
    if _key.startswith("ir.") or issubclass(_class, _node.class_of("ir.Type")):
        globals()[_class.__name__] = _class
        __all__.append(_class.__name__)
GlobalVar = _node.class_of("relay.GlobalVar")
Constructor = _node.class_of("relay.Constructor")
RelayExpr = _node.class_of("relay.Expr")
RelayRefType = _node.class_of("relay.RefType")
TypeConstraint = _node.class_of("relay.TypeRelation")  # the one kind of constraint
IRModule = _node.class_of("ir.IRModule")
IntImm = _node.class_of("ir.IntImm")
PrimExpr = _node.class_of("ir.PrimExpr")
Type = _node.class_of("ir.Type")
__all__ += ["Constructor", "GlobalVar", "RelayExpr", "RelayRefType"]

_public.facade(__name__, {}, unlisted="container instrument supply transform")
_public.settle(__name__)
