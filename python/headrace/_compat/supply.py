"""Names that nothing else has yet, as `tvm.ir.supply` gives them."""

from __future__ import annotations

from typing import Any

from headrace import _arguments, _public
from headrace._core import UserError
from headrace.ir import IRModule
from headrace.relay._classes import GlobalVar

__all__ = ["GlobalVarSupply", "NameSupply"]


class NameSupply:
    """Gives names, each once.

    Parameters
    ----------
    prefix : str
        What names begin with, before a "_"; empty: nothing.
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = _arguments.text(prefix, "prefix")
        self._taken: set[str] = set()

    def _full(self, name: str, add_prefix: bool) -> str:
        name = _arguments.text(name, "name")
        return f"{self._prefix}_{name}" if add_prefix and self._prefix else name

    def fresh_name(self, name: str, add_prefix: bool = True) -> str:
        """The name, or the name with the first number behind it that is free; it is taken from now on."""
        full = chosen = self._full(name, add_prefix)
        number = 0
        while chosen in self._taken:
            number += 1
            chosen = f"{full}{number}"
        self._taken.add(chosen)
        return chosen

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Takes the name, whether or not it was free, and returns it with its prefix."""
        full = self._full(name, add_prefix)
        self._taken.add(full)
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """Whether the name is taken."""
        return self._full(name, add_prefix) in self._taken


class GlobalVarSupply:
    """Gives GlobalVars whose names nothing else has.

    Parameters
    ----------
    value : NameSupply, IRModule or list of IRModule, optional
        Where names come from, or modules whose functions have theirs already: names then begin with the attribute
        "mod_name" of the first one, or with "tvmgen_default", as in TVM.
    """

    def __init__(self, value: Any = None) -> None:
        self._names = value if isinstance(value, NameSupply) else NameSupply()
        self._vars: dict[str, Any] = {}
        if value is None or isinstance(value, NameSupply):
            return
        modules = value if isinstance(value, (list, tuple)) else [value]
        if modules and isinstance(modules[0], IRModule):
            self._names = NameSupply(str(modules[0].get_attr("mod_name") or "tvmgen_default"))
        for module in modules:
            if not isinstance(module, IRModule):
                raise UserError(f"value: expected a NameSupply, an IRModule or a list, got {_arguments.kind(module)}")
            for var in module.functions:
                self.reserve_global(var)

    def fresh_global(self, name: str, add_prefix: bool = True) -> Any:
        """A GlobalVar of a name that is free."""
        made = GlobalVar(self._names.fresh_name(name, add_prefix))
        self._vars[made.name_hint] = made
        return made

    def unique_global_for(self, name: str, add_prefix: bool = True) -> Any:
        """The GlobalVar of that name; made at the first call."""
        full = self._names.reserve_name(name, add_prefix)
        return self._vars.setdefault(full, GlobalVar(full))

    def reserve_global(self, global_var: Any, allow_conflict: bool = False) -> None:
        """Takes a GlobalVar, so that its name is not given again.

        Parameters
        ----------
        global_var : GlobalVar
            The variable.
        allow_conflict : bool
            Whether another variable of that name may be known already; it stays.

        Raises
        ------
        UserError
            For what is not a GlobalVar, and for another one of that name.
        """
        if not isinstance(global_var, GlobalVar):
            raise UserError(f"global_var: expected a GlobalVar, got {_arguments.kind(global_var)}")
        name = global_var.name_hint
        if not allow_conflict and not self._vars.get(name, global_var).same_as(global_var):
            raise UserError(f"there is another GlobalVar '{name}' already")
        self._names.reserve_name(name, False)
        self._vars.setdefault(name, global_var)


_public.publish(__name__, "headrace.ir.supply")
