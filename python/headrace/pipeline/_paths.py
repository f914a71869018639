"""Paths of the files that pipelines are written to and loaded from."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from headrace import _arguments
from headrace._core import UserError

# Endings of files that users have beside a pipeline, which a mistaken argument would replace.
_OTHERS = {
    ".onnx": "a model",
    ".relay": "a model",
    ".npy": "an array",
    ".npz": "arrays",
    ".json": "JSON",
    ".html": "a page",
    ".py": "a program of Python",
}


def written_path(path: str | PathLike[str], argument: str) -> str:
    """The path of a pipeline's new file. UserError for the ending of another kind of file, which would be replaced."""
    name = _arguments.path(path, argument)
    found = Path(name)
    if kind := _OTHERS.get(found.suffix.lower()):
        raise UserError(
            f"{argument}: cannot write '{name}': '{found.suffix}' is the ending of {kind}, and a pipeline is an ELF "
            f"file; name it '{found.with_suffix('.so')}'"
        )
    return name


def loaded_path(path: str | PathLike[str]) -> str:
    """The path of a pipeline's file. UserError for that of a model."""
    name = _arguments.path(path, "path")
    if name.lower().endswith((".onnx", ".relay")):
        file = Path(name).with_suffix(".so")
        raise UserError(
            f"path: '{name}' is a model, which pipeline.split makes a pipeline of: "
            f"pipeline.split('{name}', '{file}'), and load('{file}')"
        )
    return name


def trace_path(path: str | PathLike[str], argument: str) -> str:
    """The path of a trace's new file. UserError for a page, since a trace is JSON."""
    name = _arguments.path(path, argument)
    if name.lower().endswith((".html", ".htm")):
        raise UserError(
            f"{argument}: cannot write '{name}': a trace is JSON, so name it '{Path(name).with_suffix('.json')}'; "
            f"headrace pipeline run FILE --trace '{name}' writes a page"
        )
    return name
