"""Visits of what nests deep: what the functors of expressions and those of types share."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar

from headrace import _core

_DEPTH = 100
_F = TypeVar("_F", bound="Functor")


def documented(kinds: dict[str, str]) -> Callable[[type[_F]], type[_F]]:
    """A decorator of functors: methods that are one function under several names become functions of their own.

    Each says what it is for, as `kinds` tells by the method's name, and what the shared function says that it does.
    """

    def decorate(cls: type[_F]) -> type[_F]:
        for name, what in kinds.items():
            shared = vars(cls).get(name)
            if inspect.isfunction(shared) and shared.__name__ != name:
                own = types.FunctionType(shared.__code__, shared.__globals__, name, None, shared.__closure__)
                own.__qualname__, own.__module__ = f"{cls.__name__}.{name}", cls.__module__
                own.__annotations__ = shared.__annotations__
                own.__doc__ = f"For {what}: {shared.__doc__}"
                setattr(cls, name, own)
        return cls

    return decorate


class Functor:
    """Calls the method of a node's kind.

    Past 100 visits within each other, what a node depends on is visited before it, operands first; the visits of its
    own method find the results.
    """

    _depth = 0
    # For the message of what nests too deep: what it is, and whose methods nest when they are overridden.
    _what = _where = ""

    def visit(self, node: Any) -> Any:
        """Calls the method for the node's kind and returns its result. Each expression is visited at most once.

        Parameters
        ----------
        node : RelayExpr or Type
            What the functor visits.

        Returns
        -------
        object

        Raises
        ------
        UserError
            For what is no such node, and when methods that are overridden nest past Python's recursion limit.
        """
        known = self._known(node)
        if known:
            return known[0]
        is_outermost = self._depth == 0
        self._depth += 1
        try:
            if self._depth > _DEPTH:
                self._visit_ahead(node)
            result = getattr(self, self._method_of(node))(node)
        except RecursionError as error:
            if not is_outermost:
                raise
            raise _core.UserError(
                f"{type(self).__name__}: the {self._what} nests past Python's recursion limit of "
                f"{sys.getrecursionlimit()} calls in {self._where} whose method is overridden; raise it with "
                "sys.setrecursionlimit, or leave these methods as they are"
            ) from error
        finally:
            self._depth -= 1
            if is_outermost:
                self._end()
        self._take(node, result)
        return result

    def _visit_ahead(self, root: Any) -> None:
        """Visits what `root` depends on, operands first."""
        depth, self._depth = self._depth, 1
        stack = [(root, False)]
        seen: set[Any] = set()
        try:
            while stack:
                node, is_expanded = stack.pop()
                if is_expanded:
                    if node is not root:
                        self._visit_one_ahead(node)
                elif self._is_due(node, seen):
                    stack.append((node, True))
                    stack.extend((child, False) for child in reversed(self._operands(node)))
        finally:
            self._depth = depth

    def _known(self, node: Any) -> tuple[Any, ...]:
        """The result of an earlier visit that stands for this one; empty when there is none."""
        raise NotImplementedError

    def _method_of(self, node: Any) -> str:
        """The name of the method of the node's kind. UserError for what has none."""
        raise NotImplementedError

    def _take(self, node: Any, result: Any) -> None:
        """Called with what a method gave. UserError for what it may not give."""

    def _end(self) -> None:
        """Called behind the outermost of the visits within each other."""

    def _operands(self, node: Any) -> list[Any]:
        """The nodes that may be visited before `node`, in the order in which the default method visits them."""
        raise NotImplementedError

    def _is_due(self, node: Any, seen: set[Any]) -> bool:
        """Whether a visit ahead, which met what is in `seen`, goes to this node."""
        raise NotImplementedError

    def _visit_one_ahead(self, node: Any) -> None:
        """Visits a node whose operands were visited."""
        self.visit(node)
