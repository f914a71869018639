"""`python -m headrace VERB ...`: the program `headrace` in this process, where it finds the backends in Python, too.

`--plugin FILE.py` runs a file that defines some.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from headrace import _core, _native
from headrace._core import UserError

_BAD_INPUT, _MISSING = 3, 4  # HR_USER and HR_MISSING_DEPENDENCY of headrace/status.h


def _words(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    """Words as main() gets them: behind the last one is a null pointer."""
    return (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words))


def _split_plugins(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments without those that name files of Python, `--plugin FILE.py`; and these files."""
    rest: list[str] = []
    files: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, file = word.partition("=")
        if option != "--plugin":
            rest.append(word)
            continue
        given = [] if equals else [one for one in [next(words, None)] if one is not None]
        name = file if equals else "".join(given)
        if name.endswith(".py"):
            files.append(name)
        else:
            rest.extend([word, *given])
    return rest, files


def _fault_of(file: str, error: BaseException) -> UserError:
    """The error of a file of Python, with its place in the file."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in reversed(frames) if frame.filename == str(Path(file).absolute())]
    line = error.lineno if isinstance(error, SyntaxError) else [*lines, None][0]
    said = error.msg if isinstance(error, SyntaxError) else error
    return UserError(f"--plugin: {file}:{line or 1}: {type(error).__name__}: {said}")


def _run_file(file: str) -> ModuleType:
    """Runs a file of Python. Its errors are errors of the user."""
    name = f"headrace_plugin_{Path(file).stem}"  # numpy.py hides no numpy
    spec = importlib.util.spec_from_file_location(name, Path(file).absolute())
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise UserError(f"--plugin: there is no file '{file}'")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _fault_of(file, error) from error
    return module


def _register_class(kind: type, file: str) -> None:
    from headrace import backend

    name = getattr(kind, "name", "")
    registered = backend._registered.get(name)
    if not name or isinstance(registered, kind):  # the file registers it itself
        return
    if registered is not None or name in backend.names():
        taken = f"there is a backend '{name}' already, {backend._origin(name)}"
        raise UserError(f"--plugin: {file}: {taken}; give {kind.__name__} another name")
    try:
        made = kind()
    except (Exception, SystemExit) as error:
        raise _fault_of(file, error) from error
    backend.register(made)


def _import_backends(file: str) -> None:
    """Runs a file, and registers the backends that it defines and does not register itself."""
    from headrace import backend  # most calls of the program need none of it
    from headrace._ffi import list_global_func_names

    known, functions = set(backend.names()), list_global_func_names()
    module = _run_file(file)
    found = [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, backend.Backend)]
    kinds = [one for one in found if one.__module__ == module.__name__]
    for kind in kinds:
        _register_class(kind, file)
    if set(backend.names()) != known or list_global_func_names() != functions:
        return
    fault = "it has no class of headrace.backend.Backend"
    imported = [one for one in found if one is not backend.Backend]
    if imported:
        fault = f"its class {imported[0].__name__} is imported; add headrace.backend.register({imported[0].__name__}())"
    if kinds:
        fault = f"the class {kinds[0].__name__} has no name"
    raise UserError(f"--plugin: {file} registers no backend and no function: {fault}")


def _main(arguments: Sequence[str]) -> int:
    if _native.is_runtime_alone:
        print(_native.missing("python -m headrace"), file=sys.stderr)
        return _MISSING
    rest, files = _split_plugins(arguments)
    try:
        for file in dict.fromkeys(files):
            _import_backends(file)
    except UserError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return _BAD_INPUT
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)  # for --against and images
    verbs = ctypes.CDLL(str(Path(_core.own_folder()) / "libheadrace_verbs.so"))
    # As for a program that is not Python; SIGINT stays ignored where nohup says so.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    again = [sys.executable, "-m", "headrace", *(f"--plugin={file}" for file in files)]
    return int(verbs.headrace_run_program(1 + len(rest), _words(["headrace", *rest]), len(again), _words(again)))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
