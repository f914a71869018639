"""Paths of the files that pipelines are written to and loaded from."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from headrace import _arguments
from headrace._core import UserError


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
