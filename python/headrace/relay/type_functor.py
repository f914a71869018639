"""Visitors and mutators of types, with a method for each kind."""

from __future__ import annotations

from typing import Any

from headrace._arguments import kind
from headrace._core import Object, UserError

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


class TypeFunctor:
    """Calls the method of a type's kind."""

    def visit(self, typ: Any) -> Any:
        """What the type's method gives.

        Parameters
        ----------
        typ : Type
            Any type; types nest at most 200 deep.

        Returns
        -------
        object

        Raises
        ------
        UserError
            For what is no type.
        """
        method = _METHODS.get(getattr(typ, "type_key", ""))
        if method is None:
            raise UserError(f"{type(self).__name__}.visit: expected a type, got {kind(typ)}")
        return getattr(self, method)(typ)

    def _missing(self, typ: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__}.{_METHODS[typ.type_key]}")

    visit_tensor_type = visit_tuple_type = visit_func_type = visit_type_var = visit_global_type_var = _missing
    visit_ref_type = visit_type_call = visit_type_data = visit_incomplete_type = _missing
    visit_type_relation = visit_prim_type = _missing


class TypeVisitor(TypeFunctor):
    """Visits every type within a type."""

    def _all(self, types: Any) -> None:
        for typ in types:
            self.visit(typ)

    def visit_tuple_type(self, tup: Any) -> None:
        """The fields."""
        self._all(tup.fields)

    def visit_func_type(self, func: Any) -> None:
        """Arguments, result, parameters, constraints."""
        self._all([*func.arg_types, func.ret_type, *func.type_params, *func.type_constraints])

    def visit_ref_type(self, ref: Any) -> None:
        """What the cell holds."""
        self.visit(ref.value)

    def visit_type_call(self, call: Any) -> None:
        """The data type and its arguments."""
        self._all([call.func, *call.args])

    def visit_type_data(self, data: Any) -> None:
        """The name, the parameters, the constructors' fields."""
        self._all([data.header, *data.type_vars])
        for constructor in data.constructors:
            self._all(constructor.inputs)

    def visit_type_relation(self, relation: Any) -> None:
        """The types it relates."""
        self._all(relation.args)

    def _leaf(self, typ: Any) -> None:
        pass

    visit_tensor_type = visit_type_var = visit_global_type_var = visit_incomplete_type = visit_prim_type = _leaf


class TypeMutator(TypeFunctor):
    """Rebuilds a type from what its methods give; what does not change stays the same node."""

    def visit(self, typ: Any) -> Any:
        """The new type. As of `TypeFunctor`; UserError for a method that gives no type, too."""
        result = super().visit(typ)
        if not isinstance(result, Object):
            given = f"{type(self).__name__}.{_METHODS[typ.type_key]} gave {kind(result)}"
            raise UserError(f"{given}, expected a type")
        return result

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
        """What the cell holds."""
        return self._fields(ref, "value")

    def visit_type_call(self, call: Any) -> Any:
        """The data type and its arguments."""
        return self._fields(call, "func", "args")

    def visit_type_relation(self, relation: Any) -> Any:
        """The types it relates."""
        return self._fields(relation, "args")

    def _leaf(self, typ: Any) -> Any:
        return typ

    visit_tensor_type = visit_type_var = visit_global_type_var = visit_incomplete_type = _leaf
    visit_type_data = visit_prim_type = _leaf
