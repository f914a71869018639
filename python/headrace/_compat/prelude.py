"""The types and functions of prelude.rly."""

from __future__ import annotations

from typing import Any

from headrace import _hints, _public, ir

__all__ = ["Prelude"]


class Prelude:
    """Takes prelude.rly into a module; its functions are attributes, as `p.map`.

    Parameters
    ----------
    mod : IRModule, optional
        The module; a new one when it is left out.
    """

    def __init__(self, mod: Any = None) -> None:
        self.mod: Any = ir.IRModule() if mod is None else mod
        self.mod.import_from_std("prelude.rly")

    def get_type(self, name: str) -> list[Any]:
        """The GlobalTypeVar of a type of the module, then its constructors."""
        return self.mod.get_type(name)

    def get_ctor(self, type_name: str, name: str) -> Any:
        """A constructor of a type of the module."""
        return self.mod.get_constructor(type_name, name)

    def get_global_var(self, name: str) -> Any:
        """The name of a function of the module."""
        return self.mod.get_global_var(name)

    def __getattr__(self, name: str) -> Any:
        if name == "mod" or name not in self.mod:
            told = _hints.hint("headrace.relay.prelude.Prelude", name)
            raise AttributeError(told or f"prelude.rly has no function '{name}'")
        return self.mod.get_global_var(name)


_public.publish(__name__, "headrace.relay.prelude")
