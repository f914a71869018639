"""C compilers, to link what `export_library` writes: an artifact needs none."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from os import PathLike

from headrace import _public
from headrace._core import UserError

__all__ = ["create_shared", "get_cc"]


def get_cc() -> str | None:
    """The C compiler.

    Returns
    -------
    str or None
        Of the environment (CXX, CC), else one of g++, gcc, clang++, clang, c++, cc; None without any.
    """
    for name in ("CXX", "CC"):
        if os.environ.get(name):
            return os.environ[name]
    return next((name for name in ("g++", "gcc", "clang++", "clang", "c++", "cc") if shutil.which(name)), None)


def create_shared(
    output: str | PathLike[str],
    objects: str | PathLike[str] | Sequence[str | PathLike[str]],
    options: Sequence[str] | None = None,
    cc: str | None = None,
) -> None:
    """Links objects to a shared object: CC -shared -fPIC -o OUTPUT OBJECTS OPTIONS -lm.

    Parameters
    ----------
    output : path
        The file.
    objects : path or list of path
        Object files and libraries.
    options : list of str, optional
        More arguments.
    cc : str, optional
        The compiler; without it, `get_cc()`.

    Raises
    ------
    UserError
        When there is no such compiler, or when it fails: with what it said.
    """
    compiler = cc or get_cc()
    if compiler is None:
        raise UserError(
            "create_shared: there is no C compiler here; name one (cc=), or link without any (fcompile=None)"
        )
    files = [objects] if isinstance(objects, (str, PathLike)) else list(objects)
    command = [compiler, "-shared", "-fPIC", "-o", output, *files, *(options or ()), "-lm"]
    words = [os.fspath(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UserError(f"create_shared: '{compiler}' cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip() or "nothing"
        raise UserError(f"create_shared: '{' '.join(words)}' ended with {done.returncode} and said: {said}")


_public.settle(__name__)
