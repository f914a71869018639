"""The process of a stage that calls a function of Python; `_processes.function_command` starts it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from headrace import _core
from headrace._core import UserError
from headrace.pipeline import _stage_code


def serve(asked: Mapping[str, Any]) -> None:
    """Answers the calls of the pipeline until it ends."""
    _core.serve_stage(lambda: _code_of(asked))


def _code_of(asked: Mapping[str, Any]) -> Any:
    function = _function_of(asked["function"])
    inputs = [(name, None, []) for name in _stage_code.inputs_of(function, asked["inputs"])]
    outputs = [(name, None, []) for name in asked["outputs"]]
    batch = None if asked["batch"] is None else _core.PipelineBatch(*asked["batch"], [])
    return _core.function_stage(function, inputs, outputs, batch)


def _function_of(name: str) -> Callable[..., Any]:
    module, _, path = name.partition(":")
    try:
        found = reduce(getattr, path.split("."), importlib.import_module(module))
    except Exception as error:
        raise UserError(f"'{name}' cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UserError(f"'{name}' is a {type(found).__name__}, and a stage calls a function")
    return found
