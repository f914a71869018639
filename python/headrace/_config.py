"""The program `headrace-config`: where a C or C++ project finds what the package brings for it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

_PREFIX = Path(__file__).resolve().parent


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headrace-config",
        description="Prints where CMake and C compilers find Headrace's headers and its runtime library.",
        epilog='Example: cmake -B build -Dheadrace_DIR="$(headrace-config --cmakedir)"',
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--cmakedir", action="store_true", help="the folder of headrace-config.cmake")
    which.add_argument("--includedir", action="store_true", help="the folder of headrace/c_api.h and dlpack/dlpack.h")
    which.add_argument("--libdir", action="store_true", help="the folder of libheadrace_rt.so")
    which.add_argument("--version", action="store_true", help="the version of the package")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Prints what one option asks for; 4 where this installation has no such folder, 2 for wrong usage."""
    asked = _parser().parse_args(arguments)
    if asked.version:
        from headrace._core import __version__

        print(__version__)
        return 0
    name = "lib/cmake/headrace" if asked.cmakedir else "include" if asked.includedir else "lib"
    folder = _PREFIX / name
    if not folder.is_dir():
        print(
            f"headrace-config: this installation has no {folder}: it was not made from the wheel headrace-runtime; "
            "install that, or use the prefix of `cmake --install`",
            file=sys.stderr,
        )
        return 4
    print(folder)
    return 0
