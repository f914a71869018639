"""Visitors and mutators of types, with a method for each kind.

Types may nest as deep as they like, but for function types and data types whose method is overridden: some 200 of these
may stand within each other under Python's usual recursion limit, past which `visit` raises UserError. Past 100 visits
within each other, the types in a tuple, a reference, a call or a relation are visited before it, whether or not a
method that is overridden would have visited them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from headrace import _public
from headrace._arguments import kind
from headrace._core import Object, UserError
from headrace.relay._functor import Functor, documented

__all__ = [
    "TypeFunctor",
    "TypeMutator",
    "TypeVisitor",
    "parts_of",
    "types_within",
]

_METHODS = {
    "relay.TensorType": "visit_tensor_type",
    "relay.TupleType": "visit_tuple_type",
    "relay.FuncType": "visit_func_type",
    "relay.TypeVar": "visit_type_var",
    "relay.GlobalTypeVar": "visit_global_type_var",
    "relay.RefType": "visit_ref_type",
    "relay.TypeCall": "visit_type_call",
    "relay.TypeData": "visit_type_data",
    "relay.IncompleteType": "visit_incomplete_type",
    "relay.TypeRelation": "visit_type_relation",
    "ir.PrimType": "visit_prim_type",
}

_KINDS = {
    "visit_tensor_type": "the type of a tensor",
    "visit_tuple_type": "the type of a tuple",
    "visit_func_type": "the type of a function",
    "visit_type_var": "a type parameter",
    "visit_global_type_var": "the name of a data type",
    "visit_ref_type": "the type of a cell",
    "visit_type_call": "a data type of arguments",
    "visit_type_data": "the definition of a data type",
    "visit_incomplete_type": "a type that inference is to find",
    "visit_type_relation": "a constraint of types",
    "visit_prim_type": "the type of a scalar",
}

# Visited ahead of what they are in, where types nest deep, whatever their methods do.
_PLAIN = {"relay.TupleType", "relay.RefType", "relay.TypeCall", "relay.TypeRelation"}


def parts_of(typ: Any) -> list[Any]:
    """The types right within a type, in the order in which `TypeVisitor` visits them.

    Parameters
    ----------
    typ : Type
        Any type.

    Returns
    -------
    list of Type
    """
    match typ.type_key:
        case "relay.TupleType":
            return list(typ.fields)
        case "relay.FuncType":
            return [*typ.arg_types, typ.ret_type, *typ.type_params, *typ.type_constraints]
        case "relay.RefType":
            return [typ.value]
        case "relay.TypeCall":
            return [typ.func, *typ.args]
        case "relay.TypeData":
            inputs = (field for constructor in typ.constructors for field in constructor.inputs)
            return [typ.header, *typ.type_vars, *inputs]
        case "relay.TypeRelation":
            return list(typ.args)
    return []


def types_within(root: Any) -> Iterator[Any]:
    """A type and the types within it, at any depth, each node once.

    Parameters
    ----------
    root : Type
        The type.

    Yields
    ------
    Type
        Outer ones first.
    """
    stack, seen = [root], set()
    while stack:
        typ = stack.pop()
        if (node := Object.__hash__(typ)) not in seen:
            seen.add(node)
            yield typ
            stack.extend(reversed(parts_of(typ)))


@documented(_KINDS)
class TypeFunctor(Functor):
    """Calls the method of a type's kind."""

    _what, _where = "type", "function types"
    # Types that were visited ahead of what they are in, with the results. By node: types are equal by structure, and a
    # type that stands in two places is visited twice.
    _ahead: dict[int, tuple[Any, deque[Any]]] | None = None

    def _end(self) -> None:
        self._ahead = None

    def _known(self, typ: Any) -> tuple[Any, ...]:
        if self._ahead is None or not isinstance(typ, Object):
            return ()
        results = self._ahead.get(Object.__hash__(typ), (typ, ()))[1]
        return (results.popleft(),) if results else ()

    def _method_of(self, typ: Any) -> str:
        method = _METHODS.get(getattr(typ, "type_key", ""))
        if method is None:
            raise UserError(f"{type(self).__name__}.visit: expected a type, got {kind(typ)}")
        return method

    def _operands(self, typ: Any) -> list[Any]:
        is_own = getattr(type(self), self._method_of(typ)) not in _DEFAULTS
        return [] if is_own and typ.type_key not in _PLAIN else self._parts(typ)

    def _parts(self, typ: Any) -> list[Any]:
        return parts_of(typ)

    def _is_due(self, typ: Any, seen: set[Any]) -> bool:
        return True

    def _visit_one_ahead(self, typ: Any) -> None:
        if self._ahead is None:
            self._ahead = {}
        node = Object.__hash__(typ)
        _, results = self._ahead.pop(node, (typ, deque()))  # which are of other places
        results.append(self.visit(typ))
        self._ahead[node] = typ, results

    def _missing(self, typ: Any) -> Any:
        """subclasses say what it gives; NotImplementedError from one that does not."""
        raise NotImplementedError(f"{type(self).__name__}.{_METHODS[typ.type_key]}")

    visit_tensor_type = visit_tuple_type = visit_func_type = visit_type_var = visit_global_type_var = _missing
    visit_ref_type = visit_type_call = visit_type_data = visit_incomplete_type = _missing
    visit_type_relation = visit_prim_type = _missing


@documented(_KINDS)
class TypeVisitor(TypeFunctor):
    """Visits every type within a type."""

    def _visit_parts(self, typ: Any) -> None:
        """visits the types right within it."""
        for part in parts_of(typ):
            self.visit(part)

    def _leaf(self, typ: Any) -> None:
        """does nothing."""
        pass

    visit_tuple_type = visit_func_type = visit_ref_type = visit_type_call = visit_type_data = _visit_parts
    visit_type_relation = _visit_parts
    visit_tensor_type = visit_type_var = visit_global_type_var = visit_incomplete_type = visit_prim_type = _leaf


@documented(_KINDS)
class TypeMutator(TypeFunctor):
    """Rebuilds a type from what its methods give, which are types; what does not change stays the same node."""

    def _take(self, typ: Any, result: Any) -> None:
        if not isinstance(result, Object):
            given = f"{type(self).__name__}.{_METHODS[typ.type_key]} gave {kind(result)}"
            raise UserError(f"{given}, expected a type")

    def _parts(self, typ: Any) -> list[Any]:
        match typ.type_key:
            case "relay.FuncType":
                return [*typ.type_params, *typ.arg_types, typ.ret_type, *typ.type_constraints]
            case "relay.TypeData":
                return []
        return parts_of(typ)

    def _fields(self, typ: Any, *names: str) -> Any:
        changes = {}
        for name in names:
            old = getattr(typ, name)
            is_one = hasattr(old, "same_as") and old.type_key != "object.Array"
            new = self.visit(old) if is_one else [self.visit(item) for item in old]
            if not (new.same_as(old) if is_one else all(a.same_as(b) for a, b in zip(new, old, strict=True))):
                changes[name] = new
        return typ.copy_with(**changes) if changes else typ

    def visit_tuple_type(self, tup: Any) -> Any:
        """The fields."""
        return self._fields(tup, "fields")

    def visit_func_type(self, func: Any) -> Any:
        """Parameters, arguments, result, constraints."""
        return self._fields(func, "type_params", "arg_types", "ret_type", "type_constraints")

    def visit_ref_type(self, ref: Any) -> Any:
        """The type of the value that the reference holds."""
        return self._fields(ref, "value")

    def visit_type_call(self, call: Any) -> Any:
        """The data type and its arguments."""
        return self._fields(call, "func", "args")

    def visit_type_relation(self, relation: Any) -> Any:
        """The types it relates."""
        return self._fields(relation, "args")

    def _leaf(self, typ: Any) -> Any:
        """gives it as it is."""
        return typ

    visit_tensor_type = visit_type_var = visit_global_type_var = visit_incomplete_type = _leaf
    visit_type_data = visit_prim_type = _leaf


_DEFAULTS = {getattr(cls, name) for cls in (TypeVisitor, TypeMutator) for name in _METHODS.values()}


_public.settle(__name__)
