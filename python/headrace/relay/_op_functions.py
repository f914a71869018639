"""The functions of ops: finding them by name, and making those of ops that users register.

The functions of the compiler's own ops are texts, which `python/write_ops.py` writes of `signature_of` and `doc_of`.
"""

from __future__ import annotations

import difflib
import inspect
import types
from collections.abc import Callable
from typing import Any

from headrace import _core, _public
from headrace._ffi import api
from headrace.relay import _op_table as table
from headrace.relay._op_call import OpSchema

_EMPTY = inspect.Parameter.empty
_NAMED = inspect.Parameter.POSITIONAL_OR_KEYWORD
_ROOT = "headrace.relay"
# The documentation of parameters that ops do not document themselves.
_OF_ALL = {
    "args": ["*args : RelayExpr", "    The operands."],
    "span": ["span : Span, optional", "    Where it comes from."],
}


def _default_of(schema: OpSchema, name: str) -> Any:
    """The default of a parameter; inspect.Parameter.empty when it must be given."""
    own = table.DEFAULTS.get(schema.name, {})
    if name in own:
        return own[name]
    field = schema.attrs.get(name)
    if field is None:
        return _EMPTY
    if field["has_default"]:
        return _plain(field["default"])
    return None if field["optional"] or field["kind"].startswith("None or") else _EMPTY


def signature_of(schema: OpSchema) -> inspect.Signature:
    """The signature of an op's function. A required parameter after an optional one gets the default None."""
    if schema.takes_any:
        operands = [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]
        kind = inspect.Parameter.KEYWORD_ONLY
    else:
        operands, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for name in schema.names:
        value = _default_of(schema, name)
        if value is _EMPTY and any(p.default is not _EMPTY for p in parameters):
            value = None
        parameters.append(inspect.Parameter(name, kind, default=value))
    return inspect.Signature(
        [*operands, *parameters, inspect.Parameter("span", inspect.Parameter.KEYWORD_ONLY, default=None)]
    )


def _plain(value: Any) -> Any:
    """A default as Python shows it."""
    return [_plain(item) for item in value] if isinstance(value, _core.Object) and hasattr(value, "__len__") else value


def doc_of(schema: OpSchema, signature: inspect.Signature) -> str:
    """The docstring of an op's function."""
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
    """The function of an op, made now: for ops of users, and for what is richer than an op.

    Parameters
    ----------
    name : str
        The op's, such as "nn.conv2d".

    Returns
    -------
    function
    """
    schema = OpSchema(name)
    signature = signature_of(schema)

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        given = dict(bound.arguments)
        return schema.call(given, given.pop("span"))

    family, _, last = name.rpartition(".")
    function.schema = schema
    function.__name__ = function.__qualname__ = last
    function.__signature__ = signature
    function.__doc__ = doc_of(schema, signature)
    function.__module__ = f"{_ROOT}.{family}" if family else _ROOT
    return function


def deferred(name: str) -> Callable[..., Any]:
    """As `make_function`, which is called with the first call of what this gives."""
    made: list[Callable[..., Any]] = []

    def function(*args: Any, **kwargs: Any) -> Any:
        if not made:
            made.append(make_function(name))
        return made[0](*args, **kwargs)

    return function


def find_user_op(namespace: str, name: str) -> Callable[..., Any] | None:
    """The function of the op `namespace`.`name` that a user registered, or None when there is no such op."""
    op = f"{namespace}.{name}" if namespace else name
    is_users = op in list(api("ir.OpNames")()) and api("relay.op.IsUserOp")(api("ir.GetOp")(op))
    return make_function(op) if is_users else None


def _user_family(module: types.ModuleType, namespace: str, name: str) -> types.ModuleType | None:
    """The module of the ops `namespace`.`name`.*, or None when there are none."""
    family = f"{namespace}.{name}" if namespace else name
    if not any(op.startswith(f"{family}.") for op in api("ir.OpNames")()):
        return None
    inner = types.ModuleType(f"{_ROOT}.{family}", f"The functions of the ops {family}.*")
    inner.__all__ = []
    lend(inner, family)
    setattr(module, name, inner)
    return inner


def find(module: types.ModuleType, namespace: str, name: str) -> Any:
    """Finds the function of an op that a user registered, for a name that the module does not define.

    Parameters
    ----------
    module : module
        The module, which keeps the modules of families; functions are made anew, since ops of users may change.
    namespace : str
        The ops' family: "nn"; empty for those of none.
    name : str
        What was asked for.

    Returns
    -------
    function or module

    Raises
    ------
    AttributeError
        When there is no such op; it tells which are near.
    """
    found = None
    if not name.startswith("__"):
        found = find_user_op(namespace, name) or _user_family(module, namespace, name)
    if found is None:
        raise no_such_op(module, name)
    return found


def lend(module: types.ModuleType, namespace: str) -> None:
    """Gives a module the functions of the ops `namespace`.* that are registered later, too."""
    module.__getattr__ = lambda name: find(module, namespace, name)
    module.__dir__ = lambda: sorted({*module.__all__, *_public.submodules(module), *names_within(namespace)})


def no_such_op(module: types.ModuleType, name: str) -> AttributeError:
    """The error for a name that a module of ops' functions does not have; it lists similar names, in other modules too.

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
    # The last of a name counts: exp is better known than qnn.exp, nn.softmax than qnn.softmax.
    ops = sorted(api("ir.OpNames")(), key=lambda op: (op.count("."), op.startswith("qnn.")), reverse=True)
    known = {op.rpartition(".")[2]: f"relay.{op}" for op in ops} | {own: own for own in dir(module)}
    near = [known[one] for one in difflib.get_close_matches(name, known, n=3)]
    return AttributeError(f"{told}; did you mean {' or '.join(near)}?" if near else told)


def names_within(namespace: str) -> set[str]:
    """The names of the ops `namespace`.*, of families among them the first part."""
    start = f"{namespace}." if namespace else ""
    return {op.removeprefix(start).split(".")[0] for op in api("ir.OpNames")() if op.startswith(start)}
