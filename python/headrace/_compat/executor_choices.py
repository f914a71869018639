"""The executor and runtime arguments of Relay's build. There is one of each, with few options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from headrace import _arguments, _core, _public

__all__ = ["Executor", "Runtime"]


class _Choice:
    """A name and its options. The subclasses say which there are."""

    _what: ClassVar[str]
    _options: ClassVar[dict[str, dict[str, bool]]]  # by name: defaults of the options
    _instead: ClassVar[dict[str, str]]  # names of Relay's that are not here

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        what = f"relay.backend.{type(self).__name__}"
        if _arguments.text(name, f"{what}: name") not in self._options:
            instead = self._instead.get(name, f"the {self._what}s: {', '.join(self._options)}")
            raise _core.UserError(f"{what}: there is no {self._what} '{name}'; {instead}")
        known = self._options[name]
        given = _arguments.entries(options, f"{what}: options")
        for option, value in given.items():
            if option not in known:
                raise _core.UserError(f"{what}: '{name}' has no option {option!r}; its options: {', '.join(known)}")
            if not isinstance(value, bool):
                raise _core.UserError(f"{what}: option '{option}': expected a bool, got {_arguments.kind(value)}")
        self.name = name
        self._values = {**known, **given}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and (self.name, self._values) == (other.name, other._values)

    def __hash__(self) -> int:
        return hash((self.name, *self._values.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._values!r})"


class Executor(_Choice):
    """The choice of what runs a compiled program: the graph executor.

    Parameters
    ----------
    name : str
        "graph".
    options : dict of str to bool, optional
        "link-params": accepted for old programs, without effect; parameters that are given to `relay.build` are always
        in the code.

    Raises
    ------
    UserError
        For another executor, with what there is instead, and for another option.
    """

    _what = "executor"
    _options: ClassVar = {"graph": {"link-params": False}}
    _instead: ClassVar = {
        "aot": "a library that lib.export_library writes has a function of its own to run it, headrace_run "
        "(docs/modules.md); leave the executor out",
        "vm": 'relay.create_executor("debug") runs control flow; leave the executor out',
    }

    @staticmethod
    def list_executors() -> list[str]:
        """The names of the executors."""
        return list(Executor._options)

    @staticmethod
    def list_executor_options(executor: str) -> dict[str, str]:
        """The options of an executor.

        Parameters
        ----------
        executor : str
            Its name.

        Returns
        -------
        dict of str to str
            The kind of each option.
        """
        return dict.fromkeys(Executor(executor)._values, "bool")


class Runtime(_Choice):
    """The choice of the runtime library of a compiled program: the one in C++.

    Parameters
    ----------
    name : str
        "cpp".
    options : dict of str to bool, optional
        "system-lib": False; code that is linked into a program registers itself (docs/modules.md).

    Raises
    ------
    UserError
        For another runtime, with what there is instead, and for another option.
    """

    _what = "runtime"
    _options: ClassVar = {"cpp": {"system-lib": False}}
    _instead: ClassVar = {
        "crt": "a library that lib.export_library writes needs none to be run by headrace_run (docs/modules.md); leave "
        "the runtime out"
    }

    def __init__(self, name: str, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, options)
        if self["system-lib"]:
            raise _core.UserError(
                "relay.backend.Runtime: 'system-lib' is False; code that is linked into a program registers itself by"
                " include/headrace/system_lib.h, and hr.runtime.system_lib() has it"
            )

    @staticmethod
    def list_runtimes() -> list[str]:
        """The names of the runtimes."""
        return list(Runtime._options)

    @staticmethod
    def list_runtime_options(runtime: str) -> dict[str, str]:
        """The options of a runtime.

        Parameters
        ----------
        runtime : str
            Its name.

        Returns
        -------
        dict of str to str
            The kind of each option.
        """
        return dict.fromkeys(Runtime(runtime)._values, "bool")


_public.publish(__name__, "headrace.relay.backend")
