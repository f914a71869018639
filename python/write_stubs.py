"""Writes the .pyi files of the modules whose names are not in their text: nodes, passes, names of lazy packages.

    python3 python/write_stubs.py FOLDER

FOLDER is the package `headrace` with its extension. Nodes' fields come from the C++ registry; what is written in
Python's own text keeps its annotations. Modules without such names need no stub: type checkers read them.
"""

from __future__ import annotations

import argparse
import builtins
import enum
import functools
import importlib
import inspect
import keyword
import pkgutil
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_TYPING = {"Any", "Callable", "Iterable", "Iterator", "Mapping", "Sequence"}
_KINDS = {
    "int": "int",
    "int of 32 bits": "int",
    "enum": "int",
    "bool": "bool",
    "float": "float",
    "str": "str",
    "dtype": "str",
    "NDArray": "headrace._core.NDArray",
    "function": "headrace._core.PackedFunc",
}
_SAME_NAMES = {"headrace.relay.op": "headrace.relay"}  # by `__getattr__`


def kind_text(kind: str) -> str:
    """The Python type of a field of that kind, as text."""
    from headrace import _node

    if kind.startswith("None or "):
        return f"{kind_text(kind[8:])} | None"
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _node.all_keys():
        cls = _node.class_of(kind)
        # A base class of several kinds of node is typed as Any, so that callers may read the fields of each kind.
        return (
            "_t.Any" if any(issubclass(other, cls) for other in _all_nodes() if other is not cls) else class_text(cls)
        )
    for container in ("Array", "Map"):
        if kind.startswith(container):
            return f"headrace.runtime.{container}"
    return "_t.Any"


def field_text(field: dict[str, Any]) -> str:
    """The Python type of a node's field, as text."""
    text = kind_text(field["kind"])
    return f"{text} | None" if field["optional"] and text != "_t.Any" and not text.endswith("None") else text


@functools.cache
def _all_nodes() -> list[type]:
    from headrace import _node

    return [_node.class_of(key) for key in _node.all_keys()]


def home_of(value: Any) -> str:
    """The module whose stub, or text, has a function or class, whatever module shows it."""
    from headrace import _core

    is_error = isinstance(value, type) and issubclass(value, BaseException)  # which the extension's stub does not have
    if vars(_core).get(getattr(value, "__name__", "")) is value and not is_error:
        return "headrace._core"
    if is_node(value):
        return value.__module__
    members = [value] if inspect.isfunction(value) else vars(value).values() if isinstance(value, type) else ()
    homes = (member.__globals__["__name__"] for member in members if inspect.isfunction(member))
    own = (
        home for home in homes if home.startswith("headrace") and vars(sys.modules[home]).get(value.__name__) is value
    )
    return next(own, str(getattr(value, "__module__", "")))


def class_text(cls: type) -> str:
    """A class by its full name, in the module where a stub says it."""
    home = home_of(cls)
    return cls.__qualname__ if home == "builtins" else f"{home}.{cls.__qualname__}"


def annotation_text(annotation: Any, names: dict[str, Any]) -> str:
    """An annotation, as its text stands in the source, with full names; `names` are those of the source's module."""
    if annotation is inspect.Parameter.empty:
        return "_t.Any"
    if not isinstance(annotation, str):
        return class_text(annotation) if isinstance(annotation, type) else str(annotation)

    def full(match: re.Match[str]) -> str:
        name = match.group(0)
        value = names.get(name)
        if name in _TYPING:
            return f"_t.{name}"
        if keyword.iskeyword(name) or hasattr(builtins, name):
            return name
        if isinstance(value, type):
            return class_text(value)
        return value.__name__ if isinstance(value, types.ModuleType) else name

    return re.sub(r"(?<![\w.])[A-Za-z_]\w*", full, annotation)


def signature_text(function: Any, is_static: bool = False) -> str:
    """Parameters and result, as a stub has them."""
    names = getattr(function, "__globals__", {})
    signature = inspect.signature(function)
    written = []
    for parameter in signature.parameters.values():
        star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in written):
            written.append("*")
        text = star + parameter.name
        if not (parameter.name == "self" and not is_static):
            text += f": {annotation_text(parameter.annotation, names)}"
        written.append(text if parameter.default is parameter.empty else f"{text} = ...")
    return f"({', '.join(written)}) -> {annotation_text(signature.return_annotation, names)}"


def documented(head: str, doc: str | None) -> Iterator[str]:
    """A definition whose body is its docstring, which editors show."""
    lines = inspect.cleandoc(doc or "").replace("\\", "\\\\").replace('"', "'").splitlines()
    yield f"{head}:" if lines else f"{head}: ..."
    yield from docstring(lines)


def docstring(lines: list[str]) -> Iterator[str]:
    if len(lines) == 1:
        yield f'    """{lines[0]}"""'
    elif lines:
        yield from (f'    """{lines[0]}', *(f"    {line}" if line else "" for line in lines[1:]), '    """')


def is_node(value: Any) -> bool:
    from headrace import _core

    return isinstance(value, type) and issubclass(value, _core.Object) and value is not _core.Object


def class_lines(cls: type) -> Iterator[str]:
    """A node's class: its constructor, its fields, what Python adds."""
    from headrace import _core, _node

    bases = [base for base in cls.__mro__[1:] if is_node(base)]
    base = class_text(bases[0]) if bases else "headrace._core.Object"
    yield from documented(f"class {cls.__name__}({base})", cls.__doc__)
    inherited = {row["name"] for row in _node.fields_of(bases[0])} if bases else set()
    rows = [row for row in _node.fields_of(cls) if row["name"] not in inherited]
    methods = {}
    for part in reversed(cls.__mro__[: cls.__mro__.index(bases[0] if bases else _core.Object)]):
        methods.update(vars(part))
    yield from indented(member_lines(methods, {row["name"]: row for row in rows}))


def member_lines(members: dict[str, Any], fields: dict[str, dict[str, Any]]) -> Iterator[str]:
    count = 0
    for name, member in members.items():
        lines = []
        if name in fields:
            head = f"def {name}(self) -> {field_text(fields[name])}"
            lines = ["@property", *documented(head, fields[name]["doc"])]
        elif isinstance(member, property) and member.fget is not None:
            known = inspect.isfunction(member.fget)
            head = f"def {name}{signature_text(member.fget) if known else '(self) -> _t.Any'}"
            lines = ["@property", *documented(head, member.__doc__ if known else "")]
        elif isinstance(member, staticmethod):
            head = f"def {name}{signature_text(member.__func__, is_static=True)}"
            lines = ["@staticmethod", *documented(head, member.__doc__)]
        elif inspect.isfunction(member) and name not in _HIDDEN:
            lines = list(documented(f"def {name}{signature_text(member)}", member.__doc__))
        count += len(lines)
        yield from lines
    if count == 0:
        yield "..."


def indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"    {line}" if line else "" for line in lines)


def import_lines(module: str, name: str, shown: str) -> Iterator[str]:
    """Imports a name of another module, maybe as another name: only `x as x` says that others may import it."""
    if name == shown:
        yield f"from {module} import {name} as {name}"
    else:
        yield from (f"from {module} import {name} as _{shown}", f"{shown} = _{shown}")


def name_lines(module: types.ModuleType, name: str, value: Any) -> Iterator[str]:
    """The lines for one name in the stub of a module."""
    own = module.__name__
    if isinstance(value, types.ModuleType):
        if value.__name__.startswith("headrace"):
            parent, _, last = value.__name__.rpartition(".")
            is_within = parent == own and "__path__" not in vars(module)  # made there: it has no file, and no stub
            if is_within:
                yield f"{name}: _t.Any"
            else:
                yield from import_lines(parent, last, name)
    elif is_node(value) and value.__module__ == own:
        yield from class_lines(value) if value.__name__ == name else [f"{name} = {value.__name__}"]
    elif inspect.isfunction(value) and home_of(value) == own:
        yield from documented(f"def {name}{signature_text(value)}", value.__doc__)
    elif isinstance(value, str | int | float):
        yield f"{name}: {type(value).__name__}"
    elif isinstance(value, type) or callable(value):
        home = home_of(value)
        if home == own:
            yield from plain_class_lines(value) if value.__name__ == name else [f"{name} = {value.__name__}"]
        elif home.startswith("headrace"):
            if vars(sys.modules[home]).get(value.__name__) is value:
                yield from import_lines(home, value.__name__, name)
            else:
                yield from documented(f"def {name}{signature_text(value)}", value.__doc__)


def plain_class_lines(cls: type) -> Iterator[str]:
    """A class of Python's own text in a module that needs a stub."""
    if hasattr(cls, "_field_defaults"):
        names = vars(sys.modules[cls.__module__])
        yield f"class {cls.__name__}(_t.NamedTuple):"
        for name, kind in cls.__annotations__.items():
            yield f"    {name}: {annotation_text(getattr(kind, '__forward_arg__', kind), names)}"
        return
    bases = [class_text(base) for base in cls.__bases__ if base is not object]
    yield f"class {cls.__name__}({', '.join(bases)}):" if bases else f"class {cls.__name__}:"
    if issubclass(cls, enum.Enum):
        yield from indented(f"{name} = {member.value!r}" for name, member in cls.__members__.items())
        return
    members = {name: member for name, member in vars(cls).items() if not name.startswith("__") or name in _SPECIAL}
    yield from indented(member_lines(members, {}))


_HIDDEN = {"__reduce__", "__getattr__", "__setattr__"}
_SPECIAL = {"__init__", "__call__", "__enter__", "__exit__", "__getitem__", "__len__", "__iter__"}


def stub_text(module: types.ModuleType) -> str:
    is_public = "__dir__" in vars(module)  # and shows some of its names only
    public = dir(module) if is_public else getattr(module, "__all__", ())
    own = [name for name in vars(module) if name in public or not (is_public or name.startswith("_"))]
    names = {name: getattr(module, name) for name in [*own, *(name for name in public if name not in own)]}
    body = [line for name, value in names.items() for line in name_lines(module, name, value)]
    if module.__name__ in _SAME_NAMES:
        body.append(f"from {_SAME_NAMES[module.__name__]} import *")
    code = "\n".join(line for line in body if line.lstrip().startswith(("def ", "class ")))
    used = sorted(set(re.findall(r"(?<![\w.])[a-z]\w*(?:\.\w+)*(?=\.[A-Z])", code)) - {module.__name__})
    imports = ["import typing as _t", *(f"import {name}" for name in used)]
    return own_names("\n".join([*imports, *body]) + "\n", module.__name__)


def own_names(text: str, module: str) -> str:
    """Full names of the module's own classes made bare: a stub does not import itself."""
    return re.sub(rf"\b{re.escape(module)}\.([A-Z]\w*)", r"\1", text)


def needs_stub(module: types.ModuleType) -> bool:
    """Whether the names of a module are not in its text: nodes, passes, and what a package imports when it is asked."""
    from headrace import _public

    names = list(vars(module).values())
    return module.__name__ in _public.FACADES or any(is_node(value) for value in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sys.path.insert(0, str(folder.parent))
    package = importlib.import_module("headrace")
    for found in pkgutil.walk_packages(package.__path__, "headrace."):
        importlib.import_module(found.name)
    for stale in folder.rglob("*.pyi"):
        if stale.name != "_core.pyi":
            stale.unlink()
    for name, module in sorted(sys.modules.items()):
        if not (name == "headrace" or name.startswith("headrace.")) or not needs_stub(module):
            continue
        if module.__name__ != name:  # a module by another of its places
            continue
        parts = name.split(".")[1:]
        is_package = "__path__" in vars(module)
        path = folder.joinpath(*parts, "__init__.pyi") if is_package else folder.joinpath(*parts).with_suffix(".pyi")
        path.write_text(stub_text(module))
    complete_core(folder / "_core.pyi")
    return 0


_ATTACHED = "    # Methods of Python's text."


def complete_core(path: Path) -> None:
    """Completes the stub of the extension that nanobind wrote: adds the methods that Python gives to its classes, and
    replaces `object` by Any for results of any kind, because type checkers let nobody use an `object`."""
    from headrace import _core

    text = re.sub(r"\) -> object:", ") -> typing.Any:", path.read_text())
    imports = {"import typing", "import typing as _t"}
    for name, cls in vars(_core).items():
        if not isinstance(cls, type):
            continue
        own = {key: value for key, value in vars(cls).items() if inspect.isfunction(value) and key not in _HIDDEN}
        if not own:
            continue
        method_lines = own_names("\n".join(indented(member_lines(own, {}))), "headrace._core")
        heads = "\n".join(line for line in method_lines.splitlines() if line.startswith("    def "))
        imports.update(f"import {module}" for module in re.findall(r"(?<![\w.])([a-z]\w*(?:\.\w+)*)\.[A-Z]", heads))

        def extended(match: re.Match[str], lines: str = method_lines) -> str:
            return f"{match[0].split(_ATTACHED)[0].rstrip()}\n\n{_ATTACHED}\n{lines}\n\n"

        text = re.sub(rf"^class {name}\b.*?(?=^\S|\Z)", extended, text, count=1, flags=re.MULTILINE | re.DOTALL)
    lines = text.splitlines()
    path.write_text("\n".join([*(line for line in sorted(imports) if line not in lines), *lines]) + "\n")


if __name__ == "__main__":
    sys.exit(main())
