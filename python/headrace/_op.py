"""Operators: calling them, asking about them, and saying what an op is that is registered at run time."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headrace import _core, _expr, _hints, _node, _public
from headrace._container import Map
from headrace._ffi import api

__all__ = ["AttrFieldInfo", "Op", "register_op_attr"]


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


class AttrFieldInfo(dict[str, str]):
    """An argument of an op: its "name", "type_info" and "description", as items and as attributes."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The argument's or attribute's name."""
        return self["name"]

    @property
    def type_info(self) -> str:
        """The kind of value: "Tensor", "Tuple of tensors" ..."""
        return self["type_info"]

    @property
    def description(self) -> str:
        """The shape and dtype, then the meaning."""
        return self["description"]


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
        key = _ATTRS_KEYS.get(self)
        if key is None:
            key = _ATTRS_KEYS[self] = str(self.describe()["attrs_type_key"])
        if key and key != "relay.attrs.UserAttrs":
            return _node.make(key, attrs)
        given = {name: value for name, value in attrs.items() if value is not None}
        kinds = self._attr_kinds(given)
        converted = {name: _node.convert(value, kinds.get(name, "")) for name, value in given.items()}
        return _MAKE_ATTRS(self, converted)

    def _attr_kinds(self, given: dict[str, Any]) -> dict[str, str]:
        """The kinds of an op's attributes, which are read again when one is given that was added since."""
        kinds = _ATTR_KINDS_OF.get(self, {})
        if given.keys() - kinds.keys():
            kinds = _ATTR_KINDS_OF[self] = {str(row["name"]): str(row["kind"]) for row in self.attrs_schema}
        return kinds

    @staticmethod
    def get(op_name: str) -> Any:
        """The op of that name.

        Parameters
        ----------
        op_name : str
            Such as "nn.conv2d".

        Returns
        -------
        Op

        Raises
        ------
        UserError
            That names near ones, when there is none.
        """
        if not isinstance(op_name, str):
            raise _core.UserError(f"the name of an op: expected a str, got {type(op_name).__name__}")
        return api("ir.GetOp")(op_name)

    @staticmethod
    def list_op_names() -> list[str]:
        """The names of all ops."""
        return list(api("ir.OpNames")())

    def describe(self) -> Map:
        """The op's doc, arguments (name, kind, doc), number of inputs, support level and type of attributes."""
        return api("ir.DescribeOp")(self.name)

    @property
    def arguments(self) -> list[AttrFieldInfo]:
        """The arguments in order: name, kind, and shape, dtype and meaning."""
        names = ("name", "type_info", "description")
        return [AttrFieldInfo(zip(names, row, strict=True)) for row in self.describe()["arguments"]]

    @property
    def num_inputs(self) -> int:
        """How many arguments the op takes; -1: any number."""
        return self.describe()["num_inputs"]

    @property
    def support_level(self) -> int:
        """The support level, from 1 (best supported) to 10."""
        return self.describe()["support_level"]

    @property
    def description(self) -> str:
        """The op's doc: what it computes, with shapes and dtypes."""
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
            The name.
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
            The name. Without a function, "Identity" is the type of the first argument, and "Broadcast" what
            two tensors of one dtype give element by element, as `add` does.
        type_rel_func : function, optional
            Called with (arg_types, attrs): the types of the arguments, whose dimensions may be symbolic, and the
            attributes (None for an op without any). It gives the type of the result, or None when it cannot tell yet.
            Calls have the number of arguments and the attributes that the op says.

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
        """The value of `set_attr`, or None. "TOpPattern" is its pattern, "TOpIsStateful" whether it has effects."""
        return api("ir.OpGetAttr")(self, attr_name)

    def set_attr(self, attr_name: str, value: Any, plevel: int = 10) -> Any:
        """Sets an attribute of the op itself, such as "target.mychip".

        Parameters
        ----------
        attr_name : str
            Any name. "TOpPattern", "TOpIsStateful" and "FTVMCompute" are those of Relay, for ops that were registered
            at run time; the last is what `relay.op.register_compute` sets.
        value
            Any value, also a function. "target.NAME" is a function of a typed call that says whether the compiler NAME
            supports it, or one of the call's attributes and arguments; AnnotateTarget asks it.
        plevel : int
            Accepted for the sake of old programs; the last one that is set counts.

        Returns
        -------
        Op
            The op itself.

        Raises
        ------
        UserError
            For an attribute that is set in C++; for one of Relay's that would change nothing here, as "FTVMStrategy",
            which says what there is instead; and for a value that is not what Headrace reads there: "FTVMLegalize",
            "FTVMMixedPrecisionConversionType" and "FPrimalGradient" are functions, "TOpPattern" is an op pattern,
            "TOpIsStateful" a bool.
        """
        told = _hints.op_attr_hint(attr_name)
        if told:
            raise _core.UserError(f"{self.name}: {told}")
        setter = setter_of(attr_name)
        if setter is not None:
            setter(self, value)
        if attr_name.startswith("target.") and callable(value):
            value = _target_check(value)
        api("ir.OpSetAttr")(self, attr_name, value)
        return self

    def set_attrs_type_key(self, key: str) -> None:
        """Says the class of the op's attributes, which `add_attr` lists here.

        Parameters
        ----------
        key : str
            "DictAttrs", which changes nothing.

        Raises
        ------
        UserError
            For another class.
        """
        if key != "DictAttrs":
            raise _core.UserError(
                f"{self.name}: set_attrs_type_key: got {key!r}; attributes have no class of their own: "
                "op.add_attr(name, kind, default) says them, one at a time"
            )

    def has_attr(self, attr_name: str) -> bool:
        """Whether `set_attr` set that attribute to something that is not None."""
        return self.get_attr(attr_name) is not None

    def reset_attr(self, attr_name: str) -> None:
        """Takes away what `set_attr` set, also a pattern and having effects; UserError for "FTVMCompute"."""
        if setter_of(attr_name) is not None:
            raise _core.UserError(
                f"{self.name}: what computes an op is not taken back; relay.op.register_compute sets another"
            )
        api("ir.OpResetAttr")(self, attr_name)

    def __getattr__(self, name: str) -> Any:
        told = _hints.hint("ir.Op", name)
        if told:
            raise AttributeError(told)
        return super().__getattr__(name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Op({self.name})"


def _first_type(arg_types: Any, attrs: Any) -> Any:
    return arg_types[0]


def _broadcast_type(arg_types: Any, attrs: Any) -> Any:
    if len(arg_types) != 2:
        raise _core.UserError(f"the relation Broadcast is of two arguments, got {len(arg_types)}")
    operands = [
        _node.make("relay.Var", {"name_hint": name, "type_annotation": t})
        for name, t in zip("ab", arg_types, strict=True)
    ]
    module = _node.class_of("ir.IRModule")()
    try:
        return api("relay.analysis.infer_type_expr")(Op.get("add")(*operands), module).checked_type
    except _core.UserError as error:
        # Not by the name of the op that was asked for its relation.
        told = str(error).partition("\n")[0].removeprefix("add: ")
        raise _core.UserError(f"the relation Broadcast: {told}") from None


_ATTR_KINDS = ("int", "float", "bool", "str", "dtype", "shape", "Array[int]", "Array[float]")
# Caches of the properties of ops that were called. They stay valid: an op's type of attributes never changes,
# attributes are only added, and an op that replaces another of the same name is a different object.
_ATTRS_KEYS: dict[Any, str] = {}
_ATTR_KINDS_OF: dict[Any, dict[str, str]] = {}
_MAKE_ATTRS = api("relay.op.MakeAttrs")
_RELATIONS = {"Identity": _first_type, "Broadcast": _broadcast_type}


def _target_check(check: Any) -> Any:
    """A check of calls for a compiler as a function of the call; Relay's older ones are of attributes and arguments."""
    try:
        parameters = inspect.signature(check).parameters.values()
    except (TypeError, ValueError):
        return check
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is inspect.Parameter.empty]
    return (lambda call: check(call.attrs, call.args)) if len(needed) == 2 else check


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
        Accepted for the sake of old programs.

    Returns
    -------
    The value, or the decorator
    """

    def register(given: Any) -> Any:
        Op.get(op_name).set_attr(attr_key, given, level)
        return given

    return register if value is None else register(value)


# Functions that run when an attribute is set on an op, besides storing its value, by the attribute's name. The modules
# that implement such attributes add to this table.
SETTERS: dict[str, Callable[[Any, Any], None]] = {}


def setter_of(attr_name: str) -> Callable[[Any, Any], None] | None:
    """The function to call when an attribute of an op is set, beside keeping the value; None when there is none."""
    _node.import_extensions(f"ir.Op {attr_name}")
    return SETTERS.get(attr_name)


Op = _node.class_of("ir.Op")
_USER_ATTR_VALUES = _core.field_getter(_node.index_of("relay.attrs.UserAttrs"), "values")


_public.publish(__name__, "headrace.ir")
