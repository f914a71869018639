"""Checks the imports of the Python package against its floors, for check_layers.py.

python/floors.txt says which module is on which floor. Rules:

  floor     each module is on one floor, and imports only modules on its own and on lower ones
  name      no module imports a name from one of the last floor, `facades`, whose modules only show names of others
  cycle     no cycle between modules (check_layers.py looks for it in `House.module_edges`)
  late      only the modules that this file names import by a computed name, and only facades list names of others
            (`_public.facade`): elsewhere that would hide imports from these rules
  compat    only users of Relay need `_compat`: outside of it, the modules that import it are public ones that only show
            its names by one line, `__all__ = places.show(__name__)`, and `_foreign` alone has names of its modules

Imports in functions count as those at the top of a module do, and so do `importlib.import_module("headrace.x")` and
`sys.modules["headrace.x"]`.
Imports for type checkers (`if TYPE_CHECKING:`) do not. Importing a module of a package imports the package, too, unless
that is a facade, which imports nothing by itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PACKAGE = "headrace"
FLOORS = "python/floors.txt"
FACADES = "facades"
# The modules that import by computed names: what the table in headrace/__init__ says, names of facades, readers of
# files, peers, functions of stages.
IMPORT_BY_NAME = {
    f"{PACKAGE}.{name}" for name in ("_compat.places", "_foreign", "_node", "_public", "peer", "pipeline._host")
}
COMPAT = f"{PACKAGE}._compat"
NAMES_COMPAT = {f"{PACKAGE}._foreign"}  # a table of readers of files
SHOWS_COMPAT = [f"from {COMPAT} import places", "__all__ = places.show(__name__)"]


@dataclass
class Floors:
    """Which module is on which floor, by full names."""

    names: list[str] = field(default_factory=list)  # floors, lowest first
    of: dict[str, str] = field(default_factory=dict)  # module -> floor
    written: set[str] = field(default_factory=set)  # modules that the build writes

    def is_above(self, one: str, other: str) -> bool:
        """Whether a module is on a higher floor than another; both are on floors."""
        return self.names.index(self.of[one]) > self.names.index(self.of[other])


@dataclass(frozen=True)
class Import:
    """One import: the module, the name that is taken from it ("" for none), the line."""

    module: str
    name: str
    line: int


def read_floors(house: Any) -> Floors:
    """The table of floors; what is wrong with it is reported."""
    floors = Floors()
    path = house.root / FLOORS
    if not path.is_file():
        house.report(f"{FLOORS}:1", "floor", "is missing: it says which module of the package is on which floor")
        return floors
    for number, text in enumerate(path.read_text().splitlines(), 1):
        line = text.partition("#")[0].rstrip()
        if not line:
            continue
        name, colon, modules = line.partition(":")
        if colon and not line.startswith(" "):
            floors.names.append(name)
        elif not line.startswith(" ") or not floors.names:
            house.report(f"{FLOORS}:{number}", "floor", "cannot read this line: write FLOOR: MODULE MODULE ...")
            continue
        for word in (modules if colon else line).split():
            module = PACKAGE if word == PACKAGE else f"{PACKAGE}.{word.removesuffix('*')}"
            if module in floors.of:
                house.report(f"{FLOORS}:{number}", "floor", f"{module} is on two floors: {floors.of[module]} too")
            floors.of.setdefault(module, floors.names[-1])
            if word.endswith("*"):
                floors.written.add(module)
    return floors


def find_modules(root: Path) -> dict[str, Path]:
    """The files of the package by module, relative to the root."""
    modules = {}
    for path in sorted((root / "python" / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root / "python").with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.relative_to(root)
    return modules


def is_for_type_checkers(node: ast.AST) -> bool:
    """Whether a statement is `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a text that runs, so not those for type checkers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        inner = node.orelse if is_for_type_checkers(node) else ast.iter_child_nodes(node)
        waiting.extend(inner)


def imports_of(tree: ast.AST, known: set[str]) -> Iterator[Import]:
    """The imports of modules of the package."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "", node.lineno) for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield Import(inner, "", node.lineno) if inner in known else Import(node.module, alias.name, node.lineno)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            if is_known(node.args[0], known):
                yield Import(node.args[0].value, "", node.lineno)
        elif is_look_up(node) and is_known(node.slice, known):
            yield Import(node.slice.value, "", node.lineno)


def is_look_up(node: ast.AST) -> bool:
    """Whether an expression takes a module from sys.modules."""
    is_item = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
    return is_item and ast.unparse(node.value).endswith("sys.modules")


def is_known(name: ast.AST, known: set[str]) -> bool:
    """Whether an expression is the text of a module's name."""
    return isinstance(name, ast.Constant) and name.value in known


def check_late(house: Any, floors: Floors, module: str, path: Path, tree: ast.AST) -> None:
    """Reports imports by computed names, and lists of names, where they do not belong."""
    for node in walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, place = ast.unparse(node.func), f"{path}:{node.lineno}"
        named = [argument for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        is_computed = function.endswith("import_module") and not named
        if is_computed and module not in IMPORT_BY_NAME:
            house.report(place, "late", f"{module} imports a module by a computed name: write the import")
        lists_names = function.endswith("facade") and len(node.args) > 1 and ast.unparse(node.args[1]) != "{}"
        if lists_names and floors.of.get(module) != FACADES and module not in IMPORT_BY_NAME:
            house.report(place, "late", f"{module} lists names of other modules, which only {FACADES} do: import them")


def compat_lines(tree: ast.AST, has_table: bool) -> Iterator[tuple[int, str]]:
    """Lines that import a module of the compat folder, with its name; without `has_table` also those that name one."""
    for node in walk(tree):
        named = []
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not has_table:
            named = [word for word in node.value.split() if word.isascii() and word.replace(".", "_").isidentifier()]
        found = [name for name in named if name == COMPAT or name.startswith(f"{COMPAT}.")]
        if found:
            yield node.lineno, found[-1]


def check_compat(house: Any, module: str, path: Path, tree: ast.Module) -> None:
    """Reports a module outside of the compat folder that imports or names one in it, and does more than show names."""
    if module == COMPAT or module.startswith(f"{COMPAT}."):
        return
    statements = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    is_public = not any(part.startswith("_") for part in module.split("."))
    if is_public and [ast.unparse(statement) for statement in statements] == SHOWS_COMPAT:
        return
    for line, name in compat_lines(tree, module in NAMES_COMPAT):
        house.report(
            f"{path}:{line}",
            "compat",
            f"{module} uses {name}, which only users of Relay need: move what both need out of it, or all of this"
            f" module into it, and leave `{SHOWS_COMPAT[1]}` at the public path",
        )


def packages_around(module: str, importer: str) -> Iterator[str]:
    """The packages that importing a module imports first, but for those that the importer is in."""
    package = module.rpartition(".")[0]
    while package:
        if package != importer and not importer.startswith(f"{package}."):
            yield package
        package = package.rpartition(".")[0]


def check_import(house: Any, floors: Floors, importer: str, place: str, one: Import) -> None:
    """Holds one import against the rules, and notes its edges."""
    if floors.of.get(one.module) == FACADES and one.name:
        house.report(
            place,
            "name",
            f"{importer} imports {one.name} from {one.module}, which only shows it: import it where it is",
        )
        return
    around = [package for package in packages_around(one.module, importer) if floors.of.get(package) != FACADES]
    for module in (one.module, *around):
        if module == importer:
            continue
        house.module_edges[importer].setdefault(module, place)
        if importer in floors.of and module in floors.of and floors.is_above(module, importer):
            house.report(
                place,
                "floor",
                f"{importer} (floor {floors.of[importer]}) imports {module} (floor {floors.of[module]}): only its own"
                f" floor and those below; move what both need down, or the module in {FLOORS}",
            )


def check_python(house: Any) -> int:
    """Checks the package, if there is one; gives the number of its modules."""
    modules = find_modules(house.root)
    if not modules:
        return 0
    floors = read_floors(house)
    for module in sorted(floors.of.keys() - modules.keys() - floors.written - {f"{PACKAGE}._core"}):
        house.report(f"{FLOORS}:1", "floor", f"{module} has no file")
    known = modules.keys() | floors.of.keys()
    for module, path in modules.items():
        if module not in floors.of and floors.names:
            house.report(f"{path}:1", "floor", f"{module} is on no floor: add it to {FLOORS}")
        tree = ast.parse((house.root / path).read_text())
        check_late(house, floors, module, path, tree)
        check_compat(house, module, path, tree)
        for one in imports_of(tree, known):
            check_import(house, floors, module, f"{path}:{one.line}", one)
    return len(modules)
