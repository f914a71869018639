"""Relay's text form."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from headrace import _arguments, _core, _tvm_files
from headrace._ffi import api


def _check(text: Any, what: str) -> str:
    if not isinstance(text, str):
        raise _core.UserError(f"{what}: expected a str, got {type(text).__name__}")
    return text


def _read(reader: str, name: Any, text: Any, what: str, weights: str | PathLike[str] | None, *more: Any) -> Any:
    """What a text is; one whose constants are in TVM's own metadata is told as such."""
    _check(text, what)
    try:
        return api(reader)(_check(name, "src_name"), text, _path(weights), *more)
    except _core.UserError:
        _, block, metadata = text.partition("#[metadata]")
        if not (block and _tvm_files.is_json(metadata)):
            raise
    raise _core.UserError(
        f"{what}: its #[metadata] is JSON of TVM, which is not read; in TVM make the constants parameters of the "
        "functions, write the text without metadata, and the parameters by relay.save_param_dict, which "
        "relay.load_param_dict reads"
    )


def _path(weights: str | PathLike[str] | None) -> str | None:
    return None if weights is None else _arguments.path(weights, "weights")


def _folders(import_paths: Sequence[str | PathLike[str]]) -> list[str]:
    if isinstance(import_paths, (str, bytes, PathLike)):
        raise _core.UserError(f"import_paths: expected a list of folders, got one; write [{import_paths!r}]")
    return [_arguments.path(folder, "import_paths") for folder in import_paths]


def parse(
    source: str,
    src_name: str = "from_string",
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
    src_name : str
        What errors and spans call it.
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
    return _read("relay.parser.ParseModule", src_name, source, "source", weights, _folders(import_paths))


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
    data: str,
    source_name: str | None = None,
    *,
    weights: str | PathLike[str] | None = None,
    import_paths: Sequence[str | PathLike[str]] = (),
) -> Any:
    """A module from its text, or an expression from a text that defines none.

    Parameters
    ----------
    data : str
        The text, whose version line may be missing.
    source_name : str, optional
        What errors and spans call it.
    weights, import_paths
        As of `parse`.

    Returns
    -------
    IRModule or RelayExpr
    """
    lines = [line for line in _check(data, "data").splitlines() if line.strip() and not line.strip().startswith("//")]
    body = [line for line in lines if not line.startswith("#[version")]
    if body and body[0].lstrip().startswith(("def ", "type ", "extern ", "import ")):
        text = data if len(body) < len(lines) else f'#[version = "0.0.5"]\n{data}'
        return parse(text, source_name or "from_string", weights=weights, import_paths=import_paths)
    return _read("relay.parser.ParseExpr", source_name or "from_string", data, "data", weights)


def astext(expr_or_mod: Any, show_meta_data: bool = True, show_types: bool = False) -> str:
    """The text form of an expression or a module.

    Parameters
    ----------
    expr_or_mod : RelayExpr or IRModule
        The program.
    show_meta_data : bool
        Whether large constants have their data; without it the text cannot be read back.
    show_types : bool
        Whether the types that InferType found stand behind the expressions, as comments ``/* ty=... */``.

    Returns
    -------
    str
    """
    if not isinstance(expr_or_mod, _core.Object):
        expr_or_mod = _arguments.expression(expr_or_mod, "astext: expr_or_mod")
    return api("relay.ir.AsText")(expr_or_mod, bool(show_meta_data), bool(show_types))
