"""What the package's modules show: their public names, each as of a module that users know."""

from __future__ import annotations

import sys
import types
from typing import Any

from headrace import _elsewhere


def is_public(name: str) -> bool:
    """Whether a module's full name has no part that begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def submodules(module: types.ModuleType) -> list[str]:
    """The names of the public modules within a module that are its attributes."""
    start = f"{module.__name__}."
    within = [name for name, value in vars(module).items() if isinstance(value, types.ModuleType)]
    return [name for name in within if vars(module)[name].__name__ == start + name and is_public(name)]


def _show(module: types.ModuleType) -> None:
    def __dir__() -> list[str]:
        return sorted({*module.__all__, *submodules(module)})

    module.__dir__ = __dir__


def _shown(module: types.ModuleType) -> list[Any]:
    """The functions and classes that a module shows by their own names, without making any."""
    shown = {name: vars(module)[name] for name in dir(module) if name in vars(module)}
    return [
        value
        for name, value in shown.items()
        if isinstance(value, (types.FunctionType, type)) and value.__name__ == name
    ]


def settle(package: str) -> None:
    """Makes public modules list in `dir()` their `__all__` and modules, and say of what they lack what is instead.

    What private modules define says where it is shown.

    Parameters
    ----------
    package : str
        Of the modules, which were imported. One that tells its names otherwise has a `__dir__`.
    """
    modules = {
        name: module
        for name, module in sys.modules.items()
        if name.split(".")[0] == package
        and is_public(name)
        and (module.__name__ == name or not is_public(module.__name__))  # else it is shown by its own name
    }
    places: dict[int, tuple[Any, list[str]]] = {}
    for name, module in modules.items():
        _elsewhere.attend(module, name)
        if "__dir__" not in vars(module):
            _show(module)
        for value in _shown(module):
            if not is_public(value.__module__):
                places.setdefault(id(value), (value, []))[1].append(name)
    for value, names in places.values():
        around = value.__module__.partition("._")[0]
        value.__module__ = around if around in names else min(names, key=lambda name: (name.count("."), name))
