"""The programs `headrace` and `headrace-opt`, as pip installs them: they lie in bin/ beside this file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent / "bin"


def _become(name: str) -> None:
    """Replaces this process by the program; its --against and its images find the package in this Python."""
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)
    program = _FOLDER / name
    try:
        os.execv(program, [name, *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"{name}: cannot start '{program}': {error.strerror}; install the package again")


def headrace() -> None:
    """Compiles models, runs and checks them: headrace --help."""
    _become("headrace")


def headrace_opt() -> None:
    """Runs passes on programs in text form: headrace-opt --help."""
    _become("headrace-opt")
