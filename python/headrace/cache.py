"""`python -m headrace.cache list|clear|path`: the models that `compile(cache=True)` keeps."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from headrace import _public
from headrace._compile_cache import CompileCache, default_folder
from headrace._core import UserError

__all__: list[str] = []

_BAD_INPUT = 3  # headrace/status.h


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
    folder = Path(given.folder) if given.folder else default_folder()
    if given.verb == "path":
        print(folder)
        return 0
    try:
        entries = CompileCache(folder).entries() if folder.exists() else []
        if given.verb == "clear":
            count = CompileCache(folder).clear() if folder.exists() else 0
            print(f"{count} entries removed")
            return 0
    except (UserError, OSError) as error:
        print(f"headrace.cache: {error}", file=sys.stderr)
        return _BAD_INPUT
    for path, status in entries:
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(status.st_mtime))
        print(f"{status.st_size:>12} {used} {path.name}")
    print(f"{len(entries)} entries, {sum(status.st_size for _, status in entries)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(_main())

_public.settle(__name__)
