"""`python -m headrace VERB ...`: the program `headrace` in this process, where it finds the backends in Python, too."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from headrace import _core, _native

_MISSING = 4  # HR_MISSING_DEPENDENCY of headrace/status.h


def _words(words: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    """Words as main() gets them: behind the last one is a null pointer."""
    return (ctypes.c_char_p * (len(words) + 1))(*map(os.fsencode, words))


def _main(arguments: Sequence[str]) -> int:
    if _native.is_runtime_alone:
        print(_native.missing("python -m headrace"), file=sys.stderr)
        return _MISSING
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)  # for --against and images
    verbs = ctypes.CDLL(str(Path(_core.own_folder()) / "libheadrace_verbs.so"))
    # As for a program that is not Python; SIGINT stays ignored where nohup says so.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    again = [sys.executable, "-m", "headrace"]
    return int(
        verbs.headrace_run_program(1 + len(arguments), _words(["headrace", *arguments]), len(again), _words(again))
    )


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
