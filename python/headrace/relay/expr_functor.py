"""Visitors and mutators of expressions, with a method for each kind of node.

A subclass overrides the methods it needs; `super().visit_call(call)` goes on to the children. Each node is visited
once.

How deep a program may nest:

- In data flow and lets (a chain of 10^5 calls), and in functions, branches and matches whose method is not overridden
  (10^4 functions within each other): as deep as it likes. Past 100 visits within each other, what a node depends on is
  visited before it, operands first, whether or not a method that is overridden would have visited it.
- In functions, branches and matches whose method is overridden: what happens in them may depend on who visits them, so
  the method itself visits what is inside, within its own call. Some 200 of them may stand within each other under
  Python's usual recursion limit of 1,000 calls; `sys.setrecursionlimit` allows more. Past it, `visit` raises UserError.
"""

from __future__ import annotations

from typing import Any

from headrace import _core, _public
from headrace._arguments import kind
from headrace._ffi import api
from headrace.relay import _classes as nodes
from headrace.relay._functor import Functor, documented

__all__ = [
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
]

_METHODS = {
    "relay.Function": "visit_function",
    "relay.Call": "visit_call",
    "relay.Let": "visit_let",
    "relay.Var": "visit_var",
    "relay.GlobalVar": "visit_global_var",
    "relay.If": "visit_if",
    "relay.Tuple": "visit_tuple",
    "relay.TupleGetItem": "visit_tuple_getitem",
    "relay.Constant": "visit_constant",
    "ir.Op": "visit_op",
    "relay.RefCreate": "visit_ref_create",
    "relay.RefRead": "visit_ref_read",
    "relay.RefWrite": "visit_ref_write",
    "relay.Constructor": "visit_constructor",
    "relay.Match": "visit_match",
}
# Visited ahead of what uses them, where they nest deep, whatever their methods do.
_DATA_FLOW = {
    "relay.Call",
    "relay.Let",
    "relay.Tuple",
    "relay.TupleGetItem",
    "relay.RefCreate",
    "relay.RefRead",
    "relay.RefWrite",
}
_CHILDREN = api("relay.ir.Children")
_KINDS = {
    "visit_function": "a function",
    "visit_call": "a call",
    "visit_let": "a let",
    "visit_var": "a variable",
    "visit_global_var": "the name of a function",
    "visit_if": "a branch",
    "visit_tuple": "a tuple",
    "visit_tuple_getitem": "a field of a tuple",
    "visit_constant": "a constant",
    "visit_op": "an op",
    "visit_ref_create": "a new cell",
    "visit_ref_read": "a read of a cell",
    "visit_ref_write": "a write to a cell",
    "visit_constructor": "a constructor",
    "visit_match": "a match",
}


@documented(_KINDS)
class ExprFunctor(Functor):
    """Calls the method of an expression's kind, once for each expression."""

    _what, _where = "program", "functions, branches or matches"

    def __init__(self) -> None:
        self.memo_map: dict[Any, Any] = {}

    def _known(self, expr: Any) -> tuple[Any, ...]:
        return (self.memo_map[expr],) if isinstance(expr, _core.Object) and expr in self.memo_map else ()

    def _method_of(self, expr: Any) -> str:
        method = _METHODS.get(getattr(expr, "type_key", ""))
        if method is None:
            of_module = '; visit its functions, as mod["main"]' if isinstance(expr, nodes.IRModule) else ""
            raise _core.UserError(f"{type(self).__name__}.visit: expected an expression, got {kind(expr)}{of_module}")
        return method

    def _take(self, expr: Any, result: Any) -> None:
        self.memo_map[expr] = result

    def _is_due(self, expr: Any, seen: set[Any]) -> bool:
        if expr in seen or expr in self.memo_map:
            return False
        seen.add(expr)
        return True

    def _operands(self, expr: Any) -> list[Any]:
        if expr.type_key not in _DATA_FLOW and getattr(type(self), _METHODS[expr.type_key]) not in _DEFAULTS:
            return []
        if expr.type_key == "relay.Let":
            return [expr.var, expr.value, expr.body]
        if expr.type_key == "relay.Match" and not isinstance(self, ExprMutator):
            return [expr.data, *(clause.rhs for clause in expr.clauses)]
        return list(_CHILDREN(expr))

    def _missing(self, expr: Any) -> Any:
        """subclasses say what it gives; NotImplementedError from one that does not."""
        raise NotImplementedError(f"{type(self).__name__}.{_METHODS[expr.type_key]}")

    visit_function = visit_call = visit_let = visit_var = visit_global_var = visit_if = visit_tuple = _missing
    visit_tuple_getitem = visit_constant = visit_op = visit_ref_create = visit_ref_read = visit_ref_write = _missing
    visit_constructor = visit_match = _missing


@documented(_KINDS)
class ExprVisitor(ExprFunctor):
    """Visits every expression below the one it is given, each once."""

    def _visit_children(self, expr: Any) -> None:
        """visits the expressions right within it."""
        for child in _CHILDREN(expr):
            self.visit(child)

    def visit_let(self, let: Any) -> None:
        """Variable, value, body."""
        self.visit(let.var)
        self.visit(let.value)
        self.visit(let.body)

    def visit_match(self, match: Any) -> None:
        """Data, then the right-hand sides."""
        self.visit(match.data)
        for clause in match.clauses:
            self.visit(clause.rhs)

    def _leaf(self, expr: Any) -> None:
        """does nothing."""
        pass

    visit_function = visit_call = visit_if = visit_tuple = visit_tuple_getitem = _visit_children
    visit_ref_create = visit_ref_read = visit_ref_write = _visit_children
    visit_var = visit_global_var = visit_constant = visit_op = visit_constructor = _leaf


def _same(old: Any, new: Any) -> bool:
    return all(a.same_as(b) for a, b in zip(old, new, strict=True))


@documented(_KINDS)
class ExprMutator(ExprFunctor):
    """Rebuilds an expression from what its methods give; what does not change stays the same node."""

    def _take(self, expr: Any, result: Any) -> None:
        if not isinstance(result, (_core.Object, nodes.TupleWrapper)):
            given = f"{type(self).__name__}.{self._method_of(expr)} gave {kind(result)}"
            raise _core.UserError(f"{given}, expected an expression")
        super()._take(expr, result)

    def _fields(self, expr: Any, *names: str) -> Any:
        """`expr` with the expressions in those fields visited."""
        old = [getattr(expr, name) for name in names]
        new = [self.visit(field) for field in old]
        return expr if _same(old, new) else expr.copy_with(**dict(zip(names, new, strict=True)))

    def visit_function(self, fn: Any) -> Any:
        """Parameters, then the body."""
        params = [self.visit(param) for param in fn.params]
        body = self.visit(fn.body)
        if body.same_as(fn.body) and _same(fn.params, params):
            return fn
        return fn.copy_with(params=params, body=body)

    def visit_call(self, call: Any) -> Any:
        """The callee, then the arguments."""
        op = self.visit(call.op)
        args = [self.visit(arg) for arg in call.args]
        if op.same_as(call.op) and _same(call.args, args):
            return call
        return call.copy_with(op=op, args=args)

    def visit_let(self, let: Any) -> Any:
        """A let: the variable, the value, the body."""
        return self._fields(let, "var", "value", "body")

    def visit_if(self, ite: Any) -> Any:
        """Condition, then the branches."""
        return self._fields(ite, "cond", "true_branch", "false_branch")

    def visit_tuple(self, tup: Any) -> Any:
        """The fields."""
        fields = [self.visit(field) for field in tup.fields]
        return tup if _same(tup.fields, fields) else tup.copy_with(fields=fields)

    def visit_tuple_getitem(self, op: Any) -> Any:
        """The tuple; the item of a tuple literal stays one, since the other fields may have effects."""
        return self._fields(op, "tuple_value")

    def visit_ref_create(self, r: Any) -> Any:
        """The value."""
        return self._fields(r, "value")

    def visit_ref_read(self, r: Any) -> Any:
        """The cell."""
        return self._fields(r, "ref")

    def visit_ref_write(self, r: Any) -> Any:
        """The cell and the value."""
        return self._fields(r, "ref", "value")

    def visit_match(self, match: Any) -> Any:
        """Data, patterns, right-hand sides."""
        data = self.visit(match.data)
        clauses = [nodes.Clause(self.visit_pattern(clause.lhs), self.visit(clause.rhs)) for clause in match.clauses]
        unchanged = all(
            a.lhs.same_as(b.lhs) and a.rhs.same_as(b.rhs) for a, b in zip(match.clauses, clauses, strict=True)
        )
        if unchanged and data.same_as(match.data):
            return match
        return match.copy_with(data=data, clauses=clauses)

    def visit_pattern(self, pattern: Any) -> Any:
        """The variables of a pattern."""
        if isinstance(pattern, nodes.PatternVar):
            new = self.visit(pattern.var)
            return pattern if new.same_as(pattern.var) else pattern.copy_with(var=new)
        if isinstance(pattern, (nodes.PatternConstructor, nodes.PatternTuple)):
            inner = [self.visit_pattern(p) for p in pattern.patterns]
            return pattern if _same(pattern.patterns, inner) else pattern.copy_with(patterns=inner)
        return pattern

    def _leaf(self, expr: Any) -> Any:
        """gives it as it is."""
        return expr

    visit_var = visit_global_var = visit_constant = visit_op = visit_constructor = _leaf


_DEFAULTS = {getattr(cls, name) for cls in (ExprVisitor, ExprMutator) for name in _METHODS.values()}


_public.settle(__name__)
