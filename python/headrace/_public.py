"""Shared by public modules: the names that they show, and hints for names that they do not have.

A package's `__init__` only lists names (`facade`): a module is imported when one of its names is first asked for. Each
public module ends with `settle(__name__)`, and a private module with `publish`, which says where its names are shown.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

FACADES: dict[str, set[str]] = {}  # the modules whose names `facade` finds, with their own modules


def is_public(name: str) -> bool:
    """Whether a module's full name has no part that begins with an underscore."""
    return not any(part.startswith("_") for part in name.split("."))


def submodules(module: types.ModuleType) -> list[str]:
    """The names of the public modules within a module that are its attributes."""
    start = f"{module.__name__}."
    within = [name for name, value in vars(module).items() if isinstance(value, types.ModuleType)]
    return [name for name in within if vars(module)[name].__name__ == start + name and is_public(name)]


def facade(
    package: str,
    names: Mapping[str, str],
    modules: str = "",
    unlisted: str = "",
    find: Callable[[str], Any] | None = None,
    more: Callable[[], Iterable[str]] = tuple,
) -> list[str]:
    """Lets a package show names of other modules, each of which is imported when one of its names is asked for.

    Parameters
    ----------
    package : str
        The package, whose `__init__` calls this.
    names : dict of str to str
        By module: its names that the package shows, with spaces between them.
    modules : str
        The package's own modules that are its attributes, too, without being imported first.
    unlisted : str
        More of them, which `dir()` shows, and `import *` does not take.
    find : function, optional
        Gives what a name stands for that is none of these, or raises AttributeError.
    more : function
        Gives the names that `find` knows, for `dir()`.

    Returns
    -------
    list of str
        The names and modules, sorted: the package's `__all__`.
    """
    home = {name: module for module, text in names.items() for name in text.split()}
    own = {*modules.split(), *unlisted.split()}
    shown = sorted({*home, *modules.split()})
    package_module = sys.modules[package]
    if shown:
        FACADES[package] = own

    def __getattr__(name: str) -> Any:
        if name in own:
            return importlib.import_module(f"{package}.{name}")
        is_inner = (
            name.startswith("_") and name not in home
        )  # `from package import _module` asks here before it imports
        if name not in home and find is not None and not is_inner:
            return find(name)
        if name not in home:
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=package_module)
        value = getattr(importlib.import_module(home[name]), name)
        setattr(package_module, name, value)
        return value

    package_module.__getattr__ = __getattr__
    package_module.__dir__ = lambda: sorted({*package_module.__all__, *own, *submodules(package_module), *more()})
    return shown


def publish(module: str, place: str) -> None:
    """Makes the functions and classes of a private module's `__all__` say that they are of the public module `place`.

    Parameters
    ----------
    module : str
        The private module, whose last statement this is.
    place : str
        The public module, which shows them all.
    """
    own = vars(sys.modules[module])
    for name in own["__all__"]:
        if isinstance(own[name], (types.FunctionType, type)) and own[name].__module__ == module:
            own[name].__module__ = place


def settle(name: str) -> None:
    """Makes a public module list its `__all__` and modules in `dir()`, and hint at what there is instead of a name.

    Parameters
    ----------
    name : str
        The module's, which calls this when it is complete. One that has a `__getattr__` or a `__dir__` keeps it.
    """
    module = sys.modules[name]
    find: Callable[[str], Any] | None = vars(module).get("__getattr__")
    if hasattr(find, "finds"):  # the module is reloaded, and has no text of its own for this
        find = find.finds

    def __getattr__(attribute: str) -> Any:
        if attribute == "__path__":
            return []  # `import` asks the finder below a module only if that has one, and the finder has the hints
        try:
            if find is not None:
                return find(attribute)
        except AttributeError:
            told = _hint(name, attribute)
            if told is None:
                raise
            raise AttributeError(told) from None
        told = _hint(name, attribute)
        if told is None:
            raise AttributeError(f"module '{name}' has no attribute '{attribute}'", name=attribute, obj=module)
        raise AttributeError(told)

    def __dir__() -> list[str]:
        return sorted({*module.__all__, *submodules(module)})

    __getattr__.finds = find
    module.__getattr__ = __getattr__
    if "__dir__" not in vars(module):
        module.__dir__ = __dir__


def _hint(module: str, name: str) -> str | None:
    if name.startswith("_"):
        return None
    from headrace import _hints  # a large table, which only errors read

    return _hints.hint(module, name)


class _HintingFinder:
    """Raises the hint for an `import` of a module that nobody has: `from` loses the text of an attribute's error."""

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        module, _, name = fullname.rpartition(".")
        if module.partition(".")[0] != "headrace" or not _is_importing():
            return
        told = _hint(module, name)
        if told:
            raise ImportError(told, name=fullname)  # `from` swallows a ModuleNotFoundError


def _is_importing() -> bool:
    """Whether an import asks the finder; importlib.util.find_spec only wants to know whether there is a module."""
    return sys._getframe(3).f_globals.get("__name__") == "importlib._bootstrap"


sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != _HintingFinder.__name__]
sys.meta_path.append(_HintingFinder())
