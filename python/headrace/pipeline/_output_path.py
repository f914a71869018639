"""Paths of the files that pipelines are written to."""

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


def pipeline_path(path: str | PathLike[str], argument: str) -> str:
    """The path of a pipeline's file. UserError for the ending of another kind of file, which would be replaced."""
    name = _arguments.path(path, argument)
    found = Path(name)
    if kind := _OTHERS.get(found.suffix.lower()):
        raise UserError(
            f"{argument}: cannot write '{name}': '{found.suffix}' is the ending of {kind}, and a pipeline is an ELF "
            f"file; name it '{found.with_suffix('.so')}'"
        )
    return name
