"""Which functions of a module call which."""

from __future__ import annotations

from collections import Counter
from typing import Any

from headrace import _arguments, _core, _public
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay import _classes as nodes

__all__ = ["CallGraph"]


class CallGraph:
    """The references between the functions of a module, counted.

    Parameters
    ----------
    module : IRModule
        The module as it is now. Functions that are not Relay functions refer to none.

    Attributes
    ----------
    module : IRModule
        The module.

    Raises
    ------
    UserError
        For what is not a module, and a reference to a function that the module does not have.
    """

    def __init__(self, module: Any) -> None:
        if not isinstance(module, IRModule):
            raise _core.UserError(f"CallGraph: expected an IRModule, got {_arguments.kind(module)}")
        self.module = module
        self._calls: dict[str, Counter[str]] = {}
        for var, function in module.functions.items():
            below = api("relay.analysis.post_order")(function) if isinstance(function, nodes.Function) else ()
            names = [node.name_hint for node in _with_repetitions(below)]
            self._calls[var.name_hint] = Counter(names)
        for caller, names in self._calls.items():
            for name in names:
                if name not in self._calls:
                    raise _core.UserError(f"CallGraph: @{caller} calls @{name}, which the module does not have")

    def ref_count(self, var: Any) -> int:
        """How many references to a function, by its GlobalVar or name, all functions have together."""
        name = self._name(var)
        return sum(names[name] for names in self._calls.values())

    def global_call_count(self, var: Any) -> int:
        """How many references a function has to functions of the module."""
        return sum(self._calls[self._name(var)].values())

    def is_recursive(self, var: Any) -> bool:
        """Whether a function refers to itself."""
        name = self._name(var)
        return self._calls[name][name] > 0

    def print_var(self, var: Any) -> str:
        """A function with its number of references, and the functions that it refers to."""
        name = self._name(var)
        calls = sorted(self._calls[name].items())
        lines = [
            f"@{name}: #refs = {self.ref_count(name)}",
            *(f"  calls @{callee} x{count}" for callee, count in calls),
        ]
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join(self.print_var(name) for name in self._calls)

    def _name(self, var: Any) -> str:
        name = getattr(var, "name_hint", var)
        if not isinstance(name, str) or name not in self._calls:
            raise _core.UserError(
                f"CallGraph: the module has no function {var!r}; it has {', '.join(self._calls) or 'none'}"
            )
        return name


def _with_repetitions(below: Any) -> list[Any]:
    """The GlobalVars that expressions have as operands, one for each place."""
    found = []
    for node in below:
        found += [child for child in api("relay.ir.Children")(node) if isinstance(child, nodes.GlobalVar)]
    return found


_public.publish(__name__, "headrace.relay.analysis")
