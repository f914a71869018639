"""Relay's text form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import PathLike
from typing import Any

from headrace import _arguments, _core, _node, _public, nd
from headrace._ffi import api

__all__ = ["astext", "fromtext", "parse", "parse_expr"]


def _check(text: Any, what: str) -> str:
    if not isinstance(text, str):
        raise _core.UserError(f"{what}: expected a str, got {type(text).__name__}")
    return text


def _read(reader: str, name: Any, text: Any, what: str, weights: str | PathLike[str] | None, *more: Any) -> Any:
    _check(text, what)
    return api(reader)(_check(name, "source_name"), text, _path(weights), *more)


def _constant(item: Any) -> Any:
    if isinstance(item, _node.class_of("relay.Constant")):
        return item.data
    if isinstance(item, _core.Object):
        raise _core.UserError(f"init_meta_table: relay.Constant: expected tensors, got {_arguments.kind(item)}")
    return nd.array(item)


def _device(item: Any) -> str:
    return item if isinstance(item, str) else str(_arguments.node(item, "init_meta_table", "VirtualDevice"))


def _other(kind: str, item: Any) -> Any:
    if not isinstance(item, _core.Object):
        raise _core.UserError(f"init_meta_table: {kind}: expected nodes, got {_arguments.kind(item)}")
    return item


_META = {"relay.Constant": _constant, "VirtualDevice": _device}


def _meta_table(table: Any) -> dict[str, list[Any]]:
    """The values that a text refers to as meta[KIND][i], by kind."""
    entries = _arguments.entries(table, "init_meta_table")
    for kind, items in entries.items():
        if isinstance(items, (str, Mapping)) or not hasattr(items, "__iter__"):
            raise _core.UserError(f"init_meta_table: {kind}: expected a list, got {_arguments.kind(items)}")
    return {kind: [_META.get(kind, partial(_other, kind))(item) for item in items] for kind, items in entries.items()}


def _path(weights: str | PathLike[str] | None) -> str | None:
    return None if weights is None else _arguments.path(weights, "weights")


def _folders(import_paths: Sequence[str | PathLike[str]]) -> list[str]:
    if isinstance(import_paths, (str, bytes, PathLike)):
        raise _core.UserError(f"import_paths: expected a list of folders, got one; write [{import_paths!r}]")
    return [_arguments.path(folder, "import_paths") for folder in import_paths]


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: Any = None,
    init_meta_table: Mapping[str, Any] | None = None,
    *,
    weights: str | PathLike[str] | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
) -> Any:
    """A module from its text.

    ``import "prelude.rly"`` in the text takes what comes with Headrace; another name is a file's, which is read only
    from the folders that are named here: a text from elsewhere reads no file that it was not shown.

    Parameters
    ----------
    source : str
        Text that begins with #[version = "0.0.5"].
    source_name : str
        What errors and spans call it.
    init_module : IRModule, optional
        Functions and types that the text may use, and that the result has, too. It is not changed. A text that defines
        one of its names is refused.
    init_meta_table : dict of str to list, optional
        What the text calls meta[relay.Constant][i] (Constants, tensors or arrays), meta[VirtualDevice][i]
        (VirtualDevices or their texts) and meta[KIND][i] (nodes of that kind), where it does not hold them itself.
        Tensors and arrays are copied.
    weights : path, optional
        The file with the data of the text's constants, where it is not in the text (safetensors, `headrace-opt
        --weights`). Constants share the mapped file: it must not change while they live.
    import_paths : list of path
        Folders where files to import are looked for, after the folder of a file that imports; they must lie there or
        below.

    Returns
    -------
    IRModule
        With the texts that it was read from in `source_map`.

    Raises
    ------
    UserError
        With all errors of the text, each with its line and a caret; or for a file of weights that is missing or none.
    """
    module = None if init_module is None else _arguments.module(init_module, "init_module")
    reader, folders = "relay.parser.ParseModule", _folders(import_paths)
    found = _read(reader, source_name, source, "source", weights, folders, module, _meta_table(init_meta_table))
    return _with_types(found)


def _with_types(module: Any) -> Any:
    """The module with inferred types, also those of results, as Relay's; as it is where inference refuses it, which
    passes say when they run."""
    try:
        return api("relay.parser.WithTypes")(module)
    except _core.UserError:
        return module


def parse_expr(source: str, *, weights: str | PathLike[str] | None = None) -> Any:
    """An expression from its text; `free_var` lines may declare its free variables. Errors as those of `parse`.

    Parameters
    ----------
    source : str
        The text.
    weights : path, optional
        As `parse` takes it.

    Returns
    -------
    RelayExpr
    """
    return _read("relay.parser.ParseExpr", "from_string", source, "source", weights)


def fromtext(
    source: str,
    source_name: str = "from_string",
    *,
    weights: str | PathLike[str] | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
) -> Any:
    """A module from its text, or an expression from a text that defines none.

    Parameters
    ----------
    source : str
        The text, whose version line may be missing.
    source_name : str
        What errors and spans call it.
    weights, import_paths
        As of `parse`.

    Returns
    -------
    IRModule or RelayExpr
    """
    stripped = [(line, line.strip()) for line in _check(source, "source").splitlines()]
    lines = [words for _, words in stripped if words and not words.startswith("//")]
    body = [words for words in lines if not words.startswith("#[version")]
    if body and body[0].startswith(("def ", "type ", "extern ", "import ")):
        text = source if len(body) < len(lines) else f'#[version = "0.0.5"]\n{source}'
        return parse(text, source_name, weights=weights, import_paths=import_paths)
    return _read("relay.parser.ParseExpr", source_name, source, "source", weights)


def astext(
    expr_or_mod: Any,
    show_meta_data: bool = True,
    annotate: Callable[[Any], str | None] | None = None,
    show_types: bool | None = None,
) -> str:
    """The text form of an expression or a module.

    Parameters
    ----------
    expr_or_mod : RelayExpr or IRModule
        The program.
    show_meta_data : bool
        Whether large constants have their data; without it the text cannot be read back.
    annotate : function, optional
        From an expression to what stands behind it as a comment; nothing for "" and None. It is asked of what computes:
        calls, tuples and their fields, functions, branches, matches, references.
    show_types : bool, optional
        Whether the types that InferType found, if it ran, stand behind the expressions, as comments ``/* ty=... */``;
        without it they do unless `annotate` is given, as in Relay.

    Returns
    -------
    str
    """
    if not isinstance(expr_or_mod, _core.Object):
        expr_or_mod = _arguments.expression(expr_or_mod, "astext: expr_or_mod")
    return api("relay.ir.AsText")(
        expr_or_mod, bool(show_meta_data), annotate, annotate is None if show_types is None else bool(show_types)
    )


_public.publish(__name__, "headrace.relay")
