"""Stages in processes of their own: their codes, and the commands that start Python for them."""

from __future__ import annotations

import json
import pickle
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

from headrace import _arguments, _core, compiler
from headrace._core import UserError
from headrace._memory_file import MemoryFile

_IMPORT_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
# The process has the pipeline's sys.path before it imports Headrace.
_START = """
import json, sys
asked = json.loads(sys.argv[1])
sys.path[:] = asked["path"]
from headrace.pipeline import _host
_host.serve(asked)
"""


def is_import_name(code: Any) -> bool:
    """Whether a text names a function, as "module:function"."""
    return isinstance(code, str) and _IMPORT_NAME.fullmatch(code) is not None


def import_name(function: Callable[..., Any]) -> str:
    """The name by which another process imports a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    shown = name or repr(function)
    if module == "__main__":
        raise UserError(
            f"the function '{shown}' is of the program itself (__main__), which the process of a stage does not "
            "import; put it into a module"
        )
    found = sys.modules.get(module) if isinstance(module, str) else None
    for part in (name or "").split("."):
        found = getattr(found, part, None)
    if found is not function or not is_import_name(f"{module}:{name}"):
        raise UserError(
            f"the function '{shown}' cannot be imported by name, as a stage with isolation='process' needs it; give a "
            "function at the top of a module, or its name as 'module:function'"
        )
    return f"{module}:{name}"


def function_command(
    name: str, inputs: Sequence[str] | None, outputs: Sequence[str], batch: Sequence[Any] | None
) -> list[str]:
    """Returns the command that starts a process which calls a function for a stage.

    Parameters
    ----------
    name : str
        "module:function", which the process imports with the `sys.path` that there is now.
    inputs : list of str, optional
        The inputs; without it, the parameters of the function.
    outputs : list of str
        The outputs.
    batch : list, optional
        The fields of PipelineBatch: max_batch, max_delay, retry_alone, any_rows.

    Returns
    -------
    list of str
    """
    if not is_import_name(name):
        raise UserError(f"the function '{name}' of a stage in a process of its own is not named as 'module:function'")
    if not sys.executable:
        raise UserError("sys.executable is empty: there is no Python for stages with isolation='process'")
    asked = {
        "path": [entry for entry in sys.path if isinstance(entry, str)],
        "function": name,
        "inputs": None if inputs is None else list(inputs),
        "outputs": list(outputs),
        "batch": None if batch is None else list(batch),
    }
    return [sys.executable, "-u", "-c", _START, json.dumps(asked)]


def program_stage(code: Any, given: Mapping[str, Any], batch: tuple[bool, bool], run: Mapping[str, Any]) -> Any:
    """A stage that runs a program, or those of a dict by their batch, in a process; None for what is not a program.

    `batch` says whether the stage has a batch, and whether its requests have any number of rows; `run` has the
    arguments is_pure and time_limit.
    """
    codes = [code[key] for key in sorted(code)] if isinstance(code, Mapping) else [code]
    files = [_file_of(one) for one in codes]
    if any(file is None for file in files):
        return None
    programs = [(path, program) for path, program, _ in files]
    threads = max((one.threads for one in codes if isinstance(one, compiler.CompiledModel)), default=given["threads"])
    return _core.process_program_stage(
        programs=programs,
        has_batch=batch[0],
        any_rows=batch[1],
        threads=threads,
        cpus=given["cpus"],
        falls_back=given["falls_back"],
        **run,
    )


def _file_of(code: Any) -> tuple[str, str, MemoryFile | None] | None:
    """The path of an artifact, its program (empty: the first one), and what keeps the file; None for no program."""
    if isinstance(code, (str, PathLike)):
        return _arguments.path(code, "code"), "", None
    module = getattr(code, "module", code)
    if isinstance(module, _core.Module):
        file = MemoryFile(module.save_to_binary())
        return file.path, "", file
    if not isinstance(code, compiler.CompiledModel):
        return None
    if code.path is None:
        raise UserError(
            "the model was compiled in memory, and a stage with isolation='process' opens its file; compile it with "
            "output='model.so'"
        )
    return str(code.path), code.program, None


def pack(value: Any) -> bytes:
    """An object for the other process."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise UserError(
            f"a {type(value).__name__} cannot pass between a pipeline and a stage in a process of its own: {error}"
        ) from None


def unpack(data: bytes) -> Any:
    """The object of the other process."""
    return pickle.loads(data)


def pack_error(error: BaseException) -> bytes:
    """An exception for the other process, with its traceback as a note; one that cannot pass is told by its text."""
    try:
        if hasattr(error, "add_note"):
            error.add_note("In the process of the stage:\n" + "".join(traceback.format_tb(error.__traceback__)))
        data = pickle.dumps(error)
        pickle.loads(data)  # some classes of exceptions are pickled and cannot be made again
    except Exception:
        return pickle.dumps(RuntimeError("".join(traceback.format_exception_only(type(error), error)).strip()))
    return data
