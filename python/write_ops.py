"""Writes the functions of the compiler's ops: relay/nn.py, relay/image.py ..., and relay/_root_ops.py.

    python3 python/write_ops.py FOLDER

FOLDER is the package `headrace` with its extension. The op registry says each op's parameters, defaults and doc, so a
new op needs no line in Python. The build writes these files beside the package's others, as real functions that an
editor, a type checker and a traceback find: `relay.nn.dense` is a `def` in relay/nn.py, and `relay.add`, of no family,
in relay/_root_ops.py. They are not in the repository, where each op would have a second place to change.
"""

from __future__ import annotations

import argparse
import inspect
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_KINDS = {"int": "int", "float": "float", "bool": "bool", "str": "str"}
_WIDTH = 120
# Other names that a family shows.
_MORE = {
    "nn": "from headrace.relay import _padding as utils",
    "qnn": 'op = sys.modules[f"{__name__}.op"] = sys.modules[__name__]  # where users of Relay find them',
}


def default_text(value: Any) -> str:
    """The text of a default; of a list, a tuple, since a list would be shared by the calls."""
    if isinstance(value, (list, tuple)):
        items = [default_text(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def parameter_text(schema: Any, parameter: inspect.Parameter) -> str:
    """A parameter with its type and its default, as a definition has it."""
    field = schema.attrs.get(parameter.name)
    kind = "Any"
    if field and parameter.name not in schema.operands:
        kind = _KINDS.get(field["kind"].removeprefix("None or "), "Any")
        kind += " | None" if parameter.default is None and kind != "Any" else ""
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    default = "" if parameter.default is parameter.empty else f" = {default_text(parameter.default)}"
    return f"{star}{parameter.name}: {kind}{default}"


def parameters_of(schema: Any, signature: inspect.Signature) -> list[str]:
    """The parameters of a definition, with the star that stands before those that are given by keyword only."""
    texts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not any(text.startswith("*") for text in texts):
            texts.append("*")
        texts.append(parameter_text(schema, parameter))
    return texts


def folded(before: str, items: list[str], after: str, indent: str = "") -> Iterator[str]:
    """`before`, the items with commas between them, `after`: on one line, or with a line for each item."""
    line = f"{indent}{before}{', '.join(items)}{after}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{indent}{before}"
    yield from (f"{indent}    {item}," for item in items)
    yield f"{indent}{after}"


def function_lines(schema: Any) -> Iterator[str]:
    """The definition of an op's function."""
    from headrace.relay import _op_functions

    signature = _op_functions.signature_of(schema)
    name = schema.name.rpartition(".")[2]
    result = "TupleWrapper" if schema.gives_tuple else schema.result
    if schema.gives_tuple and callable(schema.results):
        result = "Any"
    yield from folded(f"def {name}(", parameters_of(schema, signature), f") -> {result}:")
    doc = _op_functions.doc_of(schema, signature).replace("\\", "\\\\").replace('"""', "'''")
    first, *rest = doc.splitlines()
    yield f'    """{first}'
    yield from (f"    {line}".rstrip() for line in rest)
    yield '    """'
    given = [f'"{key}": {key}' for key in signature.parameters if key != "span"]
    yield from folded(f"return _{name.upper()}({{", given, "}, span)", "    ")


def module_text(family: str, names: list[str]) -> str:
    """The text of the module that has the functions of some ops."""
    from headrace.relay import _family_adapters, _op_adapters
    from headrace.relay._op_call import OpSchema

    richer = _family_adapters.FAMILIES.get(family, {}) if family else _op_adapters.FUNCTIONS
    home = "_family_adapters" if family else "_op_adapters"
    own = [name for name in names if name.rpartition(".")[2] not in richer]
    schemas = [OpSchema(name) for name in own]
    shown = sorted({*(name.rpartition(".")[2] for name in own), *richer})
    lines = [
        f'"""The functions of the ops {f"{family}.*" if family else "without a family"}."""',
        "# Written by python/write_ops.py.",
        "",
        "from __future__ import annotations",
        "",
        "import sys",
        "from typing import TYPE_CHECKING, Any",
        "",
        "from headrace import _public",
        "from headrace.relay import _op_functions",
        "from headrace.relay._op_call import OpCall",
    ]
    if richer:
        lines += folded(f"from headrace.relay.{home} import (", sorted(richer), ")")
    lines += [_MORE[family]] if family in _MORE else []
    lines += ["", "if TYPE_CHECKING:", "    from headrace._operands import TupleWrapper"]
    lines += ["    from headrace.relay import Call, TupleGetItem", ""]
    lines += [*folded("__all__ = [", [f'"{name}"' for name in shown], "]"), ""]
    lines += [f'_{schema.name.rpartition(".")[2].upper()} = OpCall("{schema.name}")' for schema in schemas]
    for schema in schemas:
        lines += ["", "", *function_lines(schema)]
    lines += ["", ""]
    if family:
        lines += [f'_op_functions.lend(sys.modules[__name__], "{family}")', "_public.settle(__name__)"]
    else:
        lines += ['_public.publish(__name__, "headrace.relay")']
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sys.path.insert(0, str(folder.parent))
    from headrace import _public, get_global_func, relay  # noqa: F401

    families: dict[str, list[str]] = {}
    for op in get_global_func("ir.OpNames")():
        families.setdefault(op.rpartition(".")[0], []).append(op)
    unknown = families.keys() - {""} - _public.FACADES["headrace.relay"]
    if unknown:
        sys.exit(f"write_ops.py: add {', '.join(sorted(unknown))} to `_UNLISTED` in headrace/_compat/places.py")
    for family, names in families.items():
        path = folder / "relay" / f"{family or '_root_ops'}.py"
        if family == "annotation":  # whose functions are written by hand
            continue
        text = module_text(family, names)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
