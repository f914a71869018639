"""Module.export_library: writing a compiled module, with a compiler of the user's if need be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Literal

from headrace import _arguments, _core
from headrace._ffi import api


def export_library(
    self: _core.Module,
    file_name: str | PathLike[str],
    fcompile: str | Callable[..., Any] | Literal[False] | None = None,
    addons: Sequence[str | PathLike[str]] | None = None,
    workspace_dir: str | PathLike[str] | None = None,
    **kwargs: Any,
) -> str:
    """Writes the module, with all that it imports, for `runtime.load_module`.

    Without a compiler, the format is that of `save`, by the ending of the file's name. With one, it links an object of
    the module to the shared object `file_name`. Either appears whole or not at all.

    Parameters
    ----------
    file_name : path
        The file.
    fcompile : str or function, optional
        A C compiler, such as "gcc"; or fcompile(output, objects, **kwargs), such as `headrace.cc.create_shared`.
        None and False: none.
    addons : list of path, optional
        Objects and libraries that the compiler links too.
    workspace_dir : path, optional
        Where the object lies meanwhile.
    **kwargs
        For fcompile; without one, `cc` and `options` are those of `headrace.cc.create_shared`.

    Returns
    -------
    str
        The file's name.

    Raises
    ------
    UserError
        When the module cannot be saved, or the compiler fails: with what it said.
    """
    path = _arguments.path(file_name, "file_name")
    link = _linker(fcompile, addons, kwargs)
    if link is None:
        self.save(path)
        return path
    import tempfile  # These two, and what starts a compiler, take longer to import than all that this module is for.
    from pathlib import Path

    if not path.endswith(".so") and "." in Path(path).name:
        raise _core.UserError(f"file_name: '{path}' is what a compiler links; it ends in .so, or has no ending")
    folder = None if workspace_dir is None else _arguments.path(workspace_dir, "workspace_dir")
    try:
        workspace = tempfile.TemporaryDirectory(prefix="headrace-", dir=folder)
    except OSError as error:
        raise _core.UserError(f"workspace_dir: '{folder}' takes no files: {error.strerror}") from error
    with workspace as name:
        linked, model = str(Path(name, "lib.so")), str(Path(name, "model.o"))
        self.save(model, "o")
        link(linked, [model, *map(str, addons or ())], **kwargs)
        if not Path(linked).is_file():
            raise _core.UserError(f"fcompile: it returned and there is no file '{linked}', its first argument")
        api("runtime.SealLibrary")(linked, path)
    return path


def _linker(fcompile: Any, addons: Any, kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The function that links the library; None when the package itself can write the file."""
    from headrace.cc import create_shared

    if fcompile is None or fcompile is False:
        unknown = kwargs.keys() - {"cc", "options"}
        if unknown:
            raise _core.UserError(
                f"export_library: there is no argument {', '.join(sorted(unknown))}; without fcompile there are cc "
                "and options"
            )
        return create_shared if kwargs or addons else None
    if isinstance(fcompile, str):
        return functools.partial(create_shared, cc=fcompile)
    if not callable(fcompile):
        raise _core.UserError(f"fcompile: expected a compiler's name or a function, got {_arguments.kind(fcompile)}")
    return fcompile


_core.Module.export_library = export_library
