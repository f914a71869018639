"""`python -m headrace.cache list|clear|path`: the models that `compile(cache=True)` keeps."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from headrace import _arguments, _public
from headrace._compile_cache import CompileCache, default_folder
from headrace._core import UserError

__all__ = ["clear", "entries", "path"]

_BAD_INPUT = 3  # headrace/status.h


def path(folder: str | PathLike[str] | None = None) -> Path:
    """The folder of a cache.

    Parameters
    ----------
    folder : path, optional
        Default: the one of HEADRACE_CACHE, or else the user's.

    Returns
    -------
    pathlib.Path
        The folder, which need not exist.
    """
    return default_folder() if folder is None else Path(_arguments.path(folder, "folder"))


def entries(folder: str | PathLike[str] | None = None) -> list[Path]:
    """The files of a cache.

    Parameters
    ----------
    folder : path, optional
        As for `path`.

    Returns
    -------
    list of pathlib.Path
        The least recently used first.

    Raises
    ------
    UserError
        For a folder that compiles refuse.
    """
    return [file for file, _ in _entries(path(folder))]


def clear(folder: str | PathLike[str] | None = None) -> int:
    """Removes the files of a cache.

    Parameters
    ----------
    folder : path, optional
        As for `path`.

    Returns
    -------
    int
        How many entries there were.

    Raises
    ------
    UserError
        For a folder that compiles refuse.
    """
    place = path(folder)
    return CompileCache(place).clear() if place.exists() else 0


def _counted(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _entries(place: Path) -> list[tuple[Path, os.stat_result]]:
    return CompileCache(place).entries() if place.exists() else []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m headrace.cache", description="The cache of compiled models.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, what in (
        ("list", "print the entries: size, last use and file, the least recently used first"),
        ("clear", "remove all entries"),
        ("path", "print the folder"),
    ):
        verbs.add_parser(verb, help=what).add_argument("--folder", help="default: that of HEADRACE_CACHE or the user's")
    return parser


def _main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    place = path(given.folder or None)
    if given.verb == "path":
        print(place)
        return 0
    try:
        if given.verb == "clear":
            print(f"{_counted(clear(place))} removed")
            return 0
        found = _entries(place)
    except (UserError, OSError) as error:
        print(f"headrace.cache: {error}", file=sys.stderr)
        return _BAD_INPUT
    for file, status in found:
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(status.st_mtime))
        print(f"{status.st_size:>12} {used} {file.name}")
    print(f"{_counted(len(found))}, {sum(status.st_size for _, status in found)} bytes")
    return 0


_public.settle(__name__)

if __name__ == "__main__":
    sys.exit(_main())
