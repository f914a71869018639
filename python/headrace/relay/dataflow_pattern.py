"""Dataflow patterns: descriptions of pieces of a program, for matching, rewriting and splitting it.

    conv = is_op("nn.conv2d")(wildcard(), is_constant())
    pattern = conv.optional(lambda x: is_op("nn.bias_add")(x, wildcard())).optional(is_op("nn.relu"))
    assert pattern.match(program)

A pattern that is used twice within another stands for one expression. `str(pattern)` is its text form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace import _answers, _arguments, _core, _node, _public
from headrace._ffi import api
from headrace.ir import IRModule

__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DFPatternCallback",
    "DataTypePattern",
    "DominatorPattern",
    "ExprPattern",
    "FunctionPattern",
    "IfPattern",
    "LetPattern",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "VarPattern",
    "WildcardPattern",
    "dominates",
    "from_text",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "partition",
    "rewrite",
    "wildcard",
]

_ROOM = "relay.dataflow_pattern"


def _pattern(value: Any, what: str) -> Any:
    if not isinstance(value, DFPattern):
        raise _core.UserError(f"{what}: expected a pattern, got {_arguments.kind(value)}")
    return value


@_node.mixin(f"{_ROOM}.DFPattern")
class _DFPattern:
    """Base of all patterns."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.astext()

    def astext(self) -> str:
        """The text form, which `from_text` reads.

        Returns
        -------
        str

        Raises
        ------
        UserError
            For parts without a text form, such as shapes of symbols.
        """
        return api("relay.dataflow_pattern.AsText")(self)

    def __call__(self, *args: Any) -> Any:
        """The pattern of a call of this pattern; with None for its arguments, of a call of any number of them."""
        if len(args) == 1 and args[0] is None:
            return CallPattern(self, None)
        return CallPattern(self, [_pattern(arg, "an argument of a pattern") for arg in args])

    def __or__(self, other: Any) -> Any:
        return AltPattern(self, _pattern(other, "|"))

    def __add__(self, other: Any) -> Any:
        return is_op("add")(self, other)

    def __sub__(self, other: Any) -> Any:
        return is_op("subtract")(self, other)

    def __mul__(self, other: Any) -> Any:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: Any) -> Any:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> Any:
        """A pattern for the matches of this one that have these attributes: of a call, of an op, of a function."""
        return has_attr(attrs, self)

    def has_type(self, ttype: Any) -> Any:
        """A pattern for the matches of this one that have the type."""
        return has_type(ttype, self)

    def has_dtype(self, dtype: str) -> Any:
        """A pattern for the matches of this one that are tensors of the dtype."""
        return has_dtype(dtype, self)

    def has_shape(self, shape: Iterable[Any]) -> Any:
        """A pattern for the matches of this one that are tensors of the shape."""
        return has_shape(shape, self)

    def match(self, expr: Any) -> bool:
        """Whether an expression matches; see `match`."""
        return match(self, expr)

    def partition(
        self, expr: Any, attrs: Mapping[str, Any] | None = None, check: Callable[[Any], Any] | None = None
    ) -> Any:
        """An expression with each match as a call of a function; see `partition`."""
        return partition(self, expr, attrs, check)

    def dominates(self, parent: Any, path: Any = None) -> Any:
        """Matches of this pattern whose inputs all come, by ways that match `path`, from one match of `parent`."""
        return dominates(parent, wildcard() if path is None else path, self)

    def optional(self, option_constructor: Callable[[Any], Any]) -> Any:
        """This pattern, or the one that a function makes of it.

        Parameters
        ----------
        option_constructor : function or DFPattern
            Gives a pattern that contains the one it gets; a pattern is called with it.

        Returns
        -------
        AltPattern
        """
        return self | option_constructor(self)


@_node.mixin(f"{_ROOM}.TuplePattern")
class _TuplePattern:
    """A tuple with those fields; without any given, a tuple of any number of them."""

    __slots__ = ()

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)


@_node.mixin(f"{_ROOM}.WildcardPattern")
class _WildcardPattern:
    """Anything; or what it is redirected to."""

    __slots__ = ()

    def redirect_to(self, pat: Any) -> None:
        """Makes the wildcard stand for a pattern, which may contain the wildcard: a pattern that repeats.

        Parameters
        ----------
        pat : DFPattern or None
            The pattern; None makes it anything again. A pattern that contains itself stays in memory until then.
        """
        api("relay.dataflow_pattern.Redirect")(self, None if pat is None else _pattern(pat, "redirect_to"))

    def redirected_to(self) -> Any:
        """The pattern that it is redirected to, or None."""
        return api("relay.dataflow_pattern.RedirectedTo")(self)


for _name, _order, _doc in [
    ("ExprPattern", "expr", "An expression that is structurally equal to this one."),
    ("VarPattern", "name_hint", "A variable of that name, or any."),
    ("ConstantPattern", "", "Any constant."),
    ("CallPattern", "op args", "A call; with None, of any arguments."),
    ("FunctionPattern", "params body", "A function literal; with None, of any parameters."),
    ("LetPattern", "var value body", "A let."),
    ("IfPattern", "cond true_branch false_branch", "A branch."),
    ("TuplePattern", "fields", ""),
    ("TupleGetItemPattern", "tuple_value index", "A field of a tuple; without an index, any."),
    ("AltPattern", "left right", "What one of two patterns matches; the left one counts first."),
    ("TypePattern", "pattern ttype", "What a pattern matches and has the type."),
    ("ShapePattern", "pattern shape", "What a pattern matches and has the shape."),
    ("DataTypePattern", "pattern dtype", "What a pattern matches and has the dtype."),
    ("AttrPattern", "pattern attrs", "What a pattern matches and has the attributes."),
    ("DominatorPattern", "parent path child", "A child all whose inputs come from one parent."),
]:
    _node.constructor(f"{_ROOM}.{_name}", _order, _doc)

_node.alias(f"{_ROOM}.VarPattern", "name_hint", "name")
_node.alias(f"{_ROOM}.TupleGetItemPattern", "tuple_value", "tuple")
_node.alias(f"{_ROOM}.TypePattern", "ttype", "type")

DFPattern = _node.class_of(f"{_ROOM}.DFPattern")
AltPattern = _node.class_of(f"{_ROOM}.AltPattern")
AttrPattern = _node.class_of(f"{_ROOM}.AttrPattern")
CallPattern = _node.class_of(f"{_ROOM}.CallPattern")
ConstantPattern = _node.class_of(f"{_ROOM}.ConstantPattern")
DataTypePattern = _node.class_of(f"{_ROOM}.DataTypePattern")
DominatorPattern = _node.class_of(f"{_ROOM}.DominatorPattern")
ExprPattern = _node.class_of(f"{_ROOM}.ExprPattern")
FunctionPattern = _node.class_of(f"{_ROOM}.FunctionPattern")
IfPattern = _node.class_of(f"{_ROOM}.IfPattern")
LetPattern = _node.class_of(f"{_ROOM}.LetPattern")
ShapePattern = _node.class_of(f"{_ROOM}.ShapePattern")
TupleGetItemPattern = _node.class_of(f"{_ROOM}.TupleGetItemPattern")
TuplePattern = _node.class_of(f"{_ROOM}.TuplePattern")
TypePattern = _node.class_of(f"{_ROOM}.TypePattern")
VarPattern = _node.class_of(f"{_ROOM}.VarPattern")
WildcardPattern = _node.class_of(f"{_ROOM}.WildcardPattern")


def from_text(text: str) -> Any:
    """The pattern that a text says.

    Parameters
    ----------
    text : str
        Such as "nn.relu(nn.conv2d(_, const))"; docs/dataflow-patterns.md has the grammar.

    Returns
    -------
    DFPattern

    Raises
    ------
    UserError
        With the place of each error.
    """
    if not isinstance(text, str):
        raise _core.UserError(f"from_text: expected a str, got {_arguments.kind(text)}")
    return api("relay.dataflow_pattern.FromText")(text)


def wildcard() -> Any:
    """The pattern that matches anything.

    Returns
    -------
    WildcardPattern
    """
    return WildcardPattern()


def is_var(name: str = "") -> Any:
    """The pattern of a variable.

    Parameters
    ----------
    name : str
        Its name; empty: any.

    Returns
    -------
    VarPattern
    """
    return VarPattern(name)


def is_constant() -> Any:
    """The pattern of a constant.

    Returns
    -------
    ConstantPattern
    """
    return ConstantPattern()


def is_expr(expr: Any) -> Any:
    """The pattern of an expression that is structurally equal to this one.

    Parameters
    ----------
    expr : RelayExpr
        The expression.

    Returns
    -------
    ExprPattern
    """
    return ExprPattern(_arguments.expression(expr, "is_expr: expr"))


def is_op(op_name: str) -> Any:
    """The pattern of an op; called, of a call of it: `is_op("add")(wildcard(), wildcard())`.

    Parameters
    ----------
    op_name : str
        Its name.

    Returns
    -------
    ExprPattern

    Raises
    ------
    UserError
        That names near ones, when there is no such op.
    """
    if not isinstance(op_name, str):
        raise _core.UserError(f"is_op: op_name: expected a str, got {_arguments.kind(op_name)}")
    return ExprPattern(api("ir.GetOp")(op_name))


def is_tuple(fields: Iterable[Any] | None) -> Any:
    """The pattern of a tuple.

    Parameters
    ----------
    fields : sequence of DFPattern, optional
        What its fields match; None: any number of fields.

    Returns
    -------
    TuplePattern
    """
    return TuplePattern(None if fields is None else [_pattern(field, "is_tuple: a field") for field in fields])


def is_tuple_get_item(tuple_value: Any, index: int | None = None) -> Any:
    """The pattern of a field of a tuple.

    Parameters
    ----------
    tuple_value : DFPattern
        What the tuple matches.
    index : int, optional
        Which field; None: any.

    Returns
    -------
    TupleGetItemPattern
    """
    return TupleGetItemPattern(_pattern(tuple_value, "is_tuple_get_item: tuple_value"), index)


def is_if(cond: Any, true_branch: Any, false_branch: Any) -> Any:
    """The pattern of a branch.

    Parameters
    ----------
    cond, true_branch, false_branch : DFPattern
        What its parts match.

    Returns
    -------
    IfPattern
    """
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: Any, value: Any, body: Any) -> Any:
    """The pattern of a let.

    Parameters
    ----------
    var, value, body : DFPattern
        What its parts match.

    Returns
    -------
    LetPattern
    """
    return LetPattern(var, value, body)


def has_type(ttype: Any, pattern: Any = None) -> Any:
    """The pattern of an expression of a type.

    Parameters
    ----------
    ttype : Type
        The type.
    pattern : DFPattern, optional
        What the expression matches besides.

    Returns
    -------
    TypePattern
    """
    return TypePattern(wildcard() if pattern is None else pattern, ttype)


def has_dtype(dtype: str, pattern: Any = None) -> Any:
    """The pattern of a tensor of a dtype.

    Parameters
    ----------
    dtype : str
        The dtype.
    pattern : DFPattern, optional
        What the tensor matches besides.

    Returns
    -------
    DataTypePattern
    """
    return DataTypePattern(wildcard() if pattern is None else pattern, dtype)


def has_shape(shape: Iterable[Any], pattern: Any = None) -> Any:
    """The pattern of a tensor of a shape.

    Parameters
    ----------
    shape : sequence of int or PrimExpr
        The dimensions.
    pattern : DFPattern, optional
        What the tensor matches besides.

    Returns
    -------
    ShapePattern
    """
    return ShapePattern(wildcard() if pattern is None else pattern, shape)


def has_attr(attrs: Mapping[str, Any], pattern: Any = None) -> Any:
    """The pattern of a call, an op or a function with some attributes.

    Parameters
    ----------
    attrs : dict of str to object
        Attributes with their values; it may have others.
    pattern : DFPattern, optional
        What it matches besides.

    Returns
    -------
    AttrPattern
    """
    if not isinstance(attrs, Mapping):
        raise _core.UserError(f"has_attr: attrs: expected a dict, got {_arguments.kind(attrs)}")
    return AttrPattern(wildcard() if pattern is None else pattern, dict(attrs))


def dominates(parent: Any, path: Any, child: Any) -> Any:
    """The pattern of a child all whose inputs come, through expressions of the path, from one parent.

    Parameters
    ----------
    parent : DFPattern
        What all ways begin at; nothing else may use it.
    path : DFPattern
        What every expression between matches.
    child : DFPattern
        What all ways end at.

    Returns
    -------
    DominatorPattern
    """
    return DominatorPattern(parent, path, child)


def match(pattern: Any, expr: Any) -> bool:
    """Whether an expression matches a pattern.

    Parameters
    ----------
    pattern : DFPattern
        The pattern.
    expr : RelayExpr
        The expression. Its types are inferred where the pattern asks for types and it has none.

    Returns
    -------
    bool
    """
    return api("relay.dataflow_pattern.match")(
        _pattern(pattern, "match: pattern"), _arguments.expression(expr, "match: expr")
    )


class DFPatternCallback:
    """A rewrite: a class of this kind sets `self.pattern` and has a `callback`.

    Parameters
    ----------
    require_type : bool
        Whether the program is typed before each round.
    rewrite_once : bool
        Whether it takes part in the first round only.
    """

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern: Any = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: Any) -> Any:
        """An expression rewritten by this callback alone; see `rewrite`."""
        return rewrite(self, expr)

    def callback(self, pre: Any, post: Any, node_map: Any) -> Any:
        """Returns the expression that replaces a match.

        Parameters
        ----------
        pre : RelayExpr
            The match as it was.
        post : RelayExpr
            The match with its operands rewritten.
        node_map : Map of DFPattern to Array of RelayExpr
            What each part of the pattern stands for, rewritten.

        Returns
        -------
        RelayExpr
        """
        raise NotImplementedError(f"{type(self).__name__} has no callback")


def _row(callback: Any) -> list[Any]:
    name = type(callback).__name__
    for attribute in ("pattern", "callback"):
        if not hasattr(callback, attribute):
            raise _core.UserError(f"rewrite: {name} is not a DFPatternCallback: it has no '{attribute}'")
    if not isinstance(callback.pattern, DFPattern):
        raise _core.UserError(
            f"rewrite: {name}.pattern is {_arguments.kind(callback.pattern)}; its __init__ sets it to a pattern"
        )
    once = bool(getattr(callback, "rewrite_once", False))
    return [name, callback.pattern, callback.callback, bool(getattr(callback, "require_type", False)), once]


def rewrite(callbacks: Any, expr: Any, mod: IRModule | None = None) -> Any:
    """An expression in which callbacks replaced what their patterns match, until nothing changes.

    Parameters
    ----------
    callbacks : DFPatternCallback or list of DFPatternCallback
        The rewrites, in the order of a round.
    expr : RelayExpr
        The expression.
    mod : IRModule, optional
        The functions that it calls.

    Returns
    -------
    RelayExpr
        The expression itself when nothing matched.

    Raises
    ------
    UserError
        When the program still changes after 100 rounds, or a callback gives no expression.
    """
    rows = [_row(one) for one in (callbacks if isinstance(callbacks, (list, tuple)) else [callbacks])]
    module = IRModule() if mod is None else mod
    return api("relay.dataflow_pattern.rewrite")(rows, _arguments.expression(expr, "rewrite: expr"), module)


def partition(
    pattern: Any,
    expr: Any,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[Any], Any] | None = None,
) -> Any:
    """An expression in which each match is a call of a function that computes it.

    Parameters
    ----------
    pattern : DFPattern
        The pattern.
    expr : RelayExpr
        The expression.
    attrs : dict of str to object, optional
        Attributes of the functions, which also have PartitionedFromPattern.
    check : function, optional
        Says of a match whether it becomes a function: True or False, or why not as a str; other values count by their
        truth.

    Returns
    -------
    RelayExpr
        The expression itself when nothing matched.
    """
    asked = None if check is None else lambda root: _answers.read_answer(check(root))
    return api("relay.dataflow_pattern.partition")(
        _pattern(pattern, "partition: pattern"),
        _arguments.expression(expr, "partition: expr"),
        dict(attrs or {}),
        asked,
    )


_public.settle(__name__)
