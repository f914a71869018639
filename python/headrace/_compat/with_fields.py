"""`CallWithFields` and its kin: a node with some fields changed, and the node itself when none is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headrace import _arguments, _core, _public

__all__ = [
    "CallWithFields",
    "ConstantWithFields",
    "FunctionWithFields",
    "IfWithFields",
    "LetWithFields",
    "RefCreateWithFields",
    "RefReadWithFields",
    "RefWriteWithFields",
    "TupleGetItemWithFields",
    "TupleWithFields",
    "VarWithFields",
]


def _is_same(old: Any, new: Any) -> bool:
    """Whether a field holds what is given for it: the same nodes, or equal values; a tensor is another."""
    if isinstance(old, _core.Object) and isinstance(new, _core.Object) and old.same_as(new):
        return True
    if isinstance(new, (list, tuple)) or (isinstance(new, _core.Object) and new.type_key == "object.Array"):
        return len(old) == len(new) and all(map(_is_same, old, new))
    return not (isinstance(new, (_core.Object, dict)) or hasattr(new, "__dlpack__")) and old == new


def _make(name: str, argument: str, key: str, order: str) -> Callable[..., Any]:
    """A function of `argument`, a node of type `key`, and of what `order` names: fields, or parameter=field."""
    fields = {parameter: field or parameter for parameter, _, field in (word.partition("=") for word in order.split())}

    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        node = _arguments.node(given[argument], f"{name}: {argument}", key)
        if given.get("virtual_device") is not None:
            raise _core.UserError(
                f"{name}: virtual_device: nodes have none; relay.annotation.on_device says where an expression is"
            )
        new = {fields.get(parameter, parameter): value for parameter, value in given.items() if parameter != argument}
        changes = {f: v for f, v in new.items() if v is not None and not _is_same(getattr(node, f), v)}
        return node.copy_with(**changes) if changes else node

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter(argument, kind),
            *(inspect.Parameter(word, kind, default=None) for word in (*fields, "virtual_device", "span")),
        ]
    )
    function.__signature__ = signature
    function.__name__ = function.__qualname__ = name
    shown = key.rpartition(".")[2]
    function.__doc__ = f"""A {shown} with some fields changed; itself, when none is.

    Parameters
    ----------
    {argument} : {shown}
        The node.
    {", ".join((*fields, "span"))} : optional
        What the fields are then; None leaves one as it is.
    virtual_device : None
        Nodes have none here.

    Returns
    -------
    {shown}

    Raises
    ------
    UserError
        For another node, a virtual device, and a field of another kind.
    """
    return function


ConstantWithFields = _make("ConstantWithFields", "constant", "relay.Constant", "data")
TupleWithFields = _make("TupleWithFields", "tup", "relay.Tuple", "fields")
VarWithFields = _make("VarWithFields", "variable", "relay.Var", "vid=name_hint type_annotation")
CallWithFields = _make("CallWithFields", "call", "relay.Call", "op args attrs type_args")
LetWithFields = _make("LetWithFields", "let", "relay.Let", "variable=var value body")
IfWithFields = _make("IfWithFields", "if_expr", "relay.If", "cond true_branch false_branch")
TupleGetItemWithFields = _make("TupleGetItemWithFields", "tuple_get_item", "relay.TupleGetItem", "tuple_value index")
RefCreateWithFields = _make("RefCreateWithFields", "ref_create", "relay.RefCreate", "value")
RefReadWithFields = _make("RefReadWithFields", "ref_read", "relay.RefRead", "ref")
RefWriteWithFields = _make("RefWriteWithFields", "ref_write", "relay.RefWrite", "ref value")
FunctionWithFields = _make(
    "FunctionWithFields", "function", "relay.Function", "params body ret_type ty_params=type_params attrs"
)


_public.publish(__name__, "headrace.relay")
