"""What Relay and loop programs share: modules, types, scalar expressions, JSON, structural equality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import _core, _expr, _node, _prim_expr  # noqa: F401
from headrace._container import Map
from headrace._ffi import api


def structural_equal(lhs: Any, rhs: Any, map_free_vars: bool = False) -> bool:
    """Whether two programs are the same but for the names of variables.

    Parameters
    ----------
    lhs, rhs : Object or any value
        What is compared.
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
    """An object graph as JSON, with its sharing; types that were inferred are not saved."""
    return api("ir.SaveJSON")(node)


def load_json(json_str: str) -> Any:
    """The object graph that `save_json` wrote.

    Raises
    ------
    UserError
        That says where the text is wrong.
    """
    return api("ir.LoadJSON")(json_str)


_STRUCTURAL_EQUAL = api("ir.StructuralEqual")
_STRUCTURAL_HASH = api("ir.StructuralHash")


@_node.mixin("ir.Type")
class _Type:
    """Base of the types of expressions. Types are equal by structure."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and _STRUCTURAL_EQUAL(self, other, False)

    def __hash__(self) -> int:
        return _STRUCTURAL_HASH(self, False)

    def __repr__(self) -> str:
        return _expr.text_of(self)


_node.constructor("ir.Span", "source_name line column end_line end_column", "Where in a source a node came from.")


@_node.mixin("ir.IRModule")
class _IRModule:
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
        empty = {"functions": {}, "type_definitions": {}, "attrs": dict(attrs or {})}
        _core.Object.__init__(self, _core.make("ir.IRModule", empty))
        for data in (type_definitions or {}).values():
            api("ir.ModuleAddTypeDef")(self, data, False)
        for name, function in (functions or {}).items():
            self._add(name, function, False)

    @staticmethod
    def from_expr(
        expr: Any, functions: Mapping[Any, Any] | None = None, type_defs: Mapping[Any, Any] | None = None
    ) -> Any:
        """A module whose `main` is `expr`; an expression that is no function becomes the body of one.

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
            For what is no expression.
        """
        if isinstance(expr, _expr.TupleWrapper):
            expr = expr.astuple()
        if not isinstance(expr, (RelayExpr, _node.class_of("tir.PrimFunc"))):
            raise _core.UserError(f"from_expr: expected an expression or a function, got {_kind(expr)}")
        module = IRModule(functions, type_defs)
        if expr.type_key not in ("relay.Function", "tir.PrimFunc"):
            make_function = _node.class_of("relay.Function")
            expr = make_function(api("relay.analysis.free_vars")(expr), expr)
        module._add(expr.attrs.get("global_symbol", "main"), expr, False)
        return module

    def _add(self, var: Any, function: Any, update: bool = True) -> Any:
        name = GlobalVar(var) if isinstance(var, str) else var
        return api("ir.ModuleAdd")(self, name, function, bool(update))

    def Add(self, var: Any, func: Any, update: bool = False) -> Any:
        """Adds a function.

        Parameters
        ----------
        var : GlobalVar or str
            Its name.
        func : Function
            The function.
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
        api("ir.ModuleAddTypeDef")(self, data, bool(update))

    def __setitem__(self, var: Any, value: Any) -> None:
        if value.type_key == "relay.TypeData":
            api("ir.ModuleAddTypeDef")(self, value, True)
        else:
            self._add(var, value, True)

    def __getitem__(self, var: Any) -> Any:
        if not isinstance(var, str) and var.type_key == "relay.GlobalTypeVar":
            return self.type_definitions[var]
        name = self.get_global_var(var if isinstance(var, str) else var.name_hint)
        return self.functions[name]

    def __contains__(self, var: Any) -> bool:
        name = var if isinstance(var, str) else var.name_hint
        return api("ir.ModuleFindGlobalVar")(self, name) is not None

    def functions_items(self) -> list[tuple[Any, Any]]:
        """Pairs of GlobalVar and function, in order of definition."""
        return self.functions.items()

    def update(self, other: Any) -> None:
        """Takes the functions and types of another module, or of a dict, in place of its own of the same names."""
        module = other if isinstance(other, IRModule) else IRModule(other)
        for data in module.type_definitions.values():
            api("ir.ModuleAddTypeDef")(self, data, True)
        for var, function in module.functions.items():
            self._add(var, function, True)

    def update_func(self, var: Any, func: Any) -> None:
        """Replaces or adds the function of that name."""
        self._add(var, func, True)

    def get_global_var(self, name: str) -> Any:
        """The GlobalVar of that name; UserError that lists the functions when there is none."""
        return api("ir.ModuleGetGlobalVar")(self, name)

    def get_global_vars(self) -> list[Any]:
        """All GlobalVars, in order of definition."""
        return self.functions.keys()

    def get_global_type_var(self, name: str) -> Any:
        """The GlobalTypeVar of that name; UserError when there is none."""
        found = api("ir.ModuleFindGlobalTypeVar")(self, name)
        if found is None:
            raise _core.UserError(f"the module has no type '{name}'")
        return found

    def get_type(self, name: str) -> list[Any]:
        """The GlobalTypeVar of that name, then the constructors of its type."""
        var = self.get_global_type_var(name)
        return [var, *self.type_definitions[var].constructors]

    def get_constructor(self, type_name: str, name: str) -> Any:
        """The constructor of that name of a data type; UserError when there is none."""
        for constructor in self.get_type(type_name)[1:]:
            if constructor.name_hint == name:
                return constructor
        raise _core.UserError(f"the type '{type_name}' has no constructor '{name}'")

    def import_from_std(self, file_to_import: str) -> None:
        """Takes the types and functions of a text that comes with Headrace, such as "prelude.rly"."""
        header = f'#[version = "0.0.5"]\nimport "{file_to_import}"\n'
        self.update(api("relay.parser.ParseModule")("import", header, None))

    def copy(self) -> Any:
        """Another module with the same functions: adding to one does not change the other."""
        return api("ir.ModuleCopy")(self)

    def with_attr(self, attr_key: str, attr_value: Any) -> Any:
        """The module with an attribute."""
        return self.copy_with(attrs={**dict(self.attrs.items()), attr_key: attr_value})

    def get_attr(self, attr_key: str) -> Any:
        """The attribute of that name, or None."""
        return self.attrs.get(attr_key)

    def astext(self, show_meta_data: bool = True, show_types: bool = False) -> str:
        """The text form, which `relay.parse` reads; without the data of large constants it cannot be read back.

        With `show_types` each expression has the type that InferType found behind it, as a comment.
        """
        return api("relay.ir.AsText")(self, bool(show_meta_data), bool(show_types))

    def __str__(self) -> str:
        return _expr.text_of(self)

    def __repr__(self) -> str:
        return _expr.text_of(self)


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


@_node.mixin("relay.attrs.UserAttrs")
class _UserAttrs:
    """Attributes of a call of an op that was registered at run time; also as `attrs.name`."""

    __slots__ = ()

    def keys(self) -> list[str]:
        """The names of the attributes."""
        return _USER_ATTR_VALUES(self).keys()

    def __getitem__(self, name: str) -> Any:
        return self.__getattr__(name)

    def __getattr__(self, name: str) -> Any:
        values = _USER_ATTR_VALUES(self)
        if name not in values:
            raise AttributeError(f"there is no attribute '{name}'; the attributes: {', '.join(values.keys())}")
        return values[name]


@_node.mixin("ir.Op")
class _Op:
    """An operator. There is one object a name. `op(x, axis=1)` is a call of it."""

    __slots__ = ()

    def __call__(self, *args: Any, span: Any = None, **attrs: Any) -> Any:
        """A call of the op.

        Parameters
        ----------
        *args : RelayExpr
            Its arguments.
        span : Span, optional
            Where it came from.
        **attrs
            Its attributes.

        Returns
        -------
        Call
        """
        return _expr.Call(self, args, self.make_attrs(**attrs), span=span)

    def make_attrs(self, **attrs: Any) -> Any:
        """The attributes of a call, those that are left out at their defaults; None for an op without attributes.

        Raises
        ------
        UserError
            For an attribute that the op does not have, that is missing, or of another kind.
        """
        key = self.describe()["attrs_type_key"]
        if key and key != "relay.attrs.UserAttrs":
            return _node.make(key, attrs)
        given = {name: value for name, value in attrs.items() if value is not None}
        kinds = {row["name"]: row["kind"] for row in self.attrs_schema} if given else {}
        converted = {name: _node.convert(value, kinds.get(name, "")) for name, value in given.items()}
        return api("relay.op.MakeAttrs")(self, converted)

    @staticmethod
    def get(op_name: str) -> Any:
        """The op of that name; UserError that names near ones when there is none."""
        return api("ir.GetOp")(op_name)

    @staticmethod
    def list_op_names() -> list[str]:
        """The names of all ops."""
        return list(api("ir.OpNames")())

    def describe(self) -> Map:
        """Its doc, arguments (name, kind, doc), number of inputs, support level, type of attributes."""
        return api("ir.DescribeOp")(self.name)

    @property
    def arguments(self) -> list[dict[str, str]]:
        """The arguments in order, each with "name", "type_info" and "description"."""
        names = ("name", "type_info", "description")
        return [dict(zip(names, row, strict=True)) for row in self.describe()["arguments"]]

    @property
    def num_inputs(self) -> int:
        """How many arguments it takes; -1: any number."""
        return self.describe()["num_inputs"]

    @property
    def support_level(self) -> int:
        """From 1, the best supported, to 10."""
        return self.describe()["support_level"]

    @property
    def description(self) -> str:
        """What it does."""
        return self.describe()["doc"]

    @property
    def attrs_schema(self) -> list[Map]:
        """The attributes of an op that was registered at run time: name, kind, doc, has_default, default."""
        return list(api("relay.op.DescribeAttrs")(self))

    @property
    def why_opaque(self) -> str:
        """Why no call of the op is fused with others; empty when calls may be."""
        return api("relay.op.WhyOpaque")(self)

    def add_argument(self, name: str, type: str = "Tensor", description: str = "") -> Any:
        """Names the next argument of an op that was registered at run time.

        Parameters
        ----------
        name : str
            What it is called.
        type : str
            What it is, in words.
        description : str
            What it is for.

        Returns
        -------
        Op
            The op itself.

        Raises
        ------
        UserError
            For a name that is taken, or that no call could give.
        """
        api("relay.op.AddArgument")(self, name, type, description)
        return self

    def add_attr(self, name: str, kind: str = "float", default: Any = None, doc: str = "") -> Any:
        """Adds an attribute to an op that was registered at run time.

        Parameters
        ----------
        name : str
            An identifier.
        kind : str
            "int", "float", "bool", "str", "dtype", "shape", "Array[int]" or "Array[float]".
        default : optional
            What it is when a call does not give it; None: it must be given.
        doc : str
            What it is for.

        Returns
        -------
        Op
            The op itself.

        Raises
        ------
        UserError
            For a name that is taken or that no call could give or read, an unknown kind, a default of another kind.
        """
        if kind not in _ATTR_KINDS:
            raise _core.UserError(f"attribute '{name}': there is no kind {kind!r}; the kinds: {', '.join(_ATTR_KINDS)}")
        api("relay.op.AddAttr")(self, name, kind, _node.convert(default, kind), doc)
        return self

    def set_num_inputs(self, n: int) -> Any:
        """Says how many arguments the op takes; -1: any number. Gives the op itself."""
        api("relay.op.SetNumInputs")(self, n)
        return self

    def set_support_level(self, level: int) -> Any:
        """Says how well the op is supported: from 1, the best, to 10. Gives the op itself."""
        api("relay.op.SetSupportLevel")(self, level)
        return self

    def add_type_rel(self, rel_name: str, type_rel_func: Any = None) -> Any:
        """Sets the type relation of an op that was registered at run time.

        Parameters
        ----------
        rel_name : str
            What it is called. Without a function, "Identity" is the type of the first argument, and "Broadcast" what
            two tensors of one dtype give element by element, as `add` does.
        type_rel_func : function, optional
            Of (arg_types, attrs): the types of the arguments, whose dimensions may be symbolic, and the attributes
            (None for an op without any). It gives the type of the result, or None when it cannot tell yet. Calls have
            the number of arguments and the attributes that the op says.

        Returns
        -------
        Op
            The op itself.
        """
        if type_rel_func is None:
            if rel_name not in _RELATIONS:
                raise _core.UserError(
                    f"{self.name}: there is no type relation '{rel_name}'; give a function, or one of "
                    f"{', '.join(_RELATIONS)}"
                )
            type_rel_func = _RELATIONS[rel_name]
        elif not callable(type_rel_func):
            raise _core.UserError(
                f"{self.name}: type_rel_func: expected a function of (arg_types, attrs), got {type_rel_func!r}; a "
                'relation that has a name stands alone, as add_type_rel("Identity")'
            )
        api("relay.op.SetRelation")(self, type_rel_func)
        return self

    def get_attr(self, attr_name: str) -> Any:
        """What `set_attr` set, or None. "TOpPattern" is the op's pattern, "TOpIsStateful" whether it has effects."""
        return api("ir.OpGetAttr")(self, attr_name)

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> Any:
        """Sets an attribute of the op itself, such as "target.mychip".

        Parameters
        ----------
        attr_name : str
            Any name. "TOpPattern" and "TOpIsStateful" are those of Relay, for ops that were registered at run time.
        value
            Any value, also a function.
        plevel : int
            Taken for the sake of old programs; the last one that is set counts.

        Returns
        -------
        Op
            The op itself.

        Raises
        ------
        UserError
            For an attribute that is set in C++, and for a value that is not what Headrace reads there: "FTVMLegalize"
            is a function, "TOpPattern" an op pattern, "TOpIsStateful" a bool.
        """
        api("ir.OpSetAttr")(self, attr_name, value)
        return self

    def has_attr(self, attr_name: str) -> bool:
        """Whether `set_attr` set that attribute to something that is not None."""
        return self.get_attr(attr_name) is not None

    def reset_attr(self, attr_name: str) -> None:
        """Takes away what `set_attr` set, also a pattern and having effects."""
        api("ir.OpResetAttr")(self, attr_name)

    def __repr__(self) -> str:
        return f"Op({self.name})"


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def _first_type(arg_types: Any, attrs: Any) -> Any:
    return arg_types[0]


def _broadcast_type(arg_types: Any, attrs: Any) -> Any:
    if len(arg_types) != 2:
        raise _core.UserError(f"the relation Broadcast is of two arguments, got {len(arg_types)}")
    operands = [
        _node.make("relay.Var", {"name_hint": name, "type_annotation": t})
        for name, t in zip("ab", arg_types, strict=True)
    ]
    try:
        return api("relay.analysis.infer_type_expr")(Op.get("add")(*operands), IRModule()).checked_type
    except _core.UserError as error:
        # Not by the name of the op that was asked for its relation.
        told = str(error).partition("\n")[0].removeprefix("add: ")
        raise _core.UserError(f"the relation Broadcast: {told}") from None


_ATTR_KINDS = ("int", "float", "bool", "str", "dtype", "shape", "Array[int]", "Array[float]")
_RELATIONS = {"Identity": _first_type, "Broadcast": _broadcast_type}


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Sets an attribute of an op, as `Op.set_attr`.

    Parameters
    ----------
    op_name : str
        The op.
    attr_key : str
        Such as "target.mychip".
    value : optional
        The value; without it, a decorator is returned.
    level : int
        Taken for the sake of old programs.

    Returns
    -------
    The value, or the decorator
    """

    def register(given: Any) -> Any:
        Op.get(op_name).set_attr(attr_key, given, level)
        return given

    return register if value is None else register(value)


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
    return _node.make(type_key, kwargs)


def node_fields(node_or_type: Any) -> list[str]:
    """The names of a node's fields, as C++ lists them."""
    cls = node_or_type if isinstance(node_or_type, type) else type(node_or_type)
    return [field["name"] for field in _node.fields_of(cls)]


# The classes, by the names that Relay users know them by here.
for _key in (*_node.all_keys("ir"), *_node.all_keys("relay")):
    _class = _node.class_of(_key)
    if _key.startswith("ir.") or issubclass(_class, _node.class_of("ir.Type")):
        globals()[_class.__name__] = _class
GlobalVar = _node.class_of("relay.GlobalVar")
Constructor = _node.class_of("relay.Constructor")
RelayExpr = _node.class_of("relay.Expr")
RelayRefType = _node.class_of("relay.RefType")
IRModule = _node.class_of("ir.IRModule")
IntImm = _node.class_of("ir.IntImm")
PrimExpr = _node.class_of("ir.PrimExpr")
Type = _node.class_of("ir.Type")
Op = _node.class_of("ir.Op")
_USER_ATTR_VALUES = _core.field_getter(_node.index_of("relay.attrs.UserAttrs"), "values")
