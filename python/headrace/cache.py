"""`python -m headrace.cache list|clear|path`, as `headrace cache`: what is kept for other processes.

The models of `compile(cache=True)`, and the tables of costs of `headrace profile --backends`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments, _public
from headrace._compile_cache import CompileCache, default_folder
from headrace._core import UserError

__all__ = ["clear", "entries", "path"]

_BAD_INPUT = 3  # headrace/status.h
_COSTS = re.compile(r".+-[0-9]+\.json")


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
    if not place.exists():
        return 0
    costs = _costs(place)
    removed = CompileCache(place).clear() + len(costs)
    for file in costs:
        file.unlink(missing_ok=True)
    return removed


def _counted(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _entries(place: Path) -> list[tuple[Path, os.stat_result]]:
    if not place.exists():
        return []
    found = CompileCache(place).entries() + [(file, file.lstat()) for file in _costs(place)]
    return sorted(found, key=lambda entry: entry[1].st_mtime_ns)


def _costs(place: Path) -> list[Path]:
    """The tables of costs that `headrace profile` keeps there (PROCESSOR-THREADS.json); others are the user's."""
    return [file for file in (place / "costs").glob("*.json") if _COSTS.fullmatch(file.name) and _is_table(file)]


def _is_table(file: Path) -> bool:
    try:
        with file.open("rb") as text:
            return b'"headrace_costs"' in text.read(200)
    except OSError:
        return False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m headrace.cache", description="The cache of compiled models.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, what in (
        ("list", "print the entries: size, last use and file, the least recently used first"),
        ("clear", "remove all entries"),
        ("path", "print the folder"),
    ):
        options = verbs.add_parser(verb, help=what)
        options.add_argument("--folder", help="default: that of HEADRACE_CACHE or the user's")
        options.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    return parser


def _report(given: argparse.Namespace, place: Path) -> dict[str, object]:
    """Does what the verb says; the object that --json prints."""
    report: dict[str, object] = {"folder": str(place)}
    if given.verb == "clear":
        report["removed"] = clear(place)
    elif given.verb == "list":
        found = _entries(place)
        report["entries"] = [
            {"file": str(file.relative_to(place)), "bytes": status.st_size, "used_seconds": status.st_mtime}
            for file, status in found
        ]
        report["bytes"] = sum(status.st_size for _, status in found)
    return report


def _text(verb: str, report: dict[str, Any]) -> str:
    if verb == "path":
        return report["folder"]
    if verb == "clear":
        return f"{_counted(report['removed'])} removed"
    lines = []
    for entry in report["entries"]:
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry["used_seconds"]))
        lines.append(f"{entry['bytes']:>12} {used} {entry['file']}")
    return "\n".join([*lines, f"{_counted(len(report['entries']))}, {report['bytes']} bytes"])


def _main(arguments: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    try:
        report = _report(given, path(given.folder or None))
    except (UserError, OSError) as error:
        print(f"headrace: {error}", file=sys.stderr)
        return _BAD_INPUT
    print(json.dumps(report, indent=2) if given.json else _text(given.verb, report))
    return 0


_public.settle(__name__)

if __name__ == "__main__":
    sys.exit(_main())
